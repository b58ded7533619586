//! How much memory messages take: answers nobody reads, and answers that somebody might come back for.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use support::http::{Events, HttpServer, Request, call};
use support::reserved::Reserved;
use support::{Gate, Server, wait_until};

const MEGABYTE: u64 = 1_000_000;

/// A page as long as there can be, several times what a small limit allows.
const PAGE: u64 = 262_144;

/// What a process has in memory that is its own.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// The CPU time it has used.
fn work(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    after_name.split_whitespace().skip(11).take(2).collect::<Vec<_>>().join(" ")
}

/// Waits until it does nothing for a while.
fn wait_until_idle(pid: u32) {
    wait_until("it has nothing to do", || {
        let before = work(pid);
        std::thread::sleep(Duration::from_millis(700));
        (work(pid) == before).then_some(())
    });
}

#[test]
fn a_client_that_never_reads_is_not_read_either_and_gets_all_it_asked_for_later() {
    let limits = "[limits]\nmessage_memory_per_client = \"4MB\"\n";
    let mut server = Reserved::start(limits);
    let ran = server.ask(&call(1, "execute_command", json!({"command": "seq 100000"})));
    let uri = ran["result"]["structuredContent"]["spill_uri"].clone();
    let read = |id| call(id, "read_file_chunk", json!({"uri": uri, "limit_bytes": PAGE}));
    server.ask(&read(2));
    let pid = server.child.id();
    let before = memory(pid);
    // More than a pipe holds, so the writer blocks until the server reads.
    let asked = 100..180;
    let mut stdin = server.child.stdin.take().unwrap();
    let requests = asked.clone().map(|id| {
        let mut request = read(id);
        request["params"]["_meta"] = json!({"padding": "x".repeat(4000)});
        format!("{request}\n")
    });
    let requests = requests.collect::<Vec<_>>();
    let writing = std::thread::spawn(move || {
        for request in requests {
            stdin.write_all(request.as_bytes()).unwrap();
        }
        stdin
    });
    wait_until_idle(pid);
    assert!(!writing.is_finished(), "what it sends is not read any further");
    let unread = memory(pid).saturating_sub(before);
    assert!(unread < 16 * MEGABYTE, "{unread} bytes for answers nobody reads");
    let mut answered: Vec<_> =
        asked.clone().map(|_| server.next()["id"].as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, asked.collect::<Vec<_>>());
    drop(writing.join().unwrap());
    server.child.wait().unwrap();
}

#[test]
fn requests_longer_than_a_small_limit_are_answered_one_after_the_other() {
    let folder = support::state();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[limits]\nmessage_memory_per_client = \"1MiB\"\n").unwrap();
    let mut server = Server::start(&["--config", config.to_str().unwrap()]);
    let long = "x".repeat(6_000_000);
    for _ in 0..3 {
        let reply = server.call(json!({"command": "wc -c", "stdin": long}));
        assert_eq!(reply["output"], "6000000\n");
    }
}

/// What to ask of `read_job` to be answered at length, when the gate is open.
fn long_answer(server: &HttpServer, gate: &Gate) -> Value {
    let command = format!("seq 100000; {}", gate.wait());
    let started = json!({"command": command, "background": true});
    let session = server.open_session();
    let job = server.call(&session, "execute_command", started)["structuredContent"].clone();
    json!({"job_id": job["job_id"], "wait_for": "exit", "timeout": 60, "cursor": "bytes:0",
        "limit_bytes": PAGE})
}

#[test]
fn answers_nobody_came_back_for_make_room_for_newer_ones() {
    let limits = "[limits]\nmessage_memory = \"8MB\"\nmessage_memory_per_client = \"8MB\"\n";
    let (server, gate) = (HttpServer::start_with(&[], limits), Gate::new());
    let read = long_answer(&server, &gate);
    let sessions: Vec<_> = (0..30).map(|_| server.open_session()).collect();
    let streams = sessions.iter().map(|session| {
        let ask = Request::post(&call(7, "read_job", read.clone())).session(session);
        let mut events = Events::open(&server, &ask);
        let (begun, _) = events.next().unwrap();
        (session, begun, events)
    });
    let mut streams: Vec<_> = streams.collect();
    drop(gate);
    std::thread::scope(|scope| {
        for (_, _, events) in &mut streams {
            scope.spawn(move || {
                let (_, answer) = events.next().unwrap();
                let output = answer["result"]["structuredContent"]["output"].as_str().unwrap();
                assert_eq!(output.len() as u64, PAGE, "each has all of its answer");
                assert!(events.next().is_none());
            });
        }
    });
    let resume = |(session, begun, _): &(&String, String, Events)| {
        server.send(&Request::get(session).with("last-event-id", begun))
    };
    let resumed: Vec<_> = streams.iter().map(resume).collect();
    let (there, gone): (Vec<_>, Vec<_>) = resumed.iter().partition(|it| it.status == 200);
    assert!(there.iter().all(|it| it.messages().pop().unwrap()["id"] == 7));
    assert!((1..8).contains(&there.len()), "{} can be read again", there.len());
    let said = "dropped to make room for newer answers";
    assert!(gone.iter().all(|it| it.status == 400 && it.text().contains(said)));
}

#[test]
fn memory_goes_back_to_the_system_after_a_peak() {
    let (server, gate) = (HttpServer::start(&[]), Gate::new());
    let read = long_answer(&server, &gate);
    let pid = server.child.id();
    let before = memory(pid);
    let sessions: Vec<_> = (0..40).map(|_| server.open_session()).collect();
    let open = |session: &String| {
        let ask = Request::post(&call(7, "read_job", read.clone())).session(session);
        Events::open(&server, &ask)
    };
    let mut streams: Vec<_> = sessions.iter().map(open).collect();
    drop(gate);
    streams.iter_mut().for_each(|events| while events.next().is_some() {});
    let peak = memory(pid);
    assert!(peak > before + 15 * MEGABYTE, "{peak} after {before}");
    for session in &sessions {
        assert_eq!(server.send(&Request::new("DELETE", "/mcp").session(session)).status, 200);
    }
    wait_until("it has given its memory back", || {
        (memory(pid) < before + 10 * MEGABYTE).then_some(())
    });
}
