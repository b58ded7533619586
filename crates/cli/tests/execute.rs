//! The `execute` tool, section by section of its document.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{MCPZ, Server, mark, survivors};

fn start() -> Server {
    Server::start(&["--tools", "execute"])
}

/// The structure, having checked that the text says the same.
fn execute(server: &mut Server, arguments: Value) -> Value {
    let result = server.tool("execute", arguments);
    let text = result["content"][0]["text"].as_str().unwrap();
    let structured = result["structuredContent"].clone();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
    structured
}

#[test]
fn it_is_the_only_tool() {
    let mut server = start();
    let listed = server.request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(listed["result"]["tools"][0]["name"], "execute");
}

#[test]
fn direct_argv_execution() {
    let mut server = start();
    let reply = execute(&mut server, json!({"command": "echo", "args": ["hello", "$HOME; ls"]}));
    assert_eq!(reply["stdout"], "hello $HOME; ls\n");
    assert_eq!(reply["exit_code"], 0);
}

#[test]
fn shell_command_string() {
    let mut server = start();
    let reply = execute(&mut server, json!({"command": "perl -e \"print 1;\" || printf 1"}));
    assert_eq!(reply["stdout"], "1");
    assert_eq!(execute(&mut server, json!({"command": "echo $0"}))["stdout"], "/bin/sh\n");
}

#[test]
fn response_format() {
    let mut server = start();
    let arguments = json!({"command": "cat; echo err >&2; exit 3", "stdin": "in"});
    let reply = execute(&mut server, arguments);
    assert_eq!(reply["stdout"], "in");
    assert_eq!(reply["stderr"], "err\n");
    assert_eq!(reply["exit_code"], 3);
    for field in ["timed_out", "stdout_truncated", "stderr_truncated"] {
        assert_eq!(reply[field], false, "{field}");
    }
    assert!(reply["elapsed_ms"].is_u64());
}

#[test]
fn a_line_without_an_end_is_told_although_something_still_runs() {
    let mut server = Server::start(&["--tools", "all"]);
    let reply = execute(&mut server, json!({"command": "printf hi; sleep 300 &"}));
    assert_eq!(reply["stdout"], "hi");
    let paged = server.tool("shell_exec", json!({"cmd": "printf hi; sleep 300 &"}));
    assert_eq!(paged["structuredContent"]["stdout_chunk"], "hi");
    assert_eq!(server.run("printf hi; sleep 300 &")["output"], "hi");
}

#[test]
fn timeout_ms() {
    let mark = mark();
    let mut server = start();
    let command = format!("export MARK={mark}; echo a; setsid sleep 300 & sleep 300");
    let reply = execute(&mut server, json!({"command": command, "timeout_ms": 300}));
    assert_eq!((&reply["timed_out"], &reply["stdout"]), (&json!(true), &json!("a\n")));
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn errors() {
    let mut server = start();
    for (arguments, expected) in [
        (json!({"command": ""}), "Error: command: empty"),
        (json!({"command": " \t\n"}), "Error: command: empty"),
        (json!({"command": "/no/such", "args": []}), "Error: execute: spawn failed"),
        (
            json!({"command": "sleep 300 & kill -KILL $PPID; sleep 300"}),
            "Error: execute: wait failed",
        ),
    ] {
        let result = server.tool("execute", arguments);
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], expected);
    }
}

#[test]
fn mcp_exec_max_output_bytes() {
    let mut server = start();
    let reply = execute(&mut server, json!({"command": "seq 1 100000 | tr 0-9 g-p"}));
    let stdout = reply["stdout"].as_str().unwrap();
    assert!((39_000..=40_000).contains(&stdout.len()), "{} bytes", stdout.len());
    assert!(stdout.starts_with("h\ni\n") && stdout.ends_with("ppppp\nhggggg\n"), "head and tail");
    assert_eq!(reply["stdout_truncated"], true);
    let shown: usize =
        stdout.lines().filter(|line| !line.starts_with('[')).map(|line| line.len() + 1).sum();
    assert_eq!(reply["omitted_bytes"], 588_895 - shown, "of 588,895");
    let whole = server.request("resources/read", json!({"uri": reply["spill_uri"]}));
    assert!(whole["result"]["contents"][0]["text"].as_str().unwrap().starts_with("h\ni\nj\n"));
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "execute"]).env("MCP_EXEC_MAX_OUTPUT_BYTES", "10");
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let reply = execute(&mut server, json!({"command": "printf 'ääääääää'; echo error >&2"}));
    assert_eq!((&reply["stdout"], &reply["stderr"]), (&json!("ää"), &json!("error\n")));
    assert_eq!(
        (&reply["stdout_truncated"], &reply["stderr_truncated"]),
        (&json!(true), &json!(false))
    );
    let wrong = Command::new(MCPZ)
        .args(["server", "shell"])
        .env("MCP_EXEC_MAX_OUTPUT_BYTES", "many")
        .output()
        .unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(said, "mcpz: MCP_EXEC_MAX_OUTPUT_BYTES is `many`, but must be a whole number\n");
}

#[test]
fn mcp_exec_log_settings() {
    let log = |name: &str, value: &str| {
        let output = Command::new(MCPZ)
            .args(["call", "-v", "--tools", "execute", "execute"])
            .arg("command=printf 'a\\033[1mb\\n'; seq 1 2000")
            .env(name, value)
            .env("XDG_STATE_HOME", support::state().path())
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(log("UNUSED", "").contains(r#"stdout: "ab\n1\n2\n"#));
    assert!(!log("UNUSED", "").contains("1999"));
    assert!(log("MCP_EXEC_LOG_FULL_OUTPUT", "1").contains("1999"));
    let short = log("MCP_EXEC_LOG_OUTPUT_BYTES", "5");
    assert!(short.contains(r#"stdout: "ab\n1\n""#) && !short.contains('\x1b'), "{short}");
}
