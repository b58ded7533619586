//! What a page of a run has: a part of each stream, previews and counts.

use mcpz_engine::{
    Data, Error, Filter, Measure, Output, Page, PageRequest, Reader, Room, Stop, Stream, Summary,
    View, mime,
};

use super::super::paging::next_page;

/// How much of the beginning and of the end is shown of an output that does not fit.
const PREVIEW: Room = Room { size: 500, measure: Measure::QuotedTwice };

/// What is to be read of a run.
pub struct Reading {
    pub output: Output,
    pub wanted: PageRequest,
    pub filter: Filter,
    pub view: View,
    pub first: bool,
    /// Where to read on in stderr.
    pub stderr: u64,
    pub has_stderr: bool,
    pub summary: bool,
}

pub struct Read {
    pub stdout: Page,
    pub stderr: Page,
    pub has_stderr: bool,
    /// Bytes of stdout before any filter.
    pub whole: u64,
    pub mime: &'static str,
    /// The beginning and the end, with the first page.
    pub previews: Option<(String, String)>,
    pub summary: Option<Summary>,
    /// Why there is no filter's result: the command ran, so the rest is told all the same.
    pub problem: Option<String>,
}

impl Reading {
    pub fn read(self, stop: Stop) -> Result<Read, Error> {
        let reader = Reader::new(self.output.clone(), Stream::Stdout, self.view).until(stop);
        let whole = reader.length().map_err(Error::Read)?;
        let (stdout, problem) = match self.filter.page(&reader, self.wanted) {
            Ok(page) => (page, None),
            Err(error) => (reader.page(self.wanted).map_err(Error::Read)?, Some(error.chain())),
        };
        let preview = |offset| {
            let page = reader.page(PageRequest::bytes(offset, PREVIEW.size)).map_err(Error::Read);
            page.map(|page| shown(&page, ""))
        };
        let previews = match self.first {
            true => {
                let (head, tail) =
                    (preview(0)?, preview(whole.saturating_sub(PREVIEW.size as u64))?);
                let head = head[..PREVIEW.beginning(&head)].to_owned();
                Some((head, tail[PREVIEW.end(&tail)..].to_owned()))
            }
            false => None,
        };
        Ok(Read {
            stderr: self.stderr_page(&stdout)?,
            has_stderr: self.has_stderr && self.output.kept_length(Stream::Stderr) > 0,
            previews,
            summary: self.summary.then(|| reader.summary()).transpose().map_err(Error::Read)?,
            mime: mime(&self.output, Stream::Stdout),
            whole,
            stdout,
            problem,
        })
    }

    /// A page of stderr: what stdout has left of the room, or a quarter of it, so that both together
    /// stay small.
    fn stderr_page(&self, stdout: &Page) -> Result<Page, Error> {
        let room = self.wanted.room;
        let taken = match &stdout.data {
            Data::Text(text) => room.measure.of(text),
            Data::Binary(_) => 0,
        };
        let size = room.less(taken).size.max(room.size / 4).max(1);
        let offset = if self.has_stderr { self.stderr } else { u64::MAX };
        let wanted = PageRequest { offset, room: Room { size, ..room }, ..self.wanted };
        let reader = Reader::new(self.output.clone(), Stream::Stderr, self.view);
        reader.page(wanted).map_err(Error::Read)
    }
}

impl Read {
    /// Whether there is more than fits into a page.
    pub fn is_over(&self) -> bool {
        let beyond = |page: &Page| page.end < page.total;
        beyond(&self.stdout) || (self.has_stderr && beyond(&self.stderr))
    }

    /// Whether there is more to read than the answer tells.
    pub fn is_more(&self) -> bool {
        let running = self.stdout.running || self.stderr.running;
        let filtered = self.whole > self.stdout.total;
        self.is_over() || running || filtered || is_binary(&self.stdout) || is_binary(&self.stderr)
    }

    /// Where the next page begins in both streams, if there is one. What is binary is not paged here.
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

/// The text of a page. Binary output is announced once.
pub fn shown(page: &Page, mime: &str) -> String {
    match &page.data {
        Data::Text(text) => text.clone(),
        Data::Binary(_) if page.start > 0 || mime.is_empty() => String::new(),
        Data::Binary(_) => {
            format!("[{} bytes of {mime}: read them with read_file_chunk]", page.total)
        }
    }
}
