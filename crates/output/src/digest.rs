//! A text that stands for an output which does not fit: its start and its end, and something of what lies between.
//!
//! That is all of it, if it fits once runs of alike lines are folded. If it does not, and the command has failed, it
//! is the lines that look like errors, without warnings unless all of them fit. Otherwise the start and the end have to
//! do.

use std::io::{self, Read};

use mcpz_view::{Level, Shown, count_errors, errors, folded};

use crate::excerpt::Excerpt;
use crate::output::{Excerpts, Output};
use crate::page::{Data, PageRequest, Reader};
use crate::render::Rendering;
use crate::room::Room;
use crate::stream::Stream;
use crate::view::Text;

/// Longer outputs are not looked at as a whole: that would take too long. After a failure it is worth more.
const LONGEST: u64 = 8 << 20;
const LONGEST_OF_FAILED: u64 = 64 << 20;

/// In less room, the start and the end would have too little of it.
const LEAST_ROOM: usize = 1000;

/// Excerpts of the streams that fit into `room` together, for a command that has failed or not. Reads from the disk
/// unless the output is in memory.
pub fn excerpts(output: &Output, streams: &[Stream], room: Room, has_failed: bool) -> Excerpts {
    output.excerpts(streams, room, &|stream, room| {
        let longest = if has_failed { LONGEST_OF_FAILED } else { LONGEST };
        let is_whole = output.lost() == 0 && output.kept_length(stream) <= longest;
        let reader = || Reader::new(output.clone(), stream, Rendering::default());
        // If it cannot be read, the start and the end have to do.
        is_whole.then(|| digest(&reader(), room, has_failed).ok().flatten()).flatten()
    })
}

/// What is shown between the start and the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Folded,
    /// All lines that look like errors or warnings.
    AllErrors,
    /// Lines that look like errors, as many as fit.
    Errors,
}

/// The text that fits, and how much it leaves out. `None` if nothing is better than the start and the end.
fn digest(reader: &Reader, room: Room, has_failed: bool) -> io::Result<Option<Excerpt>> {
    let length = reader.length()?;
    for between in [Between::Folded, Between::AllErrors, Between::Errors] {
        if between != Between::Folded && !has_failed {
            break;
        }
        let mut size = room.size;
        while size >= LEAST_ROOM {
            let ends = between.ends(reader, length, size)?;
            // Characters that are escaped take more room, and the others are probably like these.
            let shorter = |needed: usize, of: usize| (size * of / needed.max(1)).min(size - 1);
            let needed = room.measure.of(&ends.start) + room.measure.of(&ends.end);
            let most = room.size - between.room(size);
            if needed > most {
                size = shorter(needed, most);
                continue;
            }
            // Nothing is between the ends of a line.
            let has_lines = !ends.start.is_empty() && !ends.end.is_empty();
            let excerpt = has_lines.then(|| between.excerpt(reader, ends, size)).transpose()?;
            let Some(excerpt) = excerpt.flatten() else { break };
            let needed = room.measure.of(&excerpt.text);
            if needed <= room.size {
                return Ok(Some(excerpt));
            }
            size = shorter(needed, room.size);
        }
    }
    Ok(None)
}

/// The start and the end of an output, and how much lies between them.
struct Ends {
    start: String,
    end: String,
    between: u64,
}

impl Between {
    /// How much room it may take.
    fn room(self, size: usize) -> usize {
        match self {
            Self::Folded => size / 4,
            Self::AllErrors | Self::Errors => size / 2,
        }
    }

    /// A third of the rest for the start.
    fn ends(self, reader: &Reader, length: u64, size: usize) -> io::Result<Ends> {
        let notes = self.opening(u64::MAX).len() + closing(u64::MAX).len();
        let left = size.saturating_sub(self.room(size) + notes);
        let start = start(reader, left / 3)?;
        let rest = length - start.len() as u64;
        let end = end(reader, length, (left - left / 3).min(rest as usize))?;
        let between = rest - end.len() as u64;
        Ok(Ends { start, end, between })
    }

    /// The start, this, and the end. `None` if there is nothing of this kind, or not enough room for it.
    fn excerpt(self, reader: &Reader, ends: Ends, size: usize) -> io::Result<Option<Excerpt>> {
        let Ends { start, end, between } = ends;
        let text = Text::new(reader, start.len() as u64).take(between);
        let (first_line, room) = (1 + start.lines().count() as u64, self.room(size));
        let shown = match self {
            Self::Folded => folded(text, room)?,
            Self::AllErrors => errors(text, first_line, Level::Warning, room)?,
            Self::Errors => errors(text, first_line, Level::Error, room)?,
        };
        let has_lines = |shown: &Shown| shown.omitted_bytes < shown.consumed;
        let is_good = match self {
            Self::Folded => between > 0 && shown.consumed == between,
            Self::AllErrors => shown.consumed == between && has_lines(&shown),
            Self::Errors => has_lines(&shown),
        };
        let omitted = between - (shown.consumed - shown.omitted_bytes);
        let more = match self {
            Self::Errors if is_good && shown.consumed < between => {
                let rest = Text::new(reader, start.len() as u64 + shown.consumed);
                count_errors(rest.take(between - shown.consumed), Level::Error)?
            }
            _ => 0,
        };
        let text = [&start, &*self.opening(omitted), &shown.text, &closing(more), &end].concat();
        Ok(is_good.then_some(Excerpt { text, omitted }))
    }

    fn opening(self, omitted: u64) -> String {
        let what = match self {
            Self::Folded => "lines that are alike are folded",
            Self::AllErrors => "lines among them that look like errors or warnings",
            Self::Errors => "lines among them that look like errors, without warnings",
        };
        format!("[... {omitted} bytes left out; {what}: ...]\n")
    }
}

/// What comes before the end, with the number of errors that are not shown.
fn closing(more: u64) -> String {
    match more {
        0 => "[... the end: ...]\n".to_owned(),
        1 => "[... 1 more line looks like an error; `view: errors` shows it; the end: ...]\n"
            .to_owned(),
        more => format!(
            "[... {more} more lines look like errors; `view: errors` shows them; the end: ...]\n"
        ),
    }
}

/// Whole lines at the start.
fn start(reader: &Reader, size: usize) -> io::Result<String> {
    let mut text = text(reader, 0, size)?;
    text.truncate(text.rfind('\n').map_or(0, |at| at + 1));
    Ok(text)
}

/// Whole lines at the end.
fn end(reader: &Reader, length: u64, size: usize) -> io::Result<String> {
    let from = length.saturating_sub(size as u64);
    let text = text(reader, from, size)?;
    let line = text.find('\n').map_or(text.len(), |at| at + 1);
    Ok(text[line..].to_owned())
}

fn text(reader: &Reader, from: u64, size: usize) -> io::Result<String> {
    match reader.page(PageRequest::bytes(from, size))?.data {
        Data::Text(text) => Ok(text),
        Data::Binary(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::room::Measure;
    use crate::view::tests::reader;

    const ROOM: Room = Room { size: 3000, measure: Measure::QuotedTwice };

    /// Lines that do not fold.
    fn prose(lines: usize) -> String {
        const WORDS: [&str; 7] = ["apple", "pear", "plum", "fig", "kiwi", "lime", "date"];
        let word = |number: usize| WORDS[number % WORDS.len()];
        let line = |n: usize| [n, n / 7, n / 3, n / 2, n / 49, n / 5].map(word).join(" ") + "\n";
        (0..lines).map(line).collect()
    }

    #[test]
    fn what_lies_between_start_and_end_is_folded_if_that_fits() {
        let log: String = (0..9000).map(|n| format!("12:00:{n:04} request {n} served\n")).collect();
        let log = log.replace("request 5000 served", "error: request 5000 was lost");
        let excerpt = digest(&reader(&log), ROOM, false).unwrap().unwrap();
        let text = &excerpt.text;
        assert!(text.starts_with(&log[..300]) && text.ends_with(&log[log.len() - 600..]), "{text}");
        let between =
            "12:00:4999 request 4999 served\n12:00:5000 error: request 5000 was lost\n12:00:5001";
        assert!(text.contains(between) && text.contains(" more lines like this …\n"), "{text}");
        assert!(text.contains(&format!("[... {} bytes left out; ", excerpt.omitted)), "{text}");
    }

    #[test]
    fn a_failure_is_shown_with_its_errors() {
        let log = prose(3000) + "src/a.rs:3:5: error: no such thing\n" + &prose(3000) + "failed\n";
        assert_eq!(digest(&reader(&log), ROOM, false).unwrap(), None);
        let excerpt = digest(&reader(&log), ROOM, true).unwrap().unwrap();
        let text = &excerpt.text;
        assert!(text.starts_with(&log[..200]) && text.ends_with("failed\n"), "{text}");
        assert!(text.contains("\n3001:src/a.rs:3:5: error: no such thing\n"), "{text}");
        assert!(text.contains(&format!("[... {} bytes left out; ", excerpt.omitted)), "{text}");
    }

    #[test]
    fn warnings_do_not_take_the_room_of_an_error() {
        let warnings =
            |n: usize| (0..n).map(|n| format!("w.c:{n}:5: warning: unused value of fig{n}\n"));
        let log: String = warnings(200)
            .map(|line| line + &prose(2))
            .chain(["e.c:7:5: error: no such thing\n".to_owned()])
            .chain(warnings(200).map(|line| line + &prose(2)))
            .collect();
        let text = digest(&reader(&log), ROOM, true).unwrap().unwrap().text;
        assert!(text.contains(":e.c:7:5: error: no such thing\n"), "{text}");
        assert!(text.contains("look like errors, without warnings: ...]"), "{text}");
    }

    #[test]
    fn errors_that_do_not_fit_are_counted() {
        let error = |n: usize| format!("u{n}.c:1:1: error: something is quite wrong in {n}\n");
        let log: String = (0..500).map(|n| prose(20) + &error(n)).collect();
        let text = digest(&reader(&log), ROOM, true).unwrap().unwrap().text;
        let shown = text.matches("error: something").count();
        let said = text.lines().find_map(|line| {
            line.strip_prefix("[... ")?.strip_suffix(
                " more lines look like errors; `view: errors` shows them; the end: ...]",
            )
        });
        let (said, at_end) = (said.unwrap().parse::<usize>().unwrap(), {
            let (_, end) = text.split_once("the end: ...]").unwrap();
            end.matches("error: something").count()
        });
        assert!(shown > at_end && said + shown == 500, "{said} {shown} {text}");
    }

    #[test]
    fn errors_that_are_only_at_the_end_are_shown_there() {
        let log = prose(3000) + "error: at last\n";
        assert_eq!(digest(&reader(&log), ROOM, true).unwrap(), None);
    }

    proptest! {
        #[test]
        fn every_digest_fits_and_counts_exactly(
            parts in vec(prop_oneof![
                8 => "[a-z ]{0,80}\n", 1 => Just("error: \"x\" is wrong\n".to_owned()),
                1 => Just("日本語 failed\n".to_owned()), 1 => (1..40_usize).prop_map(prose)], 0..300),
            size in 1000_usize..6000,
        ) {
            let log = parts.concat();
            let room = Room { size, ..ROOM };
            prop_assume!(!room.fits(&log));
            if let Some(Excerpt { text, omitted }) = digest(&reader(&log), room, true).unwrap() {
                prop_assert!(room.fits(&text));
                let is_note = |line: &&str| line.starts_with(['[', '…']);
                let label = |line: &str| line.find([':', '-']).map_or(0, |at| at + 1);
                let (mut in_errors, mut shown) = (false, 0);
                for line in text.split_inclusive('\n') {
                    if is_note(&line) {
                        let is_end = line.ends_with("the end: ...]\n");
                        in_errors = !is_end && (in_errors || line.contains("look like errors"));
                        continue;
                    }
                    shown += line.len() - if in_errors { label(line) } else { 0 };
                }
                prop_assert_eq!(shown as u64 + omitted, log.len() as u64, "{}", text);
            }
        }
    }
}
