//! `docs/tools.md`, made from what a server says of its tools.
//!
//! The tools for jobs have no output schema, because models read every byte of it. [`JOB_FIELDS`] describes their
//! answers instead, and real answers are held to it.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::Server;

const BEGINNING: &str = "\
# Tools and their fields

<!-- Made from the code: UPDATE_DOCS=1 cargo test -p mcpz --bin mcpz --test docs the_page_of -->

All tools share one engine, with the same policy, sandbox and limits. `--tools LIST` chooses the tools to offer: names,
`default` or `all`. The types and most descriptions below are the ones that a client sees.

If a command exits with a code other than 0, the call still succeeds. The call is an error (`isError`) if the command is
refused, times out or cannot start. An answer has at most 24,000 characters of JSON (`--max-answer`). Unless you set
`--max-answer`, `execute` (40,000 bytes) and `shell_exec` (64 KiB per page) have limits of their own. If the output does
not fit, `execute_command` shows its beginning and its end; read all of it with `read_file_chunk`, or as a resource. See
[jobs and sessions](jobs.md) for commands that outlive their call.
";

/// Descriptions for fields whose names say enough to a model.
const MEANINGS: &[(&str, &str)] = &[
    ("all", "With `job_ids`: wait for all jobs instead of any"),
    ("background_job", "Job id of the processes it left running"),
    ("background_pids", "Processes it left running"),
    ("bytes_end", "Offset of the last byte shown"),
    ("bytes_start", "Offset of the first byte shown"),
    ("columns", "New width of its terminal; needs `rows`"),
    ("command", "The command that ran"),
    ("cpu_ms", "CPU time of all its processes, in milliseconds"),
    ("cursor_column", "Column of its terminal's cursor, from 1"),
    ("cursor_row", "Row of its terminal's cursor, from 1"),
    ("cwd", "In a `session`: the current directory of its shell"),
    ("data", "The requested part"),
    ("description", "Purpose, as the caller gave it"),
    ("directory", "Directory in which it ran"),
    ("duration_ms", "Duration in milliseconds"),
    ("elapsed_ms", "The same as `duration_ms`"),
    ("error", "What went wrong, if anything"),
    ("execution_time_ms", "The same as `duration_ms`"),
    ("exit_code", "Its exit code"),
    ("head_preview", "The first lines of standard output, before any filter"),
    ("execute_command.next_cursor", "With a job: where `read_job` continues"),
    ("job_id", "Id of the job"),
    (
        "limit",
        "The limit it exceeded: `oom_killed`, `pids_limit`, `cpu_limit` or `file_size_limit`",
    ),
    ("write_job.rows", "New height of its terminal; needs `columns`"),
    ("jobs.command", "The command"),
    ("jobs.detached", "`true` if it outlives the server"),
    ("jobs.duration_ms", "Duration so far, in milliseconds"),
    ("jobs.matched", "With `wait_for` `text`: the line that matched"),
    ("jobs.next_cursor", "Where the next `read_job` continues"),
    ("read_job.json_path", "JMESPath; selects from what `extract` found"),
    (
        "jobs.omitted_bytes",
        "With `tail`: bytes before the lines shown, if fewer fit than requested",
    ),
    ("jobs.omitted_jobs", "Beside `jobs`: number of jobs that did not fit into the answer"),
    ("jobs.output", "Its output since the last answer, or since `cursor`"),
    ("jobs.output_uri", "URI of its output, as a resource"),
    ("jobs.session", "The session whose shell it is"),
    ("jobs.started_at", "Start time, in seconds since 1970"),
    ("jobs.state", "`running`, `exited`, `stopped`, or `lost` if its supervisor was killed"),
    ("jobs.survivors", "Number of its processes that are still running"),
    ("jobs.timed_out", "`true` if the event did not happen in time"),
    ("jobs.tty", "`true` if it has a terminal"),
    ("jobs.waiting_for_input", "`true` if it is waiting for input"),
    ("limit_bytes", "The most bytes to show"),
    ("uri", "URI of the output"),
    (
        "view",
        "A shorter form: similar lines folded, only errors, or what changed since the run before",
    ),
    ("extract", "What to find in the output: results of tests, diagnostics, a table, or JSON"),
    ("extracted", "What was found, as data"),
    ("limit_lines", "The most lines to show"),
    ("line_count", "Lines of standard output shown"),
    ("lost_bytes", "Bytes of output that could not be kept"),
    ("max_rss_bytes", "Peak resident memory of its largest single process"),
    ("message", "Further details, such as why it was ended"),
    ("mime", "MIME type of the output"),
    ("next_cursor", "Pass it as `cursor` to get the next part; absent at the end"),
    ("omitted_bytes", "Bytes left out of the middle of the output"),
    ("page", "Which part to show"),
    ("partial_stderr", "Standard error until the timeout"),
    ("partial_stdout", "Standard output until the timeout"),
    ("pid", "Process id of its first process"),
    ("port", "With `wait_for` `port`: the port on which the job will listen"),
    ("prompt", "The prompt it shows"),
    ("quiet_ms", "With `wait_for` `quiet`: milliseconds without output"),
    ("running", "Whether the command is still running"),
    ("screen", "Text on its terminal"),
    ("session", "The session it ran in"),
    ("signal", "The signal that ended it"),
    ("spill_uri", "URI of the full standard output, for `read_file_chunk` or as a resource"),
    ("state", "With a job: `running`, `exited`, `stopped` or `lost`"),
    ("stderr", "What it printed to standard error"),
    ("stderr_chunk", "The part of standard error shown"),
    ("stderr_count", "Lines of standard error shown"),
    ("shell_exec.stderr_spill_uri", "URI of the full standard error, which is never compressed"),
    ("stderr_spill_uri", "URI of the full standard error"),
    ("stderr_truncated", "Whether standard error was cut"),
    ("stdout", "What it printed to standard output"),
    ("stdout_chunk", "The part of standard output shown"),
    ("stdout_truncated", "Whether standard output was cut"),
    ("summary", "Line counts, if `summary` is set"),
    ("shell_exec.summary.errors", "Lines that look like errors"),
    ("shell_exec.summary.lines", "Number of lines"),
    ("shell_exec.summary.warnings", "Lines that look like warnings"),
    ("tail_preview", "The last lines of standard output, before any filter"),
    ("text", "What to type"),
    ("timed_out", "Whether it timed out"),
    ("timeout_seconds", "The timeout that it exceeded, in seconds"),
    ("total_bytes", "Total bytes, after any filter"),
    (
        "wait_for",
        "When to answer: when the job exits, prints something, is quiet, prints a matching line, or listens on a port",
    ),
    ("waiting_for_input", "Whether it is waiting for input"),
    ("warnings", "Why the command looks dangerous, and what the sandbox refused"),
    ("working_directory", "Directory in which it ran"),
    ("execute_command.environment", "Variables to set"),
    ("execute_command.stdin", "Text for its standard input"),
    ("execute_command.tty", "Give it a terminal"),
    ("execute_command.working_directory", "Where to run it"),
    ("read_file_chunk.limit_bytes", "The most bytes to show, from 1 to 262144"),
];

const JOBS: &str = "
## Fields of jobs

The tools for jobs answer with these fields; a field without a value is absent. `list_jobs` has `jobs`, a list with one
entry for each job. So does `read_job` with `job_ids`. For examples, see [jobs and sessions](jobs.md#jobs).

| answer | type | tools | |
|---|---|---|---|
";

/// The tools that answer with a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tools {
    All,
    List,
    Read,
    ReadAndWrite,
    Stop,
}

impl Tools {
    fn include(self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::List => tool == "list_jobs",
            Self::Read => tool == "read_job",
            Self::ReadAndWrite => ["read_job", "write_job"].contains(&tool),
            Self::Stop => tool == "stop_job",
        }
    }
}

impl std::fmt::Display for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::List => "`list_jobs`",
            Self::Read => "`read_job`",
            Self::ReadAndWrite => "`read_job`, `write_job`",
            Self::Stop => "`stop_job`",
        })
    }
}

/// The fields in answers of the tools for jobs.
const JOB_FIELDS: &[(&str, &str, Tools)] = &[
    ("job_id", "string", Tools::All),
    ("state", "string", Tools::All),
    ("exit_code", "integer", Tools::All),
    ("background_pids", "list of integers", Tools::ReadAndWrite),
    ("signal", "string", Tools::All),
    ("limit", "string", Tools::All),
    ("message", "string", Tools::All),
    ("warnings", "list of strings", Tools::All),
    ("lost_bytes", "integer", Tools::All),
    ("output", "string", Tools::ReadAndWrite),
    ("extracted", "any", Tools::Read),
    ("next_cursor", "string", Tools::ReadAndWrite),
    ("omitted_bytes", "integer", Tools::Read),
    ("matched", "string", Tools::ReadAndWrite),
    ("timed_out", "boolean", Tools::ReadAndWrite),
    ("waiting_for_input", "boolean", Tools::ReadAndWrite),
    ("prompt", "string", Tools::ReadAndWrite),
    ("screen", "string", Tools::ReadAndWrite),
    ("cursor_row", "integer", Tools::ReadAndWrite),
    ("cursor_column", "integer", Tools::ReadAndWrite),
    ("survivors", "integer", Tools::Stop),
    ("pid", "integer", Tools::List),
    ("command", "string", Tools::List),
    ("description", "string", Tools::List),
    ("started_at", "integer", Tools::List),
    ("duration_ms", "integer", Tools::List),
    ("session", "string", Tools::List),
    ("tty", "boolean", Tools::List),
    ("detached", "boolean", Tools::List),
    ("output_uri", "string", Tools::List),
    ("omitted_jobs", "integer", Tools::List),
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
        let offered = if offered { "Offered by default." } else { "Offered only with `--tools`." };
        let name = tool["name"].as_str().unwrap();
        let description = tool["description"].as_str().unwrap().trim_end_matches('.');
        let _ = writeln!(page, "\n## {name}\n\n{description}. {offered}");
        fields(("argument", "required"), name, &tool["inputSchema"], &mut page);
        match tool["outputSchema"].is_object() {
            true => fields(("answer", "always present"), name, &tool["outputSchema"], &mut page),
            false => page += "\nIts answer has [fields of jobs](#fields-of-jobs).\n",
        }
    }
    check_answers(&mut server);
    page += JOBS;
    for (name, kind, tools) in JOB_FIELDS {
        let meaning = find(&format!("jobs.{name}")).or(find(name));
        let meaning = meaning.unwrap_or_else(|| panic!("jobs: {name} is not explained"));
        let _ = writeln!(page, "| `{name}` | {kind} | {tools} | {meaning} |");
    }
    page
}

/// Checks that the page explains every field of real answers about jobs.
fn check_answers(server: &mut Server) {
    let command = "printf 'Your name: '; read name; echo $name; sleep 600";
    let job = json!({"command": command, "background": true, "tty": true});
    let id = answer(server, "execute_command", job)["job_id"].clone();
    answer(server, "execute_command", json!({"command": "true", "session": "work"}));
    answer(server, "execute_command", json!({"command": "true", "detach": true}));
    let typing = json!({"job_id": id, "text": "Ada\n", "wait_for": "text", "pattern": "^Ada"});
    let calls = [
        ("read_job", json!({"job_id": id, "wait_for": "quiet"})),
        ("write_job", typing),
        ("read_job", json!({"job_ids": [id], "wait_for": "exit", "timeout": 0.1})),
        ("list_jobs", json!({})),
        ("stop_job", json!({"job_id": id})),
    ];
    for (tool, arguments) in calls {
        let answer = answer(server, tool, arguments);
        let jobs = answer["jobs"].as_array().cloned().unwrap_or_else(|| vec![answer]);
        for (name, value) in jobs.iter().flat_map(|job| job.as_object().unwrap()) {
            let field =
                JOB_FIELDS.iter().find(|(one, _, tools)| one == name && tools.include(tool));
            let (_, kind, _) = field.unwrap_or_else(|| panic!("{tool}: {name} is not explained"));
            let fits = match *kind {
                "string" => value.is_string(),
                "integer" => value.is_i64(),
                "boolean" => value.is_boolean(),
                _ => value.is_array(),
            };
            assert!(fits, "{tool}: {name} is {value}, not {kind}");
        }
    }
}

fn answer(server: &mut Server, tool: &str, arguments: Value) -> Value {
    let call = json!({"name": tool, "arguments": arguments});
    let answer = server.request("tools/call", call)["result"].clone();
    assert_ne!(answer["isError"], true, "{tool}: {answer}");
    serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap()
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
        (Some("array"), true) => format!("list of {}s", kind(&field["items"])),
        (Some("object"), _) if field["additionalProperties"].is_object() => {
            "object of strings".into()
        }
        (Some(kind), _) => kind.to_owned(),
        (None, _) if *field == json!({}) => "any".into(),
        (None, _) => panic!("{field} has no type"),
    }
}

fn find(name: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(one, _)| *one == name).map(|(_, text)| *text)
}

fn meaning(tool: &str, path: &str, field: &Value) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    let said = field["description"].as_str().filter(|text| !text.starts_with("[default"));
    let own = find(&format!("{tool}.{path}"));
    let text =
        own.or(said).or(find(name)).unwrap_or_else(|| panic!("{tool}: {name} is not explained"));
    let default = field["description"].as_str().filter(|text| text.starts_with("[default"));
    let default = default.map(|text| format!(" {text}")).unwrap_or_default();
    let default = match &field["default"] {
        Value::Null => default,
        // `shell` has a description that says it in words.
        _ if text.contains("defaults to") => default,
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
