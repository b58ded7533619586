//! In every place: whatever ends a command ends all of it, and keeps what it has printed.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;

use serde_json::json;
use support::place::{place, prepared};
use support::{Gate, Server, mark, survivors, wait_until};

/// Ways for a command to hide processes. Each says `ready` when they are there.
const WAYS: &[(&str, &str)] = &[
    ("a plain child", "sh -c 'echo ready; sleep 300; true'; true"),
    ("in the background", "sleep 300 & echo ready; wait"),
    ("a session of its own", "setsid sleep 300 & setsid -f sleep 300; echo ready; wait"),
    (
        "a double fork",
        "(sh -c 'sleep 300 & wait' &); (setsid sh -c '(sleep 300 &)'); echo ready; sleep 300",
    ),
    ("deaf to TERM", "trap '' TERM HUP INT; sleep 300 & echo ready; while :; do sleep 1; done"),
    ("a stopped process", "sleep 300 & kill -STOP $!; echo ready; wait"),
    ("without descriptors", "nohup setsid sleep 300 <&- >&- 2>&- & echo ready; sleep 300"),
];

/// Starts all of them, and waits until they stand.
fn plant(server: &mut Server, mark: &str) -> Vec<i64> {
    let start = |command: &str| json!({"command": command, "environment": {"MARK": mark}});
    let calls: Vec<_> = WAYS.iter().map(|(_, command)| server.start_call(start(command))).collect();
    for call in &calls {
        server.wait_for_output(*call, "ready");
    }
    assert!(survivors(mark).len() >= 2 * WAYS.len(), "they stand");
    calls
}

/// The processes between a command and us, as far as they are on this machine.
fn lineage(server: &mut Server) -> Vec<String> {
    // Numbers in a container mean other processes here.
    if place().is_some_and(|place| ["container", "kubernetes"].contains(&&place.kind[..])) {
        return Vec::new();
    }
    let command = "p=$PPID; for i in 1 2 3; do echo $p; p=$(cut -d' ' -f4 /proc/$p/stat); done";
    let told = server.run(command)["output"].as_str().unwrap().to_owned();
    let ours = [std::process::id(), server.child.id(), 1, 0].map(|pid| pid.to_string());
    told.lines().map(str::to_owned).take_while(|pid| !ours.contains(pid)).collect()
}

fn wait_until_gone(lineage: &[String]) {
    let is_gone = |pid: &String| !Path::new("/proc").join(pid).exists();
    wait_until("keeper, agent and relay are gone", || lineage.iter().all(is_gone).then_some(()));
}

#[test]
fn a_timeout_kills_keeps_what_was_printed_and_says_so() {
    let (mark, mut server) = (mark(), prepared());
    let result = server.call_raw(json!({
        "command": "echo begun; echo wrong >&2; sleep 300 | sleep 300",
        "timeout": 1.5, "environment": {"MARK": mark},
    }));
    assert_eq!(result["isError"], true);
    let reply = &result["structuredContent"];
    assert_eq!((&reply["output"], &reply["timed_out"]), (&json!("begun\nwrong\n"), &json!(true)));
    assert_eq!((&reply["return_code"], &reply["background_pids"]), (&json!(-1), &json!(null)));
    let said = "timed out after 1.5 seconds; pass a larger `timeout`, or run it with `background`";
    assert_eq!(reply["message"], said);
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_timeout_leaves_nothing_however_it_hides() {
    let (mark, mut server) = (mark(), prepared());
    let calls = WAYS.iter().map(|(name, command)| {
        let arguments = json!({"command": command, "timeout": 3, "environment": {"MARK": mark}});
        (name, server.start_call(arguments))
    });
    for (name, call) in calls.collect::<Vec<_>>() {
        let answer = server.answer(call);
        let reply = &answer["result"]["structuredContent"];
        assert_eq!(reply["timed_out"], true, "{name}: {answer}");
        assert_eq!(reply["output"], "ready\n", "{name}: {answer}");
        assert!(reply["background_pids"].is_null(), "{name}: {answer}");
    }
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_cancellation_leaves_nothing_however_it_hides() {
    let (mark, mut server) = (mark(), prepared());
    for call in plant(&mut server, &mark) {
        server.notify("notifications/cancelled", json!({"requestId": call}));
    }
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    assert_eq!(server.run("echo still here")["output"], "still here\n");
}

#[test]
fn a_client_that_closes_the_stream_leaves_nothing_however_it_hides() {
    let (mark, mut server) = (mark(), prepared());
    let lineage = lineage(&mut server);
    let calls = plant(&mut server, &mark);
    server.close_stdin();
    for (call, (name, _)) in calls.into_iter().zip(WAYS) {
        let answer = server.answer(call);
        let reply = &answer["result"]["structuredContent"];
        assert_eq!(reply["output"], "ready\n", "{name}: {answer}");
        let said = reply["message"].as_str().unwrap();
        assert!(said.starts_with("the client closed its input"), "{name}: {answer}");
    }
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);
    wait_until_gone(&lineage);
}

#[test]
fn a_server_told_to_end_leaves_nothing_however_it_hides() {
    let (mark, mut server) = (mark(), prepared());
    let lineage = lineage(&mut server);
    plant(&mut server, &mark);
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);
    wait_until_gone(&lineage);
}

#[test]
fn a_killed_server_leaves_nothing_however_it_hides() {
    let (mark, mut server) = (mark(), prepared());
    let lineage = lineage(&mut server);
    plant(&mut server, &mark);
    server.signal("KILL");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    wait_until_gone(&lineage);
}

#[test]
fn jobs_and_sessions_end_with_the_server() {
    let (mark, mut server) = (mark(), prepared());
    let hidden = format!("export MARK={mark}; trap '' TERM; (setsid sleep 300 &); sleep 300 &");
    server.call(json!({"command": format!("{hidden} wait"), "background": true}));
    server.call(json!({"command": hidden, "session": "work"}));
    server.call(json!({"command": hidden}));
    wait_until("all of them run", || (survivors(&mark).len() >= 6).then_some(()));
    server.close_stdin();
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_cancelled_call_is_not_answered_and_the_next_one_is() {
    let (mark, mut server) = (mark(), prepared());
    let endless = json!({"command": "echo begun; sleep 300", "environment": {"MARK": mark}});
    let call = server.start_call(endless);
    server.wait_for_output(call, "begun");
    server.notify("notifications/cancelled", json!({"requestId": call}));
    wait_until("it has ended", || survivors(&mark).is_empty().then_some(()));
    assert_eq!(server.run("echo next")["output"], "next\n");
    assert!(server.seen.iter().all(|message| message["id"] != call), "it is answered");
}

#[test]
fn a_command_that_kills_or_stops_its_keeper_does_not_get_away() {
    let (mark, mut server) = (mark(), prepared());
    let environment = json!({"MARK": mark});
    let gate = Gate::new();
    let killer =
        format!("echo part; (setsid sleep 300 &); {}; kill -KILL $PPID; sleep 300", gate.wait());
    let call = server.start_call(json!({"command": killer, "environment": environment}));
    server.wait_for_output(call, "part");
    drop(gate);
    let result = server.answer(call)["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["structuredContent"]["output"], "part\n", "{result}");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    let stopper = "echo begun; kill -STOP $PPID; setsid sleep 300 & sleep 300";
    let stopper = json!({"command": stopper, "environment": environment, "timeout": 1});
    let reply = server.call(stopper);
    assert_eq!((&reply["output"], &reply["timed_out"]), (&json!("begun\n"), &json!(true)));
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    assert_eq!(server.run("echo still here")["output"], "still here\n");
}
