//! A run's output, while the run produces it and after it ends.
//!
//! Memory holds the first 64 KiB and the last 16 KiB of each stream; a spill file holds everything after the first
//! 64 KiB. Memory use therefore does not grow with the output. If no file can take more, the stream is cut: its
//! newest 64 KiB stay in memory, so the run can still be read, waited for and answered.
//!
//!     pipe ─▶ capture ─▶ Output ─▶ head │ spill file │ tail
//!                           └────▶ watch ──▶ readers that wait for more
//!
//! Offsets count from a stream's first byte and never move.

mod excerpts;
mod stream_buffer;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::checkpoint::Checkpoint;
use crate::content_kind::ContentKind;
use crate::render::Rendering;
use crate::secrets::Secrets;
use crate::spill::Quota;
use crate::stream::Stream;
use crate::text;

pub use excerpts::Excerpts;
pub use stream_buffer::NEWEST_KEPT;

use stream_buffer::{StreamBuffer, keep_last};

/// How many of the newest bytes, of both streams together, are held for progress messages.
const LAST_BYTES: usize = 2 << 10;

/// A run's output. Clones share it.
#[derive(Debug, Clone)]
pub struct Output {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    checkpoints: Mutex<HashMap<(Stream, Rendering), Vec<Checkpoint>>>,
    lengths: Mutex<HashMap<(Stream, Rendering), u64>>,
    quota: Arc<Quota>,
    arrived: watch::Sender<u64>,
    /// What must not show where one stream follows the other.
    secrets: Secrets,
}

/// Bytes of a stream, starting at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Whether the bytes stay readable: false for those beyond a cut, which newer bytes replace.
    pub kept: bool,
}

#[derive(Debug, Default)]
struct State {
    finished: bool,
    last_arrival: Option<Instant>,
    stdout: StreamBuffer,
    stderr: StreamBuffer,
    last_bytes: Vec<u8>,
}

impl Output {
    pub fn new(quota: Arc<Quota>) -> Self {
        let (arrived, _) = watch::channel(0);
        let shared = Shared {
            state: Mutex::default(),
            checkpoints: Mutex::default(),
            lengths: Mutex::default(),
            quota,
            arrived,
            secrets: Secrets::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same, whose streams may contain these secrets in two halves.
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        Arc::get_mut(&mut self.shared).expect("nobody shares a new output").secrets = secrets;
        self
    }

    /// The text of one stream, followed by that of the other. Each is masked already, but a secret can begin at the end
    /// of one and continue in the other.
    pub fn join(&self, stdout: String, stderr: &str) -> String {
        match (stdout.as_str(), stderr) {
            (_, "") => stdout,
            ("", _) => stderr.to_owned(),
            _ => self.shared.secrets.mask(&(stdout + stderr)).into_owned(),
        }
    }

    /// The number of bytes that have arrived so far, on both streams.
    pub fn length(&self) -> u64 {
        *self.shared.arrived.borrow()
    }

    /// When the last bytes arrived.
    pub fn last_arrival(&self) -> Option<Instant> {
        self.state().last_arrival
    }

    /// The number of bytes that cannot be read because there was no room to keep them.
    pub fn lost(&self) -> u64 {
        let state = self.state();
        state.stdout.lost() + state.stderr.lost()
    }

    /// Why they cannot, as far as this process knows.
    pub fn why_lost(&self) -> Option<String> {
        let loss = self.shared.quota.loss().filter(|_| self.lost() > 0);
        loss.map(ToString::to_string)
    }

    /// Appends bytes that no file keeps. `at` may be beyond the end of the stream; the bytes in between are lost.
    pub fn append_beyond_cut(&self, stream: Stream, at: u64, bytes: &[u8]) {
        {
            let mut state = self.state();
            let buffer = state.buffer_mut(stream);
            buffer.cut.get_or_insert(buffer.length);
            if at > buffer.length {
                buffer.skip_lost(at - buffer.length);
            }
        }
        self.append(stream, bytes);
    }

    /// The bytes of a stream that only memory has: the newest ones beyond the cut.
    pub fn tail_beyond_cut(&self, stream: Stream) -> Vec<u8> {
        let state = self.state();
        let buffer = state.buffer(stream);
        buffer.beyond_cut(buffer.tail_start(), usize::MAX).to_vec()
    }

    /// Where the stream is cut, if it is: the first byte that could not be kept.
    pub fn cut(&self, stream: Stream) -> Option<u64> {
        self.state().buffer(stream).cut
    }

    /// The quota, which also lends buffers for large pieces on their way to the disk.
    pub fn quota(&self) -> &Quota {
        &self.shared.quota
    }

    pub fn lookups(&self) -> &Mutex<()> {
        self.shared.quota.lookups()
    }

    /// Whether nothing more will arrive.
    pub fn is_finished(&self) -> bool {
        self.state().finished
    }

    /// Notes that a caller has been given everything there is now. From here on, even an unfinished last line
    /// counts as stable.
    pub fn mark_answered(&self) {
        let mut state = self.state();
        state.stdout.answered = state.stdout.length;
        state.stderr.answered = state.stderr.length;
    }

    pub fn finish(&self) {
        self.state().finished = true;
        // Wakes those who wait for the end, too.
        self.shared.arrived.send_modify(|_| ());
    }

    /// Signals new bytes, with the new total, and the end of the output.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.arrived.subscribe()
    }

    /// The last few lines that arrived on the given streams, as text.
    pub fn last_lines(&self, streams: &[Stream]) -> String {
        let state = self.state();
        let (bytes, length) = match streams {
            [stream] => state.buffer(*stream).end(LAST_BYTES),
            _ => (state.last_bytes.as_slice(), state.length()),
        };
        let text = match length > bytes.len() as u64 {
            true => text::plain_within(text::after_cut(bytes), LAST_BYTES),
            false => text::plain_within(bytes, LAST_BYTES),
        };
        drop(state);
        self.shared.secrets.mask(&text).into_owned()
    }

    /// How much of a stream can be read: everything except what was lost.
    pub fn kept_length(&self, stream: Stream) -> u64 {
        let state = self.state();
        let buffer = state.buffer(stream);
        buffer.length - buffer.lost()
    }

    /// The end of a stream, so far.
    pub fn end(&self, stream: Stream) -> u64 {
        self.state().buffer(stream).length
    }

    /// How much of a stream will always look as it does now: its complete lines (a program can still overwrite the
    /// last, unfinished one), what an answer has already reported, and everything once the output has finished.
    pub fn stable_length(&self, stream: Stream) -> u64 {
        let state = self.state();
        let buffer = state.buffer(stream);
        match state.finished || buffer.content_kind.binary {
            true => buffer.length,
            false => buffer.last_line_end.max(buffer.answered),
        }
    }

    /// How long a stream was when its command was answered.
    pub fn answered_length(&self, stream: Stream) -> u64 {
        self.state().buffer(stream).answered
    }

    /// The length of a stream, without an incomplete character at its end.
    pub fn live_length(&self, stream: Stream) -> u64 {
        let state = self.state();
        let buffer = state.buffer(stream);
        let (end, _) = buffer.end(4);
        buffer.length - (end.len() - text::whole_characters(end).len()) as u64
    }

    /// How many bytes are on the disk in files that this process may remove.
    pub fn spilled(&self) -> u64 {
        self.shared.quota.used()
    }

    /// Drops the spill files. Their bytes are lost from now on, also for other holders of this output.
    pub fn release(&self) {
        let files = {
            let mut state = self.state();
            let State { stdout, stderr, .. } = &mut *state;
            [stdout.release(), stderr.release()]
        };
        self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.shared.quota.release();
        drop(files);
    }

    /// The rendered length of a finished stream, if it was computed before.
    pub fn cached_length(&self, stream: Stream, rendering: Rendering) -> Option<u64> {
        let lengths = self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.get(&(stream, rendering)).copied()
    }

    pub fn cache_length(&self, stream: Stream, rendering: Rendering, length: u64) {
        let mut lengths = self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.insert((stream, rendering), length);
    }

    pub fn content_kind(&self, stream: Stream) -> ContentKind {
        self.state().buffer(stream).content_kind.clone()
    }

    /// Reads raw bytes, up to `limit` or the first byte that was lost.
    pub fn read_at(&self, stream: Stream, at: u64, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let next = at + bytes.len() as u64;
            let piece = self.read_next(stream, next, limit - bytes.len())?;
            if piece.at != next || piece.bytes.is_empty() {
                break;
            }
            match bytes.is_empty() {
                true => bytes = piece.bytes,
                false => bytes.extend_from_slice(&piece.bytes),
            }
        }
        Ok(bytes)
    }

    /// Reads the next available bytes at or after `at`, either from the kept part or from beyond the cut, never
    /// both.
    pub fn read_next(&self, stream: Stream, at: u64, limit: usize) -> io::Result<Piece> {
        let (mut bytes, file, in_memory, end) = {
            let state = self.state();
            let buffer = state.buffer(stream);
            if at >= buffer.prefix_length() {
                let at = at.max(buffer.tail_start()).min(buffer.length);
                return Ok(Piece { at, bytes: buffer.beyond_cut(at, limit).to_vec(), kept: false });
            }
            let from = (at as usize).min(buffer.head.len());
            let head = &buffer.head[from..];
            let bytes = head[..head.len().min(limit)].to_vec();
            (bytes, buffer.file.clone(), buffer.head.len() as u64, buffer.prefix_length())
        };
        let next = at + bytes.len() as u64;
        let wanted = (end.saturating_sub(next)).min((limit - bytes.len()) as u64) as usize;
        if wanted > 0
            && let Some(file) = file
        {
            let filled = bytes.len();
            bytes.resize(filled + wanted, 0);
            file.read_exact_at(&mut bytes[filled..], next - in_memory)?;
        }
        Ok(Piece { at, bytes, kept: true })
    }

    /// The last checkpoint at or before an offset in the rendered text.
    pub fn checkpoint_before(
        &self,
        stream: Stream,
        rendering: Rendering,
        rendered: u64,
    ) -> Checkpoint {
        let checkpoints = self.shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(checkpoints) = checkpoints.get(&(stream, rendering)) else {
            return Checkpoint::default();
        };
        match checkpoints.partition_point(|checkpoint| checkpoint.rendered <= rendered) {
            0 => Checkpoint::default(),
            after => checkpoints[after - 1],
        }
    }

    /// Adds a checkpoint if it is at least `distance` raw bytes after the last one.
    pub fn add_checkpoint(
        &self,
        stream: Stream,
        rendering: Rendering,
        checkpoint: Checkpoint,
        distance: u64,
    ) {
        let mut checkpoints =
            self.shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let checkpoints = checkpoints.entry((stream, rendering)).or_default();
        if checkpoint.raw >= checkpoints.last().map_or(0, |last| last.raw) + distance {
            checkpoints.push(checkpoint);
        }
    }

    /// Whether this many more bytes of the stream fit in memory. If they do, `append` does not touch the disk.
    pub fn has_room(&self, stream: Stream, bytes: usize) -> bool {
        self.state().buffer(stream).head.len() + bytes <= self.shared.quota.in_memory
    }

    /// Keeps bytes that have arrived. Writes to the disk unless they fit in memory.
    pub fn append(&self, stream: Stream, bytes: &[u8]) {
        let (in_head, file) = {
            let mut state = self.state();
            let buffer = state.buffer_mut(stream);
            let room = match buffer.cut {
                None => self.shared.quota.in_memory - buffer.head.len(),
                Some(_) => 0,
            };
            let in_head = bytes.len().min(room);
            if in_head < bytes.len() && buffer.file.is_none() && buffer.cut.is_none() {
                buffer.file = self.shared.quota.create(stream).map(Arc::new);
            }
            (in_head, buffer.file.clone().filter(|_| buffer.cut.is_none()))
        };
        let rest = &bytes[in_head..];
        // Outside the lock: a slow disk must not block readers.
        let written = file.map_or(0, |file| if rest.is_empty() { 0 } else { file.append(rest) });
        let length = {
            let mut state = self.state();
            state.buffer_mut(stream).append(bytes, in_head, in_head + written);
            keep_last(&mut state.last_bytes, bytes, LAST_BYTES);
            state.last_arrival = Some(Instant::now());
            state.length()
        };
        self.shared.arrived.send_replace(length);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic halfway through a change.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn buffer(&self, stream: Stream) -> &StreamBuffer {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }

    fn buffer_mut(&mut self, stream: Stream) -> &mut StreamBuffer {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn length(&self) -> u64 {
        self.stdout.length + self.stderr.length
    }
}
