//! The environment variables that the program reads, and the one that it sets, each with its purpose.

use std::collections::BTreeMap;
use std::path::Path;

use crate::settings::{Row, Settings};

/// Variables that are not settings.
const OTHERS: &[(&str, &str)] = &[
    ("HOME", "Your home, below which configuration, records and clients' files are by default"),
    ("XDG_CONFIG_HOME", "The folder of configuration and clients' files [`~/.config`]"),
    ("XDG_CACHE_HOME", "The folder in which commands in a sandbox write to caches [`~/.cache`]"),
    ("XDG_STATE_HOME", "The folder of records and detached jobs [`~/.local/state`]"),
    ("TMPDIR", "The folder for output that does not fit in memory [`/tmp`]"),
    ("PATH", "Where to find `bwrap`, a shell given without a path, and clients' programs"),
    ("MCPZ_LOGIN_ENV", "mcpz sets it to `1` for the login shell that `--login-env` starts"),
    ("SHELL", "The login shell for `--login-env` [the one in `/etc/passwd`]"),
    ("NO_COLOR", "Turns colours off, even on a terminal"),
    ("CLICOLOR_FORCE", "Turns colours on, even without a terminal"),
    ("TERM", "`dumb` turns colours off"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "URL of the collector for traces; mcpz appends `/v1/traces`"),
    (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "Full URL to send traces to, used as it is; overrides `OTEL_EXPORTER_OTLP_ENDPOINT`",
    ),
    ("OTEL_EXPORTER_OTLP_HEADERS", "Headers to send with traces; commands never receive them"),
    ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Overrides `OTEL_EXPORTER_OTLP_HEADERS`"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "The protocol for traces; only `http/protobuf` is supported"),
    ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "Overrides `OTEL_EXPORTER_OTLP_PROTOCOL`"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "Milliseconds that a collector may take to respond [10000]"),
    ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "Overrides `OTEL_EXPORTER_OTLP_TIMEOUT`"),
    ("OTEL_BSP_SCHEDULE_DELAY", "Milliseconds between two batches of traces [5000]"),
    ("OTEL_SERVICE_NAME", "The service name in traces [`mcpz`]"),
    ("OTEL_RESOURCE_ATTRIBUTES", "More attributes for traces, such as `team=a,env=b`"),
    ("OTEL_SDK_DISABLED", "`true` turns traces off"),
    ("OTEL_TRACES_EXPORTER", "`none` turns traces off"),
    ("CLAUDE_CONFIG_DIR", "The configuration folder of Claude Code, for `mcpz install`"),
    ("CODEX_HOME", "The configuration folder of Codex, for `mcpz install`"),
    ("GEMINI_CLI_HOME", "The folder with the `.gemini` of Gemini CLI, for `mcpz install`"),
    ("QWEN_HOME", "The configuration folder of Qwen Code, for `mcpz install`"),
    ("GOOSE_PATH_ROOT", "The folder with the `config` of Goose, for `mcpz install`"),
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
        _ if in_file => format!("{about}; overrides the file"),
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
