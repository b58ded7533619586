//! A short text that stands for a whole output: its start and its end.
//!
//! A third of the room is for the start, the rest for the end, where commands report how they went. Both are cut at
//! line ends. The text says exactly how much was left out: in bytes of the text that can be read later or, for very
//! long output with control sequences, in raw bytes. Little room gets an ellipsis in place of the count, and very
//! little room only the end.

use std::borrow::Cow;

use crate::room::Room;
use crate::text::{NEAR, partial_character, plain, whole_characters};

/// Smaller excerpts do not say how much was left out.
const MIN_FOR_NOTICE: usize = 200;

/// Smaller excerpts have no start either.
const MIN_FOR_ELLIPSIS: usize = 20;

/// A text that stands for an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// How many bytes of output are not in the text.
    pub omitted: u64,
}

/// The parts of an output that an excerpt is made from.
#[derive(Debug, Default)]
pub struct ExcerptSource {
    pub first: Vec<u8>,
    /// Begins after `first`; empty if `first` is everything.
    pub last: Vec<u8>,
    pub length: u64,
    /// Whether the bytes are text that is shown unchanged.
    pub plain: bool,
}

/// Shortens a text to fit into some room, by leaving out its middle.
pub fn shorten(text: &str, room: Room) -> Cow<'_, str> {
    if room.fits(text) {
        return Cow::Borrowed(text);
    }
    let length = text.len() as u64;
    let source = ExcerptSource { first: text.into(), last: Vec::new(), length, plain: true };
    Cow::Owned(source.excerpt(room).text)
}

impl ExcerptSource {
    /// Renders the bytes, if they are the whole output: colours and overwritten lines then take no room.
    pub fn render(self) -> Self {
        let whole = self.first.len() as u64 == self.length;
        if self.plain || !whole {
            return self;
        }
        let text = plain(&self.first);
        Self { length: text.len() as u64, first: text.into(), last: Vec::new(), plain: true }
    }

    pub fn excerpt(&self, room: Room) -> Excerpt {
        let whole = self.first.len() as u64 == self.length;
        // A byte of plain text takes up at least one of the room.
        if whole && (!self.plain || self.first.len() <= room.size) {
            let text = plain(&self.first);
            if room.fits(&text) {
                return Excerpt { text, omitted: 0 };
            }
        }
        let reserved = match room.size {
            ..MIN_FOR_ELLIPSIS => 0,
            MIN_FOR_ELLIPSIS..MIN_FOR_NOTICE => room.measure.of(&ellipsis(true)),
            _ => room.measure.of(&notice(u64::MAX, "\n")),
        };
        let share = if room.size < MIN_FOR_ELLIPSIS { 0 } else { room.less(reserved).size / 3 };
        let (before, taken) = self.beginning(&self.first, Room { size: share, ..room });
        let rest = if whole { &self.first[taken..] } else { &self.last };
        let (after, kept) = self.end(rest, room.less(reserved + share));
        let omitted = self.length - (taken + kept) as u64;
        let between = match room.size {
            ..MIN_FOR_ELLIPSIS => String::new(),
            MIN_FOR_ELLIPSIS..MIN_FOR_NOTICE => {
                ellipsis(rest[..rest.len() - kept].ends_with(b"\n"))
            }
            _ if before.is_empty() || before.ends_with('\n') => notice(omitted, ""),
            _ => notice(omitted, "\n"),
        };
        Excerpt { text: format!("{before}{between}{after}"), omitted }
    }

    /// As much of the start as fits, and how many bytes of output that is.
    fn beginning(&self, bytes: &[u8], room: Room) -> (String, usize) {
        let whole = bytes.len() as u64 == self.length;
        let bytes = if whole { bytes } else { whole_characters(bytes) };
        if self.plain
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            let end = room.beginning(text);
            let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
            let end = if end - line <= NEAR && line > 0 { line } else { end };
            return (text[..end].to_owned(), end);
        }
        let (mut text, mut taken, mut left) = (String::new(), 0, room);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let shown = plain(line);
            if !left.fits(&shown) {
                break;
            }
            left = left.less(room.measure.of(&shown));
            text.push_str(&shown);
            taken += line.len();
        }
        if taken < bytes.len() && (taken == 0 || left.size > NEAR) {
            let (piece, length) =
                shrink_to_fit(left, |size| whole_characters(up_to(&bytes[taken..], size)));
            text.push_str(&piece);
            taken += length;
        }
        (text, taken)
    }

    /// As much of the end as fits, and how many bytes of output that is.
    fn end(&self, bytes: &[u8], room: Room) -> (String, usize) {
        let bytes = &bytes[partial_character(bytes).min(bytes.len())..];
        if self.plain
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            let start = room.end(text);
            let whole = start == 0 || text.as_bytes()[start - 1] == b'\n';
            let line = text.as_bytes()[start..].iter().take(NEAR).position(|byte| *byte == b'\n');
            let start = match line {
                Some(line) if !whole && start + line + 1 < text.len() => start + line + 1,
                _ => start,
            };
            return (text[start..].to_owned(), text.len() - start);
        }
        let (mut lines, mut taken, mut left) = (Vec::new(), 0, room);
        while taken < bytes.len() {
            let before = &bytes[..bytes.len() - taken];
            let inner = before.strip_suffix(b"\n").unwrap_or(before);
            let line = &before[memchr::memrchr(b'\n', inner).map_or(0, |at| at + 1)..];
            let shown = plain(line);
            if !left.fits(&shown) {
                break;
            }
            left = left.less(room.measure.of(&shown));
            taken += line.len();
            lines.push(shown);
        }
        if taken < bytes.len() && (taken == 0 || left.size > NEAR) {
            let before = &bytes[..bytes.len() - taken];
            let last = |size| {
                let piece = &before[before.len().saturating_sub(size)..];
                &piece[partial_character(piece).min(piece.len())..]
            };
            let (piece, length) = shrink_to_fit(left, last);
            lines.push(piece);
            taken += length;
        }
        (lines.into_iter().rev().collect(), taken)
    }
}

/// Finds a size for which the piece fits; returns its text and its length in bytes.
fn shrink_to_fit<'a>(room: Room, piece: impl Fn(usize) -> &'a [u8]) -> (String, usize) {
    let mut size = room.size;
    loop {
        let bytes = piece(size);
        let text = plain(bytes);
        let needed = room.measure.of(&text);
        if needed <= room.size || size == 0 {
            return (text, bytes.len());
        }
        // The rendered text can be longer than the raw bytes.
        size = (size * room.size / needed).min(size - 1);
    }
}

fn up_to(bytes: &[u8], size: usize) -> &[u8] {
    &bytes[..bytes.len().min(size)]
}

fn notice(omitted: u64, gap: &str) -> String {
    format!("{gap}[... {omitted} bytes left out ...]\n")
}

/// The shortest sign that something was left out. It gets its own line before a complete line, and precedes part of
/// a line directly.
fn ellipsis(whole_lines: bool) -> String {
    if whole_lines { "...\n" } else { "..." }.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::room::Measure;

    fn source(bytes: &[u8], first: usize, last: usize) -> ExcerptSource {
        let mut kind = crate::content_kind::ContentKind::default();
        kind.update(bytes);
        let first = first.min(bytes.len());
        let last = last.min(bytes.len() - first);
        ExcerptSource {
            first: bytes[..first].to_vec(),
            last: bytes[bytes.len() - last..].to_vec(),
            length: bytes.len() as u64,
            plain: kind.plain,
        }
    }

    fn lines(count: usize) -> String {
        (0..count).map(|n| format!("{n}\n")).collect()
    }

    const ROOM: Room = Room { size: 3000, measure: Measure::QuotedTwice };

    #[test]
    fn a_third_is_start_two_thirds_are_end_and_lines_are_whole() {
        let text = lines(100_000);
        let excerpt = source(text.as_bytes(), 5000, 5000).excerpt(ROOM);
        let (before, after) = excerpt.text.split_once("[... ").unwrap();
        let (count, after) = after.split_once(" bytes left out ...]\n").unwrap();
        assert!(text.starts_with(before) && before.ends_with('\n'));
        assert!(text.ends_with(after) && text[..text.len() - after.len()].ends_with('\n'));
        assert_eq!(count, excerpt.omitted.to_string());
        assert_eq!(excerpt.omitted as usize, text.len() - before.len() - after.len());
        let share = |part: &str| ROOM.measure.of(part);
        assert!((900..=1000).contains(&share(before)), "{}", share(before));
        assert!((1900..=2000).contains(&share(after)), "{}", share(after));
    }

    #[test]
    fn coloured_lines_count_by_their_rendered_size() {
        let line = "\x1b[1m\x1b[32m   Compiling\x1b[0m serde v1.0\n";
        let text = line.repeat(2000);
        let excerpt = source(text.as_bytes(), 10_000, 10_000).excerpt(ROOM);
        let shown = excerpt.text.matches("   Compiling serde v1.0\n").count();
        assert_eq!(excerpt.omitted as usize, (2000 - shown) * line.len());
        assert!(ROOM.measure.of(&excerpt.text) > ROOM.size * 9 / 10);
    }

    #[test]
    fn a_line_longer_than_the_room_is_shown_in_pieces() {
        let text = format!("{}end", "x".repeat(1 << 20));
        let excerpt = source(text.as_bytes(), 5000, 5000).excerpt(ROOM);
        assert!(excerpt.text.starts_with("xxx") && excerpt.text.ends_with("end"));
        let shown = excerpt.text.matches(['x', 'e', 'n', 'd']).count();
        assert!(shown > 2800, "{shown}");
    }

    #[test]
    fn a_small_excerpt_has_a_start_and_an_end_and_a_tiny_one_only_an_end() {
        let text = lines(100);
        for (first, last) in [(5000, 0), (100, 100)] {
            let source = source(text.as_bytes(), first, last);
            let shown = |size| source.excerpt(Room::bytes(size));
            let excerpt = |text: &str, omitted| Excerpt { text: text.into(), omitted };
            assert_eq!(
                shown(50).text,
                "0\n1\n2\n3\n4\n5\n6\n...\n90\n91\n92\n93\n94\n95\n96\n97\n98\n99\n"
            );
            assert_eq!(shown(50).omitted, 290 - 14 - 30);
            assert_eq!(shown(20), excerpt("0\n1\n...\n97\n98\n99\n", 290 - 4 - 9));
            assert_eq!(shown(5), excerpt("99\n", 287));
            assert_eq!(shown(2), excerpt("9\n", 288));
            assert_eq!(shown(0), excerpt("", 290));
        }
        let line = "x".repeat(500) + "end";
        let excerpt = source(line.as_bytes(), 5000, 0).excerpt(Room::bytes(24));
        assert_eq!((excerpt.text.as_str(), excerpt.omitted), ("xxxxxx...xxxxxxxxxxxend", 483));
    }

    #[test]
    fn a_text_that_is_too_long_loses_its_middle() {
        assert_eq!(shorten("short", ROOM), "short");
        let text = lines(10_000);
        let short = shorten(&text, ROOM);
        assert!(ROOM.fits(&short) && short.starts_with("0\n1\n") && short.ends_with("\n9999\n"));
    }

    proptest! {
        #[test]
        fn every_excerpt_fits_and_counts_exactly(
            parts in vec(prop_oneof![
                6 => "[a-z ]{0,80}\n", 1 => Just("\x1b[31mred\x1b[0m\n".to_owned()),
                1 => Just("\"\\\"\\".repeat(30)), 1 => Just("日本語\n".repeat(20)),
                1 => Just("10%\r20%\r".repeat(20)), 1 => "\\PC{0,300}", 1 => Just("\u{1}".into())],
                0..200),
            size in 0_usize..6000,
            measure in prop_oneof![
                Just(Measure::Bytes), Just(Measure::Quoted), Just(Measure::QuotedTwice)],
        ) {
            let text = parts.concat();
            let room = Room { size, measure };
            let (first, last) = (8 * size + 300, 8 * size + 300);
            let source = source(text.as_bytes(), first, last);
            let excerpt = source.excerpt(room);
            prop_assert!(room.fits(&excerpt.text), "{} > {size}", measure.of(&excerpt.text));
            if excerpt.omitted > 0 && size > 6 {
                prop_assert!(!source.plain || excerpt.text.ends_with(text.chars().last().unwrap()));
            }
            if excerpt.omitted == 0 {
                prop_assert_eq!(&excerpt.text, &plain(text.as_bytes()));
            } else if source.plain && size >= MIN_FOR_NOTICE {
                let notice = notice(excerpt.omitted, "");
                let (before, after) = excerpt.text.split_once(&notice).unwrap();
                let before = if text.starts_with(before) { before } else { before.trim_end() };
                let shown = before.len() + after.len();
                prop_assert!(text.starts_with(before) && text.ends_with(after));
                let gap = usize::from(!before.ends_with('\n') && !before.is_empty());
                prop_assert!(shown as u64 + excerpt.omitted <= (text.len() + gap) as u64);
                prop_assert!(shown as u64 + excerpt.omitted + 1 >= text.len() as u64);
            }
        }
    }
}
