//! `ls -l`, which prints no header.

use super::{Row, row};

const NAMES: [&str; 7] = ["mode", "links", "owner", "group", "size", "modified", "name"];

pub(super) fn rows(lines: &[&str]) -> Option<Vec<Row>> {
    let names = NAMES.map(str::to_owned);
    let mut rows = Vec::new();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        if let Some(cells) = cells(line) {
            rows.push(row(&names, cells.iter().map(|cell| cell.as_str())));
        } else if !is_frame(line) {
            return None;
        }
    }
    (!rows.is_empty()).then_some(rows)
}

/// `total 8`, and the name of a folder before its files.
fn is_frame(line: &str) -> bool {
    line.strip_prefix("total ").is_some_and(|rest| !rest.contains(' ')) || line.ends_with(':')
}

fn cells(line: &str) -> Option<Vec<String>> {
    let (mode, mut rest) = line.split_once(' ')?;
    let kinds = mode.starts_with(['-', 'd', 'l', 'c', 'b', 'p', 's']);
    let letters =
        (10..=11).contains(&mode.len()) && mode.chars().skip(1).all(|c| "rwxsStT-.+@".contains(c));
    if !kinds || !letters {
        return None;
    }
    let mut next = || {
        let word = rest.trim_start().split(' ').next().filter(|word| !word.is_empty())?;
        rest = &rest.trim_start()[word.len()..];
        Some(word.to_owned())
    };
    let mut cells = vec![mode.to_owned(), next()?, next()?, next()?];
    let mut size = next()?;
    // A device has two numbers.
    if size.ends_with(',') {
        size = format!("{size} {}", next()?);
    }
    cells.push(size);
    // `Nov 18 16:26` or `2026-11-18 16:26`, or with seconds and a zone.
    let first = next()?;
    let mut modified = format!("{first} {}", next()?);
    if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        modified = format!("{modified} {}", next()?);
    } else if rest.trim_start().starts_with(['+', '-']) {
        let (zone, after) = rest.trim_start().split_once(' ')?;
        modified = format!("{modified} {zone}");
        rest = after;
        cells.extend([modified, rest.trim_start().to_owned()]);
        return Some(cells);
    }
    cells.push(modified);
    cells.push(rest.strip_prefix(' ').unwrap_or(rest).to_owned());
    Some(cells)
}
