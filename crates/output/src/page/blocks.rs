//! The text of an output, one block at a time.
//!
//! Unless the rendering shows the raw bytes, they are rendered. A renderer has no state to remember at the start of a
//! line (except for a [`DrawingState`](crate::render::DrawingState)), so rendering can resume there.
//! [`RenderedBlocks`] leaves checkpoints as it goes, and later pages start from the nearest one. Within a line
//! there are none: every page of a line of hundreds of megabytes is rendered from the start of that line.
//!
//!     raw bytes ─▶ Renderer ─▶ rendered text ─▶ page
//!        ▲ checkpoints: (raw offset, rendered offset) at the start of a line

use std::io;

use super::Reader;
use crate::checkpoint::Checkpoint;
use crate::render::Renderer;

/// How much is read at a time.
const BLOCK: usize = 256 << 10;

/// The distance between checkpoints, in raw bytes.
pub const CHECKPOINT_DISTANCE: u64 = 1 << 20;

/// Renders an output from a checkpoint on, leaving checkpoints as it goes.
pub struct RenderedBlocks<'a> {
    reader: &'a Reader,
    renderer: Renderer,
    checkpoint: Checkpoint,
    raw: u64,
    text: String,
    ended: bool,
}

impl<'a> RenderedBlocks<'a> {
    pub fn new(reader: &'a Reader, from: Checkpoint) -> Self {
        let renderer = Renderer::resumed(reader.rendering, from.drawing);
        Self {
            reader,
            renderer,
            checkpoint: from,
            raw: from.raw,
            text: String::new(),
            ended: false,
        }
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
        if let Some(drawing) = self.renderer.drawing_state().filter(|_| lines > 0) {
            let raw = self.raw - (bytes.len() - lines) as u64;
            let checkpoint = Checkpoint {
                raw,
                rendered: self.checkpoint.rendered + self.text.len() as u64,
                drawing,
            };
            self.reader.output.add_checkpoint(
                self.reader.stream,
                self.reader.rendering,
                checkpoint,
                CHECKPOINT_DISTANCE,
            );
        }
        self.renderer.feed(&bytes[lines..], &mut self.text);
        self.checkpoint.rendered += self.text.len() as u64;
        Ok(Some(&self.text))
    }

    pub fn is_drawing(&self) -> bool {
        self.renderer.is_drawing()
    }
}

/// The whole text of an output, rendered if necessary.
pub struct Blocks<'a> {
    reader: &'a Reader,
    /// Unless the rendering shows the raw bytes.
    rendered: Option<RenderedBlocks<'a>>,
    block: Vec<u8>,
    at: u64,
}

impl<'a> Blocks<'a> {
    pub fn new(reader: &'a Reader) -> Self {
        let plain = reader.shows_bytes_as_they_are();
        let rendered = (!plain).then(|| RenderedBlocks::new(reader, Checkpoint::default()));
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
