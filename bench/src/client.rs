//! A client of a server on standard input and output, as thin as one can be.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::runner::{self, Runner};

pub struct Client {
    server: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    /// Starts a server and shakes hands.
    pub fn start(mut server: Command) -> Self {
        let mut server =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let stdin = server.stdin.take();
        let stdout = BufReader::new(server.stdout.take().expect("it was asked for"));
        let mut client = Self { server, stdin, stdout, asked: 1 };
        client.send(&runner::initialize(1));
        client.answer();
        client.send(runner::INITIALIZED);
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

    /// Sends a request and returns its number.
    pub fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string());
        id
    }

    /// What the server says next.
    pub fn answer(&mut self) -> Value {
        let line = self.line();
        let answer: Value = serde_json::from_str(&line).expect("the answer is JSON");
        assert!(answer["error"].is_null(), "{answer}");
        answer
    }

    /// The same as it came.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.stdout.read_line(&mut line).expect("the server answers");
        assert!(length > 0, "the server has left");
        line
    }

    fn ask_to_run(&mut self, command: &str) {
        self.asked += 1;
        self.send(&runner::request(self.asked, command));
    }

    fn send(&mut self, message: &str) {
        let stdin = self.stdin.as_mut().expect("the server is not closed yet");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the server reads");
    }
}

impl Runner for Client {
    fn server(&self) -> Option<u32> {
        Some(self.pid())
    }

    fn run(&mut self, command: &str) -> f64 {
        let began = Instant::now();
        self.ask_to_run(command);
        let line = self.line();
        let took = began.elapsed().as_secs_f64();
        runner::check(&line);
        took
    }

    fn rate(&mut self, command: &str, in_flight: usize, time: Duration) -> f64 {
        let began = Instant::now();
        for _ in 0..in_flight {
            self.ask_to_run(command);
        }
        let mut count = 0;
        while began.elapsed() < time {
            runner::check(&self.line());
            count += 1;
            self.ask_to_run(command);
        }
        let rate = f64::from(count) / began.elapsed().as_secs_f64();
        for _ in 0..in_flight {
            runner::check(&self.line());
        }
        rate
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.server.wait();
    }
}
