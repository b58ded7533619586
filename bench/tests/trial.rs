//! The whole benchmark, with as little effort as possible: it works, whatever the numbers are.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;

const README: &str = "# Head\n\n<!-- results -->\n<!-- end of results -->\n\ntail\n";

#[test]
fn everything_is_measured_shown_and_written_down() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcpz-bench"));
    let mcpz = program.with_file_name("mcpz");
    assert!(mcpz.exists(), "mcpz is built beside the benchmark: cargo build");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("README.md"), README).unwrap();
    let output = Command::new(program)
        .args(["--trial", "--write"])
        .arg(folder.path())
        .arg(mcpz)
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));

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

    let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(readme.starts_with("# Head\n") && readme.ends_with("\n\ntail\n"));
    assert!(readme.contains(table.trim()), "{readme}");
    let picture = std::fs::read_to_string(folder.path().join("results.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("cold start"), "{picture}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "nothing else is left behind");
}

#[test]
fn growth_is_measured_shown_and_written_down() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcpz-bench"));
    let folder = tempfile::tempdir().unwrap();
    let readme = "# Head\n\n<!-- scale -->\n<!-- end of scale -->\n\ntail\n";
    std::fs::write(folder.path().join("README.md"), readme).unwrap();
    let output = Command::new(program)
        .args(["--trial", "--scale", "--write"])
        .arg(folder.path())
        .arg(program.with_file_name("mcpz"))
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    for crowd in ["sleeping sessions", "running commands", "jobs", "shells", "places"] {
        assert!(table.contains(&format!("| `true`, µs of CPU, beside {crowd}")), "{table}");
    }
    let left = table.lines().filter(|row| row.contains("left when the server was gone"));
    assert!(
        left.clone().count() == 4 && left.clone().all(|row| row.ends_with("| yes |")),
        "{table}"
    );
    let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(readme.contains(table.trim()), "{readme}");
}

#[test]
fn tokens_are_counted_shown_and_written_down_and_no_fact_is_lost() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcpz-bench"));
    let folder = tempfile::tempdir().unwrap();
    let readme = "# Head\n\n<!-- tokens -->\n<!-- end of tokens -->\n\ntail\n";
    std::fs::write(folder.path().join("README.md"), readme).unwrap();
    let output = Command::new(program)
        .args(["--trial", "--tokens", "--write"])
        .arg(folder.path())
        .arg(program.with_file_name("mcpz"))
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    // Other tools may be missing.
    for (what, facts) in
        [("`cargo test`", "all 6"), ("`gcc -Wall`", "all 3"), ("a log with an error", "all 1")]
    {
        let row = table.lines().find(|row| row.starts_with(&format!("| {what}"))).expect(what);
        assert!(row.contains(&format!("| {facts} ")), "{table}");
    }
    let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(readme.contains(table.trim()), "{readme}");
}

#[test]
fn places_are_measured_shown_and_written_down() {
    let program = Path::new(env!("CARGO_BIN_EXE_mcpz-bench"));
    let folder = tempfile::tempdir().unwrap();
    let [config, list] = ["config.toml", "list"].map(|name| folder.path().join(name));
    let place = "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"process\"\n";
    std::fs::write(&config, place).unwrap();
    let entry = format!("a process\t2\t{}\thead -c $BYTES /dev/zero\n", config.display());
    std::fs::write(&list, entry).unwrap();
    let readme = "# Head\n\n<!-- places -->\n<!-- end of places -->\n\ntail\n";
    std::fs::write(folder.path().join("README.md"), readme).unwrap();
    let output = Command::new(program)
        .args(["--trial", "--places"])
        .arg(&list)
        .arg("--write")
        .arg(folder.path())
        .arg(program.with_file_name("mcpz"))
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(table.contains("\n| a process "), "{table}");
    let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(readme.contains(table.trim()), "{readme}");
}
