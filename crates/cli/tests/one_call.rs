//! A view or data in the answer to the command itself: `view` and `extract` of `execute_command`.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;

/// What `cargo test` prints, with as many tests that pass, in a file; and a script that shows it and exits with a code.
struct Tests {
    folder: TempDir,
}

impl Tests {
    fn new(passed: usize, failed: bool, code: i32) -> Self {
        let mut text = format!("\nrunning {} tests\n", passed + usize::from(failed));
        (0..passed).for_each(|n| text += &format!("test case_{n} ... ok\n"));
        if failed {
            text += "test adds ... FAILED\n\nfailures:\n\n---- adds stdout ----\n\n\
                     thread 'adds' panicked at src/lib.rs:14:9:\nassertion failed\n\n\nfailures:\n    adds\n";
        }
        let (result, failed) = if failed { ("FAILED", 1) } else { ("ok", 0) };
        let counts =
            format!("{passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
        text += &format!("\ntest result: {result}. {counts}\n\n");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("text"), text).unwrap();
        std::fs::write(folder.path().join("run"), format!("cat text; exit {code}\n")).unwrap();
        Self { folder }
    }

    fn call(&self) -> Value {
        json!({"command": "sh run", "working_directory": self.folder.path(), "extract": "tests"})
    }
}

fn run(server: &mut Server, arguments: Value) -> Value {
    server.call_raw(arguments)["structuredContent"].clone()
}

fn said(reply: &Value, parts: &[&str]) {
    let message = reply["message"].as_str().unwrap();
    parts.iter().for_each(|part| assert!(message.contains(part), "{part:?} in {reply}"));
}

#[test]
fn tests_are_run_and_counted_in_one_call() {
    let mut server = Server::start(&[]);
    let tests = Tests::new(600, true, 101);
    let reply = run(&mut server, tests.call());
    let found = &reply["extracted"];
    assert_eq!((&found["passed"], &found["failed"]), (&json!(600), &json!(1)), "{reply}");
    assert_eq!(found["failures"][0]["name"], "adds", "{reply}");
    assert_eq!((&found["complete"], &reply["return_code"]), (&json!(true), &json!(101)));
    let keys: Vec<_> = reply.as_object().unwrap().keys().take(3).collect();
    assert_eq!(keys, ["command", "output", "return_code"]);
    // Nothing of the output is shown, and all of it can be read.
    let read = json!({"uri": reply["spill_uri"], "limit_bytes": 1});
    let whole = server.tool("read_file_chunk", read)["structuredContent"]["total_bytes"].clone();
    assert_eq!((&reply["output"], &reply["omitted_bytes"]), (&json!(""), &whole), "{reply}");
    assert!(reply.to_string().len() < 1000, "{reply}");
}

#[test]
fn a_failure_that_was_not_found_is_said_and_the_end_is_shown() {
    let mut server = Server::start(&[]);
    for count in [3, 600] {
        let tests = Tests::new(count, false, 1);
        let reply = run(&mut server, tests.call());
        assert_eq!(reply["extracted"]["complete"], false, "{reply}");
        assert!(reply["output"].as_str().unwrap().contains("test result: ok."), "{reply}");
        assert_eq!(reply["omitted_bytes"].is_null(), count == 3, "{reply}");
        said(&reply, &["exit code"]);
    }
}

#[test]
fn what_says_nothing_of_the_kind_is_shown_and_the_answer_says_so() {
    let mut server = Server::start(&[]);
    let reply = run(&mut server, json!({"command": "echo hello", "extract": "tests"}));
    assert_eq!((&reply["output"], &reply["extracted"]), (&json!("hello\n"), &Value::Null));
    assert!(reply["message"].is_string(), "{reply}");
    let timeout = json!({"command": "echo hello; sleep 60", "extract": "tests", "timeout": 0.5});
    let reply = run(&mut server, timeout);
    assert_eq!(reply["timed_out"], true);
    said(&reply, &["timed out after 0.5 seconds"]);
}

#[test]
fn a_view_is_shown_with_a_true_count_of_what_is_not() {
    let mut server = Server::start(&[]);
    let log = "for i in $(seq 500); do echo \"request $i served\"; [ $i != 400 ] || echo 'error: lost' >&2; done";
    let folded = run(&mut server, json!({"command": log, "view": "folded"}));
    assert_eq!(
        folded["output"],
        "request 1 served\n… 498 more lines like this …\nrequest 500 served\nerror: lost\n"
    );
    said(&folded, &["498 of 501 lines not shown"]);
    let all = (1..=500).map(|n| format!("request {n} served\n").len()).sum::<usize>();
    let shown = "request 1 served\nrequest 500 served\n".len();
    assert_eq!(folded["omitted_bytes"], all - shown, "{folded}");
    let whole = server.tool("read_file_chunk", json!({"uri": folded["spill_uri"]}));
    assert_eq!(whole["structuredContent"]["total_bytes"], all);
    let errors =
        run(&mut server, json!({"command": format!("{{ {log}; }} 2>&1"), "view": "errors"}));
    let output = errors["output"].as_str().unwrap();
    assert!(output.contains("\n401:error: lost\n") && output.lines().count() == 7, "{errors}");
    let short = run(&mut server, json!({"command": "echo one", "view": "folded"}));
    assert_eq!((&short["output"], &short["omitted_bytes"]), (&json!("one\n"), &Value::Null));
}

#[test]
fn binary_output_has_no_view_but_the_command_is_answered() {
    let mut server = Server::start(&[]);
    for (name, value) in [("view", "folded"), ("view", "errors"), ("extract", "tests")] {
        let command = "head -c 5000 /dev/zero; exit 3";
        let reply = run(&mut server, json!({"command": command, name: value}));
        assert_eq!(reply["return_code"], 3, "{reply}");
        said(&reply, &["the output is binary"]);
    }
}

#[test]
fn a_job_is_asked_when_it_is_read() {
    let mut server = Server::start(&["--background-after", "1"]);
    for arguments in [
        json!({"command": "true", "background": true, "extract": "tests"}),
        json!({"command": "true", "detach": true, "view": "folded"}),
    ] {
        let refused = server.call_raw(arguments).to_string();
        assert!(refused.contains("work only without `background` and `detach`"), "{refused}");
    }
    let both = server.call_raw(json!({"command": "true", "view": "folded", "extract": "tests"}));
    assert!(both.to_string().contains("`extract` works only without `view`"), "{both}");
    let slow = run(&mut server, json!({"command": "echo begun; sleep 60", "extract": "tests"}));
    assert_eq!(slow["output"], "begun\n");
    said(&slow, &["still running after 1 second", "pass them to read_job"]);
}
