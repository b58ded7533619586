//! Every run on record has its end on record, even if its server was killed or the disk was full.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::audit::{self, folder, records, verify};
use support::disk::Disk;
use support::{Gate, MCPZ, Server, kill, wait_until};
use tempfile::{NamedTempFile, TempDir};

/// A server whose records and jobs are in a folder, and the file it says things to.
fn server(state: &TempDir) -> (Server, NamedTempFile) {
    let said = NamedTempFile::new().unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell"]).env("XDG_STATE_HOME", state.path());
    let mut server = Server::from_command(command.stderr(said.reopen().unwrap()));
    server.initialize("2025-11-25");
    (server, said)
}

fn close(mut server: Server) {
    server.close_stdin();
    server.wait();
}

/// A folder on a disk that can be filled, if one can be mounted. The disk goes first.
fn small_disk() -> Option<(Disk, TempDir)> {
    let state = support::state();
    Some((Disk::mount(state.path(), "1m")?, state))
}

/// Gives a folder that only we may look into a disk of its own.
fn own_disk(path: &Path) -> Disk {
    std::fs::create_dir_all(path).unwrap();
    let disk = Disk::mount(path, "1m").unwrap();
    for folder in [path, path.parent().unwrap()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    }
    disk
}

/// Fills a disk until not even the beginning of a run fits into what is left of the trail.
fn fill(disk: &Disk, server: &mut Server) {
    disk.fill();
    wait_until("the disk is full", || {
        let reply = server.call_raw(json!({"command": "true"}));
        let text = reply["content"][0]["text"].as_str().unwrap().to_owned();
        text.contains("no command runs without one").then_some(())
    });
}

/// Starts jobs that wait at a gate, and returns their names.
fn start_jobs(server: &mut Server, gate: &Gate, how: &str) -> Vec<Value> {
    let start = |_| {
        let job = server.call(json!({"command": gate.wait(), how: true}));
        assert_eq!(job["state"], "running", "{job}");
        job["job_id"].clone()
    };
    (0..5).map(start).collect()
}

/// The results of all runs on record, if they have one.
fn results(state: &TempDir) -> HashMap<String, Option<String>> {
    let records = records(state);
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    let of = |event| records.iter().filter(move |record| record["event"] == event);
    let mut results: HashMap<_, _> = of("start").map(|start| (id(start), None)).collect();
    for end in of("end") {
        let result = end["result"].as_str().unwrap().to_owned();
        let before = results.insert(id(end), Some(result));
        assert_eq!(before, Some(None), "every end has a beginning, and there is one");
    }
    results
}

/// The runs on record that have no end.
fn endless(state: &TempDir) -> Vec<String> {
    results(state).into_iter().filter(|(_, result)| result.is_none()).map(|(id, _)| id).collect()
}

fn wait_for_ends(state: &TempDir) {
    wait_until("every run has an end", || endless(state).is_empty().then_some(()));
}

/// The files that say who writes the trail.
fn writers(state: &TempDir) -> usize {
    let names = std::fs::read_dir(folder(state)).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with("writer-")).count()
}

#[test]
fn a_detached_job_that_ends_on_a_full_disk_has_its_end_recorded_when_there_is_room() {
    let Some((disk, state)) = small_disk() else { return };
    // A job that ends makes some room where jobs are.
    let _elsewhere = own_disk(&folder(&state).join("jobs"));
    let (mut first, _) = server(&state);
    let gate = Gate::new();
    let jobs = start_jobs(&mut first, &gate, "detach");
    fill(&disk, &mut first);
    drop(gate);
    for id in &jobs {
        let told = first.tool("read_job", json!({"job_id": id, "wait_for": "exit"}));
        assert_eq!(told["structuredContent"]["state"], "exited", "{told}");
    }
    close(first);
    assert!(endless(&state).len() >= 3, "{:?}", results(&state));
    disk.clear();
    // The first server itself may have owed the end of a command that filled the trail.
    let (next, _) = server(&state);
    wait_for_ends(&state);
    close(next);
    let results = results(&state);
    for id in &jobs {
        let run = id.as_str().unwrap().strip_prefix("job-").unwrap();
        let (_, result) = results.iter().find(|(id, _)| id.starts_with(run)).unwrap();
        assert_eq!(result.as_deref(), Some("exited"), "{results:?}");
    }
    wait_until("the recorders have left", || (writers(&state) == 0).then_some(()));
    let (said, code) = verify(&state);
    assert!(said.ends_with("none missing\n") && code == 0, "{said}");
}

#[test]
fn a_detached_job_that_cannot_start_on_a_full_disk_has_its_end_recorded_when_there_is_room() {
    let Some((disk, state)) = small_disk() else { return };
    let jobs = folder(&state).join("jobs");
    let _elsewhere = own_disk(&jobs);
    let mut server = audit::start(&state, "[limits]\njobs = 1\n");
    let job = server.call(json!({"command": "true", "detach": true}));
    server.tool("read_job", json!({"job_id": job["job_id"], "wait_for": "exit"}));
    wait_for_ends(&state);
    // The recorder of the next job waits for the only lock, in vain, while the disk becomes full.
    let locks = std::fs::read_dir(jobs.join("locks")).unwrap();
    let locks: Vec<_> = locks.map(|lock| File::open(lock.unwrap().path()).unwrap()).collect();
    locks.iter().for_each(|lock| lock.lock().unwrap());
    let asked = json!({"command": "true", "detach": true});
    let id = server.ask("tools/call", json!({"name": "execute_command", "arguments": asked}));
    wait_until("it is on record", || (!endless(&state).is_empty()).then_some(()));
    fill(&disk, &mut server);
    let answer = server.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    disk.clear();
    wait_for_ends(&state);
    close(server);
}

#[test]
fn a_server_that_ends_on_a_full_disk_names_the_runs_whose_end_the_next_one_records() {
    let Some((disk, state)) = small_disk() else { return };
    let (mut first, said) = server(&state);
    let gate = Gate::new();
    start_jobs(&mut first, &gate, "background");
    fill(&disk, &mut first);
    close(first);
    let unended = endless(&state);
    assert!(unended.len() >= 3, "{:?}", results(&state));
    let said = std::fs::read_to_string(said).unwrap();
    let last = said.lines().last().unwrap();
    assert!(last.contains("the ends of these runs are not recorded"), "{said}");
    for id in &unended {
        assert!(last.contains(id), "{id}: {said}");
    }
    disk.clear();
    let (said, code) = verify(&state);
    let told = format!("{} runs have no end: their server is gone\n", unended.len());
    assert!(said.contains(&told) && code == 0, "{said}");
    let (next, _) = server(&state);
    wait_for_ends(&state);
    for id in &unended {
        assert_eq!(results(&state)[id].as_deref(), Some("lost"));
    }
    let (said, code) = verify(&state);
    assert!(!said.contains("no end") && code == 0, "{said}");
    close(next);
    assert_eq!(writers(&state), 0);
}

#[test]
fn what_a_killed_server_ran_has_its_end_recorded_by_the_next() {
    let state = support::state();
    let (mut killed, _) = server(&state);
    let gate = Gate::new();
    start_jobs(&mut killed, &gate, "background");
    let detached = start_jobs(&mut killed, &gate, "detach");
    assert!(!verify(&state).0.contains("no end"), "they run");
    killed.signal("KILL");
    killed.wait();
    let (said, code) = verify(&state);
    assert!(said.starts_with("5 runs have no end: their server is gone\n"), "{said}");
    assert_eq!(code, 0);
    let (mut next, _) = server(&state);
    wait_until("they have an end", || (endless(&state).len() == 5).then_some(()));
    assert!(!verify(&state).0.contains("no end"), "what is detached goes on");
    drop(gate);
    for id in detached {
        next.tool("read_job", json!({"job_id": id, "wait_for": "exit"}));
    }
    wait_for_ends(&state);
    let results: Vec<_> = results(&state).into_values().flatten().collect();
    let count = |wanted: &str| results.iter().filter(|result| *result == wanted).count();
    assert_eq!((count("lost"), count("exited")), (5, 5), "{results:?}");
    close(next);
    wait_until("the recorders have left", || (writers(&state) == 0).then_some(()));
    assert_eq!(verify(&state), ("20 records in 1 file, none missing\n".to_owned(), 0));
}

#[test]
fn a_job_whose_recorder_is_killed_has_its_end_recorded() {
    let state = support::state();
    let (mut server, _) = server(&state);
    let gate = Gate::new();
    start_jobs(&mut server, &gate, "detach");
    for job in std::fs::read_dir(folder(&state).join("jobs")).unwrap() {
        let Ok(card) = std::fs::read(job.unwrap().path().join("job.json")) else { continue };
        let card: Value = serde_json::from_slice(&card).unwrap();
        kill("KILL", card["recorder"].as_u64().unwrap() as u32);
    }
    wait_for_ends(&state);
    let results = results(&state);
    assert!(results.values().flatten().all(|result| result == "lost"), "{results:?}");
    wait_until("at most the server writes", || (writers(&state) <= 1).then_some(()));
    close(server);
    assert_eq!(writers(&state), 0);
}
