//! The `execute` tool where its document has it: as the one tool of a server over HTTP.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::http::{HttpServer, Request, TOKEN, call};
use support::{MCPZ, PATIENCE};

fn start(variables: &[(&str, &str)]) -> HttpServer {
    let mut command = Command::new(MCPZ);
    command.env("MCP_HTTP_TOKEN", TOKEN).envs(variables.iter().copied());
    HttpServer::start_command(&mut command, &["--tools", "execute"], "")
}

/// The same answer in a session and alone; what is given back is its structure or its error.
fn execute(server: &HttpServer, arguments: Value) -> Value {
    let session = server.open_session();
    let mut in_session = server.call(&session, "execute", arguments.clone());
    let request = Request::alone(call(1, "execute", arguments));
    let mut alone = server.send(&request).messages().pop().unwrap()["result"].clone();
    assert_eq!(alone["isError"], in_session["isError"]);
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    if alone["structuredContent"].is_null() {
        assert_eq!(text(&alone), text(&in_session));
        return json!(text(&alone));
    }
    for result in [&mut alone, &mut in_session] {
        let said: Value = serde_json::from_str(&text(result)).unwrap();
        assert_eq!(said, result["structuredContent"]);
    }
    in_session["structuredContent"].take()
}

#[test]
fn response_format() {
    let server = start(&[]);
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let listed = server.send(&Request::alone(listed)).json()["result"]["tools"].clone();
    let names: Vec<_> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["execute"]);
    let reply = execute(&server, json!({"command": "echo", "args": ["hello"]}));
    for (field, value) in [
        ("stdout", json!("hello\n")),
        ("stderr", json!("")),
        ("exit_code", json!(0)),
        ("timed_out", json!(false)),
        ("stdout_truncated", json!(false)),
        ("stderr_truncated", json!(false)),
    ] {
        assert_eq!(reply[field], value, "{field}");
    }
    assert!(reply["elapsed_ms"].is_u64());
    let reply = execute(&server, json!({"command": "perl -e \"print 1;\""}));
    assert_eq!(reply["stdout"], "1");
    let reply = execute(&server, json!({"command": "cat", "stdin": "fed"}));
    assert_eq!(reply["stdout"], "fed");
    let reply = execute(&server, json!({"command": "sleep 300", "timeout_ms": 200}));
    assert_eq!(reply["timed_out"], true);
}

#[test]
fn errors() {
    let server = start(&[]);
    assert_eq!(execute(&server, json!({"command": " "})), "Error: command: empty");
    let missing = json!({"command": "no-such-program", "args": []});
    assert_eq!(execute(&server, missing), "Error: execute: spawn failed");
}

#[test]
fn environment_variables() {
    let server = start(&[("MCP_EXEC_MAX_OUTPUT_BYTES", "10"), ("MCP_EXEC_LOG_OUTPUT_BYTES", "4")]);
    let command = "seq 1 2000; printf 'a\\033[1mb\\r\\n'";
    let reply = execute(&server, json!({"command": command}));
    assert_eq!(
        (&reply["stdout"], &reply["stdout_truncated"]),
        (&json!("2000\nab\n"), &json!(true))
    );
    let said = server.said.lock().unwrap();
    let line = std::iter::from_fn(|| said.recv_timeout(PATIENCE).ok())
        .find(|line| line.contains("stdout: "))
        .unwrap();
    assert!(line.ends_with(r#"stdout: "2000""#), "{line}");
}
