//! The numbers where people look for them: the table in a README, the picture beside it.

use std::fs;
use std::path::Path;

use crate::picture;
use crate::table::{HEAD, Row};

/// Between these lines of the README the table is replaced.
const BEGIN: &str = "<!-- results -->\n";
const END: &str = "<!-- end of results -->\n";

/// Writes `results.svg`, and the table into `README.md`.
pub fn write(folder: &Path, rows: &[Row], machine: &str) {
    let readme = folder.join("README.md");
    let text = fs::read_to_string(&readme).expect("there is a README.md");
    fs::write(&readme, replace(&text, rows, machine)).expect("it can be written");
    let picture = picture::draw(rows, machine);
    fs::write(folder.join("results.svg"), picture).expect("it can be written");
}

fn replace(text: &str, rows: &[Row], machine: &str) -> String {
    let (before, rest) = text.split_once(BEGIN).expect("README.md has a place for results");
    let (_, after) = rest.split_once(END).expect("the place for results has an end");
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    format!("{before}{BEGIN}{machine}:\n\n{HEAD}\n{rows}{END}{after}")
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
        let text = format!("# Head\n\n{BEGIN}old\n{END}\ntail\n");
        let replaced = replace(&text, &[Row::new("x", 1.0)], "somewhere");
        assert!(replaced.starts_with(&format!("# Head\n\n{BEGIN}somewhere:\n\n| what")));
        assert!(replaced.ends_with(&format!("|\n{END}\ntail\n")) && !replaced.contains("old"));
        assert_eq!(replace(&replaced, &[Row::new("x", 1.0)], "somewhere"), replaced);
    }
}
