//! The lines of an output that report errors and warnings, with two around each.

use std::io::{Read, Result};

use crate::groups::{Entry, Groups, Label, Missing, Share};
use crate::lines::Lines;
use crate::shown::Shown;
use crate::trouble::{Level, level};

/// The lines that report trouble of at least a level, with their numbers as `grep -n` writes them, up to as many bytes
/// as there is room for. The output begins with the line of the given number.
pub fn errors(output: impl Read, first_line: u64, least: Level, room: usize) -> Result<Shown> {
    let mut lines = Lines::new(output);
    let mut groups = Groups::new(Missing::WithoutErrors, room);
    let mut number = first_line;
    let mut is_end = true;
    while lines.advance()? {
        let (line, bytes) = (lines.recent(0), lines.bytes(0));
        let share = Share { lines: 1, bytes: line.raw, ..Share::default() };
        let entry = Entry { label: Label::Number(number), line, bytes, share };
        let matters = level(bytes).is_some_and(|level| level >= least);
        let has_room = if matters { groups.hit(entry) } else { groups.ordinary(entry) };
        if !has_room {
            is_end = false;
            break;
        }
        number += 1;
    }
    let (text, taken) = groups.finish(is_end);
    Ok(text.into_shown(taken.bytes, taken.lines))
}

/// How many lines report trouble of at least a level.
pub fn count_errors(output: impl Read, least: Level) -> Result<u64> {
    let mut lines = Lines::new(output);
    let mut count = 0;
    while lines.advance()? {
        count += u64::from(level(lines.bytes(0)).is_some_and(|level| level >= least));
    }
    Ok(count)
}
