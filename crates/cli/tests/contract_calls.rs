//! In every place: what a call passes on, what it hears meanwhile, and that calls do not disturb one another.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::place::{prepared, tool};
use support::{Gate, Server, open_folder};

fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

#[test]
fn a_command_runs_where_and_with_what_it_is_told_to() {
    let (mut server, folder) = (prepared(), open_folder());
    let path = folder.path().canonicalize().unwrap();
    std::fs::create_dir(path.join("below")).unwrap();
    let reply = server.call(json!({
        "command": "pwd; echo $GREETING; cat",
        "working_directory": path.join("below"),
        "environment": {"GREETING": "hällo"},
        "stdin": "one\ntwo",
    }));
    assert_eq!(reply["output"], format!("{}/below\nhällo\none\ntwo", path.display()));
    let again = server.run("echo \"[$GREETING]\"; pwd");
    assert_eq!(again["output"], format!("[]\n{}\n", env!("CARGO_MANIFEST_DIR")));
    let usual = server.run("test -n \"$PATH\" && test -n \"$HOME\" && command -v ls >/dev/null");
    assert_eq!(usual["return_code"], 0, "{usual}");
    let gone = server.call(json!({"command": "true", "working_directory": "/no/such"}));
    let expected = "Failed to execute: cannot enter the working directory /no/such: No such file or directory \
                    (os error 2)";
    assert_eq!(gone["output"], expected);
}

#[test]
fn exit_codes_signals_and_usage_are_told() {
    let mut server = prepared();
    for code in [0, 1, 126, 255] {
        assert_eq!(server.run(&format!("exit {code}"))["return_code"], code);
    }
    let reply = server.run("ulimit -c 0; kill -SEGV $$");
    assert_eq!((&reply["signal"], &reply["return_code"]), (&json!("SIGSEGV"), &json!(-1)));
    let reply = server.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.2");
    assert!(reply["duration_ms"].as_u64().unwrap() >= 200, "{reply}");
    assert!(reply["cpu_ms"].as_u64().unwrap() >= 1, "{reply}");
    assert!(reply["max_rss_bytes"].as_u64().unwrap() > 100_000, "{reply}");
}

#[test]
fn five_megabytes_of_input_arrive_and_end() {
    let mut server = prepared();
    let text: String = (0..500_000).map(|line| format!("{line:09}\n")).collect();
    let reply = server.call(json!({"command": "sha256sum; wc -c </dev/null", "stdin": text}));
    let expected = std::process::Command::new("seq")
        .args(["-f", "%09.0f", "0", "499999"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .and_then(|seq| {
            std::process::Command::new("sha256sum").stdin(seq.stdout.unwrap()).output()
        });
    let expected = String::from_utf8(expected.unwrap().stdout).unwrap();
    assert_eq!(reply["output"], format!("{expected}0\n"), "{}", reply["return_code"]);
    let back = server.call(json!({"command": "tail -c 20", "stdin": text}));
    assert_eq!(back["output"], "000499998\n000499999\n");
}

#[test]
fn input_that_nobody_reads_and_no_input_hold_up_nobody() {
    let mut server = prepared();
    let reply = server.call(json!({"command": "echo done", "stdin": "x".repeat(1 << 20)}));
    assert_eq!(reply["output"], "done\n");
    let reply = server
        .call(json!({"command": "exec <&-; sleep 0.2; echo done", "stdin": "x".repeat(1 << 20)}));
    assert_eq!(reply["output"], "done\n");
    let reply = server.run("read x; echo \"got $?\"; cat; cat");
    assert_eq!(reply["output"], "got 1\n");
    assert_eq!(server.call(json!({"command": "wc -c", "stdin": ""}))["output"], "0\n");
}

#[test]
fn a_script_longer_than_an_argument_can_be_runs_all_the_same() {
    let mut server = prepared();
    let script = format!("x='{}'\necho ${{#x}}\ncat\n", "a".repeat(500_000));
    let reply = server.call_raw(json!({"command": script, "stdin": "input"}));
    assert_eq!(reply["structuredContent"]["output"], "500000\ninput");
}

#[test]
fn news_come_while_the_command_runs_and_not_after_the_answer() {
    let mut server = prepared();
    let gates = [Gate::new(), Gate::new()];
    let waits = [gates[0].wait(), gates[1].wait()];
    let command = format!("echo one; {}; echo two >&2; {}; echo three", waits[0], waits[1]);
    let call = server.start_call(json!({"command": command}));
    for (gate, text) in gates.into_iter().zip(["one", "two"]) {
        server.wait_for_output(call, text);
        drop(gate);
    }
    let reply = server.answer(call)["result"]["structuredContent"].clone();
    assert_eq!(reply["output"], "one\nthree\ntwo\n");
    server.seen.clear();
    server.request("ping", json!({}));
    assert!(!server.seen.iter().any(is_progress), "{:?}", server.seen);
}

#[test]
fn forty_calls_at_once_each_get_their_own_output() {
    let mut server = Server::start(&[]);
    let command =
        |n: u64| format!("echo {n}; seq {n} 20000 | tail -n 1; echo err {n} >&2; exit {n}");
    let calls: Vec<_> =
        (0..40).map(|n| (n, server.start_call(json!({"command": command(n)})))).collect();
    for (n, call) in calls {
        let reply = server.answer(call)["result"]["structuredContent"].clone();
        assert_eq!(reply["output"], format!("{n}\n20000\nerr {n}\n"));
        assert_eq!(reply["return_code"], n);
    }
}

#[test]
fn calls_run_side_by_side() {
    let (mut server, folder) = (prepared(), open_folder());
    let fifo = folder.path().join("fifo");
    let path = fifo.to_str().unwrap();
    server.run(&format!("mkfifo '{path}'"));
    // Each waits for the other: one after the other they would wait forever.
    let reader = server.start_call(json!({"command": format!("cat '{path}'")}));
    let writer = server.start_call(json!({"command": format!("echo met > '{path}'")}));
    assert_eq!(server.answer(writer)["result"]["structuredContent"]["return_code"], 0);
    assert_eq!(server.answer(reader)["result"]["structuredContent"]["output"], "met\n");
}

#[test]
fn short_commands_beside_a_flood_are_answered() {
    let mut server = prepared();
    let flood = server.start_call(json!({"command": "yes", "timeout": 300}));
    server.wait_for_output(flood, "y");
    let began = Instant::now();
    for number in 0..10 {
        assert_eq!(server.run(&format!("echo {number}"))["output"], format!("{number}\n"));
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    server.notify("notifications/cancelled", json!({"requestId": flood}));
    assert_eq!(server.run("true")["return_code"], 0);
}

#[test]
fn the_errors_of_execute_are_told_in_its_words() {
    let mut server = prepared();
    let kill = "sleep 300 & kill -KILL $PPID; sleep 300";
    for (arguments, expected) in [
        (json!({"command": ""}), "Error: command: empty"),
        (json!({"command": " \t\n"}), "Error: command: empty"),
        (json!({"command": "/no/such", "args": []}), "Error: execute: spawn failed"),
        (json!({"command": kill}), "Error: execute: wait failed"),
    ] {
        let result = server.tool("execute", arguments);
        assert_eq!(
            (&result["isError"], &result["content"][0]["text"]),
            (&json!(true), &json!(expected))
        );
    }
    let mut server = Server::start(&["--tools", "execute", "--deny", "rm"]);
    let result = server.tool("execute", json!({"command": "rm x"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("rm"), "{text}");
    let words = tool(&mut server, "execute", json!({"command": "echo", "args": ["a  b", "$HOME"]}));
    assert_eq!(words["stdout"], "a  b $HOME\n");
}

#[test]
fn an_unknown_command_is_answered_with_those_that_are_like_it() {
    let mut server = prepared();
    for (command, advice) in [
        ("gti status", "`gti` is not on the PATH. Did you mean git"),
        ("./gone.sh", "there is no file `./gone.sh`"),
        ("[[ a == a ]]", "`[[` needs bash"),
    ] {
        let result = server.tool("shell", json!({"command": command}));
        assert!(result.to_string().contains(advice), "{command}: {result}");
    }
}
