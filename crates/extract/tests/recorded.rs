//! What is found in the recorded outputs of real tools. Beside each output is what was found in it, which was
//! reviewed; after an intended change, `MCPZ_TEST_UPDATE=1 cargo test -p mcpz-extract` writes it again.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[path = "recorded/mod.rs"]
mod recorded;

use mcpz_extract::{Hint, Kind, extract};
use recorded::{ROOM, Recorded, all, shown};

#[test]
fn what_is_found_in_each_output_is_what_was_reviewed() {
    let mut different = Vec::new();
    for output in all() {
        let found = serde_json::to_string_pretty(&shown(&output.extract())).unwrap() + "\n";
        let path = output.path.with_extension("json");
        if std::env::var_os("MCPZ_TEST_UPDATE").is_some() {
            std::fs::write(&path, &found).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != found {
            different.push(format!("{}:\n{found}", output.path.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn tests() -> impl Iterator<Item = Recorded> {
    all().into_iter().filter(|output| output.kind == Kind::Tests)
}

fn is_green(outputs: &[&[u8]], hint: &Hint<'_>) -> bool {
    extract(Kind::Tests, outputs.iter().copied(), hint, ROOM)
        .unwrap()
        .is_ok_and(|found| found.value["complete"] == true && found.value["failed"] == 0)
}

/// Where each line of the output begins, and its end.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    let lines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    // And a few places inside of lines.
    let inside = (0..bytes.len()).step_by(7 + bytes.len() / 400);
    let mut all: Vec<usize> = [0].into_iter().chain(lines).chain(inside).collect();
    all.sort();
    all
}

#[test]
fn an_output_cut_anywhere_is_never_green() {
    for output in tests() {
        let whole = [output.stdout.as_slice(), &output.stderr].concat();
        for cut in cuts(&whole) {
            let stdout = &output.stdout[..cut.min(output.stdout.len())];
            let stderr = &output.stderr[..cut.saturating_sub(output.stdout.len())];
            for (exit_code, ended) in
                [(Some(0), false), (None, false), (Some(1), true), (None, true)]
            {
                let hint = Hint { command: Some(&output.command), exit_code, ended };
                let merged = &whole[..cut];
                assert!(
                    !is_green(&[stdout, stderr], &hint),
                    "{:?} at {cut}, {hint:?}",
                    output.path
                );
                assert!(!is_green(&[merged], &hint), "{:?} merged at {cut}, {hint:?}", output.path);
            }
        }
    }
}

/// Runners that have no last word: after each part, all may have been told.
const PARTS: &[&str] = &["libtest", "go"];

#[test]
fn an_output_without_its_summary_is_not_green_even_if_the_exit_code_is_0() {
    for output in tests() {
        if PARTS.contains(&output.path.parent().unwrap().file_name().unwrap().to_str().unwrap()) {
            continue;
        }
        let hint = Hint { command: None, exit_code: Some(0), ended: true };
        let whole = [output.stdout.as_slice(), &output.stderr].concat();
        // The first cut after which it is green has to be in the last lines of the output.
        let Some(first) = cuts(&whole).into_iter().find(|&cut| is_green(&[&whole[..cut]], &hint))
        else {
            continue;
        };
        let rest = String::from_utf8_lossy(&whole[first..]);
        assert!(
            rest.lines().count() <= 3,
            "{:?} is green at {first}, before:\n{rest}",
            output.path
        );
        assert!(is_green(&[&whole], &hint), "{:?}", output.path);
    }
}

#[test]
fn only_runs_that_are_green_are_called_so() {
    for output in tests() {
        let name = output.path.file_stem().unwrap().to_str().unwrap();
        let green = is_green(&[&output.stdout, &output.stderr], &output.hint());
        assert_eq!(green, name.starts_with("green"), "{:?}", output.path);
    }
}

#[test]
fn a_filter_makes_every_run_incomplete() {
    for output in tests() {
        for filter in ["| tail -5", "2>&1 | grep -v x", "| head; true"] {
            let command = format!("{} {filter}", output.command);
            let hint = Hint { command: Some(&command), exit_code: Some(0), ended: true };
            assert!(
                !is_green(&[&output.stdout, &output.stderr], &hint),
                "{:?} {command}",
                output.path
            );
        }
    }
}

#[test]
fn failures_fit_into_the_room_and_the_rest_is_counted() {
    for output in tests() {
        let Ok(all) = output.extract() else { continue };
        let failures = |found: &mcpz_extract::Extracted| {
            found.value["failures"].as_array().unwrap().len() as u64
        };
        for room in [150, 300, 600, 1000] {
            let outputs = [&output.stdout[..], &output.stderr[..]];
            let some = extract(Kind::Tests, outputs, &output.hint(), room).unwrap().unwrap();
            assert!(
                some.value.to_string().len() <= room,
                "{:?}: {} of {room}",
                output.path,
                some.value
            );
            assert_eq!(failures(&some) + some.omitted, failures(&all), "{:?}", output.path);
        }
    }
}
