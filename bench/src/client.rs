//! A client of the server, as thin as one can be.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub struct Client {
    server: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    asked: u64,
    /// For its audit records, which belong into nobody's home.
    state: PathBuf,
}

impl Client {
    /// Starts a server and shakes hands.
    pub fn start(program: &Path) -> Self {
        Self::start_with(program, &[])
    }

    pub fn start_with(program: &Path, flags: &[&str]) -> Self {
        let state = std::env::temp_dir().join(format!("mcpz-bench-state-{}", std::process::id()));
        let mut server = Command::new(program)
            .args(["server", "shell"])
            .args(flags)
            .env("XDG_STATE_HOME", &state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("mcpz starts");
        let stdin = server.stdin.take();
        let stdout = BufReader::new(server.stdout.take().expect("it was asked for"));
        let mut client = Self { server, stdin, stdout, asked: 0, state };
        client.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "mcpz-bench", "version": "1"},
            }),
        );
        client.answer();
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Calls any tool and returns the answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        self.answer()
    }

    /// Runs a command and returns the answer.
    pub fn run(&mut self, command: &str, timeout: f64) -> Value {
        self.ask_to_run(command, timeout);
        self.answer()
    }

    /// How many a second can be run with so many under way.
    pub fn rate(&mut self, command: &str, in_flight: usize, time: Duration) -> f64 {
        let began = Instant::now();
        for _ in 0..in_flight {
            self.ask_to_run(command, 30.0);
        }
        let mut count = 0;
        while began.elapsed() < time {
            self.answer();
            count += 1;
            self.ask_to_run(command, 30.0);
        }
        let rate = f64::from(count) / began.elapsed().as_secs_f64();
        for _ in 0..in_flight {
            self.answer();
        }
        rate
    }

    fn ask_to_run(&mut self, command: &str, timeout: f64) {
        let arguments = json!({"command": command, "timeout": timeout});
        self.ask("tools/call", &json!({"name": "execute_command", "arguments": arguments}));
    }

    fn ask(&mut self, method: &str, params: &Value) {
        self.asked += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("the server is not closed yet");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server answers");
        let answer: Value = serde_json::from_str(&line).expect("the answer is JSON");
        assert!(answer["error"].is_null(), "{answer}");
        answer
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.server.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}
