//! The face that speaks in sentences: runs a command and says how it went, with the details beside.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{End, Outcome, RunRequest, Stream, signal_name};
use rmcp::model::ContentBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{
    Answer, Complaint, Effect, LOST, Spilled, Used, answer, define, excerpt_of, keep_rest, notices,
    refusal,
};

pub const NAME: &str = "shell";

const DESCRIPTION: &str = "Execute shell commands with timeout and output capture.";

/// What shells end with when a command cannot be executed or is not there.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Settings of this face alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSettings {
    pub default_timeout: Duration,
    pub max_timeout: Duration,
    /// The most of a command's output that is kept.
    pub max_output: Option<u64>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_secs(300),
            max_timeout: Duration::from_secs(1800),
            max_output: Some(10_000_000),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The shell command to execute
    #[schemars(length(min = 1))]
    command: String,
    /// Working directory for command execution (optional, defaults to current directory)
    working_directory: Option<String>,
    /// Command timeout in seconds (optional)
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// Additional environment variables to set (optional)
    environment: Option<BTreeMap<String, String>>,
}

impl Params {
    fn request(self, settings: &ShellSettings) -> RunRequest {
        RunRequest {
            directory: self.working_directory.map(PathBuf::from),
            timeout: Some(self.timeout.map_or(settings.default_timeout, Duration::from_secs)),
            environment: self.environment.unwrap_or_default().into_iter().collect(),
            max_output: settings.max_output,
            ..RunRequest::script(self.command)
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Reply {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_stderr: Option<String>,
    execution_time_ms: u64,
    working_directory: String,
    #[serde(flatten)]
    used: Used,
    #[serde(flatten)]
    spilled: Spilled,
}

pub fn definition(settings: &ShellSettings) -> rmcp::model::Tool {
    let mut tool = define::<Params, Reply>(NAME, DESCRIPTION, Effect::Runs);
    let default = settings.default_timeout.as_secs();
    let timeout = &mut Arc::make_mut(&mut tool.input_schema)["properties"]["timeout"];
    timeout["description"] =
        format!("Command timeout in seconds (optional, defaults to {})", in_words(default)).into();
    timeout["maximum"] = settings.max_timeout.as_secs().into();
    timeout["default"] = default.into();
    tool
}

/// Seconds, and minutes beside them where that is plainer.
fn in_words(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes @ 2.., 0) => format!("{seconds} seconds / {minutes} minutes"),
        _ => format!("{seconds} seconds"),
    }
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let settings = &call.faces.shell;
    if params.command.trim().is_empty() {
        return Err(Complaint::invalid("`command` is empty"));
    }
    let max = settings.max_timeout.as_secs();
    if let Some(timeout) = params.timeout.filter(|timeout| !(1..=max).contains(timeout)) {
        let text = format!("`timeout` must be from 1 to {max} seconds, not {timeout}");
        return Err(Complaint::invalid(text));
    }
    let command = call.masked(&params.command);
    let request = params.request(settings);
    let directory = call.masked(&call.engine.directory_of(&request).display().to_string());
    let ran = call.watcher.run(call.engine, call.owner, request).await;
    let outcome = ran.map_err(|error| Complaint(refusal(&error)))?;
    let streams = call.watcher.streams;
    let mut reply = Reply::new(command, directory, &outcome, streams);
    let (spilled, links) = keep_rest(&call, &outcome, streams);
    reply.spilled = spilled;
    let (sentence, is_error) = sentence(&call, &reply, &outcome);
    let output = outcome.output.excerpt(streams).text;
    let content = vec![ContentBlock::text(sentence), ContentBlock::text(output)];
    let content = content.into_iter().chain(notices(&outcome)).chain(links).collect();
    Ok(answer(&reply, content, is_error))
}

/// How it went, in a sentence, and whether that is an error.
fn sentence(call: &Call<'_>, reply: &Reply, outcome: &Outcome) -> (String, bool) {
    let stderr = reply.stderr.as_deref().unwrap_or_default();
    if let Some(limit) = outcome.limit {
        return (format!("Command was ended: {limit}"), true);
    }
    let text = match outcome.end {
        End::Exited(0) => return ("Command executed successfully".into(), false),
        End::Exited(NOT_FOUND) => {
            let hint = missing(stderr).map(|name| hint_for_missing(call, name)).unwrap_or_default();
            format!("Command failed with exit code {NOT_FOUND}{hint}")
        }
        End::Exited(NOT_EXECUTABLE) => format!(
            "Command failed with exit code {NOT_EXECUTABLE}: a file was found but may not be \
             executed. Make it executable with chmod +x, run it with its interpreter (sh FILE, \
             python3 FILE), or check that it is not a directory"
        ),
        End::Exited(code) => format!("Command failed with exit code {code}"),
        End::Signalled(signal) => format!("Command was ended by signal {}", signal_name(signal)),
        End::TimedOut { after } => format!("Command timed out after {} seconds", after.as_secs()),
        End::Cancelled => "Command was cancelled".into(),
        End::Lost => format!("Command failed: {}", LOST),
    };
    (text, true)
}

/// The name a shell did not find, out of its complaint: `sh: 1: gti: not found`.
fn missing(stderr: &str) -> Option<&str> {
    let line = stderr.lines().rev().find(|line| line.ends_with("not found"))?;
    let before =
        line.rsplit_once(": command not found").or_else(|| line.rsplit_once(": not found"))?.0;
    let name = before.rsplit(": ").next()?;
    (!name.is_empty()).then_some(name)
}

fn hint_for_missing(call: &Call<'_>, name: &str) -> String {
    match call.engine.similar_commands(name) {
        _ if name.contains('/') => format!(": there is no file `{name}`"),
        similar if similar.is_empty() => format!(": `{name}` is not on the PATH"),
        similar => format!(": `{name}` is not on the PATH. Did you mean {}?", similar.join(", ")),
    }
}

impl Reply {
    fn new(command: String, directory: String, outcome: &Outcome, streams: &[Stream]) -> Self {
        let text = |stream| Some(excerpt_of(outcome, stream, streams));
        let (stdout, stderr) = (text(Stream::Stdout), text(Stream::Stderr));
        let reply = Self {
            command,
            execution_time_ms: outcome.usage.wall.as_millis() as u64,
            working_directory: directory,
            used: outcome.into(),
            ..Self::default()
        };
        match outcome.end {
            End::TimedOut { after } => Self {
                timeout_seconds: Some(after.as_secs()),
                partial_stdout: stdout,
                partial_stderr: stderr,
                ..reply
            },
            End::Exited(code) => Self { exit_code: Some(code), stdout, stderr, ..reply },
            End::Signalled(signal) => {
                Self { signal: Some(signal_name(signal)), stdout, stderr, ..reply }
            }
            End::Cancelled | End::Lost => Self { stdout, stderr, ..reply },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_name_is_found_in_what_shells_say() {
        for (stderr, name) in [
            ("/bin/sh: 1: gti: not found\n", Some("gti")),
            ("bash: line 1: gti: command not found\n", Some("gti")),
            ("ls: x: No such file or directory\n", None),
        ] {
            assert_eq!(missing(stderr), name);
        }
    }
}
