//! `mcpz jobs`: what people see of the jobs of models, and how they lend a hand.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{MCPZ, Server, audit, mark, survivors};

fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

/// What `mcpz jobs` says, and whether it is content.
fn jobs(state: &Path, arguments: &[&str]) -> (String, bool) {
    let mut command = Command::new(MCPZ);
    let output = command.arg("jobs").args(arguments).env("XDG_STATE_HOME", state).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (said, output.status.success())
}

/// Somebody at a terminal who attaches to a job, types when it asks for a password and leaves.
fn attach(state: &Path, job: &str, keys: &str) -> String {
    let line = format!("'{MCPZ}' jobs attach {job}");
    let mut script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("XDG_STATE_HOME", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
    let mut keys = Some(keys);
    while let Ok(length @ 1..) = stdout.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..length]);
        // Until the job's own words are seen, our terminal is not the job's.
        if String::from_utf8_lossy(&seen).contains("Password: ")
            && let Some(keys) = keys.take()
        {
            stdin.write_all(keys.as_bytes()).unwrap();
        }
    }
    script.wait().unwrap();
    String::from_utf8(seen).unwrap()
}

#[test]
fn a_person_types_a_password_and_the_model_is_told_only_that() {
    for kind in ["background", "detach"] {
        let mut server = Server::start(&[]);
        let state = server.state.path().to_owned();
        let command = "stty -echo; printf 'Password: '; read word; stty echo; echo; \
            echo \"${#word} characters\"; cat";
        let job = server.call(json!({"command": command, "tty": true, kind: true}));
        let id = job["job_id"].as_str().unwrap().to_owned();
        let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:0"});
        assert_eq!(tool(&mut server, "read_job", wait)["prompt"], "Password:");
        let seen = attach(&state, &id, "open sesame\r\u{1d}");
        assert!(seen.contains("Password: ") && seen.contains("is still running"), "{seen}");
        let wait = json!({"job_id": id, "wait_for": "text", "pattern": "11 characters"});
        let told = tool(&mut server, "read_job", wait);
        assert_eq!(told["message"], "[input by a person]");
        assert!(!told.to_string().contains("sesame"), "{told}");
        let again = tool(&mut server, "read_job", json!({"job_id": id}));
        assert_eq!(again["message"], Value::Null);
        let typed = json!({"job_id": id, "text": "mine\n"});
        assert_eq!(tool(&mut server, "write_job", typed)["message"], Value::Null);
        tool(&mut server, "stop_job", json!({"job_id": id}));
    }
}

#[test]
fn people_see_all_jobs_and_what_they_print_and_can_stop_them() {
    let (mut server, mark) = (Server::start(&[]), mark());
    let state = server.state.path().to_owned();
    assert_eq!(jobs(&state, &["list"]), ("no jobs\n".to_owned(), true));
    let command = format!("export X={mark}; echo ready; sleep 1000 & sleep 1000");
    let plain = server.call(json!({"command": command, "background": true}));
    let lasting = server.call(json!({"command": command, "detach": true}));
    let (list, _) = jobs(&state, &["list"]);
    let lines: Vec<_> = list.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{list}");
    for (line, job) in lines.iter().zip([&plain, &lasting]) {
        let id = job["job_id"].as_str().unwrap();
        assert!(line.starts_with(id) && line.contains(" running "), "{line}");
        assert_eq!(jobs(&state, &["logs", id]), ("ready\n".to_owned(), true));
        let (said, stopped) = jobs(&state, &["stop", id]);
        assert!(stopped && said.starts_with(&format!("stopped {id}: ")), "{said}");
        let (said, again) = jobs(&state, &["stop", id]);
        assert!(!again && said.contains("has ended"), "{said}");
        let told = tool(&mut server, "read_job", json!({"job_id": id}));
        assert_eq!(told["state"], "stopped", "{told}");
    }
    assert!(survivors(&mark).is_empty());
    let (listed, _) = jobs(&state, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[1]["state"], "stopped", "{listed}");
    server.close_stdin();
    server.wait();
    let (list, _) = jobs(&state, &["list"]);
    assert_eq!(list.lines().count(), 2, "only the detached one is known any more: {list}");
    assert_eq!(jobs(&state, &["logs", lasting["job_id"].as_str().unwrap()]).0, "ready\n");
}

/// What `mcpz jobs list` shows on a terminal of 80 columns.
fn list_on_terminal(state: &Path) -> String {
    let line = format!("stty cols 80; '{MCPZ}' jobs list");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("XDG_STATE_HOME", state).stdin(Stdio::null());
    String::from_utf8(script.output().unwrap().stdout).unwrap()
}

#[test]
fn on_a_terminal_each_job_is_a_line_that_fits_and_elsewhere_all_of_its_command_is_shown() {
    let mut server = Server::start(&[]);
    let state = server.state.path().to_owned();
    let long = format!("sleep 1000 # {}\n# 漢字", "wide ".repeat(30));
    let wide = format!("sleep 1001 # {}", "漢字".repeat(30));
    for command in [&long, &wide] {
        server.call(json!({"command": command, "detach": true}));
    }
    let (list, _) = jobs(&state, &["list"]);
    assert!(list.contains(&long.replace('\n', "\\n")) && list.contains(&wide), "{list}");
    let shown = list_on_terminal(&state);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines[1].ends_with("sleep 1000 # wide wide wi…"), "{shown}");
    assert!(lines[2].ends_with("sleep 1001 # 漢字漢字漢字…"), "{shown}");
    let (listed, _) = jobs(&state, &["list", "--json"]);
    for job in serde_json::from_str::<Value>(&listed).unwrap().as_array().unwrap() {
        let run = job["run"].as_str().unwrap();
        assert!(jobs(&state, &["stop", &format!("{}*", &run[..8])]).1, "as the list shows it");
    }
}

#[test]
fn logs_are_followed_until_the_job_ends() {
    let mut server = Server::start(&[]);
    let state = server.state.path().to_owned();
    for kind in ["background", "detach"] {
        let job = server.call(json!({"command": "echo one; read x; echo \"two $x\"", kind: true}));
        let id = job["job_id"].as_str().unwrap();
        let follow = Command::new(MCPZ)
            .args(["jobs", "logs", "-f", id])
            .env("XDG_STATE_HOME", &state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tool(&mut server, "write_job", json!({"job_id": id, "text": "and\n", "wait_for": "exit"}));
        let output = follow.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\ntwo and\n");
    }
}

#[test]
fn what_cannot_be_done_is_said_with_what_can() {
    let mut server = Server::start(&[]);
    let state = server.state.path().to_owned();
    server.call(json!({"command": "cat", "background": true}));
    let (said, done) = jobs(&state, &["logs", "job-9"]);
    assert!(!done && said.contains("there is no job `job-9`; `mcpz jobs list`"), "{said}");
    let (said, done) = jobs(&state, &["attach", "job-1"]);
    assert!(!done && said.contains("must be a terminal"), "{said}");
    server.call(json!({"command": "cd /", "session": "s"}));
    let seen = attach(&state, "job-2", "");
    assert!(seen.contains("has no input"), "{seen}");
}

#[test]
fn whatever_lies_among_the_jobs_nobody_waits_for_it() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("mcpz/jobs");
    std::fs::create_dir_all(folder.join("0123456789abcdef")).unwrap();
    let fifo = |path: &Path| Command::new("mkfifo").arg(path).status().unwrap();
    assert!(fifo(&folder.join("fifo")).success());
    assert!(fifo(&folder.join("0123456789abcdef/job.json")).success());
    std::fs::write(folder.join("file"), "").unwrap();
    assert_eq!(jobs(state.path(), &["list"]), ("no jobs\n".to_owned(), true));
}

#[test]
fn a_killed_server_leaves_nothing_that_is_asked_in_vain() {
    let mut server = Server::start(&[]);
    server.call(json!({"command": "sleep 1000", "background": true}));
    let state = server.state.path().to_owned();
    let folders = || std::fs::read_dir(state.join("mcpz/jobs")).unwrap().count();
    assert_eq!(folders(), 1);
    server.signal("KILL");
    server.wait();
    assert_eq!(jobs(&state, &["list"]).0, "no jobs\n");
    assert_eq!(folders(), 0);
}

#[test]
fn servers_that_do_not_answer_are_named_and_waited_for_together() {
    let state = tempfile::tempdir().unwrap();
    let start = || {
        let mut server = audit::start(&state, "");
        server.call(json!({"command": "sleep 1000", "background": true}));
        server
    };
    let (silent, mut server): (Vec<_>, _) = ((0..6).map(|_| start()).collect(), start());
    server.call(json!({"command": "sleep 1001", "background": true}));
    silent.iter().for_each(|server| server.signal("STOP"));
    let began = Instant::now();
    let (said, done) = jobs(state.path(), &["list"]);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "they were waited for in turn: {took:?}");
    assert!(done && said.contains("sleep 1001") && !said.contains("no jobs"), "{said}");
    let unasked = |pid| format!("mcpz: server {pid} is not responding; its jobs are not shown");
    for server in &silent {
        assert!(said.contains(&unasked(server.child.id())), "{said}");
    }
    assert!(!said.contains(&unasked(server.child.id())), "{said}");
    let (said, done) = jobs(state.path(), &["stop", "job-3"]);
    assert!(!done && said.contains("there is no job `job-3`"), "{said}");
    assert!(said.contains(&unasked(silent[0].child.id())), "{said}");
    silent.iter().for_each(|server| server.signal("CONT"));
}
