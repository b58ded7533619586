//! The native tool: runs a command and answers with its output.

use std::collections::BTreeMap;
use std::time::Duration;

use mcpz_engine::{MAX_TIMEOUT, Outcome, RunRequest, Stream};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{
    Answer, Complaint, Effect, Ending, Spilled, Used, answer, define, is_error, keep_rest, refusal,
};

pub const NAME: &str = "execute_command";

const DESCRIPTION: &str = "Execute a shell command and return its output. Returns when the shell \
    ends or the timeout is over; everything the command started is ended with a timeout.";

const MAX_SECONDS: u64 = MAX_TIMEOUT.as_secs();

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Shell command to execute
    command: String,
    /// Directory to run it in [default: the server's]
    working_directory: Option<String>,
    /// Seconds until it is ended [default: the server's]
    #[schemars(range(max = MAX_SECONDS), extend("exclusiveMinimum" = 0))]
    timeout: Option<f64>,
    /// Variables to set
    environment: Option<BTreeMap<String, String>>,
    /// Text the command reads [default: none]
    stdin: Option<String>,
}

impl From<Params> for RunRequest {
    fn from(params: Params) -> Self {
        Self {
            directory: params.working_directory.map(Into::into),
            timeout: params.timeout.map(Duration::from_secs_f64),
            environment: params.environment.unwrap_or_default().into_iter().collect(),
            stdin: params.stdin.map(String::into_bytes),
            ..Self::script(params.command)
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Reply {
    command: String,
    /// stdout, then stderr
    output: String,
    /// Exit code; -1 if there is none
    return_code: i32,
    #[serde(flatten)]
    ending: Ending,
    #[serde(flatten)]
    used: Option<Used>,
    /// Bytes of output left out of the middle
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_bytes: Option<u64>,
    #[serde(flatten)]
    spilled: Spilled,
}

pub fn definition() -> rmcp::model::Tool {
    define::<Params, Reply>(NAME, DESCRIPTION, Effect::Runs)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let fits = |seconds| seconds > 0.0 && seconds <= MAX_TIMEOUT.as_secs_f64();
    if !params.timeout.is_none_or(fits) {
        let text = format!("`timeout` must be more than 0 and at most {MAX_SECONDS} seconds");
        return Err(Complaint::invalid(text));
    }
    let command = call.masked(&params.command);
    Ok(match call.watcher.run(call.engine, call.owner, params.into()).await {
        Ok(outcome) => {
            let streams = call.watcher.streams;
            let mut reply = Reply::ran(command, &outcome, streams);
            let (spilled, links) = keep_rest(&call, &outcome, streams);
            reply.spilled = spilled;
            told(&reply, is_error(outcome.end), links)
        }
        Err(error) => {
            let output = call.masked(&refusal(&error));
            let reply = Reply { command, output, return_code: -1, ..Reply::default() };
            told(&reply, true, Vec::new())
        }
    })
}

impl Reply {
    fn ran(command: String, outcome: &Outcome, streams: &[Stream]) -> Self {
        let excerpt = outcome.output.excerpt(streams);
        Self {
            command,
            output: excerpt.text,
            return_code: outcome.end.exit_code().unwrap_or(-1),
            ending: outcome.end.into(),
            used: Some(outcome.into()),
            omitted_bytes: Some(excerpt.omitted).filter(|omitted| *omitted > 0),
            ..Self::default()
        }
    }
}

/// The same answer twice: as text and as structure.
fn told(reply: &Reply, is_error: bool, links: Vec<ContentBlock>) -> CallToolResult {
    let text = serde_json::to_string_pretty(reply).expect("strings and numbers are always JSON");
    answer(reply, [vec![ContentBlock::text(text)], links].concat(), is_error)
}
