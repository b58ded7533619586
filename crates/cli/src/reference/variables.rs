//! The variables we read, each with what it is for. The code is searched for others.

use std::collections::BTreeMap;
use std::path::Path;

use mcpz_server::ExecuteSettings;

/// Every variable the program reads, in order.
pub fn all() -> BTreeMap<String, String> {
    let execute = ExecuteSettings::default();
    let cut =
        format!("The most bytes the tool `execute` answers with [{}]", execute.max_output_bytes);
    let logged =
        format!("Bytes of an answer of `execute` that `-v` logs [{}]", execute.log_output_bytes);
    let told: BTreeMap<String, String> = [
        ("MCPZ_CONFIG", "The configuration file"),
        ("MCP_HTTP_TOKEN", "The token that lets clients in over HTTP; reaches no command"),
        ("MCP_HTTP_BIND", "The address to listen on; counts before the file"),
        ("MCP_HTTP_PATH", "The path of the endpoint; counts before the file"),
        ("MCP_EXEC_MAX_OUTPUT_BYTES", &cut),
        ("MCP_EXEC_LOG_FULL_OUTPUT", "`1` to log all that `execute` answers with, with `-v`"),
        ("MCP_EXEC_LOG_OUTPUT_BYTES", &logged),
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
    ]
    .into_iter()
    .map(|(name, meaning)| (name.to_owned(), meaning.to_owned()))
    .collect();
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    for name in read_in(folder) {
        assert!(told.contains_key(&name), "${name} is read, but not told of in {}", file!());
    }
    told
}

/// The names that are read in the sources below a folder: a call with nothing but capitals in quotes.
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
