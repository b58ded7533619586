//! What the answers of all tools have in common.

use mcpz_engine::{Closing, End, Error, Limit, Outcome, signal_name};
use mcpz_output::{Room, Stop, shortened};
use mcpz_runtime::aside;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::deadline::timed_out;
use super::{Ability, Call};

/// How many processes that were left running are told.
pub(crate) const MOST_PIDS: usize = 100;

/// How many remarks are told, and how long each may be.
const MOST_REMARKS: usize = 10;
const LONGEST_REMARK: usize = 300;

/// What a command used; part of every answer to one that ran.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Used {
    duration_ms: u64,
    // Nobody knows what a command in a session used.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rss_bytes: Option<u64>,
    // What it had too much of
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    // Processes still running
    #[serde(skip_serializing_if = "Option::is_none")]
    background_pids: Option<Vec<i32>>,
    // The job they are, for stop_job
    #[serde(skip_serializing_if = "Option::is_none")]
    background_job: Option<String>,
    // Bytes of output that could not be kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    // Why the command looks dangerous
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

impl From<&Outcome> for Used {
    fn from(outcome: &Outcome) -> Self {
        let counted = Some(outcome.usage).filter(|_| outcome.session.is_none());
        Self {
            duration_ms: outcome.usage.wall.as_millis() as u64,
            cpu_ms: counted.map(|usage| usage.cpu.as_millis() as u64),
            max_rss_bytes: counted.map(|usage| usage.max_rss_bytes),
            limit: outcome.limit.map(Limit::name),
            background_pids: Some(pids(outcome)).filter(|pids| !pids.is_empty()),
            background_job: outcome.job.clone(),
            lost_bytes: Some(outcome.output.lost()).filter(|lost| *lost > 0),
            warnings: Some(remarks(outcome)).filter(|remarks| !remarks.is_empty()),
        }
    }
}

/// Processes that were left running; of very many, some.
pub(crate) fn pids(outcome: &Outcome) -> Vec<i32> {
    outcome.background.iter().copied().take(MOST_PIDS).collect()
}

/// What there is to say about a command beside its end and its output, in few words.
pub(crate) fn remarks(outcome: &Outcome) -> Vec<String> {
    let remarks = outcome.remarks().into_iter().take(MOST_REMARKS);
    remarks.map(|remark| shortened(&remark, Room::bytes(LONGEST_REMARK)).into_owned()).collect()
}

/// How a command ended, where its exit code does not say it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Ending {
    // Signal that ended it
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    // What else there is to know
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Ending {
    pub fn said(text: impl Into<String>) -> Self {
        Self { message: Some(text.into()), ..Self::default() }
    }

    /// The same with what to do about a timeout, if it was one.
    pub fn advising(self, advice: &str) -> Self {
        let add = |message| match self.timed_out {
            Some(true) => format!("{message}; {advice}"),
            _ => message,
        };
        Self { message: self.message.map(add), ..self }
    }

    /// What there is to say, in words.
    pub fn words(&self) -> &str {
        self.message.as_deref().or(self.signal.as_deref()).unwrap_or_default()
    }
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Self {
        let limit = outcome.limit.map(|limit| limit.to_string());
        let ending = Self::from(outcome.end);
        Self { message: limit.or(ending.message), ..ending }
    }
}

impl From<End> for Ending {
    fn from(end: End) -> Self {
        match end {
            End::Exited(_) => Self::default(),
            End::Signalled(signal) => Self { signal: Some(signal_name(signal)), ..Self::default() },
            End::TimedOut { after } => {
                Self { timed_out: Some(true), ..Self::said(timed_out(after)) }
            }
            End::Cancelled => Self::said("cancelled"),
            End::Lost => Self::said(LOST),
            End::Closed(why) => Self::said(closed(why)),
        }
    }
}

/// Whether an answer is an error: a command that ran and failed is none.
pub(crate) fn is_error(end: End) -> bool {
    matches!(end, End::TimedOut { .. } | End::Lost | End::Closed(_))
}

/// An answer whose structure is `reply` and whose content says the same in other words.
pub(crate) fn answer<R: Serialize>(
    reply: &R,
    content: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = CallToolResult::success(content);
    result.structured_content = serde_json::to_value(reply).ok();
    result.is_error = Some(is_error);
    result
}

/// An answer whose content is its structure, to the letter: clients that show both then show one.
pub(crate) fn answer_as_json<R: Serialize>(
    reply: &R,
    links: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = answer(reply, links, is_error);
    let text = result.structured_content.as_ref().map(ToString::to_string);
    result.content.insert(0, ContentBlock::text(text.unwrap_or_default()));
    result
}

/// Why a command did not run, in words for whoever sent it.
pub(crate) fn refusal(error: &Error) -> String {
    match error {
        Error::Refused(denial) => format!("Command denied by security policy: {denial}"),
        error => format!("Failed to execute: {}", error.chain()),
    }
}

/// What is said of a search that could not look at whole lines.
pub(crate) const IN_PARTS: &str =
    "some lines are too long and were searched in parts; a match across two parts is not found";

/// What a run that was lost is answered with.
pub(crate) const LOST: &str =
    "the process that minded this command was killed, and the command with it";

/// What is said of a command that ends because the server does.
pub(crate) fn closed(why: Closing) -> &'static str {
    match why {
        Closing::ClientLeft => {
            "the client closed its input before this command had ended, so the server is ending, and \
             the command with it; `--finish-time` gives commands longer"
        }
        Closing::Told => "the server was told to end, and the command with it",
    }
}

/// Does what may wait for the disk where nobody else waits for it, until it is done or nobody wants
/// it any more.
pub(crate) async fn off_thread<T: Send + 'static>(
    cancelled: &CancellationToken,
    work: impl FnOnce(Stop) -> Result<T, mcpz_output::Error> + Send + 'static,
) -> Result<T, Complaint> {
    let stop = Stop::default();
    let work = aside({
        let stop = stop.clone();
        move || work(stop)
    });
    tokio::select! {
        result = work => match result {
            Ok(result) => Ok(result?),
            Err(error) => Err(Complaint(error.to_string())),
        },
        () = cancelled.cancelled() => {
            stop.stop();
            Err(Complaint("cancelled".into()))
        }
    }
}

/// Says what is missing and what to be careful of, in blocks of their own: the text around them
/// stays what it is.
pub(crate) fn notices(call: &Call<'_>, outcome: &Outcome) -> Vec<ContentBlock> {
    let lost = Some(outcome.output.lost()).filter(|lost| *lost > 0);
    let lost = lost.map(|lost| format!("[{lost} bytes of output could not be kept]"));
    let remarks = remarks(outcome).into_iter().map(|remark| format!("[warning: {remark}]"));
    lost.into_iter()
        .chain(left_running(call, outcome))
        .chain(remarks)
        .map(ContentBlock::text)
        .collect()
}

/// What a command has left running, and how to get at it.
fn left_running(call: &Call<'_>, outcome: &Outcome) -> Option<String> {
    let job = outcome.job.as_ref()?;
    let pids: Vec<_> = pids(outcome).iter().map(ToString::to_string).collect();
    let more = match outcome.background.len() - pids.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let processes = if outcome.background.len() == 1 { "process" } else { "processes" };
    let end = match call.tools.can(Ability::StopJobs) {
        true => "stop_job ends it",
        false => "it ends with the server",
    };
    Some(format!("[still running as {job}: {processes} {}{more}; {end}]", pids.join(", ")))
}

/// What a call is answered with.
pub(crate) type Answer = Result<CallToolResult, Complaint>;

/// An answer that only says what went wrong.
#[derive(Debug)]
pub(crate) struct Complaint(pub String);

impl Complaint {
    /// About something that was asked for in a way it cannot be.
    pub fn invalid(text: impl std::fmt::Display) -> Self {
        Self(format!("Invalid arguments: {text}"))
    }
}

/// Refuses a command that says nothing: it would run, and nobody would know what for.
pub(crate) fn check_not_blank(argument: &str, command: &str) -> Result<(), Complaint> {
    match command.trim().is_empty() {
        true => Err(Complaint::invalid(format!("`{argument}` is empty"))),
        false => Ok(()),
    }
}

impl From<mcpz_output::Error> for Complaint {
    fn from(error: mcpz_output::Error) -> Self {
        Self(error.chain())
    }
}

impl From<Error> for Complaint {
    fn from(error: Error) -> Self {
        Self(error.chain())
    }
}

impl From<Complaint> for CallToolResult {
    fn from(Complaint(text): Complaint) -> Self {
        Self::error(vec![ContentBlock::text(text)])
    }
}
