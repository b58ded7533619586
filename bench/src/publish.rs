//! The numbers where people look for them: the table in a README, the picture beside it.

use std::fs;
use std::path::Path;

use crate::owners;
use crate::picture;
use crate::places;
use crate::scale;
use crate::table::{HEAD, Row};
use crate::tokens;

/// Between these lines of the README a table is replaced.
const RESULTS: [&str; 2] = ["<!-- results -->\n", "<!-- end of results -->\n"];
const SCALE: [&str; 2] = ["<!-- scale -->\n", "<!-- end of scale -->\n"];
const TOKENS: [&str; 2] = ["<!-- tokens -->\n", "<!-- end of tokens -->\n"];
const PLACES: [&str; 2] = ["<!-- places -->\n", "<!-- end of places -->\n"];
const OWNERS: [&str; 2] = ["<!-- owners -->\n", "<!-- end of owners -->\n"];

/// Writes `results.svg`, and the table into `README.md`.
pub fn write(folder: &Path, rows: &[Row], machine: &str) {
    let table: String = rows.iter().map(|row| format!("{row}\n")).collect();
    put(folder, RESULTS, &format!("{machine}:\n\n{HEAD}\n{table}"));
    let picture = picture::draw(rows, machine);
    fs::write(folder.join("results.svg"), picture).expect("it can be written");
}

/// Writes the table of growth into `README.md`.
pub fn write_scale(folder: &Path, lines: &[scale::Line], machine: &str) {
    let table: String = lines.iter().map(|line| format!("{line}\n")).collect();
    put(folder, SCALE, &format!("{machine}:\n\n{}\n{table}", scale::HEAD));
}

/// Writes the table of tokens into `README.md`.
pub fn write_tokens(folder: &Path, lines: &[tokens::Line], machine: &str) {
    let table: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (head, targets) = (tokens::head(), tokens::targets(lines));
    put(folder, TOKENS, &format!("{machine}:\n\n{head}\n{table}\n{targets}\n"));
}

/// Writes the table of places into `README.md`.
pub fn write_places(folder: &Path, lines: &[places::Line], machine: &str) {
    let table: String = lines.iter().map(|line| format!("{line}\n")).collect();
    put(folder, PLACES, &format!("{machine}:\n\n{}\n{table}", places::HEAD));
}

/// Writes the table of places that many have, each one of their own, into `README.md`.
pub fn write_owners(folder: &Path, lines: &[owners::Line], machine: &str) {
    let table: String = lines.iter().map(|line| format!("{line}\n")).collect();
    put(folder, OWNERS, &format!("{machine}:\n\n{}\n{table}", owners::HEAD));
}

fn put(folder: &Path, marks: [&str; 2], table: &str) {
    let readme = folder.join("README.md");
    let text = fs::read_to_string(&readme).expect("there is a README.md");
    fs::write(&readme, replace(&text, marks, table)).expect("it can be written");
}

fn replace(text: &str, [begin, end]: [&str; 2], table: &str) -> String {
    let (before, rest) = text.split_once(begin).expect("README.md has a place for it");
    let (_, after) = rest.split_once(end).expect("the place has an end");
    format!("{before}{begin}{table}{end}{after}")
}

/// What it was measured on, and how busy that was.
pub fn machine(version: &str) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.trim().split('-').next().unwrap_or_default().to_owned();
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let architecture = std::env::consts::ARCH;
    format!(
        "{version}, Linux {kernel} on {architecture}, {processors} processors, load {load} at the start"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let [begin, end] = RESULTS;
        let text = format!("# Head\n\n{begin}old\n{end}\ntail\n");
        let replaced = replace(&text, RESULTS, "new\n");
        assert_eq!(replaced, format!("# Head\n\n{begin}new\n{end}\ntail\n"));
        assert_eq!(replace(&replaced, RESULTS, "new\n"), replaced);
    }
}
