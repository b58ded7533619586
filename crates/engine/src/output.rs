//! Where a run's output lives, while it is produced and after it ends.
//!
//! Each stream's first bytes and its last bytes are in memory, everything after the first ones is
//! in a spill file. Memory does not grow with the output.
//!
//!     pipe ─▶ Channel ─▶ Output ─▶ head │ spill file │ tail
//!                           └────▶ watch ──▶ whoever waits for more

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::spill::{Quota, SpillFile};
use crate::text;

/// How much of each stream's beginning is in memory.
pub const HEAD: usize = 64 << 10;

/// How much of each stream's end is in memory.
const TAIL: usize = 16 << 10;

/// How much of what arrived last, on either stream, is at hand for telling how it goes.
const NEWEST: usize = 2 << 10;

/// After this many changes between the streams their order is not recorded any more.
const MAX_STRETCHES: usize = 1 << 16;

/// The most of a command's output that goes into one answer.
const EXCERPT: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A run's output. Clones share it.
#[derive(Debug, Clone)]
pub struct Output {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    quota: Arc<Quota>,
    arrived: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    stdout: Lane,
    stderr: Lane,
    newest: Vec<u8>,
    stretches: Vec<(Stream, u64)>,
}

/// One stream.
#[derive(Debug, Default)]
struct Lane {
    length: u64,
    lost: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    file: Option<Arc<SpillFile>>,
    spill_failed: bool,
}

/// A text of limited length that stands for the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// Bytes of output that are not in the text.
    pub omitted: u64,
}

impl Output {
    pub(crate) fn new(quota: Arc<Quota>) -> Self {
        let (arrived, _) = watch::channel(0);
        let shared = Shared { kept: Mutex::default(), quota, arrived };
        Self { shared: Arc::new(shared) }
    }

    /// How many bytes arrived so far, on both streams.
    pub fn length(&self) -> u64 {
        *self.shared.arrived.borrow()
    }

    /// Bytes that could be kept neither in memory nor on disk.
    pub fn lost(&self) -> u64 {
        let kept = self.kept();
        kept.stdout.lost + kept.stderr.lost
    }

    /// Tells whenever more bytes have arrived, and how many there are.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.arrived.subscribe()
    }

    /// The last few lines that arrived, as text.
    pub fn newest(&self) -> String {
        let kept = self.kept();
        match kept.length() > kept.newest.len() as u64 {
            true => text::plain(text::after_cut(&kept.newest)),
            false => text::plain(&kept.newest),
        }
    }

    /// Which stream how many bytes came from, in order of arrival.
    pub fn stretches(&self) -> Vec<(Stream, u64)> {
        self.kept().stretches.clone()
    }

    /// What the streams say, one after the other, with the middle left out where it is too long.
    pub fn excerpt(&self, streams: &[Stream]) -> Excerpt {
        let kept = self.kept();
        let lanes: Vec<_> = streams.iter().map(|stream| kept.lane(*stream)).collect();
        let mut whole = Excerpt::default();
        let mut room = EXCERPT as u64;
        let mut others = lanes.iter().map(|lane| lane.length).sum::<u64>();
        for lane in lanes {
            others -= lane.length;
            // The later streams need not leave more than they have, nor less than their share.
            let share = room - others.min(room / 2);
            let part = lane.excerpt(share as usize);
            room -= share.min(lane.length);
            whole.text.push_str(&part.text);
            whole.omitted += part.omitted;
        }
        whole
    }

    /// Whether more of this stream still fits in memory.
    pub(crate) fn has_room(&self, stream: Stream, bytes: usize) -> bool {
        self.kept().lane(stream).head.len() + bytes <= HEAD
    }

    /// Keeps bytes that have arrived. May write to disk unless there was room.
    pub(crate) fn append(&self, stream: Stream, bytes: &[u8]) {
        let (in_head, file) = {
            let mut kept = self.kept();
            let lane = kept.lane_mut(stream);
            let in_head = bytes.len().min(HEAD - lane.head.len());
            if in_head < bytes.len() && lane.file.is_none() && !lane.spill_failed {
                lane.file = self.shared.quota.create().ok().map(Arc::new);
                lane.spill_failed = lane.file.is_none();
            }
            (in_head, lane.file.clone())
        };
        let rest = &bytes[in_head..];
        // Outside the lock: a slow disk must not hold up those who look.
        let written = file.map_or(0, |file| if rest.is_empty() { 0 } else { file.append(rest) });
        let length = {
            let mut kept = self.kept();
            let lane = kept.lane_mut(stream);
            lane.length += bytes.len() as u64;
            lane.lost += (rest.len() - written) as u64;
            // What follows a gap could not be placed any more.
            if written < rest.len() {
                lane.file = None;
                lane.spill_failed = true;
            }
            lane.head.extend_from_slice(&bytes[..in_head]);
            keep_last(&mut lane.tail, rest, TAIL);
            keep_last(&mut kept.newest, bytes, NEWEST);
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

impl Lane {
    fn excerpt(&self, limit: usize) -> Excerpt {
        if self.length <= limit.min(HEAD) as u64 {
            return Excerpt { text: text::plain(&self.head), omitted: 0 };
        }
        let first = text::before_cut(&self.head[..self.head.len().min(limit / 4 * 3)]);
        let end = if self.tail.is_empty() { &self.head } else { &self.tail };
        let last = text::after_cut(&end[end.len() - end.len().min(limit / 4)..]);
        let omitted = self.length - (first.len() + last.len()) as u64;
        let (before, after) = (text::plain(first), text::plain(last));
        let gap = if before.ends_with('\n') { "" } else { "\n" };
        let text = format!("{before}{gap}[... {omitted} bytes left out ...]\n{after}");
        Excerpt { text, omitted }
    }
}

/// Appends `bytes` to `end` and drops what is more than the last `limit` bytes.
fn keep_last(end: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(limit)..];
    let surplus = (end.len() + bytes.len()).saturating_sub(limit);
    end.drain(..surplus);
    end.extend_from_slice(bytes);
}
