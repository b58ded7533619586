//! `mcpz doctor`: what a machine has, and what to do about what it lacks.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::MCPZ;

fn doctor(state: &Path, directory: &Path, arguments: &[&str]) -> (String, i32) {
    let output = Command::new(MCPZ)
        .arg("doctor")
        .args(arguments)
        .current_dir(directory)
        .env("XDG_STATE_HOME", state)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env_remove("MCPZ_CONFIG")
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

#[test]
fn the_place_that_commands_run_in_is_tried() {
    let (state, work) = (support::open_folder(), support::open_folder());
    let file = work.path().join("places.toml");
    std::fs::write(
        &file,
        "[places.box]\nkind = \"process\"\n[places.far]\nkind = \"ssh\"\nhost = \"x.invalid\"\n",
    )
    .unwrap();
    let with = |place| {
        let flags = ["--config", file.to_str().unwrap(), "--place", place];
        doctor(state.path(), work.path(), &flags)
    };
    let (said, code) = with("box");
    assert!(said.contains("ok place      box (process) was made and ended in "), "{said}");
    assert!(!said.contains("ok programs"), "{said}");
    assert_eq!(code, 0);
    let (said, code) = with("far");
    assert!(
        said.contains("!! place      far (ssh x.invalid): the place `far` cannot be used: "),
        "{said}"
    );
    assert_eq!(code, 1);
}

#[test]
fn a_machine_that_has_everything_is_said_to() {
    let (state, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (said, code) = doctor(state.path(), work.path(), &[]);
    assert_eq!(code, 0, "{said}");
    for line in ["ok shell      /bin/sh", "ok records    ", "ok jobs       "] {
        assert!(said.contains(line), "{said}");
    }
    assert!(said.contains("sandbox    fully supported"), "{said}");
    assert!(!said.contains('\x1b'), "no colours but on a terminal");
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn what_keeps_a_server_from_starting_is_bad_and_has_a_fix() {
    let work = tempfile::tempdir().unwrap();
    let (said, code) = doctor("/proc/nowhere".as_ref(), work.path(), &["--json"]);
    assert_eq!(code, 1, "{said}");
    let findings: Value = serde_json::from_str(&said).unwrap();
    let records = findings.as_array().unwrap().iter().find(|it| it["about"] == "records").unwrap();
    assert_eq!(records["mark"], "bad", "{said}");
    assert!(records["fix"].as_str().unwrap().contains("[audit]"), "{said}");
}

#[test]
fn a_sandbox_around_too_much_is_bad_if_it_is_asked_for() {
    let state = tempfile::tempdir().unwrap();
    let (said, code) = doctor(state.path(), Path::new("/"), &["--sandbox", "workspace"]);
    assert!(code == 1 && said.contains("!! sandbox    / is too broad to be writable"), "{said}");
    assert_eq!(doctor(state.path(), Path::new("/"), &[]).1, 0);
}

#[test]
fn a_file_that_is_not_right_is_named() {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("config.toml");
    std::fs::write(&file, "[sandbox]\nmode = \"tight\"\n").unwrap();
    let (said, code) = doctor(work.path(), work.path(), &["--config", file.to_str().unwrap()]);
    assert!(code == 1 && said.contains("tight") && said.contains("config.toml"), "{said}");
}
