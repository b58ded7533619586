//! What is typed into jobs is in the audit trail, before it is typed.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::audit::{audit, file, read, records, start, verify};
use support::{MCPZ, Server};
use tempfile::TempDir;

fn begin(server: &mut Server, command: &str, tty: bool) -> Value {
    server.call(json!({"command": command, "tty": tty, "background": true}))["job_id"].clone()
}

/// Writes to a job, and returns what is told of it.
fn write(server: &mut Server, job: &Value, mut arguments: Value) -> Value {
    arguments["job_id"] = job.clone();
    server.tool("write_job", arguments)
}

/// The records of what was typed, or was not to be.
fn typed(state: &TempDir) -> Vec<Value> {
    records(state).into_iter().filter(|record| record["tool"] == "write_job").collect()
}

#[test]
fn what_is_typed_is_recorded_with_its_job_and_read_by_people() {
    let state = support::state();
    let mut server = start(&state, "");
    let cat = begin(&mut server, "cat", false);
    let screen = begin(&mut server, "cat -v", true);
    write(&mut server, &cat, json!({"text": "hello\nthere"}));
    write(&mut server, &cat, json!({"wait_for": "output", "timeout": 0.01}));
    write(
        &mut server,
        &screen,
        json!({"text": "x", "keys": ["up", "enter"], "rows": 9, "columns": 9}),
    );
    let ended = write(&mut server, &cat, json!({"eof": true, "wait_for": "exit"}));
    assert_eq!(ended["structuredContent"]["exit_code"], 0);
    let records = records(&state);
    let typed = typed(&state);
    assert_eq!(typed.len(), 3, "{typed:#?}");
    for (field, expected) in [
        ("id", records[0]["id"].clone()),
        ("event", json!("input")),
        ("decision", json!("allow")),
        ("owner", json!("stdio")),
        ("client", json!("test/1")),
        ("server_pid", json!(server.child.id())),
        ("job", cat.clone()),
        ("input", json!("hello\nthere")),
        ("input_bytes", json!(11)),
        ("input_sha256", Value::Null),
        ("keys", Value::Null),
        ("eof", Value::Null),
    ] {
        assert_eq!(typed[0][field], expected, "{field}");
    }
    assert_eq!((&typed[1]["job"], &typed[1]["input"]), (&screen, &json!("x")));
    assert_eq!((&typed[1]["keys"], &typed[1]["input_bytes"]), (&json!(["up", "enter"]), &json!(5)));
    assert_eq!((&typed[2]["eof"], &typed[2]["input"]), (&json!(true), &Value::Null));
    let (said, _) = audit(&state, &["tail"]);
    for part in [
        " write_job         input        hello\\nthere\n",
        " write_job         input        x <up> <enter>\n",
        " write_job         input        <eof>\n",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let (shown, _) = audit(&state, &["show", records[0]["id"].as_str().unwrap()]);
    assert!(shown.contains(" start\n") && shown.contains(" input\n"), "{shown}");
    assert!(shown.contains("  input            hello\\nthere\n"), "{shown}");
    assert_eq!(verify(&state).1, 0);
}

#[test]
fn what_is_refused_is_recorded_and_not_typed() {
    let state = support::state();
    let mut server = start(&state, "[policy]\ndeny = [\"rm\"]\n");
    let bash = begin(&mut server, "bash", false);
    let refused = write(&mut server, &bash, json!({"text": "rm x\n"}));
    assert_eq!(refused["isError"], true);
    write(&mut server, &bash, json!({"keys": ["up"]}));
    let deaf = begin(&mut server, "sleep 300", false);
    let long = "x".repeat(1 << 20) + "\n";
    for _ in 0..3 {
        write(&mut server, &deaf, json!({"text": long, "wait_for": "output", "timeout": 0.01}));
    }
    let typed = typed(&state);
    assert_eq!(
        typed[0]["reason"],
        "refused by the policy: `bash` (at 0) is denied by the rule `rm`"
    );
    assert_eq!((&typed[0]["rule"], &typed[0]["input"]), (&json!("rm"), &json!("rm x\n")));
    assert!(typed[1]["reason"].as_str().unwrap().starts_with("bash executes its input"));
    assert_eq!(typed[2]["event"], "input");
    assert_eq!(typed[2]["input"].as_str().map(str::len), Some(16 << 10));
    assert!(typed[2]["input_sha256"].is_string());
    assert!(typed[4]["reason"].as_str().unwrap().starts_with("the job has not read"));
    for record in [&typed[0], &typed[1], &typed[4]] {
        assert_eq!((&record["event"], &record["decision"]), (&json!("refused"), &json!("deny")));
    }
    assert_eq!(verify(&state).1, 0);
}

#[test]
fn without_log_commands_only_length_and_hash_are_recorded() {
    let state = support::state();
    let config = "[shell_tool]\nlog_commands = false\n[policy]\ndeny = [\"hello\"]\n";
    let mut server = start(&state, config);
    let bash = begin(&mut server, "bash", false);
    write(&mut server, &bash, json!({"text": "echo hello", "eof": true}));
    write(&mut server, &bash, json!({"text": "\nhello\n"}));
    let typed = typed(&state);
    // printf 'echo hello' | sha256sum
    let hash = "584a331fd6b02dcb1ecbe2eba731f609a2e1e3dac0bb73ae998dfad14c309a77";
    assert_eq!((&typed[0]["input_bytes"], &typed[0]["input_sha256"]), (&json!(10), &json!(hash)));
    assert!(!read(&state).contains("hello"), "{}", read(&state));
    assert!(audit(&state, &["tail"]).0.contains(" input        (10 bytes) <eof>\n"));
}

#[test]
fn neither_secrets_nor_passwords_are_recorded() {
    let state = support::state();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell"]).env("XDG_STATE_HOME", state.path());
    let mut server = Server::from_command(command.env("MY_TOKEN", "correct-horse-battery"));
    server.initialize("2025-11-25");
    let cat = begin(&mut server, "cat", false);
    write(&mut server, &cat, json!({"text": "login correct-horse-battery\n"}));
    let asks = "printf 'Password: '; stty -echo; read word; stty echo; echo; echo ${#word}; read x";
    let asked = server.call(json!({"command": asks, "tty": true}));
    assert_eq!(asked["prompt"], "Password:");
    let told = write(&mut server, &asked["job_id"], json!({"text": "hunter2", "keys": ["enter"]}));
    assert!(told["structuredContent"]["screen"].as_str().unwrap().contains("\n7"), "{told}");
    write(&mut server, &asked["job_id"], json!({"text": "seen\n"}));
    let typed = typed(&state);
    assert_eq!(typed[0]["input"], "login [MY_TOKEN]\n");
    assert_eq!((&typed[1]["hidden"], &typed[1]["input_bytes"]), (&json!(true), &json!(8)));
    assert_eq!((&typed[1]["input"], &typed[1]["input_sha256"]), (&Value::Null, &Value::Null));
    assert_eq!((&typed[2]["hidden"], &typed[2]["input"]), (&Value::Null, &json!("seen\n")));
    assert!(!read(&state).contains("hunter2") && !read(&state).contains("battery"));
}

#[test]
fn what_cannot_be_recorded_is_not_typed() {
    let state = support::state();
    let mut server = start(&state, "[policy]\ndeny = [\"rm\"]\n");
    let cat = begin(&mut server, "cat", false);
    let bash = begin(&mut server, "bash", false);
    let (trail, aside) = (file(&state), state.path().join("aside"));
    std::fs::rename(&trail, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &trail).unwrap();
    for (job, lost) in [
        (&cat, json!({"text": "lost\n"})),
        (&cat, json!({"eof": true})),
        (&bash, json!({"text": "echo "})),
    ] {
        let refused = write(&mut server, job, lost);
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("cannot write the audit record") && refused["isError"] == true,
            "{text}"
        );
    }
    std::fs::remove_file(&trail).unwrap();
    std::fs::rename(&aside, &trail).unwrap();
    let wait = json!({"text": "found\n", "wait_for": "text", "pattern": "."});
    let told = write(&mut server, &cat, wait);
    assert_eq!(told["structuredContent"]["output"], "found\n");
    let refused = write(&mut server, &bash, json!({"text": "rm x\n"}));
    assert_eq!(refused["isError"], true, "there is no `echo` before it: {refused}");
    assert_eq!(verify(&state).1, 0);
}
