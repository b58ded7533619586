//! A server that is given all its input at once, and then no more.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{MCPZ, keep_state_in, state};

/// The beginning of a conversation, as the document of `execute_command` has it.
pub const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"1.0"}}}
{"jsonrpc":"2.0","method":"initialized"}
"#;

pub fn server(flags: &[&str]) -> Command {
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell"]).args(flags);
    command
}

/// All that a server says to this input.
pub fn pipe(mut command: Command, input: &str) -> Vec<Value> {
    let state = state();
    keep_state_in(&mut command, &state);
    let mut child = command
        .env_remove("MCPZ_CONFIG")
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    messages(&output.stdout)
}

pub fn messages(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What is answered to each of these calls of a tool, when they are sent all at once.
pub fn calls(command: Command, tool: &str, arguments: &[Value]) -> Vec<Value> {
    let mut input = HANDSHAKE.to_owned();
    for (id, arguments) in (2..).zip(arguments) {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        input += &format!("{call}\n");
    }
    let said = pipe(command, &input);
    let ids = 2..2 + arguments.len();
    ids.map(|id| answer(&said, id)["result"].clone()).collect()
}

/// The answer to a request.
pub fn answer(said: &[Value], id: usize) -> &Value {
    let answer = said.iter().find(|message| message["id"] == id);
    answer.unwrap_or_else(|| panic!("{id} is not answered: {said:?}"))
}
