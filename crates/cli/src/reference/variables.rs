//! The environment variables that the program reads, each with what it is for.

use std::collections::BTreeMap;
use std::path::Path;

use crate::settings::{Row, Settings};

/// Variables that are not settings.
const OTHERS: &[(&str, &str)] = &[
    ("HOME", "Where configuration, records and clients' files are, unless others say"),
    ("XDG_CONFIG_HOME", "Where configuration and clients' files are [`~/.config`]"),
    ("XDG_STATE_HOME", "Where the records and detached jobs are [`~/.local/state`]"),
    ("TMPDIR", "Where output is kept that does not fit in memory [`/tmp`]"),
    ("PATH", "Where `bwrap`, a shell without a path and clients' programs are looked for"),
    ("SHELL", "The login shell that `--login-env` asks [that of `/etc/passwd`]"),
    ("NO_COLOR", "No colours, also on a terminal"),
    ("CLICOLOR_FORCE", "Colours, also where there is no terminal"),
    ("TERM", "No colours if it is `dumb`"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "Where traces are sent to, below `/v1/traces`"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "The same as it is; counts before the other"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "Headers they are sent with; reach no command"),
    ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "The same; counts before the other"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "How they are sent; only `http/protobuf` is supported"),
    ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "The same; counts before the other"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "Milliseconds a collector may take [10000]"),
    ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "The same; counts before the other"),
    ("OTEL_BSP_SCHEDULE_DELAY", "Milliseconds between two sendings [5000]"),
    ("OTEL_SERVICE_NAME", "What traces say they are of [`mcpz`]"),
    ("OTEL_RESOURCE_ATTRIBUTES", "What else they say"),
    ("OTEL_SDK_DISABLED", "`true` for no traces"),
    ("OTEL_TRACES_EXPORTER", "`none` for no traces"),
    ("CLAUDE_CONFIG_DIR", "Where Claude Code has its file, for `mcpz install`"),
    ("CODEX_HOME", "The same for Codex"),
    ("GEMINI_CLI_HOME", "The same for Gemini CLI"),
    ("QWEN_HOME", "The same for Qwen Code"),
    ("GOOSE_PATH_ROOT", "The same for Goose"),
];

/// Every variable the program reads, in order.
pub fn all() -> BTreeMap<String, String> {
    let others = OTHERS.iter().map(|(name, about)| ((*name).to_owned(), (*about).to_owned()));
    let mut all: BTreeMap<_, _> = others.collect();
    for section in Settings::sections() {
        let in_file = section.table.is_some();
        for row in &section.rows {
            all.extend(row.variable.map(|name| (name.to_owned(), about(row, in_file))));
        }
    }
    for name in read_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))) {
        assert!(all.contains_key(&name), "${name} is read, but not listed in {}", file!());
    }
    all
}

/// What a row says of its variable.
fn about(row: &Row, in_file: bool) -> String {
    let about = row.about.trim().trim_end_matches('.');
    match (row.default)() {
        _ if in_file => format!("{about}; counts before the file"),
        Some(default) if default != "false" => format!("{about} [{default}]"),
        _ => about.to_owned(),
    }
}

/// The names that sources in a folder read: calls with nothing but capitals in quotes.
fn read_in(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("reference") {
            continue;
        }
        if entry.path().is_dir() {
            names.extend(read_in(&entry.path()));
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for call in ["variable(\"", "text(\"", "named(\"", "number(\""] {
            let found = code.split(call).skip(1).filter_map(|rest| rest.split('"').next());
            let plain =
                |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
            names.extend(found.filter(|name| name.bytes().all(plain)).map(str::to_owned));
        }
    }
    names
}
