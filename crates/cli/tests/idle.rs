//! Jobs and sessions nobody uses are ended.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Server, mark, survivors, wait_until};

/// A server whose jobs and sessions may be idle for so many seconds.
fn server(idle: u64) -> Server {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&config, format!("[limits]\nidle = {idle}\n")).unwrap();
    Server::start(&["--config", config.path().to_str().unwrap()])
}

fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

fn start(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "background": true}))["job_id"].clone()
}

fn say(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "session": "work"}))
}

#[test]
fn a_job_nobody_uses_is_ended_with_all_it_started() {
    let mark = mark();
    let mut server = server(2);
    let job = start(&mut server, &format!("export MARK={mark}; setsid sleep 300 & sleep 300"));
    let left = server.run(&format!("MARK={mark} sleep 300 & true"))["background_job"].clone();
    wait_until("its processes", || (survivors(&mark).len() >= 3).then_some(()));
    wait_until("their end", || survivors(&mark).is_empty().then_some(()));
    let ended = [job, left].map(|id| {
        let read = tool(&mut server, "read_job", json!({"job_id": id, "wait_for": "exit"}));
        (id, read)
    });
    let listed = tool(&mut server, "list_jobs", json!({}))["jobs"].clone();
    for (listed, (id, read)) in listed.as_array().unwrap().iter().zip(&ended) {
        for told in [listed, read] {
            assert_eq!((&told["job_id"], &told["state"]), (id, &json!("stopped")));
            assert_eq!(told["message"], "ended after 2 seconds without use");
        }
    }
}

#[test]
fn a_job_that_prints_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (there, mark) = (folder.path().join("there"), mark());
    let mut server = server(2);
    let command = format!(
        "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.5; done; touch '{}'; MARK={mark} sleep 300",
        there.display()
    );
    start(&mut server, &command);
    wait_until("it has printed for longer", || there.exists().then_some(()));
    wait_until("its last command", || (!survivors(&mark).is_empty()).then_some(()));
    wait_until("its end", || survivors(&mark).is_empty().then_some(()));
}

#[test]
fn a_job_that_is_waited_for_is_used() {
    let mut server = server(4);
    let id = start(&mut server, "cat");
    let wait = json!({"job_id": id, "wait_for": "exit", "timeout": 6});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!((&told["state"], &told["timed_out"]), (&json!("running"), &json!(true)));
    let write = json!({"job_id": id, "text": "still there\n", "wait_for": "text", "pattern": "s"});
    assert_eq!(tool(&mut server, "write_job", write)["output"], "still there\n");
}

#[test]
fn a_session_nobody_uses_is_ended_and_its_successor_says_so() {
    let mark = mark();
    let mut server = server(2);
    let long = say(&mut server, &format!("x=1; MARK={mark} sleep 300 & sleep 3; echo $x"));
    assert_eq!((&long["output"], &long["message"]), (&json!("1\n"), &Value::Null));
    assert_eq!(survivors(&mark).len(), 1);
    wait_until("its end", || survivors(&mark).is_empty().then_some(()));
    let told = say(&mut server, "echo \"[$x]\"");
    assert_eq!(told["output"], "[]\n");
    let message = "the session ended after 2 seconds without use; this command started a new one";
    assert_eq!(told["message"], message);
    assert_eq!(say(&mut server, "echo again")["message"], Value::Null, "it is told once");
    let listed = tool(&mut server, "list_jobs", json!({}))["jobs"].clone();
    assert_eq!(listed[0]["message"], "ended after 2 seconds without use");
    assert_eq!(listed[1]["state"], "running");
}

#[test]
fn without_a_limit_nothing_is_ended() {
    let mut server = server(0);
    let id = start(&mut server, "sleep 0.5; exit 7");
    wait_until("its end", || {
        let listed = tool(&mut server, "list_jobs", json!({}))["jobs"][0].clone();
        assert_eq!((&listed["job_id"], &listed["message"]), (&id, &Value::Null));
        (listed["exit_code"] == 7).then_some(())
    });
}
