//! CSV and TSV, with a header. Quotes are those of RFC 4180.

use super::{Row, SAMPLE, distinct, row};

pub(super) fn rows(lines: &[&str]) -> Option<Vec<Row>> {
    let separator = ['\t', ',', ';', '|'].into_iter().find(|&separator| fits(lines, separator))?;
    let mut records = Records { lines: lines.iter(), separator };
    let header = records.next()?;
    let names = distinct(header.into_iter().map(|name| name.trim().to_owned()));
    let rest: Vec<Vec<String>> = records.collect();
    Some(rest.iter().map(|cells| row(&names, cells.iter().map(|cell| cell.as_str()))).collect())
}

/// Whether all of the first records have as many cells as the header, and at least two.
fn fits(lines: &[&str], separator: char) -> bool {
    let first = &lines[..lines.len().min(SAMPLE)];
    let records: Vec<Vec<String>> = Records { lines: first.iter(), separator }.collect();
    let Some((header, rest)) = records.split_first() else { return false };
    // The last may be cut by the sample.
    let whole =
        if first.len() < lines.len() && rest.len() > 1 { &rest[..rest.len() - 1] } else { rest };
    let words = header.iter().all(|name| !name.trim().is_empty() && name.len() < 100);
    header.len() > 1
        && words
        && !whole.is_empty()
        && whole.iter().all(|cells| cells.len() == header.len())
}

struct Records<'a> {
    lines: std::slice::Iter<'a, &'a str>,
    separator: char,
}

impl Iterator for Records<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        let mut line = self.lines.find(|line| !line.trim().is_empty())?;
        let mut cells = Vec::new();
        let mut cell = String::new();
        let mut quoted = false;
        let mut chars = line.chars().peekable();
        loop {
            match chars.next() {
                None if quoted => match self.lines.next() {
                    Some(next) => {
                        cell.push('\n');
                        line = next;
                        chars = line.chars().peekable();
                    }
                    None => quoted = false,
                },
                None => break,
                Some('"') if quoted => {
                    if chars.next_if_eq(&'"').is_some() {
                        cell.push('"');
                    } else {
                        quoted = false;
                    }
                }
                Some('"') if cell.is_empty() => quoted = true,
                Some(c) if c == self.separator && !quoted => cells.push(std::mem::take(&mut cell)),
                Some(c) => cell.push(c),
            }
        }
        cells.push(cell);
        Some(cells)
    }
}
