//! Tables: aligned columns below a header, `ls -l`, CSV and TSV, as rows of named cells. Cells stay texts.

mod aligned;
mod listing;
mod separated;

use std::io::{self, Read};

use serde_json::{Map, Value};

use crate::answer::{Extracted, Hint, NotFound};
use crate::input::Input;
use crate::room::Kept;

/// How many lines decide what kind of table it is.
const SAMPLE: usize = 200;
/// What is read of a table; lines beyond are counted.
const MOST_LINES: usize = 200_000;
const MOST_BYTES: usize = 32 << 20;

type Row = Map<String, Value>;

pub(crate) fn extract<R: Read>(
    outputs: impl IntoIterator<Item = R>,
    hint: &Hint<'_>,
    room: usize,
) -> io::Result<Result<Extracted, NotFound>> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let (mut more, mut bytes) = (0_u64, 0);
    let input = Input::read(outputs, |output, line| {
        bytes += line.len();
        if lines.len() < MOST_LINES && bytes < MOST_BYTES {
            lines.push((output, line.to_owned()));
        } else {
            more += 1;
        }
    })?;
    // Standard output has the table; standard error is looked at only if there is none.
    let outputs = lines.last().map_or(0, |line| line.0 + 1);
    for output in 0..outputs {
        let own: Vec<&str> =
            lines.iter().filter(|line| line.0 == output).map(|line| line.1.as_str()).collect();
        let Some(rows) = rows(&own) else { continue };
        let mut kept = Kept::new(room.saturating_sub(2));
        rows.into_iter().for_each(|row| kept.push(Value::Object(row)));
        let mut notes = Vec::new();
        if more > 0 {
            notes.push(format!(
                "only the first {} lines were read; {more} more follow",
                lines.len()
            ));
        }
        if !hint.ended {
            notes.push("the command did not end by itself, or its output is cut".to_owned());
        }
        return Ok(Ok(Extracted {
            value: Value::Array(kept.items),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            tail: None,
            omitted: kept.omitted + more,
        }));
    }
    let message =
        "no table was found here: no aligned columns, CSV or TSV with a header".to_owned();
    Ok(Err(NotFound { message, tail: input.tail }))
}

fn rows(lines: &[&str]) -> Option<Vec<Row>> {
    listing::rows(lines).or_else(|| separated::rows(lines)).or_else(|| aligned::rows(lines))
}

/// A row from names and cells; names that repeat get a number.
fn row<'a>(names: &[String], cells: impl Iterator<Item = &'a str>) -> Row {
    names.iter().cloned().zip(cells.map(|cell| Value::String(cell.to_owned()))).collect()
}

/// Each name once: a second `x` becomes `x 2`.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        let name = if name.is_empty() { "column".to_owned() } else { name };
        let mut fresh = name.clone();
        let mut count = 1;
        while known.contains(&fresh) {
            count += 1;
            fresh = format!("{name} {count}");
        }
        known.push(fresh);
    }
    known
}
