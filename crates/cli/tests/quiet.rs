//! While nothing happens, nothing is done.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::Server;
use support::http::{Events, HttpServer, Request, call};

/// How often a process has waited for something so far: once for each time it was woken.
fn waits(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// The most a process was woken in any of a few seconds of which one was quiet.
fn woken_in_a_second(pid: u32) -> u64 {
    let second = || {
        let (before, began) = (waits(pid), Instant::now());
        std::thread::sleep(Duration::from_secs(1));
        let seconds = began.elapsed().as_secs_f64();
        ((waits(pid) - before) as f64 / seconds) as u64
    };
    (0..5).map(|_| second()).min().unwrap()
}

#[test]
fn sessions_that_wait_for_silent_commands_wake_nobody() {
    let server = HttpServer::start(&[]);
    let sleeping: Vec<_> = (0..20)
        .map(|number| {
            let session = server.open_session();
            let arguments = json!({"command": "sleep 1000", "timeout": 1000});
            let message = call(number, "execute_command", arguments);
            Events::open(&server, &Request::post(&message).session(&session))
        })
        .collect();
    server.wait_for_metric("mcpz_runs_running 20");
    let woken = woken_in_a_second(server.child.id());
    assert!(woken < 20, "woken {woken} times a second by {} sessions", sleeping.len());
}

#[test]
fn a_session_whose_shell_has_ended_holds_nothing_open() {
    let mut server = Server::start_limited("-n 100");
    // Each has three at least.
    for number in 0..60 {
        let name = format!("s{number}");
        let answer = server.call(json!({"command": "echo x", "session": name}));
        assert_eq!(answer["output"], "x\n", "{number}: {answer}");
        server.call(json!({"command": "exit", "session": name}));
    }
}
