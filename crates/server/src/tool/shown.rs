//! What the answer to a command shows of its output: as much as fits or, if the call asks for it, a view or data.
//!
//! The command has run, so whatever cannot be shown as asked for is shown otherwise, and the answer says so.

use mcpz_engine::Outcome;
use mcpz_extract::Kind;
use mcpz_output::{Data, Filter, LeftOut, PageRequest, Reader, Rendering, Room, Stream, View};
use rmcp::model::ContentBlock;
use serde_json::Value;

use super::Call;
use super::changes::of_run;
use super::error::ToolError;
use super::excerpt::{Excerpt, Omission, excerpt, keep};
use super::extract::{ExtractName, NotWithExtract, Printed, find};
use super::view::{Rest, ViewName, describe};
use crate::blocking::{BlockingError, run_blocking};
use crate::memory::PAGE;

/// How much is shown beside data that does not tell enough.
const BESIDE_DATA: usize = 3000;

/// What a call asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    pub view: ViewName,
    pub extract: ExtractName,
}

/// What is shown.
#[derive(Debug, Default)]
pub struct Shown {
    pub output: String,
    pub omission: Omission,
    pub links: Vec<ContentBlock>,
    pub extracted: Option<Value>,
    pub message: Option<String>,
}

impl Asked {
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub fn check(self) -> Result<Self, ToolError> {
        match self.extract.kind().is_some() && self.view != ViewName::Full {
            true => Err(ToolError::arguments(NotWithExtract("`view`"))),
            false => Ok(self),
        }
    }
}

/// Shows the output of a command that has ended.
pub async fn show(
    call: &Call<'_>,
    outcome: &Outcome,
    asked: Asked,
    room: Room,
) -> Result<Shown, ToolError> {
    let shown = match (asked.extract.kind(), asked.view) {
        (Some(kind), _) => data(call, outcome, kind, room).await,
        (None, ViewName::Changes) => changes(call, outcome, room).await,
        (None, view) => match view.view() {
            Some(view) => viewed(call, outcome, view, room).await,
            None => as_it_is(call, outcome, room).await,
        },
    };
    match shown {
        Err(ToolError::Blocking(BlockingError::Output(error))) => {
            let shown = as_it_is(call, outcome, room).await?;
            Ok(Shown { message: Some(error.chain()), ..shown })
        }
        shown => shown,
    }
}

async fn as_it_is(call: &Call<'_>, outcome: &Outcome, room: Room) -> Result<Shown, ToolError> {
    let Excerpt { stdout, stderr, omission, links, .. } = excerpt(call, outcome, room).await?;
    let output = outcome.output.join(stdout, &stderr);
    Ok(Shown { output, omission, links, ..Shown::default() })
}

async fn data(
    call: &Call<'_>,
    outcome: &Outcome,
    kind: Kind,
    room: Room,
) -> Result<Shown, ToolError> {
    let printed = Printed::new(outcome.output.clone(), Rendering::default()).of(Some(outcome));
    // It is in the answer twice, and quoted in one of them.
    let found = find(call, printed, (kind, Stream::Stdout), None, room.size / 2).await?;
    let beside = if found.tail.is_empty() { 0 } else { BESIDE_DATA.min(room.size / 4) };
    let shown = as_it_is(call, outcome, Room { size: beside, ..room }).await?;
    Ok(Shown { extracted: found.value, message: found.message, ..shown })
}

/// The output is kept in any case, so that the next run can be compared with it.
async fn changes(call: &Call<'_>, outcome: &Outcome, room: Room) -> Result<Shown, ToolError> {
    keep(call, outcome, 0);
    let Some(now) = call.owner.find(&outcome.id) else {
        return as_it_is(call, outcome, room).await;
    };
    let seen = of_run(call, (&outcome.id, &now), (Rendering::default(), Rest::ByUri), room).await?;
    let message = Some(seen.message);
    match seen.text {
        Some(output) => Ok(Shown { message, ..with_rest(call, outcome, output, seen.omitted) }),
        None => Ok(Shown { message, ..as_it_is(call, outcome, room).await? }),
    }
}

async fn viewed(
    call: &Call<'_>,
    outcome: &Outcome,
    view: View,
    room: Room,
) -> Result<Shown, ToolError> {
    call.watcher.wait_for_room(PAGE).await;
    let (output, streams) = (outcome.output.clone(), call.watcher.streams);
    let read = move |stop: mcpz_output::Stop| {
        let (mut text, mut all, mut omitted, mut left) =
            (String::new(), LeftOut::default(), 0, room);
        let mut ends = Vec::new();
        for stream in streams {
            let reader =
                Reader::new(output.clone(), *stream, Rendering::default()).until(stop.clone());
            let request = PageRequest { offset: 0, room: left, limit_lines: usize::MAX };
            let page = Filter::View(view).page(&reader.answered(), request)?;
            let LeftOut { lines, omitted: gone, bytes } = page.left_out.unwrap_or_default();
            (all.lines, all.omitted) = (all.lines + lines, all.omitted + gone);
            omitted += bytes + (page.total - page.end);
            if page.end < page.total {
                ends.push((*stream, page.end));
            }
            let Data::Text(shown) = page.data else { continue };
            left = left.less(left.measure.of(&shown));
            text = output.join(text, &shown);
        }
        Ok((text, all, omitted, ends))
    };
    let (text, left_out, omitted, ends) = run_blocking(&call.watcher.cancelled, read).await?;
    let rest = if ends.is_empty() { Rest::ByUri } else { Rest::ByUriAndOn };
    let ends = ends.into_iter().map(|(stream, end)| goes_on(stream, end));
    let message: Vec<_> = describe(left_out, rest).into_iter().chain(ends).collect();
    Ok(Shown {
        message: (!message.is_empty()).then(|| message.join("; ")),
        ..with_rest(call, outcome, text, omitted)
    })
}

/// What to say where a view is longer than the answer.
fn goes_on(stream: Stream, end: u64) -> String {
    let uri = match stream {
        Stream::Stdout => "spill_uri",
        Stream::Stderr => "stderr_spill_uri",
    };
    format!("the view did not fit: read_file_chunk goes on at `cursor` bytes:{end} of {uri}")
}

/// A text, and where the rest of the output is if that is not all.
fn with_rest(call: &Call<'_>, outcome: &Outcome, output: String, omitted: u64) -> Shown {
    let (omission, links) = match omitted {
        0 => (Omission::default(), Vec::new()),
        _ => keep(call, outcome, omitted),
    };
    Shown { output, omission, links, ..Shown::default() }
}
