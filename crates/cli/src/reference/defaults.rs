//! What is so if nobody says otherwise, asked of the code that knows.

use std::time::Duration;

use mcpz_audit::AuditSettings;
use mcpz_engine::{Limits, Memory, RunLimits};
use mcpz_output::SpillSettings;
use mcpz_policy::{Threats, Unresolved};
use mcpz_sandbox::{Mode, View};
use mcpz_server::{FaceSettings, HttpLimits, MaxAnswer, MemoryLimits, ShellSettings};

use crate::{http, settings};

/// The default of a key of the file, as the page tells it.
pub fn of(path: &str) -> String {
    let (run, limits, shell) = (RunLimits::default(), Limits::default(), ShellSettings::default());
    let (spill, audit) = (SpillSettings::new(""), AuditSettings::new(""));
    let (served, faces) = (HttpLimits::default(), FaceSettings::default());
    match path {
        "shell_tool.working_dir" => "that of the server, and anywhere".to_owned(),
        "shell_tool.timeout" => format!(
            "{}; {} in `execute`, `run_shell_command` and `shell_exec`",
            seconds(faces.timeout),
            seconds(faces.long_timeout)
        ),
        "shell_tool.finish_time" => plain(settings::DEFAULT_FINISH_TIME),
        "shell_tool.shell" => plain(settings::DEFAULT_SHELL),
        "shell_tool.no_stderr" | "shell_tool.verbose" | "shell_tool.login_env" => plain(false),
        "shell_tool.log_format" => plain("\"text\""),
        "shell_tool.background_after" => "never".to_owned(),
        "shell_tool.tools" => plain("[\"default\"]"),
        "shell_tool.default_timeout" => seconds(shell.default_timeout),
        "shell_tool.max_timeout" => seconds(shell.max_timeout),
        "shell_tool.max_answer" => plain(MaxAnswer::default().characters()),
        "shell_tool.max_output_size" => size(shell.max_output as u64),
        "shell_tool.log_commands" | "shell_tool.mask_secrets" => plain(true),
        "shell_tool.allowed_directories" | "shell_tool.env_pass" => "all".to_owned(),
        "policy.allow" => "everything".to_owned(),
        "policy.unresolved" => plain(match Unresolved::default() {
            Unresolved::Deny => "\"deny\"",
            Unresolved::Allow => "\"allow\"",
        }),
        "policy.threats" => plain(match Threats::default() {
            Threats::Off => "\"off\"",
            Threats::Warn => "\"warn\"",
            Threats::Deny => "\"deny\"",
        }),
        "policy.write_dirs" => "everywhere".to_owned(),
        "limits.spill_per_run" => size(spill.per_run),
        "limits.spill_per_client" => "half of `spill_total`".to_owned(),
        "limits.spill_total" => size(spill.total),
        "limits.spill_time" => plain(settings::DEFAULT_SPILL_TIME),
        "limits.message_memory" => size(MemoryLimits::default().total as u64),
        "limits.message_memory_per_client" => "a quarter of `message_memory`".to_owned(),
        "limits.runs" => plain(run.total),
        "limits.runs_per_client" => plain(run.per_owner),
        "limits.waiting" => plain(run.waiting),
        "limits.jobs" => plain(run.jobs),
        "limits.sessions" => plain(run.sessions),
        "limits.idle" => run.idle.map_or("never".to_owned(), seconds),
        "limits.memory" if limits.memory == Memory::Most => "80 % of it".to_owned(),
        "limits.processes" => limits.processes.map_or("any".to_owned(), plain),
        "limits.memory_per_client" if limits.together.memory == Memory::Most => {
            "80 % of it".to_owned()
        }
        "limits.processes_per_client" => limits.together.processes.map_or("any".to_owned(), plain),
        "limits.open_files" => {
            limits.open_files.map_or("as many as the server was started with".to_owned(), plain)
        }
        "limits.file_size" => limits.file_size.map_or("any".to_owned(), size),
        "limits.cpu_time" => limits.cpu_time.map_or("any".to_owned(), seconds),
        "limits.nice" => plain(limits.nice),
        "sandbox.mode" | "sandbox.net" => plain("\"off\""),
        "sandbox.tmp_size" => size(View::new(Mode::Workspace, "/".into()).tmp_bytes),
        "audit.folder" => "`mcpz` in `$XDG_STATE_HOME` (`~/.local/state`)".to_owned(),
        "audit.max_size" => size(audit.max_size),
        "audit.keep" => plain(audit.keep),
        "http.bind" => plain(http::DEFAULT_BIND),
        "http.path" => plain(http::DEFAULT_PATH),
        "http.auth" => plain("\"token\""),
        "http.max_body" => size(served.body as u64),
        "http.max_header" => size(served.header_bytes as u64),
        "http.header_time" => seconds(served.header_time),
        "http.body_time" => seconds(served.body_time),
        "http.write_time" => seconds(served.write_time),
        "http.connections" => plain(served.connections),
        "http.sessions_per_client" => plain(served.sessions),
        "http.session_time" => seconds(served.session_time),
        "http.grace" => seconds(served.grace),
        _ if NONE.contains(&path) => "none".to_owned(),
        _ => panic!("the default of `{path}` is not told: add it to {}", file!()),
    }
}

/// Keys without which there is nothing of the kind.
const NONE: &[&str] = &[
    "shell_tool.settings",
    "shell_tool.blocked_commands",
    "shell_tool.secrets",
    "shell_tool.env_drop",
    "policy.deny",
    "policy.allow.reason",
    "policy.allow.instead",
    "policy.allow.match",
    "policy.allow.not_match",
    "sandbox.deny_read",
    "sandbox.write_dirs",
    "sandbox.unprotected",
    "http.tokens",
    "http.oauth",
    "http.oauth.scopes",
    "http.allowed_hosts",
    "http.allowed_origins",
    "http.tls_cert",
    "http.tls_key",
];

fn plain(value: impl std::fmt::Display) -> String {
    format!("`{value}`")
}

fn seconds(time: Duration) -> String {
    plain(time.as_secs())
}

/// A number of bytes in the largest unit that it is a multiple of.
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("GiB", 1 << 30), ("MiB", 1 << 20), ("MB", 1_000_000), ("KiB", 1 << 10), ("B", 1)];
    let (name, unit) = UNITS.into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap();
    plain(format!("\"{}{name}\"", bytes / unit))
}
