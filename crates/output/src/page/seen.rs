//! What a reader sees of an output, a block at a time.
//!
//! Where that is not what came, the output is rendered from the nearest line that was passed before:
//! marks are left on the way, so no page costs more than its first reading.
//!
//!     raw bytes ─▶ Renderer ─▶ what the reader sees ─▶ page
//!        ▲ marks: (raw offset, seen offset) at the beginning of a line

use std::io;

use super::Reader;
use crate::mark::Mark;
use crate::render::Renderer;

/// How much is read at once.
const BLOCK: usize = 256 << 10;

/// How far marks are apart, in raw bytes.
pub const MARK_DISTANCE: u64 = 1 << 20;

/// Renders an output from a mark on, a block at a time, and leaves marks on the way.
pub struct Rendered<'a> {
    reader: &'a Reader,
    renderer: Renderer,
    mark: Mark,
    raw: u64,
    text: String,
    ended: bool,
}

impl<'a> Rendered<'a> {
    pub fn new(reader: &'a Reader, from: Mark) -> Self {
        let renderer = Renderer::resumed(reader.view, from.canvas);
        Self { reader, renderer, mark: from, raw: from.raw, text: String::new(), ended: false }
    }

    pub fn next(&mut self) -> io::Result<Option<&str>> {
        if self.ended {
            return Ok(None);
        }
        self.text.clear();
        let bytes = self.reader.read(self.raw, BLOCK)?;
        if bytes.is_empty() {
            self.ended = true;
            self.renderer.finish(&mut self.text);
            return Ok(Some(&self.text));
        }
        self.raw += bytes.len() as u64;
        let lines = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        self.renderer.feed(&bytes[..lines], &mut self.text);
        if let Some(canvas) = self.renderer.canvas().filter(|_| lines > 0) {
            let raw = self.raw - (bytes.len() - lines) as u64;
            let mark = Mark { raw, seen: self.mark.seen + self.text.len() as u64, canvas };
            self.reader.output.leave_mark(
                self.reader.stream,
                self.reader.view,
                mark,
                MARK_DISTANCE,
            );
        }
        self.renderer.feed(&bytes[lines..], &mut self.text);
        self.mark.seen += self.text.len() as u64;
        Ok(Some(&self.text))
    }

    pub fn draws(&self) -> bool {
        self.renderer.draws()
    }
}

/// What is seen, a block at a time.
pub struct Seen<'a> {
    reader: &'a Reader,
    /// If it is not what came.
    rendered: Option<Rendered<'a>>,
    block: Vec<u8>,
    at: u64,
}

impl<'a> Seen<'a> {
    pub fn new(reader: &'a Reader) -> Self {
        let plain = reader.shows_bytes_as_they_are();
        let rendered = (!plain).then(|| Rendered::new(reader, Mark::default()));
        Self { reader, rendered, block: Vec::new(), at: 0 }
    }

    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if let Some(rendered) = &mut self.rendered {
            return Ok(rendered.next()?.map(str::as_bytes));
        }
        self.block = self.reader.read(self.at, BLOCK)?;
        self.at += self.block.len() as u64;
        Ok(Some(&*self.block).filter(|block| !block.is_empty()))
    }
}
