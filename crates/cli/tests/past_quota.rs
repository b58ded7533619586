//! Jobs that print more than there is room for: their newest output can be read, waited for and answered.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::disk::Disk;
use support::{Gate, MCPZ, Server, audit, is_living, wait_until};
use tempfile::TempDir;

const CONFIG: &str = "[limits]\nspill_per_run = \"100KB\"\n";

/// More than that, as `seq 100000` prints it.
const ALL: u64 = 588_895;

fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

/// Waits for a line behind a place, and tells what there was to read up to then.
fn wait_for(server: &mut Server, job: &Value, cursor: &Value, pattern: &str) -> Value {
    let wait = json!({"job_id": job, "wait_for": "text", "pattern": pattern, "cursor": cursor});
    let told = tool(server, "read_job", wait);
    assert!(told["matched"].is_string(), "{told}");
    told
}

/// Reads on until there is nothing more, and returns it with the last cursor.
fn read_on(server: &mut Server, job: &Value, cursor: &Value) -> (String, Value) {
    let (mut text, mut cursor) = (String::new(), cursor.clone());
    loop {
        let told = tool(server, "read_job", json!({"job_id": job, "cursor": cursor}));
        cursor = told["next_cursor"].clone();
        match told["output"].as_str().unwrap() {
            "" => return (text, cursor),
            more => text.push_str(more),
        }
    }
}

/// What is said to be missing, and the numbers in lines around it.
fn split(text: &str) -> (u64, Vec<u64>, Vec<u64>) {
    let numbers = |text: &str| text.lines().filter_map(|line| line.parse().ok()).collect();
    let (before, rest) = text.split_once('[').unwrap();
    let (lost, after) = rest.split_once(" bytes of output were not kept]\n").unwrap();
    (lost.parse().unwrap(), numbers(before), numbers(after))
}

#[test]
fn a_job_past_its_quota_is_read_and_waited_for_like_any_other() {
    for kind in ["background", "detach"] {
        let (state, first, second) = (support::state(), Gate::new(), Gate::new());
        let mut server = audit::start(&state, CONFIG);
        let (one, two) = (first.wait(), second.wait());
        let command = format!("seq 100000; {one}; echo ready; {two}; echo more; exit 3");
        let job = server.call(json!({"command": command, kind: true}))["job_id"].clone();
        wait_for(&mut server, &job, &json!("bytes:0"), "^100000$");
        let (text, cursor) = read_on(&mut server, &job, &json!("bytes:0"));
        let (lost, before, after) = split(&text);
        assert_eq!((before[0], *after.last().unwrap()), (1, 100_000), "{kind}");
        assert!(after.len() > 9_000, "{kind}: {} lines are at hand", after.len());
        assert!(after.windows(2).all(|pair| pair[1] == pair[0] + 1), "{kind}");
        assert!(lost > ALL - 100_000 - 3 * (64 << 10), "{kind}: {lost}");
        drop(first);
        let told = wait_for(&mut server, &job, &cursor, "ready");
        assert_eq!(told["output"], "ready\n", "{kind}: {told}");
        assert!(told["lost_bytes"].as_u64().unwrap().abs_diff(lost) < 16, "{kind}: {told}");
        drop(second);
        let wait = json!({"job_id": job, "wait_for": "exit", "cursor": told["next_cursor"]});
        let told = tool(&mut server, "read_job", wait);
        assert_eq!((&told["output"], &told["exit_code"]), (&json!("more\n"), &json!(3)), "{kind}");
        let grep = json!({"job_id": job, "cursor": "bytes:0", "grep": "^(1|99999|ready)$"});
        assert_eq!(tool(&mut server, "read_job", grep)["output"], "1\n99999\nready\n", "{kind}");
    }
}

#[test]
fn the_newest_of_a_detached_job_past_its_quota_is_there_when_all_have_left() {
    let state = support::state();
    let mut server = audit::start(&state, CONFIG);
    let command = "seq 100000; echo the end";
    let job = server.call(json!({"command": command, "detach": true}))["job_id"].clone();
    tool(&mut server, "read_job", json!({"job_id": job, "wait_for": "exit"}));
    server.close_stdin();
    server.wait();
    let mut server = audit::start(&state, CONFIG);
    let (text, _) = read_on(&mut server, &job, &json!("bytes:0"));
    let (_, before, after) = split(&text);
    assert_eq!((before[0], *after.last().unwrap()), (1, 100_000));
    assert!(text.ends_with("the end\n"));
    let mut logs = Command::new(MCPZ);
    logs.args(["jobs", "logs", job.as_str().unwrap()]).env("XDG_STATE_HOME", state.path());
    let printed = String::from_utf8(logs.output().unwrap().stdout).unwrap();
    let (lost, ..) = split(&printed);
    let notice = format!("\n[{lost} bytes of output were not kept]\n").len() as u64;
    assert_eq!(printed.len() as u64 + lost - notice, ALL + 8);
    assert!(printed.ends_with("100000\nthe end\n"));
}

#[test]
fn a_server_that_was_stopped_while_a_job_past_its_quota_ended_has_its_last_lines() {
    let (state, gate) = (support::state(), Gate::new());
    let mut server = audit::start(&state, CONFIG);
    let command = format!("seq 100000; {}; seq 300000; echo the end", gate.wait());
    let job = server.call(json!({"command": command, "detach": true}))["job_id"].clone();
    let told = wait_for(&mut server, &job, &json!("bytes:0"), "^100000$");
    let (_, cursor) = read_on(&mut server, &job, &told["next_cursor"]);
    let folder = std::fs::read_dir(state.path().join("mcpz/jobs")).unwrap().flatten();
    let folder = folder.map(|it| it.path()).find(|it| it.join("job.json").exists()).unwrap();
    let card: Value =
        serde_json::from_slice(&std::fs::read(folder.join("job.json")).unwrap()).unwrap();
    server.signal("STOP");
    drop(gate);
    // It prints more than the socket between them holds, so the recorder waits a while and leaves.
    let recorder = format!("/proc/{}", card["recorder"]);
    // Nobody reaps it before its server goes on.
    wait_until("its recorder is gone", || (!is_living(Path::new(&recorder))).then_some(()));
    server.signal("CONT");
    tool(&mut server, "read_job", json!({"job_id": job, "wait_for": "exit", "cursor": cursor}));
    let (text, _) = read_on(&mut server, &job, &cursor);
    assert!(
        text.ends_with("\n299999\n300000\nthe end\n"),
        "{}",
        &text[text.len().saturating_sub(99)..]
    );
}

#[test]
fn a_terminal_past_its_quota_shows_what_it_asks_and_hears_the_answer() {
    for kind in ["background", "detach"] {
        let state = support::state();
        let mut server = audit::start(&state, CONFIG);
        let command = "seq 100000; printf 'Your name? '; read name; echo \"hello $name\"; exit 3";
        let job = server.call(json!({"command": command, kind: true, "tty": true}));
        let id = &job["job_id"];
        let wait = json!({"job_id": id, "wait_for": "text", "pattern": "Your name\\?"});
        let told = tool(&mut server, "read_job", wait);
        assert_eq!(told["matched"], "Your name? ", "{kind}: {told}");
        let asked = wait_until("it is seen to ask", || {
            let told = tool(&mut server, "read_job", json!({"job_id": id}));
            (told["waiting_for_input"] == true).then_some(told)
        });
        let screen = asked["screen"].as_str().unwrap();
        assert!(screen.ends_with("100000\nYour name?"), "{kind}: {asked}");
        server.tool("write_job", json!({"job_id": id, "text": "Ada\n"}));
        let told = tool(&mut server, "read_job", json!({"job_id": id, "wait_for": "exit"}));
        assert_eq!(told["exit_code"], 3, "{kind}: {told}");
        assert!(told["lost_bytes"].as_u64().unwrap() > 0, "{kind}: {told}");
        let (text, _) = read_on(&mut server, id, &told["next_cursor"]);
        assert!(text.ends_with("\n100000\nYour name? Ada\nhello Ada\n"), "{kind}: {text}");
    }
}

#[test]
fn a_job_on_a_full_disk_is_not_blind() {
    let folder = support::state();
    let path = folder.path().to_str().unwrap();
    let Some(_disk) = Disk::mount(folder.path(), "1m") else { return };
    let gate = Gate::new();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all"]).env("TMPDIR", path);
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let command = format!("seq 1000000; {}; echo ready; sleep 1000", gate.wait());
    let job = server.call(json!({"command": command, "background": true}))["job_id"].clone();
    let told = wait_for(&mut server, &job, &json!("bytes:0"), "^1000000$");
    let (_, cursor) = read_on(&mut server, &job, &told["next_cursor"]);
    drop(gate);
    let told = wait_for(&mut server, &job, &cursor, "ready");
    assert_eq!(told["output"], "ready\n");
    assert!(told["lost_bytes"].as_u64().unwrap() > 5_000_000, "{told}");
}

/// Starts a server whose detached jobs are on a disk, and whose records are not.
fn server_on(disk: &TempDir, elsewhere: &TempDir) -> Server {
    let config = elsewhere.path().join("config.toml");
    std::fs::write(&config, format!("[audit]\nfolder = {:?}\n", elsewhere.path())).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all", "--config"]).arg(config);
    let mut server = Server::from_command(command.env("XDG_STATE_HOME", disk.path()));
    server.initialize("2025-11-25");
    server
}

/// Has a detached job print more than the disk takes, with so much room left on it before, and asks two others
/// about it when it has ended: another server, and `mcpz jobs logs`. Returns what those two tell.
fn print_to_full_disk(room: u64) -> Option<(String, String)> {
    let (folder, elsewhere) = (support::state(), support::state());
    let disk = Disk::mount(folder.path(), "2m")?;
    let gate = Gate::new();
    let mut server = server_on(&folder, &elsewhere);
    // Its desk is there before the disk is full.
    server.call(json!({"command": "sleep 1000", "background": true}));
    disk.fill_but(room);
    let command = format!("{}; seq 1000000; echo the end", gate.wait());
    let job = server.call(json!({"command": command, "detach": true}))["job_id"].clone();
    drop(gate);
    tool(&mut server, "read_job", json!({"job_id": job, "wait_for": "exit"}));
    server.close_stdin();
    server.wait();
    let mut server = server_on(&folder, &elsewhere);
    let (text, cursor) = read_on(&mut server, &job, &json!("bytes:0"));
    let told = tool(&mut server, "read_job", json!({"job_id": job, "cursor": cursor}));
    let (lost, ..) = split(&text);
    // Of the line that the newest begin with, only a part is there.
    assert!(told["lost_bytes"].as_u64().unwrap().abs_diff(lost) < 16, "{lost}: {told}");
    let last =
        tool(&mut server, "read_job", json!({"job_id": job, "cursor": "bytes:0", "tail": 3}));
    if let Some((_, rest)) = last["output"].as_str().unwrap().split_once('[') {
        assert!(rest.starts_with(&format!("{lost} bytes")), "{lost}: {last}");
    }
    let mut logs = Command::new(MCPZ);
    logs.args(["jobs", "logs", job.as_str().unwrap()]).env("XDG_STATE_HOME", folder.path());
    let printed = String::from_utf8(logs.output().unwrap().stdout).unwrap();
    let (lost, ..) = split(&printed);
    let notice = format!("\n[{lost} bytes of output were not kept]\n").len() as u64;
    assert_eq!(printed.len() as u64 + lost - notice, 6_888_896 + 8);
    assert_eq!(told["lost_bytes"], lost);
    drop(server);
    Some((text, printed))
}

#[test]
fn the_newest_of_a_detached_job_on_a_full_disk_is_there_when_all_have_left() {
    let Some((text, printed)) = print_to_full_disk(1 << 20) else { return };
    for told in [text, printed] {
        let (_, before, after) = split(&told);
        assert_eq!((before[0], *after.last().unwrap()), (1, 1_000_000));
        assert!(after.len() > 8_000, "{} lines are at hand", after.len());
        assert!(told.ends_with("\nthe end\n"));
    }
}

#[test]
fn a_detached_job_without_room_for_its_newest_lines_begins_and_says_what_is_missing() {
    for room in [40 << 10, 72 << 10] {
        let Some((text, _)) = print_to_full_disk(room) else { return };
        let (_, before, after) = split(&text);
        assert_eq!((before[0], after.len()), (1, 0));
    }
}

#[test]
fn an_answer_says_why_not_all_output_was_kept() {
    let per_client = "[limits]\nspill_per_client = \"100KB\"\n";
    for (config, folder, why) in [
        (CONFIG, "", "`spill_per_run`"),
        (per_client, "", "`spill_per_client`"),
        ("", "/dev/null", "cannot write to /dev/null (`TMPDIR` says where): Not a directory"),
    ] {
        let state = support::state();
        let mut command = audit::command(&state, config);
        if !folder.is_empty() {
            command.env("TMPDIR", folder);
        }
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        let gate = Gate::new();
        let command = format!("seq 100000; {}", gate.wait());
        let job = server.call(json!({"command": command, "background": true}))["job_id"].clone();
        let told = wait_for(&mut server, &job, &json!("bytes:0"), "^100000$");
        let of = |told: &Value| told["warnings"].to_string();
        assert!(of(&told).contains(why), "{config}: {told}");
        drop(gate);
        let told = tool(&mut server, "read_job", json!({"job_id": job, "wait_for": "exit"}));
        assert!(of(&told).contains(why), "{config}: {told}");
        let told = server.run("seq 100000");
        assert!(of(&told).contains(why), "{config}: {told}");
        let told = server.run("seq 10");
        assert_eq!(told["warnings"], Value::Null, "{config}: {told}");
    }
}
