//! Where a run's output lives, while it is produced and after it ends.
//!
//! Each stream's first bytes and its last bytes are in memory, everything after the first ones is
//! in a spill file. Memory does not grow with the output. Where there is no more room for a file, the newest
//! bytes are still at hand.
//!
//!     pipe ─▶ Channel ─▶ Output ─▶ head │ spill file │ tail
//!                           └────▶ watch ──▶ whoever waits for more

mod excerpts;
mod lane;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::mark::Mark;
use crate::nature::Nature;
use crate::render::View;
use crate::spill::Quota;
use crate::stream::Stream;
use crate::text;

pub use excerpts::Excerpts;
pub use lane::NEWEST_KEPT;

use lane::{Lane, keep_last};

/// How much of what arrived last, on either stream, is at hand for telling how it goes.
const NEWEST: usize = 2 << 10;

/// After this many changes between the streams their order is not recorded any more.
const MAX_STRETCHES: usize = 1 << 16;

/// A run's output. Clones share it.
#[derive(Debug, Clone)]
pub struct Output {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    marks: Mutex<HashMap<(Stream, View), Vec<Mark>>>,
    lengths: Mutex<HashMap<(Stream, View), u64>>,
    quota: Arc<Quota>,
    arrived: watch::Sender<u64>,
}

/// Bytes of a stream, from an offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Whether they will still be there later.
    pub kept: bool,
}

#[derive(Debug, Default)]
struct Kept {
    finished: bool,
    last_arrival: Option<Instant>,
    stdout: Lane,
    stderr: Lane,
    newest: Vec<u8>,
    stretches: Vec<(Stream, u64)>,
}

impl Output {
    pub fn new(quota: Arc<Quota>) -> Self {
        let (arrived, _) = watch::channel(0);
        let shared = Shared {
            kept: Mutex::default(),
            marks: Mutex::default(),
            lengths: Mutex::default(),
            quota,
            arrived,
        };
        Self { shared: Arc::new(shared) }
    }

    /// How many bytes arrived so far, on both streams.
    pub fn length(&self) -> u64 {
        *self.shared.arrived.borrow()
    }

    /// When something came last.
    pub fn last_arrival(&self) -> Option<Instant> {
        self.kept().last_arrival
    }

    /// Bytes that cannot be read any more: no room was left to keep them.
    pub fn lost(&self) -> u64 {
        let kept = self.kept();
        kept.stdout.lost() + kept.stderr.lost()
    }

    /// Takes in bytes that are kept nowhere else, and may not be the next ones.
    pub fn pass(&self, stream: Stream, at: u64, bytes: &[u8]) {
        {
            let mut kept = self.kept();
            let lane = kept.lane_mut(stream);
            lane.cut.get_or_insert(lane.length);
            if at > lane.length {
                lane.lose(at - lane.length);
            }
        }
        self.append(stream, bytes);
    }

    /// What memory alone has of a stream: the newest bytes, for which there was no other room.
    pub fn passing(&self, stream: Stream) -> Vec<u8> {
        let kept = self.kept();
        let lane = kept.lane(stream);
        lane.passing(lane.newest(), usize::MAX).to_vec()
    }

    /// Where a stream could not be kept any further, if that happened.
    pub fn cut(&self, stream: Stream) -> Option<u64> {
        self.kept().lane(stream).cut
    }

    /// What large pieces are read into on their way to the disk.
    pub fn quota(&self) -> &Quota {
        &self.shared.quota
    }

    pub fn lookups(&self) -> &Mutex<()> {
        self.shared.quota.lookups()
    }

    /// Whether nothing more will arrive.
    pub fn is_finished(&self) -> bool {
        self.kept().finished
    }

    /// Notes that what there is now is told: it will be seen as it is, even a line without an end.
    pub fn settle(&self) {
        let mut kept = self.kept();
        kept.stdout.answered = kept.stdout.length;
        kept.stderr.answered = kept.stderr.length;
    }

    pub fn finish(&self) {
        self.kept().finished = true;
        // For those who wait for the end as well as for more.
        self.shared.arrived.send_modify(|_| ());
    }

    /// Tells whenever more bytes have arrived, and how many there are, and at the end.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.arrived.subscribe()
    }

    /// The last few lines that arrived on any of the streams, as text.
    pub fn newest(&self, streams: &[Stream]) -> String {
        let kept = self.kept();
        let (bytes, length) = match streams {
            [stream] => kept.lane(*stream).end(NEWEST),
            _ => (kept.newest.as_slice(), kept.length()),
        };
        match length > bytes.len() as u64 {
            true => text::plain_within(text::after_cut(bytes), NEWEST),
            false => text::plain_within(bytes, NEWEST),
        }
    }

    /// Which stream how many bytes came from, in order of arrival.
    pub fn stretches(&self) -> Vec<(Stream, u64)> {
        self.kept().stretches.clone()
    }

    /// How much of a stream can be read: all of it but for what was lost.
    pub fn kept_length(&self, stream: Stream) -> u64 {
        let kept = self.kept();
        let lane = kept.lane(stream);
        lane.length - lane.lost()
    }

    /// Where a stream ends, so far.
    pub fn end(&self, stream: Stream) -> u64 {
        self.kept().lane(stream).length
    }

    /// How much of a stream will be seen as it is seen now, whatever comes: its whole lines, as a
    /// line that has no end yet can be written over; what the answer told; and all of it when
    /// nothing more comes.
    pub fn settled_length(&self, stream: Stream) -> u64 {
        let kept = self.kept();
        let lane = kept.lane(stream);
        match kept.finished || lane.nature.binary {
            true => lane.length,
            false => lane.lines_end.max(lane.answered),
        }
    }

    /// How much of a stream there was when the command was answered for.
    pub fn answered_length(&self, stream: Stream) -> u64 {
        self.kept().lane(stream).answered
    }

    /// How much of a stream there is, but for the beginning of a character whose rest has not come.
    pub fn live_length(&self, stream: Stream) -> u64 {
        let kept = self.kept();
        let lane = kept.lane(stream);
        let (end, _) = lane.end(4);
        lane.length - (end.len() - text::whole_characters(end).len()) as u64
    }

    /// How much of it is on the disk, if that is ours to remove.
    pub fn spilled(&self) -> u64 {
        self.shared.quota.used()
    }

    /// Lets go of what is on the disk: it is lost from now on, whoever holds the rest.
    pub fn release(&self) {
        let files = {
            let mut kept = self.kept();
            let Kept { stdout, stderr, .. } = &mut *kept;
            [stdout.release(), stderr.release()]
        };
        self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.shared.quota.release();
        drop(files);
    }

    /// The length of what is seen of a finished stream, if it was counted before.
    pub fn known_length(&self, stream: Stream, view: View) -> Option<u64> {
        let lengths = self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.get(&(stream, view)).copied()
    }

    pub fn note_length(&self, stream: Stream, view: View, length: u64) {
        let mut lengths = self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.insert((stream, view), length);
    }

    pub fn nature(&self, stream: Stream) -> Nature {
        self.kept().lane(stream).nature.clone()
    }

    /// Bytes of a stream as they came, at most so many, up to the first that was lost.
    pub fn read_at(&self, stream: Stream, at: u64, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let next = at + bytes.len() as u64;
            let piece = self.read_on(stream, next, limit - bytes.len())?;
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

    /// The next bytes that can be read, at most so many: either kept or passing, never both.
    pub fn read_on(&self, stream: Stream, at: u64, limit: usize) -> io::Result<Piece> {
        let (mut bytes, file, in_memory, end) = {
            let kept = self.kept();
            let lane = kept.lane(stream);
            if at >= lane.front() {
                let at = at.max(lane.newest()).min(lane.length);
                return Ok(Piece { at, bytes: lane.passing(at, limit).to_vec(), kept: false });
            }
            let from = (at as usize).min(lane.head.len());
            let head = &lane.head[from..];
            let bytes = head[..head.len().min(limit)].to_vec();
            (bytes, lane.file.clone(), lane.head.len() as u64, lane.front())
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

    /// The last line's beginning before an offset that was passed in this view.
    pub fn mark_before(&self, stream: Stream, view: View, seen: u64) -> Mark {
        let marks = self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(marks) = marks.get(&(stream, view)) else { return Mark::default() };
        match marks.partition_point(|mark| mark.seen <= seen) {
            0 => Mark::default(),
            after => marks[after - 1],
        }
    }

    /// Notes a line's beginning, if it is far enough from the last one.
    pub fn leave_mark(&self, stream: Stream, view: View, mark: Mark, distance: u64) {
        let mut marks = self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = marks.entry((stream, view)).or_default();
        if mark.raw >= marks.last().map_or(0, |last| last.raw) + distance {
            marks.push(mark);
        }
    }

    /// Whether more of this stream still fits in memory.
    pub fn has_room(&self, stream: Stream, bytes: usize) -> bool {
        self.kept().lane(stream).head.len() + bytes <= self.shared.quota.in_memory
    }

    /// Keeps bytes that have arrived. May write to disk unless there was room.
    pub fn append(&self, stream: Stream, bytes: &[u8]) {
        let (in_head, file) = {
            let mut kept = self.kept();
            let lane = kept.lane_mut(stream);
            let room = match lane.cut {
                None => self.shared.quota.in_memory - lane.head.len(),
                Some(_) => 0,
            };
            let in_head = bytes.len().min(room);
            if in_head < bytes.len() && lane.file.is_none() && lane.cut.is_none() {
                lane.file = self.shared.quota.create(stream).ok().map(Arc::new);
            }
            (in_head, lane.file.clone().filter(|_| lane.cut.is_none()))
        };
        let rest = &bytes[in_head..];
        // Outside the lock: a slow disk must not hold up those who look.
        let written = file.map_or(0, |file| if rest.is_empty() { 0 } else { file.append(rest) });
        let length = {
            let mut kept = self.kept();
            kept.lane_mut(stream).take_in(bytes, in_head, in_head + written);
            keep_last(&mut kept.newest, bytes, NEWEST);
            kept.last_arrival = Some(Instant::now());
            kept.note(stream, bytes.len() as u64);
            kept.length()
        };
        self.shared.arrived.send_replace(length);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing that holds the lock can panic half way through a change.
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn lane(&self, stream: Stream) -> &Lane {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }

    fn lane_mut(&mut self, stream: Stream) -> &mut Lane {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn length(&self) -> u64 {
        self.stdout.length + self.stderr.length
    }

    fn note(&mut self, stream: Stream, bytes: u64) {
        let full = self.stretches.len() >= MAX_STRETCHES;
        match self.stretches.last_mut() {
            Some((last, length)) if *last == stream || full => *length += bytes,
            _ => self.stretches.push((stream, bytes)),
        }
    }
}
