//! Progress of a call, for those who asked for it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::http::call;
use support::reserved::Reserved;
use support::{Server, mark, survivors, wait_until};

fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

/// All progress of one call, and its answer.
fn follow(server: &mut Server, call: i64) -> (Vec<Value>, Value) {
    let answer = server.answer(call);
    let told = server.seen.drain(..).filter(is_progress).map(|message| message["params"].clone());
    let told: Vec<_> = told.filter(|params| params["progressToken"] == call).collect();
    (told, answer)
}

#[test]
fn without_a_token_nothing_is_told() {
    let mut server = Server::start(&[]);
    server.run("echo one; sleep 0.3; echo two");
    assert!(!server.seen.iter().any(is_progress));
}

#[test]
fn the_newest_lines_are_told_while_the_command_runs() {
    let mut server = Server::start(&[]);
    let told = tempfile::NamedTempFile::new().unwrap();
    let command = "echo one; echo two >&2; while [ -e \"$TOLD\" ]; do sleep 0.01; done; echo three";
    let call = server.start_call(json!({"command": command, "environment": {"TOLD": told.path()}}));
    server.wait_for_output(call, "one");
    server.wait_for_output(call, "two");
    drop(told);
    let reply = server.answer(call)["result"]["structuredContent"].clone();
    assert_eq!(reply["output"], "one\nthree\ntwo\n");
}

#[test]
fn progress_counts_bytes_always_increases_and_comes_before_the_answer() {
    let mut server = Server::start(&[]);
    let command = "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; sleep 0.05; done";
    let began = Instant::now();
    let call = server.start_call(json!({"command": command}));
    let (told, _) = follow(&mut server, call);
    let tenths = began.elapsed().as_millis() / 100;
    assert!(!told.is_empty() && told.len() as u128 <= tenths + 2, "{} in {tenths}", told.len());
    let progress: Vec<_> = told.iter().map(|news| news["progress"].as_f64().unwrap()).collect();
    assert!(progress.windows(2).all(|pair| pair[0] < pair[1]), "{progress:?}");
    assert!(*progress.last().unwrap() <= 71.0, "bytes: {progress:?}");
    server.request("ping", json!({}));
    assert!(!server.seen.iter().any(is_progress), "nothing comes after the answer");
}

#[test]
fn a_silent_command_is_heard_of() {
    let mut server = Server::start(&[]);
    let call = server.start_call(json!({"command": "sleep 300"}));
    let began = Instant::now();
    let first = server.wait_for(is_progress);
    let second = server.wait_for(is_progress);
    assert_eq!(
        (&first["params"]["progress"], &second["params"]["progress"]),
        (&1.0.into(), &2.0.into())
    );
    assert!(began.elapsed() >= Duration::from_secs(9), "no more than needed");
    server.notify("notifications/cancelled", json!({"requestId": call}));
}

#[test]
fn output_after_a_silence_is_told_at_once() {
    let mut server = Server::start(&[]);
    let call = server.start_call(json!({"command": "sleep 5.5; echo x; sleep 300"}));
    let heartbeat = server.wait_for(is_progress);
    assert_eq!(heartbeat["params"]["message"], "");
    let began = Instant::now();
    server.wait_for_output(call, "x");
    assert!(began.elapsed() < Duration::from_secs(4), "not only with the next heartbeat");
    server.notify("notifications/cancelled", json!({"requestId": call}));
}

#[test]
fn stderr_that_is_left_out_is_not_told_either() {
    let mut server = Server::start(&["--no-stderr"]);
    let call = server.start_call(json!({"command": "echo bad >&2; echo good; sleep 300"}));
    server.wait_for_output(call, "good");
    assert!(!server.seen.iter().any(|message| message.to_string().contains("bad")));
    server.notify("notifications/cancelled", json!({"requestId": call}));
}

#[test]
fn what_is_told_has_no_control_characters() {
    let mut server = Server::start(&[]);
    let command = r"printf '\033[1mbold\033[0m\r10%%\r20%%'; sleep 300";
    let call = server.start_call(json!({"command": command}));
    server.wait_for_output(call, "20%d");
    server.notify("notifications/cancelled", json!({"requestId": call}));
}

#[test]
fn of_a_call_that_was_cancelled_nothing_more_is_told() {
    let mut server = Server::start(&[]);
    let mark = mark();
    let command = "trap '' TERM; while :; do echo x; sleep 0.02; done";
    let call = server.start_call(json!({"command": command, "environment": {"MARK": mark}}));
    server.wait_for_output(call, "x");
    server.notify("notifications/cancelled", json!({"requestId": call}));
    server.request("ping", json!({}));
    server.seen.clear();
    // It is killed only when it has not ended for a while.
    wait_until("it has ended", || survivors(&mark).is_empty().then_some(()));
    server.request("ping", json!({}));
    let told = server.seen.iter().filter(|message| is_progress(message)).count();
    assert!(told <= 1, "{told}, though one may have been on its way");
}

#[test]
fn a_call_that_is_handed_over_is_not_answered_before_its_progress_is_read() {
    let mut server = Reserved::start("[shell_tool]\nbackground_after = 1\n");
    let command = "sleep 0.5; while :; do echo x; sleep 0.01; done";
    for id in 1..10 {
        let mut message = call(id, "execute_command", json!({"command": command}));
        message["params"]["_meta"] = json!({"progressToken": id});
        let asked = Instant::now();
        server.send(&message);
        wait_until("something is said", || (server.unread() > 0).then_some(()));
        let first = server.unread();
        let more = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            server.unread() > first
        });
        let waited = asked.elapsed();
        // On a busy machine it may be handed over before there is anything to tell.
        if !more {
            assert_eq!(server.next()["id"], id);
            continue;
        }
        assert!(is_progress(&server.next()));
        assert_eq!(server.next()["id"], id);
        assert!(waited > Duration::from_millis(1400), "it waits a second for us, not {waited:?}");
        drop(server.child.stdin.take());
        server.child.wait().unwrap();
        return;
    }
    panic!("it was never told of");
}

#[test]
fn a_command_that_ends_at_once_need_not_be_told_of() {
    let mut server = Server::start(&[]);
    let told = (0..20).filter(|_| {
        let call = server.start_call(json!({"command": "echo x"}));
        !follow(&mut server, call).0.is_empty()
    });
    assert!(told.count() < 20);
}
