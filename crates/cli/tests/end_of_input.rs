//! When a client closes its input, what it asked for is finished, for a while; then nothing is left.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and not every test uses all of the support"
)]

mod support;

use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::piped::{HANDSHAKE, answer, messages, pipe, server};
use support::{Gate, Server, audit, keep_state_in, mark, meta, state, survivors, wait_until};
use tempfile::TempDir;

/// More than a test waits for anything.
const LONG: &[&str] = &["--finish-time", "600"];

const CLOSED: &str = "the client closed its input before this command finished";

const ECHO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_command","arguments":{"command":"echo hello"}}}"#;

/// Somewhere a command leaves a sign that it has come so far.
struct Sign {
    folder: TempDir,
}

impl Sign {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sign")
    }

    fn leave(&self) -> String {
        format!("touch '{}'", self.path().display())
    }

    fn wait(&self) {
        wait_until("the command has begun", || self.path().exists().then_some(()));
    }
}

#[test]
fn whatever_was_piped_is_answered() {
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    let wait: &[&str] = &["--finish-time", "60"];
    let result = |said: &[Value], id: usize| answer(said, id)["result"].clone();

    let said = pipe(server(wait), &format!("{HANDSHAKE}{list}\n"));
    assert!(result(&said, 2)["tools"].is_array(), "{said:?}");
    let said = pipe(server(wait), &format!("{HANDSHAKE}{ECHO}"));
    assert_eq!(result(&said, 2)["structuredContent"]["output"], "hello\n", "without a newline");
    let said = pipe(server(wait), &format!("{HANDSHAKE}[{ECHO},{ping}]\n"));
    assert_eq!(result(&said, 2)["structuredContent"]["output"], "hello\n", "in a batch");
    assert!(result(&said, 3).is_object(), "{said:?}");
    let said = pipe(server(wait), ping);
    assert!(result(&said, 3).is_object(), "before the handshake: {said:?}");
    let said = pipe(server(wait), list);
    assert!(answer(&said, 2)["error"].is_object(), "without a handshake: {said:?}");
    let said = pipe(server(wait), &format!("{HANDSHAKE}{{\"id\": 9, nonsense"));
    assert_eq!(answer(&said, 9)["error"]["code"], -32700, "{said:?}");
    assert_eq!(pipe(server(wait), "").len(), 0);

    let many: Vec<_> =
        (2..60).map(|id| ECHO.replace("\"id\":2", &format!("\"id\":{id}"))).collect();
    let said = pipe(server(wait), &format!("{HANDSHAKE}{}\n", many.join("\n")));
    for id in 2..60 {
        assert_eq!(result(&said, id)["structuredContent"]["output"], "hello\n", "call {id}");
    }
}

#[test]
fn files_are_read_and_written_to_their_ends_as_well() {
    let (mut input, output) =
        (tempfile::tempfile().unwrap(), tempfile::NamedTempFile::new().unwrap());
    writeln!(input, "{HANDSHAKE}{ECHO}").unwrap();
    input.rewind().unwrap();
    let (mut command, state) = (server(&["--finish-time", "60"]), state());
    keep_state_in(&mut command, &state);
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(input).stdout(output.reopen().unwrap());
    assert!(command.status().unwrap().success());
    let said = messages(&std::fs::read(output.path()).unwrap());
    assert_eq!(answer(&said, 2)["result"]["structuredContent"]["output"], "hello\n");
}

#[test]
fn a_command_that_ends_in_time_is_answered_in_full() {
    let (gate, sign) = (Gate::new(), Sign::new());
    let mut server = Server::start(LONG);
    let ticks = "while :; do echo tick; sleep 0.05; done & ticks=$!";
    let (begun, gated) = (sign.leave(), gate.wait());
    let command = format!("{ticks}; {begun}; {gated}; kill $ticks; echo done; exit 3");
    let call = server.start_call(json!({"command": command}));
    sign.wait();
    server.close_stdin();
    server.seen.clear();
    // It goes on after the server has seen the end, and is told of.
    for _ in 0..5 {
        server.wait_for(|message| message["params"]["progressToken"] == call);
    }
    drop(gate);
    let answer = server.answer(call);
    let reply = &answer["result"]["structuredContent"];
    assert_eq!(reply["return_code"], 3, "{answer}");
    assert!(reply["output"].as_str().unwrap().ends_with("done\n"), "{answer}");
    // With the last answer there is nothing left to wait for.
    assert!(server.wait().success());
}

#[test]
fn a_longer_one_is_ended_and_says_so_in_every_face() {
    for flags in [&["--finish-time", "0"][..], &[]] {
        let faces = ["execute_command", "shell", "execute", "run_shell_command", "shell_exec"];
        let mut server = Server::start(&[&["--tools", "all"], flags].concat());
        let mark = mark();
        let calls = faces.map(|name| {
            let sign = Sign::new();
            let deaf = "trap '' TERM; (setsid sleep 300 &)";
            let command =
                format!("export MARK={mark}; {deaf}; echo part; {}; sleep 300", sign.leave());
            let arguments = match name {
                "run_shell_command" => json!({"command": command, "is_background": false}),
                "shell_exec" => json!({"cmd": command}),
                _ => json!({"command": command}),
            };
            let call = server.ask("tools/call", json!({"name": name, "arguments": arguments}));
            sign.wait();
            (name, call)
        });
        server.close_stdin();
        for (name, call) in calls {
            let result = server.answer(call)["result"].clone();
            let text = result.to_string();
            assert_eq!(result["isError"], true, "{name}: {text}");
            assert!(text.contains("part\\n"), "{name}: {text}");
            assert!(!text.contains("minded") && !text.contains("killed"), "{name}: {text}");
            assert!(text.contains(CLOSED), "{name}: {text}");
        }
        assert!(server.wait().success());
        assert_eq!(survivors(&mark), [""; 0]);
    }
}

#[test]
fn sessions_and_those_who_wait_for_a_job_are_told_as_well() {
    let mut server = Server::start(&["--finish-time", "0"]);
    let sign = Sign::new();
    let session =
        json!({"session": "s", "command": format!("echo part; {}; sleep 300", sign.leave())});
    let session = server.start_call(session);
    sign.wait();
    let job = server.call(json!({"command": "echo job; sleep 300", "background": true}));
    let waiting = json!({"job_id": job["job_id"], "wait_for": "exit", "timeout": 600});
    let waiting = server.ask("tools/call", json!({"name": "read_job", "arguments": waiting}));
    // Requests are taken in order: when this one is answered, the one before has begun.
    server.request("ping", json!({}));
    server.close_stdin();
    let told = server.answer(session)["result"]["structuredContent"].clone();
    assert!(told["message"].as_str().unwrap().contains(CLOSED), "{told}");
    assert_eq!(told["output"], "part\n");
    let told = server.answer(waiting)["result"]["structuredContent"].clone();
    assert_eq!(told["state"], "stopped", "{told}");
    assert!(told["message"].as_str().unwrap().contains(CLOSED), "{told}");
    assert!(server.wait().success());
    let records = audit::read(&server.state);
    assert_eq!(records.matches("\"result\":\"server_ended\"").count(), 3, "{records}");
}

#[test]
fn nobody_waits_for_what_is_not_answered() {
    let mark = mark();
    let mut server = Server::start(LONG);
    let environment = json!({"MARK": mark});
    server.call(json!({"command": "sleep 300", "background": true, "environment": environment}));
    server.call(json!({"command": "setsid sleep 300 &", "environment": environment}));
    let sign = Sign::new();
    let command = format!("trap '' TERM; {}; sleep 300", sign.leave());
    let cancelled = server.start_call(json!({"command": command, "environment": environment}));
    sign.wait();
    server.notify("notifications/cancelled", json!({"requestId": cancelled}));
    server.close_stdin();
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);

    let mut listening = Server::start_silent(LONG);
    let filter = json!({"resourceSubscriptions": ["mcp://tmp/exec-0.out"]});
    listening.ask("subscriptions/listen", json!({"notifications": filter, "_meta": meta()}));
    listening.request("tools/list", json!({"_meta": meta()}));
    listening.close_stdin();
    assert!(listening.wait().success());
}

#[test]
fn a_client_that_reads_no_more_either_is_not_waited_for() {
    let (mark, sign, state) = (mark(), Sign::new(), state());
    let mut command = server(LONG);
    keep_state_in(&mut command, &state);
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let command = format!("{}; sleep 300", sign.leave());
    let call = ECHO.replace("echo hello", &command);
    let call = call.replace(
        "\"arguments\":{",
        &format!("\"arguments\":{{\"environment\":{{\"MARK\":\"{mark}\"}},"),
    );
    writeln!(stdin, "{HANDSHAKE}{call}").unwrap();
    sign.wait();
    drop((stdin, child.stdout.take()));
    wait_until("the server ends", || child.try_wait().unwrap());
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_server_told_to_end_does_not_finish_anything() {
    let (mark, sign) = (mark(), Sign::new());
    let mut server = Server::start(LONG);
    let command = format!("{}; sleep 300", sign.leave());
    server.start_call(json!({"command": command, "environment": {"MARK": mark}}));
    sign.wait();
    server.close_stdin();
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn the_time_is_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "[shell_tool]\nfinish_time = 600\n").unwrap();
    let (gate, sign) = (Gate::new(), Sign::new());
    let mut server = Server::start(&["--config", file.to_str().unwrap()]);
    let command = format!("{}; {}; echo done", sign.leave(), gate.wait());
    let call = server.start_call(json!({"command": command}));
    sign.wait();
    server.close_stdin();
    drop(gate);
    let answer = server.answer(call);
    assert_eq!(answer["result"]["structuredContent"]["output"], "done\n", "{answer}");

    let mut wrong = Command::new(support::MCPZ);
    wrong.args(["server", "shell", "--finish-time", "1s"]).stdin(Stdio::null());
    let said = wrong.output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("it must be a whole number of seconds from 0 to 86400"), "{said}");
}
