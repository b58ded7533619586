//! What an answer shows of an output: of each stream all, or what somebody makes of it, or the start and the end.

use super::stream_buffer::StreamBuffer;
use super::{Output, Stream};
use crate::excerpt::{Excerpt, ExcerptSource};
use crate::room::Room;

/// An excerpt of each stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpts {
    pub stdout: Excerpt,
    pub stderr: Excerpt,
}

impl Excerpts {
    /// The number of bytes in neither excerpt.
    pub fn omitted(&self) -> u64 {
        self.stdout.omitted + self.stderr.omitted
    }
}

/// What the excerpt of one stream is made from.
enum Part {
    Text(ExcerptSource, Stream),
    Binary(Excerpt),
}

/// Makes a text for a stream that does not fit, if it can do better than the start and the end.
pub type Digest<'a> = &'a dyn Fn(Stream, Room) -> Option<Excerpt>;

impl Part {
    fn excerpt(&self, room: Room, digest: Digest<'_>) -> Excerpt {
        let (source, stream) = match self {
            Self::Text(source, stream) => (source, *stream),
            Self::Binary(placeholder) => return placeholder.clone(),
        };
        let excerpt = source.excerpt(room);
        let better = (excerpt.omitted > 0).then(|| digest(stream, room)).flatten();
        better.unwrap_or(excerpt)
    }
}

impl Output {
    /// Excerpts of the streams that fit into `room` together. Reads from the disk unless
    /// [`is_in_memory`](Self::is_in_memory).
    pub fn excerpts(&self, streams: &[Stream], room: Room, digest: Digest<'_>) -> Excerpts {
        let part = |stream| streams.contains(&stream).then(|| self.part(stream, room.size));
        let (stdout, stderr) = (part(Stream::Stdout), part(Stream::Stderr));
        let within = |part: &Option<Part>, room: Room| {
            part.as_ref().map_or_else(Excerpt::default, |part| part.excerpt(room, digest))
        };
        let taken = |excerpt: &Excerpt| room.measure.of(&excerpt.text);
        // Each stream gets half of the room, plus what the other leaves unused.
        let half = within(&stderr, Room { size: room.size / 2, ..room });
        let stdout = within(&stdout, room.less(taken(&half)));
        let stderr = match half.omitted {
            0 => half,
            _ => within(&stderr, room.less(taken(&stdout))),
        };
        Excerpts { stdout, stderr }
    }

    /// Whether excerpts of this size need nothing from the disk, and little time.
    pub fn is_in_memory(&self, size: usize) -> bool {
        let state = self.state();
        let in_memory = |buffer: &StreamBuffer| {
            let is_short = buffer.length <= size as u64;
            buffer.content_kind.binary || is_short && buffer.holds(buffer.source_lengths(size))
        };
        in_memory(&state.stdout) && in_memory(&state.stderr)
    }

    fn part(&self, stream: Stream, size: usize) -> Part {
        let (mut source, lengths) = {
            let state = self.state();
            let buffer = state.buffer(stream);
            if let Some(text) = buffer.placeholder() {
                return Part::Binary(Excerpt { text, omitted: buffer.length });
            }
            let lengths = buffer.source_lengths(size);
            (buffer.excerpt_source(lengths), lengths)
        };
        let end = source.length - lengths.last as u64;
        self.fill(&mut source.first, stream, 0, lengths.first);
        self.fill(&mut source.last, stream, end, lengths.last);
        Part::Text(source.render(), stream)
    }

    /// Reads a piece from the disk if memory has only part of it. If that fails, the part in memory has to do.
    fn fill(&self, piece: &mut Vec<u8>, stream: Stream, at: u64, wanted: usize) {
        if piece.len() < wanted
            && let Ok(bytes) = self.read_at(stream, at, wanted)
            && bytes.len() == wanted
        {
            *piece = bytes;
        }
    }
}
