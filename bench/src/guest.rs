//! A client over HTTP beside the one that is measured: one connection, one session at a time.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::http::{Connection, post};
use crate::runner;

pub struct Guest {
    address: SocketAddr,
    token: String,
    session: String,
    connection: Connection,
    /// How much was asked, on all connections.
    asked: Rc<Cell<u64>>,
}

impl Guest {
    pub fn new(address: SocketAddr, token: &str) -> Self {
        let (connection, token) = (Connection::open(address), token.to_owned());
        Self { address, token, session: String::new(), connection, asked: Rc::default() }
    }

    /// The same client, on another connection.
    pub fn beside(&self) -> Self {
        let (session, asked) = (self.session.clone(), self.asked.clone());
        Self { session, asked, ..Self::new(self.address, &self.token) }
    }

    /// Opens a session and stays in it.
    pub fn open_session(&mut self) {
        let opened = self.connection.exchange(&post(&self.token, "", &runner::initialize(1)));
        let id = opened.header("mcp-session-id").expect("a session has an id");
        self.session = format!("Mcp-Session-Id: {id}\r\n");
        self.connection.exchange(&post(&self.token, &self.session, runner::INITIALIZED));
    }

    /// Calls a tool, and does not wait for the answer.
    pub fn ask(&mut self, tool: &str, arguments: &Value) {
        let id = self.asked.get() + 1;
        self.asked.set(id);
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.connection.send(&post(&self.token, &self.session, &request.to_string()));
    }

    /// Calls a tool.
    pub fn tool(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask(tool, arguments);
        self.answer()
    }

    /// Waits for the answer to what was asked.
    pub fn answer(&mut self) -> Value {
        let answer: Value =
            serde_json::from_str(self.connection.receive().message()).expect("the answer is JSON");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// One of the numbers the server tells about itself.
    pub fn metric(&mut self, name: &str) -> f64 {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        let told = self.connection.exchange(&request);
        let number = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        told.message().lines().find_map(number).expect("it is told")
    }
}
