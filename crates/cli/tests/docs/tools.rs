//! `docs/tools.md`, made from what a server says of its tools.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::Server;

const BEGINNING: &str = "\
# Tools and their fields

<!-- Made from the code: UPDATE_DOCS=1 cargo test -p mcpz --bin mcpz --test docs the_page_of -->

All tools use the same engine, so what holds for one holds for all. `--tools LIST` chooses the tools that are offered:
names, `default` or `all`. Types and most descriptions below are the ones that a client sees.

A command that fails is an answer, not an error; one that is refused, times out or cannot start is an error. An answer
has at most 24,000 characters as JSON (`--max-answer`); `execute` and `shell_exec` have their own limits unless that is
set. If the output does not fit, `execute_command` shows its beginning and its end; read all of it with
`read_file_chunk`, or as a resource. See [jobs and sessions](jobs.md) for commands that outlast their call.
";

/// Descriptions for fields whose names say enough to a model.
const MEANINGS: &[(&str, &str)] = &[
    ("all", "With `job_ids`: wait for all of them, not for any"),
    ("background_job", "Job of the processes it left running"),
    ("background_pids", "Processes it left running"),
    ("bytes_end", "Offset of the last byte shown"),
    ("bytes_start", "Offset of the first byte shown"),
    ("columns", "New width of its terminal"),
    ("command", "The command that ran"),
    ("cpu_ms", "CPU time of the command and everything it started"),
    ("cursor_column", "Column of its terminal's cursor"),
    ("cursor_row", "Row of its terminal's cursor"),
    ("cwd", "With a `session`: its directory now"),
    ("data", "The requested part"),
    ("description", "Purpose, as the caller gave it"),
    ("directory", "Where it ran"),
    ("duration_ms", "How long it took"),
    ("elapsed_ms", "How long it took"),
    ("error", "What went wrong, if anything"),
    ("execution_time_ms", "How long it took"),
    ("exit_code", "Its exit code"),
    ("head_preview", "The first lines of standard output, before any filter"),
    ("job_id", "The job"),
    (
        "limit",
        "The limit it exceeded: `oom_killed`, `pids_limit`, `cpu_limit` or `file_size_limit`",
    ),
    ("limit_bytes", "The most bytes to show"),
    ("limit_lines", "The most lines to show"),
    ("line_count", "Lines of standard output shown"),
    ("lost_bytes", "Bytes that neither memory nor disk could keep"),
    ("max_rss_bytes", "Peak resident memory of its largest single process"),
    ("message", "Further details, such as why it was ended"),
    ("mime", "MIME type of the output"),
    ("next_cursor", "Cursor of the next part; absent at the end"),
    ("omitted_bytes", "Bytes left out of `output`, between its beginning and its end"),
    ("page", "Which part to show"),
    ("partial_stderr", "Standard error until the timeout"),
    ("partial_stdout", "Standard output until the timeout"),
    ("pid", "Its first process"),
    ("port", "With `wait_for` `port`: the port the job will listen on"),
    ("prompt", "The prompt it shows"),
    ("quiet_ms", "With `wait_for` `quiet`: how long it must print nothing"),
    ("running", "Whether the command is still running"),
    ("screen", "What its terminal shows"),
    ("session", "The session it ran in"),
    ("signal", "The signal that ended it"),
    ("spill_uri", "URI of the full output, for `read_file_chunk` or as a resource"),
    ("state", "With a job: `running`, `exited`, `stopped` or `lost`"),
    ("stderr", "What it printed to standard error"),
    ("stderr_chunk", "The part of standard error shown"),
    ("stderr_count", "Lines of standard error shown"),
    ("stderr_spill_uri", "The same for standard error, which is never compressed"),
    ("stderr_truncated", "Whether standard error was cut"),
    ("stdout", "What it printed to standard output"),
    ("stdout_chunk", "The part of standard output shown"),
    ("stdout_truncated", "Whether standard output was cut"),
    ("summary", "Counts, if requested"),
    ("shell_exec.summary.errors", "Lines that look like errors"),
    ("shell_exec.summary.lines", "All lines"),
    ("shell_exec.summary.warnings", "Lines that look like warnings"),
    ("tail_preview", "The last lines of standard output, before any filter"),
    ("text", "What to type"),
    ("timed_out", "Whether the timeout ended it"),
    ("timeout_seconds", "The timeout that ended it"),
    ("total_bytes", "Total bytes, after any filter"),
    ("wait_for", "What to wait for before answering: the end, any output, silence, a line, a port"),
    ("waiting_for_input", "Whether it is waiting for input"),
    ("warnings", "Why the command looks dangerous, and what the sandbox refused"),
    ("working_directory", "Where it ran"),
];

/// The page, as it should be.
pub fn page() -> String {
    let mut default = Server::start(&[]);
    let default = default.request("tools/list", json!({}))["result"]["tools"].clone();
    let mut server = Server::start(&["--tools", "all"]);
    let all = server.request("tools/list", json!({}))["result"]["tools"].clone();
    let mut page = BEGINNING.to_owned();
    for tool in all.as_array().unwrap() {
        let offered = default.as_array().unwrap().iter().any(|one| one["name"] == tool["name"]);
        let offered = if offered { "Offered by default." } else { "Offered on request." };
        let name = tool["name"].as_str().unwrap();
        let description = tool["description"].as_str().unwrap().trim_end_matches('.');
        let _ = writeln!(page, "\n## {name}\n\n{description}. {offered}");
        fields(("argument", "required"), name, &tool["inputSchema"], &mut page);
        match tool["outputSchema"].is_object() {
            true => fields(("answer", "always present"), name, &tool["outputSchema"], &mut page),
            false => page += "\nWhat it answers is shown in [jobs and sessions](jobs.md#jobs).\n",
        }
    }
    page
}

fn fields((heading, always): (&str, &str), tool: &str, schema: &Value, page: &mut String) {
    if schema["properties"].is_object() {
        let _ = writeln!(page, "\n| {heading} | type | |\n|---|---|---|");
        rows("", always, tool, schema, page);
    }
}

/// A line for each field, and for each within it.
fn rows(before: &str, always: &str, tool: &str, schema: &Value, page: &mut String) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{before}{name}");
        let required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        let must = if required { format!(", {always}") } else { String::new() };
        let (kind, meaning) = (kind(field), meaning(tool, &path, field));
        let _ = writeln!(page, "| `{path}` | {kind}{must} | {meaning} |");
        rows(&format!("{path}."), always, tool, field, page);
    }
}

fn kind(field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match (field["type"].as_str(), field["items"].is_object()) {
        (Some("array"), true) => format!("list of {}", kind(&field["items"])),
        (Some("object"), _) if field["additionalProperties"].is_object() => {
            "object of strings".into()
        }
        (Some(kind), _) => kind.to_owned(),
        (None, _) => panic!("{field} has no type"),
    }
}

fn meaning(tool: &str, path: &str, field: &Value) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    let known = |name: &str| MEANINGS.iter().find(|(one, _)| *one == name).map(|(_, text)| *text);
    let said = field["description"].as_str().filter(|text| !text.starts_with("[default"));
    let own = known(&format!("{tool}.{path}"));
    let text =
        own.or(said).or(known(name)).unwrap_or_else(|| panic!("{tool}: {name} is not explained"));
    let default = field["description"].as_str().filter(|text| text.starts_with("[default"));
    let default = default.map(|text| format!(" {text}")).unwrap_or_default();
    let default = match &field["default"] {
        Value::Null => default,
        value => format!("{default} [default: {value}]"),
    };
    let range = match (&field["minimum"], &field["maximum"]) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, most) => format!(" (up to {most})"),
        (least, Value::Null) => format!(" (from {least})"),
        (least, most) => format!(" (from {least} to {most})"),
    };
    format!("{text}{range}{default}").replace('|', "\\|").replace('\n', " ")
}
