//! What changed in an output since the run before: of the same command in the same directory and place.
//!
//! An answer says how and when both runs ended, so that nobody takes it for an old one. Where there is nothing to
//! compare with, it is the output as it is, and says so.

use std::time::{Duration, SystemTime};

use mcpz_engine::{Job, KeptOutput, Outcome};
use mcpz_output::{
    BothPlaces, Compared, Data, Error, LeftOut, Output, Reader, Rendering, Room, Stream,
};

use super::Call;
use super::ending::Ending;
use super::error::{InvalidCursor, ToolError};
use super::view::{Rest, describe};
use crate::blocking::run_blocking;
use crate::memory::PAGE;
use crate::output_uri::{ComparedCursor, OutputUri};

/// What to do when there is nothing to compare with.
const NO_EARLIER: &str = "there is no earlier run of this command in this directory whose output is kept, so this is \
    the output as it is";

/// What has the same length as changes or less.
const NO_SHORTER: &str = "this is all of the output, as the changes take no less room";

const STILL_RUNNING: &str = "what it has not printed yet is not shown as gone";

#[derive(Debug, thiserror::Error)]
#[error("`view: changes` works only without `cursor`: it compares all of a job's output")]
pub struct NotWithCursor;

/// What a cursor of changes must be.
#[derive(Debug, thiserror::Error)]
#[error(
    "with `view: changes`, `cursor` is next_cursor of an answer that shows changes; omit `view` to read on otherwise"
)]
pub struct OtherCursor;

#[derive(Debug, thiserror::Error)]
#[error(
    "the output of {0} is no longer kept, so there is nothing to compare; omit `view` and `cursor`"
)]
struct NoLongerKept(String);

/// An output, and the earlier one that it is compared with.
pub struct Pair {
    now: KeptOutput,
    id: String,
    earlier: KeptOutput,
}

/// What an answer shows of changes.
pub struct Seen {
    /// `None` if there is nothing to compare with.
    pub text: Option<String>,
    /// How many bytes of the output are not shown.
    pub omitted: u64,
    pub message: String,
}

/// Why there is nothing to compare an output with, and how its run ended.
pub struct Alone {
    pub message: String,
}

impl Pair {
    /// The output with this id and the newest one of an earlier run.
    pub fn find(
        call: &Call<'_>,
        (id, now): (&str, &KeptOutput),
        streams: &[Stream],
    ) -> Result<Self, Alone> {
        let Some((id, earlier)) = call.owner.find_earlier(id) else {
            return Err(Alone { message: format!("{}; {NO_EARLIER}", fact(now, Ran::Once)) });
        };
        let pair = Self { now: now.clone(), id, earlier };
        let is_binary = |kept: &KeptOutput| {
            let reader = |stream| Reader::new(kept.output.clone(), stream, Rendering::default());
            streams.iter().any(|stream| reader(*stream).is_binary())
        };
        let which = match (is_binary(&pair.now), is_binary(&pair.earlier)) {
            (false, false) => return Ok(pair),
            (true, _) => "this output",
            (false, true) => "the earlier output",
        };
        let facts = pair.facts(Stream::Stdout);
        let why =
            format!("{which} is binary, so there are no changes to show but the output as it is");
        Err(Alone { message: format!("{facts}; {why}") })
    }

    /// The output and the earlier one that a cursor names.
    pub fn of_cursor(
        call: &Call<'_>,
        now: &KeptOutput,
        cursor: &ComparedCursor,
    ) -> Result<Self, ToolError> {
        let id = cursor.earlier.clone();
        let uri = OutputUri::new(&id, Stream::Stdout).to_string();
        let earlier = call.owner.find(&id).ok_or_else(|| ToolError::failed(NoLongerKept(uri)))?;
        Ok(Self { now: now.clone(), id, earlier })
    }

    /// How both runs ended, and when.
    pub fn facts(&self, stream: Stream) -> String {
        let uri = OutputUri::new(&self.id, stream);
        let before = self.earlier.outcome.as_ref().map_or_else(String::new, end);
        let ago = ended_ago(&self.earlier);
        let fact = fact(&self.now, Ran::Again);
        format!("{fact}; compared with {uri}, which ended {ago}: {before}")
    }

    /// Compares a stream of both from some places on.
    pub async fn compare(
        &self,
        call: &Call<'_>,
        (stream, rendering): (Stream, Rendering),
        from: BothPlaces,
        room: Room,
    ) -> Result<Compared, ToolError> {
        call.watcher.wait_for_room(PAGE).await;
        let (now, earlier) = (self.now.output.clone(), self.earlier.output.clone());
        let compare = move |stop: mcpz_output::Stop| {
            let reader =
                |output: Output| Reader::new(output, stream, rendering).until(stop.clone());
            let (now, earlier) = (reader(now), reader(earlier));
            if now.is_binary() || earlier.is_binary() {
                return Err(Error::Binary);
            }
            now.compare(&earlier, from, room).map_err(Error::Read)
        };
        Ok(run_blocking(&call.watcher.cancelled, compare).await?)
    }

    /// Where the next page begins, if there is one.
    pub fn next(&self, compared: &Compared) -> Option<String> {
        let (now, before) = (compared.page.end, compared.before);
        let more = !compared.is_all || compared.page.running && self.now.outcome.is_none();
        let cursor = ComparedCursor { now, before, earlier: self.id.clone() };
        more.then(|| cursor.to_string())
    }
}

/// Reads the cursor of a page of changes.
pub fn parse_cursor(cursor: Option<&str>) -> Result<Option<ComparedCursor>, ToolError> {
    let Some(text) = cursor.filter(|text| text.contains(',')) else { return Ok(None) };
    let cursor = text.parse().map_err(|_| ToolError::arguments(InvalidCursor(text.to_owned())))?;
    Ok(Some(cursor))
}

/// What an answer says of a page, besides the facts.
pub fn notes(compared: &Compared) -> Vec<String> {
    let left_out = compared.page.left_out.and_then(|it| describe(it, Rest::WithoutView));
    let notes = [
        (compared.is_all && !compared.any).then(|| "no changes".to_owned()),
        (!compared.is_diff).then(|| NO_SHORTER.to_owned()),
        left_out,
    ];
    notes.into_iter().flatten().collect()
}

/// What changed in all that a job has printed.
pub async fn of_job(call: &Call<'_>, job: &Job, room: Room) -> Result<Seen, ToolError> {
    let Some(now) = call.owner.find(&job.run) else {
        return Err(ToolError::failed(NoLongerKept(job.id().to_owned())));
    };
    of_run(call, (&job.run, &now), (job.rendering(), Rest::WithoutView), room).await
}

/// What changed in all that a run has printed, first in stdout, then in stderr.
pub async fn of_run(
    call: &Call<'_>,
    (id, now): (&str, &KeptOutput),
    (rendering, rest): (Rendering, Rest),
    room: Room,
) -> Result<Seen, ToolError> {
    let pair = match Pair::find(call, (id, now), call.watcher.streams) {
        Ok(pair) => pair,
        Err(Alone { message }) => return Ok(Seen { text: None, omitted: 0, message }),
    };
    let (mut text, mut omitted, mut left) = (String::new(), 0, room);
    let (mut any, mut is_diff, mut is_all, mut left_out) = (false, false, true, LeftOut::default());
    let (mut message, mut more) = (vec![pair.facts(Stream::Stdout)], Vec::new());
    for stream in call.watcher.streams {
        let is_empty = |kept: &KeptOutput| kept.output.kept_length(*stream) == 0;
        if is_empty(&pair.now) && is_empty(&pair.earlier) {
            continue;
        }
        let begin = BothPlaces::default();
        let compared = pair.compare(call, (*stream, rendering), begin, left).await?;
        if let Some(next) = pair.next(&compared).filter(|_| !compared.is_all) {
            let uri = OutputUri::new(id, *stream);
            more.push(format!("more follows in {uri} from cursor {next} on, with read_file_chunk"));
        }
        (any, is_diff) = (any || compared.any, is_diff || compared.is_diff);
        is_all &= compared.is_all;
        let page = compared.page;
        let LeftOut { lines, omitted: gone, bytes } = page.left_out.unwrap_or_default();
        (left_out.lines, left_out.omitted) = (left_out.lines + lines, left_out.omitted + gone);
        omitted += bytes + (page.total - page.end);
        let Data::Text(shown) = page.data else { continue };
        left = left.less(left.measure.of(&shown));
        text = now.output.join(text, &shown);
    }
    // They are about both streams together.
    message.extend((is_all && !any).then(|| "no changes".to_owned()));
    message.extend((!is_diff && !text.is_empty()).then(|| NO_SHORTER.to_owned()));
    message.extend(describe(left_out, rest));
    message.extend(more);
    Ok(Seen { text: Some(text), omitted, message: message.join("; ") })
}

/// Whether an earlier run is known.
#[derive(Clone, Copy)]
enum Ran {
    Once,
    Again,
}

/// How a run ended and when, or that it runs.
fn fact(now: &KeptOutput, ran: Ran) -> String {
    let again = match ran {
        Ran::Once => "",
        Ran::Again => " again",
    };
    match &now.outcome {
        Some(outcome) => format!("ran{again} {}: {}", ended_ago(now), end(outcome)),
        None => {
            let ago = now.started_at.map_or_else(String::new, |at| ago(since(at)));
            format!("runs{again}, started {ago} and still running: {STILL_RUNNING}")
        }
    }
}

fn end(outcome: &Outcome) -> String {
    match outcome.end.exit_code() {
        Some(code) => format!("exit code {code}"),
        None => Ending::from(outcome).text().to_owned(),
    }
}

fn ended_ago(kept: &KeptOutput) -> String {
    let took = kept.outcome.as_ref().map_or(Duration::ZERO, |outcome| outcome.usage.wall);
    let age = kept.started_at.map(since).unwrap_or_default();
    ago(age.saturating_sub(took))
}

fn since(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_default()
}

/// A time in the past, as people say it.
fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    let (number, unit) = match seconds {
        0..2 => return "just now".to_owned(),
        2..120 => (seconds, "seconds"),
        120..7200 => (seconds / 60, "minutes"),
        7200..172_800 => (seconds / 3600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{number} {unit} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_as_people_say_it() {
        let said = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!(said(0), "just now");
        assert_eq!(said(2), "2 seconds ago");
        assert_eq!(said(600), "10 minutes ago");
        assert_eq!(said(86_400), "24 hours ago");
        assert_eq!(said(864_000), "10 days ago");
    }
}
