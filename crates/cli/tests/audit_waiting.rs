//! The audit trail, while somebody has locked it and does not let go.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use support::audit::{audit, edit, file, folder, records, settled, start, verify};
use support::{Server, wait_until};
use tempfile::TempDir;

/// A lock, until it is dropped.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing the file is not enough while another test starts a process: until that executes its program, it has
        // this descriptor too, and the lock with it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks the trail of a server as one would that is stopped.
fn lock(state: &TempDir) -> Locked {
    let trail = File::open(file(state)).unwrap();
    wait_until("it is locked", || flock(&trail, FlockOperation::NonBlockingLockExclusive).ok());
    Locked(trail)
}

/// A server that has run `echo before`, and whose trail is locked by us.
fn start_and_lock(config: &str) -> (Server, TempDir, Locked) {
    let state = support::state();
    let mut server = start(&state, config);
    server.run("echo before");
    settled(&state);
    let locked = lock(&state);
    (server, state, locked)
}

/// The files of records that wait.
fn waiting(state: &TempDir) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder(state)).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("waiting-")).collect()
}

#[test]
fn who_does_not_get_the_lock_runs_and_its_records_join_the_trail() {
    let (mut server, state, locked) = start_and_lock("[policy]\ndeny = [\"rm\"]\n");
    assert_eq!(server.run("echo while")["output"], "while\n");
    let refused = server.call_raw(json!({"command": "rm x"}));
    assert_eq!(refused["isError"], true);
    // So does a server that has only just begun.
    assert_eq!(start(&state, "").run("echo new")["output"], "new\n");
    wait_until("ends are on record", || {
        (verify(&state).0.contains("5 records are waiting")).then_some(())
    });
    let (said, code) = verify(&state);
    assert!(said.ends_with("7 records in 3 files, none missing\n") && code == 0, "{said}");
    let tail = audit(&state, &["tail"]).0;
    for command in ["echo before", "echo while", "rm x", "echo new"] {
        assert!(tail.contains(command), "{tail}");
    }
    drop(locked);
    server.run("echo after");
    let joined = settled(&state);
    assert_eq!(waiting(&state), [""; 0].map(PathBuf::from));
    let commands: Vec<_> = joined.iter().filter_map(|record| record["command"].as_str()).collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    let is_joined = |command: &str| {
        joined.iter().find(|record| record["command"] == command).unwrap()["joined"] == true
    };
    assert!(is_joined("echo while") && is_joined("echo new") && is_joined("rm x"));
    assert!(!is_joined("echo before") && !is_joined("echo after"));
    assert_eq!(verify(&state), ("9 records in 1 file, none missing\n".to_owned(), 0));
}

#[test]
fn what_a_killed_server_has_left_waiting_joins_with_the_next() {
    let (mut server, state, locked) = start_and_lock("");
    server.run("echo while");
    server.signal("KILL");
    server.wait();
    assert_eq!(waiting(&state).len(), 1);
    drop(locked);
    start(&state, "").run("echo after");
    wait_until("it has joined", || waiting(&state).is_empty().then_some(()));
    let commands: Vec<_> =
        records(&state).iter().filter_map(|it| it["command"].as_str().map(str::to_owned)).collect();
    assert_eq!(commands, ["echo before", "echo while", "echo after"]);
    assert_eq!(verify(&state).1, 0);
}

#[test]
fn what_is_changed_while_it_waits_shows() {
    let (mut server, state, locked) = start_and_lock("");
    server.run("echo secret");
    wait_until("its end", || (verify(&state).0.contains("2 records are waiting")).then_some(()));
    edit(&waiting(&state)[0], |lines| lines[0] = lines[0].replace("secret", "public"));
    let (said, code) = verify(&state);
    assert!(said.contains("line 1: this record was changed") && code == 1, "{said}");
    drop(locked);
    server.run("echo after");
    settled_count(&state, 6);
    let (said, code) = verify(&state);
    let told = "a record was changed while it waited to join the trail";
    assert!(said.contains(told) && code == 1, "{said}");
}

fn settled_count(state: &TempDir, count: usize) {
    wait_until("all are on record", || (records(state).len() >= count).then_some(()));
}

#[test]
fn a_server_that_is_stopped_in_the_middle_keeps_nobody_from_running() {
    let state = support::state();
    let (mut busy, mut other) = (start(&state, ""), start(&state, ""));
    let mut asked = Vec::new();
    for round in 0..20 {
        for _ in 0..10 {
            let call = json!({"name": "execute_command", "arguments": {"command": "true"}});
            asked.push(busy.ask("tools/call", call));
        }
        busy.signal("STOP");
        let said = format!("round {round}\n");
        assert_eq!(other.run(&format!("echo round {round}"))["output"], said);
        busy.signal("CONT");
    }
    for id in asked {
        assert_eq!(busy.answer(id)["result"]["structuredContent"]["return_code"], 0);
    }
    other.run("echo last");
    busy.run("echo last");
    drop((busy, other));
    wait_until("all have joined", || {
        start(&state, "").run("true");
        waiting(&state).is_empty().then_some(())
    });
    let all = settled(&state);
    let started = all.iter().filter(|record| record["event"] == "start").count();
    assert!(started > 200 + 20 + 2, "{started}");
    assert_eq!(verify(&state).1, 0, "{}", verify(&state).0);
}

#[test]
fn a_server_that_closes_leaves_nothing_waiting() {
    let (mut server, state, locked) = start_and_lock("");
    server.run("echo while");
    // What another one has left waiting joins, too.
    start(&state, "").run("echo new");
    wait_until("ends are on record", || {
        (verify(&state).0.contains("4 records are waiting")).then_some(())
    });
    drop(locked);
    server.close_stdin();
    server.wait();
    assert_eq!(waiting(&state), [""; 0].map(PathBuf::from));
    assert_eq!(verify(&state), ("6 records in 1 file, none missing\n".to_owned(), 0));
}
