//! Reading what a job printed: from a place on, or its last lines.

use mcpz_engine::{Job, Position};
use mcpz_extract::Kind;
use mcpz_output::{Data, Error, Filter, LeftOut, PageRequest, ReadPosition, Reader, Room, Stream};

use super::super::Call;
use super::super::error::ToolError;
use super::super::view::ViewName;
use crate::blocking::run_blocking;
use crate::budget::MaxAnswer;
use crate::memory::PAGE;

/// More bytes than the line takes that says how much of an output is missing.
const NOTICE: usize = 64;

/// Which part of a job's output to read.
#[derive(Debug)]
pub struct OutputRequest {
    pub from: Position,
    /// Only so many of the last lines.
    pub tail: Option<usize>,
    /// At most so many bytes, if the call says so.
    pub limit: Option<usize>,
    pub grep: Option<String>,
    pub view: ViewName,
    /// What to look for in all of it instead.
    pub extract: Option<Kind>,
    /// What to choose from what was found.
    pub json_path: Option<String>,
    /// How long the answer may be otherwise.
    pub max_answer: MaxAnswer,
    /// How much of that the rest of the answer takes.
    pub taken: usize,
}

impl OutputRequest {
    /// Everything that fits into one answer.
    pub fn new(call: &Call<'_>) -> Self {
        let (from, max_answer) = (Position::default(), call.faces.max_answer);
        Self {
            from,
            tail: None,
            limit: None,
            grep: None,
            view: ViewName::Full,
            extract: None,
            json_path: None,
            max_answer,
            taken: 0,
        }
    }
}

/// What a job printed.
#[derive(Default)]
pub struct JobOutput {
    pub text: String,
    /// Where to continue reading.
    pub next: Position,
    /// Bytes before the last lines, if fewer of them fit than the call wants.
    pub omitted: u64,
    /// What a view left out.
    pub left_out: Option<LeftOut>,
}

pub async fn read_output(
    call: &Call<'_>,
    job: &Job,
    streams: &'static [Stream],
    request: OutputRequest,
    room: Room,
) -> Result<JobOutput, ToolError> {
    let (output, view) = (job.output.clone(), job.rendering());
    call.watcher.wait_for_room(PAGE).await;
    let read = run_blocking(&call.watcher.cancelled, move |stop| {
        let filter = match request.view.view() {
            Some(view) => Filter::View(view),
            None => Filter::new(request.grep.as_deref(), None)?,
        };
        let mut read = JobOutput { next: request.from, ..JobOutput::default() };
        let mut left = room;
        for stream in streams {
            let reader = Reader::new(output.clone(), *stream, view).until(stop.clone()).live();
            let place = match stream {
                Stream::Stdout => &mut read.next.stdout,
                Stream::Stderr => &mut read.next.stderr,
            };
            let (text, omitted) = match request.tail {
                Some(tail) => last_lines(&reader, &filter, tail, left, place)?,
                None if left.size == 0 => break,
                None => {
                    let (page, next) = reader.read_on(&filter, *place, left)?;
                    *place = next;
                    if let Some(LeftOut { lines, omitted, bytes }) = page.left_out {
                        let all = read.left_out.get_or_insert_default();
                        all.lines += lines;
                        all.omitted += omitted;
                        all.bytes += bytes;
                    }
                    (text_of(page.data), 0)
                }
            };
            left = left.less(left.measure.of(&text));
            read.text = output.join(read.text, &text);
            read.omitted += omitted;
        }
        Ok(read)
    });
    Ok(read.await?)
}

fn text_of(data: Data) -> String {
    match data {
        Data::Text(text) => text,
        Data::Binary(bytes) => format!("[{} bytes, not shown]", bytes.len()),
    }
}

/// As many of the last lines as fit, and how many bytes are before them if those are fewer than the call wants.
/// The newest lines matter most, so what does not fit is cut off at the front.
fn last_lines(
    reader: &Reader,
    filter: &Filter,
    tail: usize,
    room: Room,
    place: &mut ReadPosition,
) -> Result<(String, u64), Error> {
    let length = filter.page(reader, PageRequest::bytes(u64::MAX, 1))?.total;
    if room.size == 0 {
        return Ok((String::new(), length));
    }
    // One character more than fits shows whether the part that fits begins with a line.
    let size = room.size + 4;
    let from = match filter {
        Filter::Everything => reader.offset_of_last(size as u64).map_err(Error::Read)?,
        _ => length.saturating_sub(size as u64),
    };
    let (page, next) =
        reader.read_on(filter, ReadPosition::at(from), Room::bytes(size + NOTICE))?;
    *place = next;
    if tail == 0 {
        return Ok((String::new(), 0));
    }
    let text = text_of(page.data);
    let ends = text.rmatch_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < text.len());
    let wanted = ends.take(tail).nth(tail - 1);
    let last = &text[wanted.unwrap_or(0)..];
    let last = match room.end(last) {
        0 => last,
        cut if last.as_bytes()[cut - 1] == b'\n' => &last[cut..],
        cut => {
            let lines = last[cut..].split_once('\n').map(|(_, lines)| lines);
            lines.filter(|lines| !lines.is_empty()).unwrap_or(&last[cut..])
        }
    };
    let before = text.len() - last.len();
    let all = wanted == Some(before) || (wanted.is_none() && page.start == 0 && before == 0);
    Ok((last.to_owned(), if all { 0 } else { page.start + before as u64 }))
}
