//! A page of a run: a part of each stream, previews and counts.

use std::sync::Arc;

use mcpz_output::{
    Data, Error, Filter, Measure, Output, Page, PageRequest, Reader, Rendering, Room, Stop, Stream,
    Summary, mime, shorten,
};

use super::super::paging::{is_pending, next_page};

/// What to read of a run.
#[derive(Clone)]
pub struct PageQuery {
    pub output: Output,
    /// Its room is for both streams together.
    pub wanted: PageRequest,
    /// Room for each preview, and for what went wrong.
    pub preview: Room,
    pub filter: Arc<Filter>,
    /// Whether the command has ended. Processes it left running may print more; `read_job` reports that.
    pub ended: bool,
    pub rendering: Rendering,
    /// Whether the page is the first, which has previews.
    pub is_first: bool,
    /// Where to continue in stderr.
    pub stderr: u64,
    pub has_stderr: bool,
    pub summary: bool,
}

pub struct RunPage {
    pub stdout: Page,
    pub stderr: Page,
    pub has_stderr: bool,
    /// Whether a filter left something out.
    pub is_filtered: bool,
    pub mime: &'static str,
    /// The beginning and the end, with the first page.
    pub previews: Option<(String, String)>,
    pub summary: Option<Summary>,
    /// Why the filter failed. The command ran, so the answer has the output without it.
    pub problem: Option<String>,
}

impl PageQuery {
    /// stderr has a quarter of the room, and what stdout leaves of its own.
    pub fn read(self, stop: Stop) -> Result<RunPage, Error> {
        let [reader, errors] = [Stream::Stdout, Stream::Stderr]
            .map(|stream| {
                Reader::new(self.output.clone(), stream, self.rendering).until(stop.clone())
            })
            .map(|reader| if self.ended { reader.answered() } else { reader });
        let length = |reader: &Reader| reader.length().map_err(Error::Read);
        let (whole, all_errors) = (length(&reader)?, length(&errors)?);
        let room = self.wanted.room;
        let mut stderr = self.stderr_page(&errors, Room { size: room.size / 4, ..room })?;
        let wanted = PageRequest { room: left(room, &stderr), ..self.wanted };
        let (stdout, problem) = match self.filter.page(&reader, wanted) {
            Ok(page) => (page, None),
            Err(error) => {
                let problem = shorten(&error.chain(), self.preview).into_owned();
                (reader.page(wanted).map_err(Error::Read)?, Some(problem))
            }
        };
        if is_cut(&stderr) {
            stderr = self.stderr_page(&errors, left(room, &stdout))?;
        }
        let unfiltered = [(whole, &stdout), (all_errors, &stderr)];
        Ok(RunPage {
            is_filtered: unfiltered.iter().any(|(whole, page)| *whole > page.total),
            stderr,
            has_stderr: self.has_stderr && self.output.kept_length(Stream::Stderr) > 0,
            previews: self.is_first.then(|| self.previews(&reader, whole)).transpose()?,
            summary: self.summary.then(|| self.summary(&reader, &errors)).transpose()?,
            mime: mime(&self.output, Stream::Stdout),
            stdout,
            problem,
        })
    }

    /// A page of stderr. A JSON path applies only to stdout, and binary output is only announced.
    fn stderr_page(&self, reader: &Reader, room: Room) -> Result<Page, Error> {
        let offset = if self.has_stderr { self.stderr } else { u64::MAX };
        let wanted = PageRequest { offset, room, ..self.wanted };
        let page = match &*self.filter {
            Filter::Grep(grep) if self.has_stderr && !reader.is_binary() => {
                reader.grep(grep, wanted)
            }
            _ => reader.page(wanted),
        };
        page.map_err(Error::Read)
    }

    /// Counts in both streams, because compilers complain on stderr.
    fn summary(&self, stdout: &Reader, stderr: &Reader) -> Result<Summary, Error> {
        let stdout = stdout.summary().map_err(Error::Read)?;
        match self.has_stderr {
            true => Ok(stdout + stderr.summary().map_err(Error::Read)?),
            false => Ok(stdout),
        }
    }

    fn previews(&self, reader: &Reader, whole: u64) -> Result<(String, String), Error> {
        let Room { size, .. } = self.preview;
        let at = |offset| {
            let page = reader.page(PageRequest::bytes(offset, size)).map_err(Error::Read);
            page.map(|page| text_of(&page, ""))
        };
        let (head, tail) = (at(0)?, at(whole.saturating_sub(size as u64))?);
        let head = head[..self.preview.beginning(&head)].to_owned();
        Ok((head, tail[self.preview.end(&tail)..].to_owned()))
    }
}

/// The room that a page leaves. Binary output takes none.
fn left(room: Room, page: &Page) -> Room {
    match &page.data {
        Data::Text(text) => room.less(room.measure.of(text)),
        Data::Binary(_) => room,
    }
}

/// Whether there is more after a page.
fn is_cut(page: &Page) -> bool {
    page.end < page.total
}

impl RunPage {
    /// Whether there is more than fits into a page.
    pub fn is_over(&self) -> bool {
        is_cut(&self.stdout) || (self.has_stderr && is_cut(&self.stderr))
    }

    /// Which limit the output exceeds, as a message.
    pub fn excess(&self, PageRequest { room, limit_lines, .. }: PageRequest) -> String {
        let pages = [&self.stdout, &self.stderr];
        let bytes: u64 = pages.iter().map(|page| page.total.saturating_sub(page.start)).sum();
        let is_long = |page: &&Page| is_cut(page) && page.lines() >= limit_lines as u64;
        let by_lines = pages.iter().any(is_long);
        let size = match room.measure {
            Measure::Bytes => format!("{} bytes", room.size),
            _ => format!("{} characters as JSON", room.size),
        };
        let limit = match by_lines {
            false => format!("limit of {size}"),
            true if bytes > room.size as u64 => format!("limits of {size} and {limit_lines} lines"),
            true => format!("limit of {limit_lines} lines"),
        };
        format!("the output of {bytes} bytes is over the {limit}")
    }

    /// Whether there is more to read than the answer shows.
    pub fn has_more(&self) -> bool {
        let running = self.stdout.running || self.stderr.running;
        self.is_over() || running || self.is_filtered || self.is_binary()
    }

    /// Whether a stream is binary, and only announced.
    pub fn is_binary(&self) -> bool {
        is_binary(&self.stdout) || (self.has_stderr && is_binary(&self.stderr))
    }

    /// Whether the page is empty but may have something on it later.
    pub fn is_pending(&self, ended: bool) -> bool {
        let empty = |page: &Page| page.end == page.start;
        empty(&self.stdout) && empty(&self.stderr) && is_pending(&self.stdout, ended)
    }

    /// Where the next page begins in both streams, if there is one. Binary output has no pages here.
    pub fn next(&self, ended: bool) -> Option<(u64, u64)> {
        let end = |page: &Page| if is_binary(page) { page.total } else { page.end };
        let more = |page: &Page| !is_binary(page) && next_page(page, ended).is_some();
        let more = more(&self.stdout) || (self.has_stderr && more(&self.stderr));
        let stderr = if self.has_stderr { end(&self.stderr) } else { 0 };
        more.then(|| (end(&self.stdout), stderr))
    }
}

pub fn is_binary(page: &Page) -> bool {
    matches!(page.data, Data::Binary(_))
}

/// The text of a page. Binary output is announced on its first page.
pub fn text_of(page: &Page, mime: &str) -> String {
    match &page.data {
        Data::Text(text) => text.clone(),
        Data::Binary(_) if page.start > 0 || mime.is_empty() => String::new(),
        Data::Binary(_) => {
            format!("[{} bytes of {mime}: read them with read_file_chunk]", page.total)
        }
    }
}
