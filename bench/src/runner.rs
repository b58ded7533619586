//! Whoever can run a command: nothing but us, or a server over some transport.

use std::time::Duration;

use serde_json::{Value, json};

/// What is run again and again: a shell that does nothing.
pub const NOTHING: &str = "true";

pub trait Runner {
    /// Runs a command and says how many seconds it took to hear of its end.
    fn run(&mut self, command: &str) -> f64;

    /// The server it is done by, if it is.
    fn server(&self) -> Option<u32>;

    /// How many a second can be run with so many under way.
    fn rate(&mut self, command: &str, in_flight: usize, time: Duration) -> f64;
}

/// The request that runs a command.
pub fn request(id: u64, command: &str) -> String {
    let params = json!({"name": "execute_command", "arguments": {"command": command}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// The request that begins everything.
pub fn initialize(id: u64) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "mcpz-bench", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).to_string()
}

pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Holds an answer to what every run must come to. Done when the clock has stopped.
pub fn check(answer: &str) {
    let answer: Value = serde_json::from_str(answer).expect("the answer is JSON");
    assert_eq!(answer["result"]["structuredContent"]["return_code"], 0, "{answer}");
}
