//! In every place: a session is a shell that remembers where it is.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::place::{prepared, tool};
use support::{Gate, Server, mark, survivors, wait_until};

fn say(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "session": "work"}))
}

#[test]
fn directory_variables_and_functions_are_kept() {
    let mut server = prepared();
    let begun =
        say(&mut server, "cd /usr; x='a  b'; export Y=z; greet() { echo \"hello $1 from $x\"; }");
    assert_eq!((&begun["cwd"], &begun["output"]), (&json!("/usr"), &json!("")), "{begun}");
    let told = say(&mut server, "greet Ada; pwd; sh -c 'echo $Y'");
    assert_eq!(told["output"], "hello Ada from a  b\n/usr\nz\n");
    assert_eq!((&told["session"], &told["return_code"]), (&json!("work"), &json!(0)));
    let started = json!({
        "command": "pwd; echo $GREETING", "session": "other", "working_directory": "/var",
        "environment": {"GREETING": "hällo"},
    });
    assert_eq!(server.call(started)["output"], "/var\nhällo\n");
    let other = server.call(json!({"command": "echo \"[$x]\"", "session": "other"}));
    assert_eq!(other["output"], "[]\n");
}

#[test]
fn each_command_has_its_own_exit_code_and_output() {
    let mut server = prepared();
    for (command, output, code) in [
        ("printf 'no end'", "no end", 0),
        ("false", "", 1),
        ("echo $?", "1\n", 0),
        ("echo error >&2; echo out; (exit 7)", "out\nerror\n", 7),
        ("cat; echo after", "after\n", 0),
        ("echo a\necho b\n\nfor i in 1 2; do\n  echo $i\ndone\n", "a\nb\n1\n2\n", 0),
        ("cat <<E\nit's \"text\"\nE", "it's \"text\"\n", 0),
        ("# nothing", "", 0),
    ] {
        let told = say(&mut server, command);
        assert_eq!((&told["output"], &told["return_code"]), (&json!(output), &json!(code)));
    }
    for number in 0..40 {
        let told = say(&mut server, &format!("echo out {number}; echo err {number} >&2"));
        assert_eq!(told["output"], format!("out {number}\nerr {number}\n"));
    }
    let flood = say(&mut server, "yes | head -c 3000000; echo the end");
    assert!(flood["output"].as_str().unwrap().ends_with("the end\n"));
    assert!(flood["omitted_bytes"].as_u64().unwrap() > 2_900_000);
    assert_eq!(say(&mut server, "echo fine")["output"], "fine\n");
}

#[test]
fn a_mistake_does_not_end_a_session_and_an_exit_does() {
    let mut server = prepared();
    say(&mut server, "x=1");
    for mistake in ["if", "echo 'no end", "done", "no_such_command"] {
        let told = say(&mut server, mistake);
        assert_ne!(told["return_code"], 0, "{mistake}");
        assert_ne!(told["output"], "", "{mistake}");
    }
    assert_eq!(say(&mut server, "echo $x")["output"], "1\n");
    let told = say(&mut server, "echo bye; exit 4");
    assert_eq!((&told["output"], &told["return_code"]), (&json!("bye\n"), &json!(4)));
    assert!(told["message"].as_str().unwrap().starts_with("this command ended the session; "));
    assert_eq!(say(&mut server, "echo \"[$x]\"")["output"], "[]\n");
}

/// Runs a command that takes too long: it ends, and the session is as it was.
fn is_too_late(command: &str) {
    let (mark, mut server) = (mark(), prepared());
    say(&mut server, "cd /usr");
    let command = format!("MARK={mark} {command}");
    let late = server.call(json!({"command": command, "session": "work", "timeout": 2}));
    assert_eq!((&late["timed_out"], &late["cwd"]), (&json!(true), &json!("/usr")), "{late}");
    assert!(late["output"].as_str().unwrap().starts_with("begun\n"), "{late}");
    assert_eq!(survivors(&mark), [""; 0]);
    assert_eq!(say(&mut server, "pwd")["output"], "/usr\n");
}

#[test]
fn a_timeout_ends_the_command_and_not_the_session() {
    is_too_late("sh -c 'trap \"\" TERM; echo begun; sleep 300; sleep 300'");
}

#[test]
fn a_timeout_ends_what_has_left_the_shell_and_not_the_session() {
    let deaf = "trap \"\" TERM; echo begun; while sleep 0.2; do :; done";
    is_too_late(&format!("setsid -f sh -c '{deaf}'; sleep 300"));
}

#[test]
fn a_timeout_leaves_what_was_put_in_the_background_before() {
    let (mark, mut server) = (mark(), prepared());
    say(&mut server, &format!("MARK={mark} sleep 300 & echo begun"));
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    let late = server.call(json!({"command": "sleep 300", "session": "work", "timeout": 0.2}));
    assert_eq!((&late["timed_out"], late["cwd"].is_string()), (&json!(true), true), "{late}");
    assert_eq!(survivors(&mark).len(), 1);
}

#[test]
fn a_cancelled_command_does_not_end_the_session() {
    let (mark, mut server) = (mark(), prepared());
    say(&mut server, "x=kept");
    let command = format!("echo begun; MARK={mark} sleep 300");
    let call = server.start_call(json!({"command": command, "session": "work"}));
    server.wait_for_output(call, "begun");
    server.notify("notifications/cancelled", json!({"requestId": call}));
    wait_until("it has ended", || survivors(&mark).is_empty().then_some(()));
    assert_eq!(say(&mut server, "echo $x")["output"], "kept\n");
}

#[test]
fn two_sessions_work_at_once_and_commands_of_one_take_turns() {
    let mut server = prepared();
    let gate = Gate::new();
    let slow = format!("echo first; {}; x=1", gate.wait());
    let first = server.start_call(json!({"command": slow, "session": "work"}));
    server.wait_for_output(first, "first");
    let second = server.start_call(json!({"command": "echo \"second $x\"", "session": "work"}));
    let other = server.call(json!({"command": "echo other", "session": "other"}));
    assert_eq!(other["output"], "other\n");
    drop(gate);
    let told = server.answer(second)["result"]["structuredContent"].clone();
    assert_eq!(told["output"], "second 1\n");
    assert_eq!(server.answer(first)["result"]["structuredContent"]["output"], "first\n");
}

#[test]
fn a_session_is_listed_and_can_be_stopped() {
    let (mark, mut server) = (mark(), prepared());
    say(&mut server, &format!("MARK={mark} sleep 300 & echo begun"));
    let listed = tool(&mut server, "list_jobs", json!({}));
    let job = listed["jobs"].as_array().unwrap().iter().find(|job| job["session"] == "work");
    let id = job.unwrap()["job_id"].clone();
    let stopped = tool(&mut server, "stop_job", json!({"job_id": id, "grace_ms": 200}));
    assert_eq!(stopped["survivors"], 0, "{stopped}");
    assert_eq!(survivors(&mark), [""; 0]);
    assert_eq!(say(&mut server, "echo fine")["output"], "fine\n");
}
