//! Where a run's output lives, while it is produced and after it ends.
//!
//! Each stream's first bytes and its last bytes are in memory, everything after the first ones is
//! in a spill file. Memory does not grow with the output.
//!
//!     pipe ─▶ Channel ─▶ Output ─▶ head │ spill file │ tail
//!                           └────▶ watch ──▶ whoever waits for more

mod excerpts;
mod lane;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::nature::Nature;
use crate::page::Mark;
use crate::render::View;
use crate::spill::Quota;
use crate::text;

pub use excerpts::Excerpts;

use lane::Lane;

/// How much of each stream's beginning is in memory.
pub const HEAD: usize = 64 << 10;

/// How much of each stream's end is in memory.
const TAIL: usize = 16 << 10;

/// How much of what arrived last, on either stream, is at hand for telling how it goes.
const NEWEST: usize = 2 << 10;

/// After this many changes between the streams their order is not recorded any more.
const MAX_STRETCHES: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    marks: Mutex<HashMap<(Stream, View), Vec<Mark>>>,
    lengths: Mutex<HashMap<(Stream, View), u64>>,
    quota: Arc<Quota>,
    arrived: watch::Sender<u64>,
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
    pub(crate) fn new(quota: Arc<Quota>) -> Self {
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
    pub(crate) fn last_arrival(&self) -> Option<Instant> {
        self.kept().last_arrival
    }

    /// Bytes that could be kept neither in memory nor on disk.
    pub fn lost(&self) -> u64 {
        let kept = self.kept();
        kept.stdout.lost + kept.stderr.lost
    }

    /// Notes that so much more came, and was not kept.
    pub(crate) fn lose(&self, bytes: u64) {
        let mut kept = self.kept();
        let length = kept.stdout.length.saturating_add(bytes);
        kept.stdout.lost += length - kept.stdout.length;
        kept.stdout.length = length;
    }

    /// What large pieces are read into on their way to the disk.
    pub(crate) fn quota(&self) -> &Quota {
        &self.shared.quota
    }

    pub(crate) fn lookups(&self) -> &Mutex<()> {
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

    pub(crate) fn finish(&self) {
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
        self.kept().lane(stream).kept_length()
    }

    /// How much of a stream will be seen as it is seen now, whatever comes: its whole lines, as a
    /// line that has no end yet can be written over; what the answer told; and all of it when
    /// nothing more comes.
    pub(crate) fn settled_length(&self, stream: Stream) -> u64 {
        let kept = self.kept();
        let lane = kept.lane(stream);
        let length = lane.kept_length();
        match kept.finished || lane.nature.binary {
            true => length,
            false => lane.lines_end.max(lane.answered).min(length),
        }
    }

    /// How much of a stream there is, but for the beginning of a character whose rest has not come.
    pub(crate) fn live_length(&self, stream: Stream) -> u64 {
        let kept = self.kept();
        let lane = kept.lane(stream);
        let (end, _) = lane.end(4);
        let cut = if lane.lost == 0 { end.len() - text::whole_characters(end).len() } else { 0 };
        lane.kept_length() - cut as u64
    }

    /// How much of it is on the disk, if that is ours to remove.
    pub(crate) fn spilled(&self) -> u64 {
        self.shared.quota.used()
    }

    /// Lets go of what is on the disk: it is lost from now on, whoever holds the rest.
    pub(crate) fn release(&self) {
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
    pub(crate) fn known_length(&self, stream: Stream, view: View) -> Option<u64> {
        let lengths = self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.get(&(stream, view)).copied()
    }

    pub(crate) fn note_length(&self, stream: Stream, view: View, length: u64) {
        let mut lengths = self.shared.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        lengths.insert((stream, view), length);
    }

    pub(crate) fn nature(&self, stream: Stream) -> Nature {
        self.kept().lane(stream).nature.clone()
    }

    /// Bytes of a stream as they came, at most so many.
    pub(crate) fn read_at(&self, stream: Stream, at: u64, limit: usize) -> io::Result<Vec<u8>> {
        let (mut bytes, file, in_memory, end) = {
            let kept = self.kept();
            let lane = kept.lane(stream);
            let from = (at as usize).min(lane.head.len());
            let head = &lane.head[from..];
            let bytes = head[..head.len().min(limit)].to_vec();
            (bytes, lane.file.clone(), lane.head.len() as u64, lane.kept_length())
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
        Ok(bytes)
    }

    /// The last line's beginning before an offset that was passed in this view.
    pub(crate) fn mark_before(&self, stream: Stream, view: View, seen: u64) -> Mark {
        let marks = self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(marks) = marks.get(&(stream, view)) else { return Mark::default() };
        match marks.partition_point(|mark| mark.seen <= seen) {
            0 => Mark::default(),
            after => marks[after - 1],
        }
    }

    /// Notes a line's beginning, if it is far enough from the last one.
    pub(crate) fn leave_mark(&self, stream: Stream, view: View, mark: Mark, distance: u64) {
        let mut marks = self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = marks.entry((stream, view)).or_default();
        if mark.raw >= marks.last().map_or(0, |last| last.raw) + distance {
            marks.push(mark);
        }
    }

    /// Whether more of this stream still fits in memory.
    pub(crate) fn has_room(&self, stream: Stream, bytes: usize) -> bool {
        self.kept().lane(stream).head.len() + bytes <= self.shared.quota.in_memory
    }

    /// Keeps bytes that have arrived. May write to disk unless there was room.
    pub(crate) fn append(&self, stream: Stream, bytes: &[u8]) {
        let (in_head, file) = {
            let mut kept = self.kept();
            let lane = kept.lane_mut(stream);
            let in_head = bytes.len().min(self.shared.quota.in_memory - lane.head.len());
            if in_head < bytes.len() && lane.file.is_none() && !lane.full {
                lane.file = self.shared.quota.create(stream).ok().map(Arc::new);
            }
            (in_head, lane.file.clone().filter(|_| !lane.full))
        };
        let rest = &bytes[in_head..];
        // Outside the lock: a slow disk must not hold up those who look.
        let written = file.map_or(0, |file| if rest.is_empty() { 0 } else { file.append(rest) });
        let length = {
            let mut kept = self.kept();
            let lane = kept.lane_mut(stream);
            lane.length += bytes.len() as u64;
            if let Some(at) = memchr::memrchr(b'\n', bytes) {
                lane.lines_end = lane.length - (bytes.len() - at - 1) as u64;
            }
            lane.nature.note(bytes);
            lane.lost += (rest.len() - written) as u64;
            lane.full |= written < rest.len();
            lane.head.extend_from_slice(&bytes[..in_head]);
            let tail = TAIL.min(self.shared.quota.in_memory);
            if !rest.is_empty() && lane.tail.is_empty() {
                keep_last(&mut lane.tail, &lane.head, tail);
            }
            keep_last(&mut lane.tail, rest, tail);
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

/// Appends `bytes` to `end` and drops what is more than the last `limit` bytes.
fn keep_last(end: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(limit)..];
    let surplus = (end.len() + bytes.len()).saturating_sub(limit);
    end.drain(..surplus);
    end.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;
    use crate::room::{Measure, Room};
    use crate::spill::{Spill, SpillSettings};

    const BOTH: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

    const ROOM: Room = Room { size: 24_000, measure: Measure::QuotedTwice };

    fn output_in(parent: &Path, per_run: u64) -> Output {
        let settings = SpillSettings { per_run, ..SpillSettings::new(parent) };
        Output::new(Arc::new(Spill::new(settings)).account().quota(None))
    }

    /// The one file below the folder.
    fn spilled(folder: &Path) -> PathBuf {
        let private = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        std::fs::read_dir(private).unwrap().next().unwrap().unwrap().path()
    }

    fn numbered(count: usize) -> Vec<u8> {
        (0..count).flat_map(|n| format!("{n:09}\n").into_bytes()).collect()
    }

    #[test]
    fn a_short_output_is_told_whole_and_needs_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 1 << 20);
        output.append(Stream::Stderr, b"two\n");
        output.append(Stream::Stdout, b"one\n");
        let excerpts = output.excerpts(&BOTH, ROOM);
        assert_eq!((&*excerpts.stdout.text, &*excerpts.stderr.text), ("one\n", "two\n"));
        assert_eq!(excerpts.omitted(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_in_memory_is_in_a_private_file_that_goes_with_the_output() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 1 << 30);
        let bytes = numbered(100_000);
        for piece in bytes.chunks(70_001) {
            output.append(Stream::Stdout, piece);
        }
        let file = spilled(folder.path());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
        assert_eq!(std::fs::read(&file).unwrap(), bytes[HEAD..]);
        assert_eq!((output.length(), output.lost()), (1_000_000, 0));
        drop(output);
        assert!(!file.parent().unwrap().exists());
    }

    #[test]
    fn beyond_the_quota_bytes_are_counted_and_the_end_is_still_told() {
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 100_000);
        let bytes = numbered(100_000);
        output.append(Stream::Stdout, &bytes);
        output.append(Stream::Stdout, b"the end\n");
        assert_eq!(output.length(), 1_000_008);
        assert_eq!(output.lost(), 1_000_008 - HEAD as u64 - 100_000);
        assert_eq!(std::fs::read(spilled(folder.path())).unwrap(), bytes[HEAD..HEAD + 100_000]);
        let excerpt = output.excerpts(&BOTH, ROOM).stdout;
        assert!(excerpt.text.ends_with("000099999\nthe end\n"));
    }

    #[test]
    fn without_a_folder_to_write_to_the_run_goes_on_and_the_loss_is_counted() {
        let output = output_in("/proc/nowhere".as_ref(), 1 << 30);
        output.append(Stream::Stdout, &numbered(20_000));
        assert_eq!(output.lost(), 200_000 - HEAD as u64);
    }

    #[test]
    fn the_order_of_arrival_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 1 << 20);
        for (stream, bytes) in [
            (Stream::Stdout, "ab"),
            (Stream::Stdout, "c"),
            (Stream::Stderr, "d"),
            (Stream::Stdout, "e"),
        ] {
            output.append(stream, bytes.as_bytes());
        }
        let expected = [(Stream::Stdout, 3), (Stream::Stderr, 1), (Stream::Stdout, 1)];
        assert_eq!(output.stretches(), expected);
        assert_eq!(output.newest(&[Stream::Stdout, Stream::Stderr]), "abcde");
        assert_eq!(output.newest(&[Stream::Stdout]), "abce");
    }

    #[test]
    fn two_long_streams_share_the_room_and_a_short_one_leaves_it_to_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 1 << 30);
        output.append(Stream::Stdout, &numbered(100_000));
        output.append(Stream::Stderr, b"one line\n");
        let excerpts = output.excerpts(&BOTH, ROOM);
        assert_eq!(excerpts.stderr.text, "one line\n");
        assert!(ROOM.measure.of(&excerpts.stdout.text) > ROOM.size * 9 / 10);
        output.append(Stream::Stderr, &numbered(100_000));
        let excerpts = output.excerpts(&BOTH, ROOM);
        for excerpt in [excerpts.stdout, excerpts.stderr] {
            assert!(excerpt.text.ends_with("000099999\n"));
            assert!(ROOM.measure.of(&excerpt.text) > ROOM.size * 4 / 10);
        }
    }

    #[test]
    fn what_memory_does_not_hold_of_an_excerpt_is_read_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 1 << 30);
        output.append(Stream::Stdout, &numbered(100_000));
        assert!(output.is_at_hand(TAIL) && !output.is_at_hand(300_000));
        let text = output.excerpts(&BOTH, Room::bytes(300_000)).stdout.text;
        assert!(text.len() > 299_000 && text.contains("000009990\n"), "{}", text.len());
    }

    proptest! {
        #[test]
        fn an_excerpt_tells_how_much_it_left_out(
            stdout in 0_usize..20_000, stderr in 0_usize..20_000
        ) {
            let folder = tempfile::tempdir().unwrap();
            let output = output_in(folder.path(), 1 << 30);
            output.append(Stream::Stdout, &numbered(stdout));
            output.append(Stream::Stderr, &numbered(stderr));
            let excerpts = output.excerpts(&BOTH, ROOM);
            let text = excerpts.stdout.text.clone() + &excerpts.stderr.text;
            let told = text.lines().filter(|line| !line.starts_with('[')).count();
            prop_assert_eq!(told as u64 * 10 + excerpts.omitted(), (stdout + stderr) as u64 * 10);
            prop_assert!(ROOM.fits(&text));
        }
    }
}
