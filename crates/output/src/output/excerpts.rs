//! What an answer shows of an output: of each stream its beginning and its end.

use super::lane::Lane;
use super::{Output, Stream};
use crate::excerpt::{Excerpt, Pieces};
use crate::room::Room;

/// What stands for each stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpts {
    pub stdout: Excerpt,
    pub stderr: Excerpt,
}

impl Excerpts {
    /// Bytes that are in neither.
    pub fn omitted(&self) -> u64 {
        self.stdout.omitted + self.stderr.omitted
    }
}

/// One stream, as far as an excerpt needs it.
enum Part {
    Text(Pieces),
    Binary(Excerpt),
}

impl Part {
    fn excerpt(&self, room: Room) -> Excerpt {
        match self {
            Self::Text(pieces) => pieces.excerpt(room),
            Self::Binary(announced) => announced.clone(),
        }
    }
}

impl Output {
    /// What the streams say, with the middle left out where it is too long. May read from the disk,
    /// unless [`is_at_hand`](Self::is_at_hand).
    pub fn excerpts(&self, streams: &[Stream], room: Room) -> Excerpts {
        let part = |stream| streams.contains(&stream).then(|| self.part(stream, room.size));
        let (stdout, stderr) = (part(Stream::Stdout), part(Stream::Stderr));
        let within = |part: &Option<Part>, room: Room| {
            part.as_ref().map_or_else(Excerpt::default, |part| part.excerpt(room))
        };
        let taken = |excerpt: &Excerpt| room.measure.of(&excerpt.text);
        // Each has half of the room, and what the other leaves of its own.
        let half = within(&stderr, Room { size: room.size / 2, ..room });
        let stdout = within(&stdout, room.less(taken(&half)));
        let stderr = match half.omitted {
            0 => half,
            _ => within(&stderr, room.less(taken(&stdout))),
        };
        Excerpts { stdout, stderr }
    }

    /// Whether an excerpt of this size needs nothing from the disk.
    pub fn is_at_hand(&self, size: usize) -> bool {
        let kept = self.kept();
        let at_hand = |lane: &Lane| lane.nature.binary || lane.holds(lane.reach(size));
        at_hand(&kept.stdout) && at_hand(&kept.stderr)
    }

    fn part(&self, stream: Stream, size: usize) -> Part {
        let (mut pieces, reach) = {
            let kept = self.kept();
            let lane = kept.lane(stream);
            if let Some(text) = lane.announcement() {
                return Part::Binary(Excerpt { text, omitted: lane.length });
            }
            let reach = lane.reach(size);
            (lane.pieces(reach), reach)
        };
        let end = pieces.length - reach.last as u64;
        self.fill(&mut pieces.first, stream, 0, reach.first);
        self.fill(&mut pieces.last, stream, end, reach.last);
        Part::Text(pieces.rendered())
    }

    /// Reads a piece from the disk that memory does not hold as a whole. If it cannot be read, what
    /// memory has must do.
    fn fill(&self, piece: &mut Vec<u8>, stream: Stream, at: u64, wanted: usize) {
        if piece.len() < wanted
            && let Ok(bytes) = self.read_at(stream, at, wanted)
            && bytes.len() == wanted
        {
            *piece = bytes;
        }
    }
}
