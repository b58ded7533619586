//! What commands must not create is taken away while they run, however it came into being.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::process::Command;

use serde_json::json;
use support::sandbox::{Place, tool, warnings, works};
use support::wait_until;

/// All names that are protected although they do not exist. `.git` is welcome, as long as it runs nothing.
const NAMES: &[&str] = &[
    ".mcp.json",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".idea",
    ".kiro",
    ".qwen",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// Ways to create something called `$n`.
const WAYS: &[&str] = &[
    "echo x > $n",
    "mkdir $n; echo x > $n/x 2>/dev/null",
    "echo x > other; mv -T other $n",
    "mkdir -p a/b; echo x > a/b/x; mv -T a/b $n",
    "echo x > other; ln other $n; rm other",
    "ln -s other $n",
    "mkfifo $n",
];

#[test]
fn every_name_is_taken_away_in_every_way_while_the_command_runs() {
    let place = Place::new();
    let mut server = place.workspace();
    for way in WAYS {
        // It goes on only when the name is free again.
        let wait = "while [ -e $n ] || [ -L $n ]; do sleep 0.001; done";
        let command = format!("for n in {}; do {way}; {wait}; done; rm -rf a", NAMES.join(" "));
        let reply = server.run(&command);
        assert_eq!(reply["return_code"], 0, "{reply}");
        let said = warnings(&reply);
        let moved = NAMES.iter().filter(|name| said.contains(&format!("{name} was moved to")));
        // An answer has no more remarks than ten.
        assert_eq!(moved.count(), 10, "{reply}");
        assert_eq!(place.left(), Vec::<String>::new());
    }
}

#[test]
fn a_name_that_comes_again_and_again_is_told_once_and_counted() {
    let place = Place::new();
    let mut server = place.workspace();
    let wait = "while [ -e .mcp.json ]; do sleep 0.001; done";
    let reply = server.run(&format!("for i in $(seq 100); do echo x > .mcp.json; {wait}; done"));
    assert!(warnings(&reply).contains("(100 times)"), "{reply}");
    let quarantine = place.state().join("mcpz/quarantine");
    assert_eq!(fs::read_dir(quarantine).unwrap().count(), 100);
}

#[test]
fn a_project_file_of_a_client_that_is_taken_away_is_not_said_to_be_there() {
    let place = Place::new();
    let mut server = place.workspace();
    let install = || {
        let mut command = Command::new(support::MCPZ);
        command.args(["install", "claude-code", "--project"]).arg(place.work());
        let done = command.env("HOME", place.home()).output().unwrap();
        (done.status.success(), String::from_utf8(done.stderr).unwrap())
    };
    server.call(json!({"command": "true", "session": "work"}));
    let (is_done, said) = install();
    assert!(!is_done && said.contains(".mcp.json disappeared right after"), "{said}");
    server.call(json!({"command": "exit", "session": "work"}));
    let (is_done, said) = install();
    assert!(is_done, "{said}");
    assert_eq!(place.left(), [".mcp.json"]);
}

#[test]
fn jobs_sessions_and_detached_jobs_are_watched_as_well() {
    let place = Place::new();
    let mut server = place.workspace();
    let plant = "sleep 0.2; mkdir .vscode; while [ -e .vscode ]; do sleep 0.01; done; echo gone";
    let command = json!({"command": format!("{plant}; sleep 600"), "background": true});
    let job = server.call(command);
    let gone = json!({"job_id": job["job_id"], "wait_for": "text", "pattern": "gone"});
    let report = tool(&mut server, "read_job", gone);
    assert_eq!(report["matched"], "gone", "{report}");
    // Told once, in the answer that is the first to know.
    let said = format!("{}{}", warnings(&job), warnings(&report));
    assert!(said.contains(".vscode was moved to"), "{report}");
    let reply = server.call(json!({"command": plant, "session": "s"}));
    assert!(warnings(&reply).contains(".vscode was moved to"), "{reply}");
    server.call(json!({"command": plant, "detach": true}));
    drop(server);
    let taken = || {
        let kept = fs::read_dir(place.state().join("mcpz/quarantine")).unwrap().count();
        (kept == 3).then_some(())
    };
    wait_until("what the detached job created is taken", taken);
    assert_eq!(place.left(), Vec::<String>::new());
}

#[test]
fn what_the_user_creates_while_nothing_runs_stays_and_is_protected() {
    let place = Place::new();
    let mut server = place.workspace();
    works(&mut server, "true");
    place.write("work/.vscode/settings.json", "{}");
    let reply = server.run("echo x > .vscode/settings.json");
    assert_ne!(reply["return_code"], 0, "{reply}");
    assert_eq!(fs::read_to_string(place.work().join(".vscode/settings.json")).unwrap(), "{}");
}

#[test]
fn a_name_that_is_not_protected_stays() {
    let place = Place::new();
    let mut server = place.start(&["--sandbox", "workspace", "--unprotect", ".vscode"], "");
    let reply = server.run("mkdir .vscode .zed");
    assert!(!warnings(&reply).contains(".vscode was"), "{reply}");
    assert_eq!(place.left(), [".vscode"]);
}

#[test]
fn another_file_system_gets_what_was_taken() {
    let place = Place::new();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
    let mut command = place.command(&["--sandbox", "workspace"], "");
    command.env("XDG_STATE_HOME", elsewhere.path());
    let mut server = support::Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let reply = server.run("mkdir .vscode; echo x > .vscode/x; ln -s x .vscode/l");
    assert!(warnings(&reply).contains("/dev/shm/"), "{reply}");
    assert_eq!(place.left(), Vec::<String>::new());
    let kept = Command::new("find").arg(elsewhere.path()).args(["-name", ".vscode"]).output();
    assert_eq!(String::from_utf8(kept.unwrap().stdout).unwrap().lines().count(), 1);
}
