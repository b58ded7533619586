//! The face of a coding assistant: runs a command with bash, in the foreground or in the background,
//! and reports a line a field.

use std::path::PathBuf;

use mcpz_engine::{Command, End, Limit, Outcome, Run, RunRequest, Stream};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{
    Answer, Effect, Ending, Spilled, answer, define, excerpt_of, is_error, keep_rest, notices,
    refusal, resource_link,
};
use crate::kept::OutputUri;

pub const NAME: &str = "run_shell_command";

const DESCRIPTION: &str = "Runs a command with bash -c. Set is_background to true for processes \
    that keep running, such as servers and watchers, which are shown as [background]; to false \
    for commands to wait for.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Exact shell command to execute
    command: String,
    /// What it is for, shown to the user
    description: Option<String>,
    /// Directory to run it in, relative to the project root
    directory: Option<String>,
    /// Whether to run it in the background
    is_background: bool,
}

impl From<&Params> for RunRequest {
    fn from(params: &Params) -> Self {
        let shell = Some(PathBuf::from("bash"));
        // What is in the background already needs no second one of its own, which would be gone at
        // once and leave nobody to ask for.
        let alone = params.command.trim_end().strip_suffix('&');
        let alone = alone.filter(|text| params.is_background && !text.ends_with(['&', '\\']));
        let text = alone.unwrap_or(&params.command).to_owned();
        Self {
            directory: params.directory.as_ref().map(PathBuf::from),
            stays_within: true,
            environment: vec![("QWEN_CODE".into(), "1".into())],
            ..Self::new(Command::Script { text, shell })
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Reply {
    command: String,
    directory: String,
    stdout: String,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Number of the signal that ended it
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    background_pids: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    duration_ms: u64,
    cpu_ms: u64,
    max_rss_bytes: u64,
    /// What it had too much of
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
    /// Why the command looks dangerous
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
    #[serde(flatten)]
    spilled: Spilled,
}

pub fn definition() -> rmcp::model::Tool {
    define::<Params, Reply>(NAME, DESCRIPTION, Effect::Runs)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let relative = params.directory.clone().unwrap_or_default();
    let reply = Reply {
        command: call.masked(&params.command),
        directory: if relative.is_empty() { "(root)".into() } else { call.masked(&relative) },
        description: description(&params).map(|text| call.masked(&text)),
        ..Reply::default()
    };
    let request = RunRequest::from(&params);
    if params.is_background {
        return Ok(background(&call, request, reply).await);
    }
    let streams = call.watcher.streams;
    Ok(match call.watcher.run(call.engine, call.owner, request).await {
        Ok(outcome) => {
            let (spilled, links) = keep_rest(&call, &outcome, streams);
            let reply = Reply { spilled, ..reply }.ran(&outcome, streams);
            reply.told(is_error(outcome.end), [notices(&outcome), links].concat())
        }
        Err(error) => reply.failed(call.masked(&refusal(&error))),
    })
}

/// Starts the command, answers at once and leaves it running.
async fn background(call: &Call<'_>, request: RunRequest, reply: Reply) -> CallToolResult {
    if let Err(error) = call.engine.check_jobs(call.owner) {
        return reply.failed(error.chain());
    }
    let mut run = match call.watcher.start(call.engine, call.owner, request.clone()).await {
        Ok(run) => run,
        Err(error) => return reply.failed(call.masked(&refusal(&error))),
    };
    match run.started().await {
        Some(pid) => {
            let command = call.engine.shown(&request.command);
            let (spilled, links) = follow(call, request, &run);
            call.engine.hand_over(call.owner, run, command);
            Reply { background_pids: vec![pid], spilled, ..reply }.told(false, links)
        }
        None => match run.outcome().await {
            Ok(outcome) => reply.ran(&outcome, call.watcher.streams).told(true, notices(&outcome)),
            Err(error) => reply.failed(call.masked(&refusal(&error))),
        },
    }
}

/// Keeps what a command in the background prints, so that it can be read while it runs.
fn follow(call: &Call<'_>, request: RunRequest, run: &Run) -> (Spilled, Vec<ContentBlock>) {
    let (id, output) = (run.id(), run.output());
    call.owner.follow(id, Some(request), output.clone());
    let uri = |stream| OutputUri::new(id, stream).to_string();
    let (stdout, stderr) = (uri(Stream::Stdout), uri(Stream::Stderr));
    let links = vec![
        resource_link(&stdout, output, Stream::Stdout),
        resource_link(&stderr, output, Stream::Stderr),
    ];
    (Spilled { spill_uri: Some(stdout), stderr_spill_uri: Some(stderr) }, links)
}

fn description(params: &Params) -> Option<String> {
    match (&params.description, params.is_background) {
        (Some(text), true) if text.ends_with("[background]") => Some(text.clone()),
        (Some(text), true) => Some(format!("{text} [background]")),
        (None, true) => Some("[background]".into()),
        (text, false) => text.clone(),
    }
}

impl Reply {
    fn ran(self, outcome: &Outcome, streams: &[Stream]) -> Self {
        let text = |stream| excerpt_of(outcome, stream, streams);
        Self {
            stdout: text(Stream::Stdout),
            stderr: text(Stream::Stderr),
            error: Ending::from(outcome).message,
            exit_code: outcome.end.exit_code(),
            signal: match outcome.end {
                End::Signalled(signal) => Some(signal),
                _ => None,
            },
            background_pids: outcome.background.clone(),
            duration_ms: outcome.usage.wall.as_millis() as u64,
            cpu_ms: outcome.usage.cpu.as_millis() as u64,
            max_rss_bytes: outcome.usage.max_rss_bytes,
            limit: outcome.limit.map(Limit::name),
            lost_bytes: Some(outcome.output.lost()).filter(|lost| *lost > 0),
            warnings: Some(outcome.remarks()).filter(|remarks| !remarks.is_empty()),
            ..self
        }
    }

    fn failed(self, error: String) -> CallToolResult {
        Self { error: Some(error), ..self }.told(true, Vec::new())
    }

    /// A line a field, in the document's order.
    fn report(&self) -> String {
        let or = |text: &str, otherwise: &str| match text.is_empty() {
            true => otherwise.to_owned(),
            false => text.to_owned(),
        };
        let number = |number: Option<i32>| number.map_or("(none)".to_owned(), |n| n.to_string());
        let pids: Vec<_> = self.background_pids.iter().map(ToString::to_string).collect();
        [
            format!("Command: {}", self.command),
            format!("Directory: {}", self.directory),
            format!("Stdout: {}", or(self.stdout.trim_end_matches('\n'), "(empty)")),
            format!("Stderr: {}", or(self.stderr.trim_end_matches('\n'), "(empty)")),
            format!("Error: {}", self.error.as_deref().unwrap_or("(none)")),
            format!("Exit Code: {}", number(self.exit_code)),
            format!("Signal: {}", number(self.signal)),
            format!("Background PIDs: {}", or(&pids.join(", "), "(none)")),
        ]
        .join("\n")
    }

    fn told(self, is_error: bool, notes: Vec<ContentBlock>) -> CallToolResult {
        let report = ContentBlock::text(self.report());
        answer(&self, [vec![report], notes].concat(), is_error)
    }
}
