//! The whole benchmark, with as little effort as possible: it works, whatever the numbers are.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;

/// Runs the benchmark as a trial that writes its table between these marks of a page, and returns the table. `head`
/// and `tail` of the page stay.
fn trial(folder: &Path, mark: &str, arguments: &[&str]) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_mcpz-bench"));
    let mcpz = program.with_file_name("mcpz");
    assert!(mcpz.exists(), "mcpz is built beside the benchmark: cargo build");
    let (page, head) = (folder.join("README.md"), format!("# Head\n\n<!-- {mark} -->\n"));
    let tail = format!("<!-- end of {mark} -->\n\ntail\n");
    std::fs::write(&page, format!("{head}{tail}")).unwrap();
    let mut command = Command::new(program);
    command.arg("--trial").args(arguments).arg("--write").arg(folder).arg(mcpz);
    let output = command.env("TMPDIR", folder).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(page).unwrap();
    assert!(written.starts_with(&head) && written.ends_with(&tail), "{written}");
    assert!(written.contains(table.trim()), "{written}");
    table
}

#[test]
fn everything_is_measured_shown_and_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let table = trial(folder.path(), "results", &[]);
    for what in [
        "`true` over stdio, µs at p50",
        "`true` over HTTP, µs at p99",
        "`true` over stdio, 64 in flight, a second",
        "`true` over HTTP, 64 in flight, a second",
        "cold start, ms",
        "idle memory (PSS), MB",
        "`tools/list`, bytes",
        "1 MiB taken in, s",
        "1 MB of log folded, s",
        "line to progress, µs at p99",
        "`yes` for 0.2 s, answer late by ms",
        "soak of 40 calls, memory growth, MB",
        "soak, zombies",
        "judging 64 KiB",
        "`make -j4` by a policy that the kernel holds, ×",
    ] {
        assert!(table.contains(&format!("| {what}")), "{what} in\n{table}");
    }
    let felled = table.lines().find(|row| row.contains("kill tree, left of")).expect("a row");
    assert!(felled.ends_with("| yes |"), "{felled}");
    let picture = std::fs::read_to_string(folder.path().join("results.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("cold start"), "{picture}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "nothing else is left behind");
}

#[test]
fn growth_is_measured_shown_and_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let table = trial(folder.path(), "scale", &["--scale"]);
    for crowd in ["sleeping sessions", "running commands", "jobs", "shells", "places"] {
        assert!(table.contains(&format!("| `true`, µs of CPU, beside {crowd}")), "{table}");
    }
    let left = table.lines().filter(|row| row.contains("left when the server was gone"));
    let left: Vec<_> = left.collect();
    assert!(left.len() == 4 && left.iter().all(|row| row.ends_with("| yes |")), "{table}");
}

#[test]
fn tokens_are_counted_shown_and_written_down_and_no_fact_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let table = trial(folder.path(), "tokens", &["--tokens"]);
    // Other tools may be missing.
    for (what, facts) in
        [("`cargo test`", "all 6"), ("`gcc -Wall`", "all 3"), ("a log with an error", "all 1")]
    {
        let row = table.lines().find(|row| row.starts_with(&format!("| {what}"))).expect(what);
        assert!(row.contains(&format!("| {facts} ")), "{table}");
    }
}

/// The table of a place that is made for three clients, too.
fn table_of_places(table: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [config, list] = ["config.toml", "list"].map(|name| folder.path().join(name));
    let place = "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"process\"\n";
    std::fs::write(&config, place).unwrap();
    let entry = format!("a process\t2\t{}\thead -c $BYTES /dev/zero\t3\n", config.display());
    std::fs::write(&list, entry).unwrap();
    trial(folder.path(), table, &[&format!("--{table}"), list.to_str().unwrap()])
}

#[test]
fn places_are_measured_shown_and_written_down() {
    let table = table_of_places("places");
    assert!(table.contains("\n| a process "), "{table}");
}

#[test]
fn places_that_each_client_has_are_measured_shown_and_written_down() {
    let table = table_of_places("owners");
    let row = table.lines().last().unwrap();
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[1..3], ["a process", "3"], "{table}");
}
