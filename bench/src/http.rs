//! A client of a server over HTTP: connections that are kept, one thread for all of them.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::runner::{self, Runner};

pub const TOKEN: &str = "a-token-of-the-benchmark";

pub struct HttpClient {
    server: Child,
    address: SocketAddr,
    session: String,
    connections: Vec<Connection>,
    asked: u64,
}

pub struct Connection {
    socket: TcpStream,
    received: Vec<u8>,
}

pub struct Response {
    head: String,
    body: String,
}

impl HttpClient {
    /// Starts a server, waits until its log says where it listens, and opens a session.
    pub fn start(mut server: Command, log: &Path) -> Self {
        let file = File::create(log).expect("there is room");
        let mut server =
            server.stdin(Stdio::null()).stderr(file).spawn().expect("the server starts");
        let address = loop {
            let said = std::fs::read_to_string(log).expect("it is text");
            if let Some((_, address)) = said.split_once("listening on ")
                && let Some((address, _)) = address.split_once([',', '\n'])
            {
                break address.parse().expect("it is an address");
            }
            assert!(server.try_wait().is_ok_and(|ended| ended.is_none()), "{said}");
            std::thread::sleep(Duration::from_millis(1));
        };
        let mut client =
            Self { server, address, session: String::new(), connections: Vec::new(), asked: 1 };
        client.connect(1);
        let opened = client.exchange(&runner::initialize(1));
        let id = opened.header("mcp-session-id").expect("a session has an id");
        client.session = format!("Mcp-Session-Id: {id}\r\n");
        client.exchange(runner::INITIALIZED);
        client
    }

    fn connect(&mut self, count: usize) {
        while self.connections.len() < count {
            self.connections.push(Connection::open(self.address));
        }
    }

    /// Leaves all connections for a new one.
    pub fn reconnect(&mut self) {
        self.connections.clear();
        self.connect(1);
    }

    fn exchange(&mut self, message: &str) -> Response {
        let request = self.post(message);
        self.connections[0].exchange(&request)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Calls any tool and returns what it says.
    pub fn tool(&mut self, tool: &str, arguments: &Value) -> Value {
        self.asked += 1;
        let params = json!({"name": tool, "arguments": arguments});
        let request =
            json!({"jsonrpc": "2.0", "id": self.asked, "method": "tools/call", "params": params});
        let response = self.exchange(&request.to_string());
        let answer: Value = serde_json::from_str(response.message()).expect("it is JSON");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Ends the server, and waits until it is gone.
    pub fn end(&mut self) {
        self.connections.clear();
        let _ = kill_process(Pid::from_child(&self.server), Signal::TERM);
        let _ = self.server.wait();
    }

    fn next(&mut self, command: &str) -> String {
        self.asked += 1;
        self.post(&runner::request(self.asked, command))
    }

    fn post(&self, message: &str) -> String {
        post(TOKEN, &self.session, message)
    }
}

/// The request that brings a message, in the session that a header names.
pub fn post(token: &str, session: &str, message: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         {session}Content-Length: {}\r\n\r\n{message}",
        message.len(),
    )
}

impl Runner for HttpClient {
    fn server(&self) -> Option<u32> {
        Some(self.server.id())
    }

    fn run(&mut self, command: &str) -> f64 {
        let request = self.next(command);
        let connection = &mut self.connections[0];
        let began = Instant::now();
        connection.send(&request);
        let response = connection.receive();
        let took = began.elapsed().as_secs_f64();
        runner::check(response.message());
        took
    }

    fn rate(&mut self, command: &str, in_flight: usize, time: Duration) -> f64 {
        self.connect(in_flight);
        let epoll = epoll::create(CreateFlags::CLOEXEC).expect("there is epoll");
        for (number, connection) in self.connections[..in_flight].iter().enumerate() {
            let data = EventData::new_u64(number as u64);
            epoll::add(&epoll, &connection.socket, data, EventFlags::IN).expect("it is a socket");
        }
        let began = Instant::now();
        for number in 0..in_flight {
            let request = self.next(command);
            self.connections[number].send(&request);
        }
        let mut count = 0;
        let mut under_way = in_flight;
        let mut took = None;
        let mut events = Vec::<Event>::with_capacity(in_flight);
        while under_way > 0 {
            events.clear();
            let filled = epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None);
            filled.expect("nothing interrupts it");
            for event in &events {
                let number = usize::try_from(event.data.u64()).expect("it was one");
                let Some(response) = self.connections[number].receive_some() else { continue };
                runner::check(response.message());
                under_way -= 1;
                if began.elapsed() < time {
                    count += 1;
                    under_way += 1;
                    let request = self.next(command);
                    self.connections[number].send(&request);
                } else {
                    took.get_or_insert_with(|| began.elapsed().as_secs_f64());
                }
            }
        }
        f64::from(count) / took.expect("the last was answered")
    }
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the server listens");
        socket.set_nodelay(true).expect("it is a socket");
        Self { socket, received: Vec::new() }
    }

    pub fn exchange(&mut self, request: &str) -> Response {
        self.send(request);
        self.receive()
    }

    pub fn send(&mut self, request: &str) {
        self.socket.write_all(request.as_bytes()).expect("the server reads");
    }

    pub fn receive(&mut self) -> Response {
        loop {
            if let Some(response) = self.receive_some() {
                return response;
            }
        }
    }

    /// Reads once; a response, when it is there as a whole.
    fn receive_some(&mut self) -> Option<Response> {
        let mut buffer = [0; 16 << 10];
        let length = self.socket.read(&mut buffer).expect("the server answers");
        assert!(length > 0, "the server has left");
        self.received.extend_from_slice(&buffer[..length]);
        let (response, end) = Response::parse(&self.received)?;
        self.received.drain(..end);
        Some(response)
    }
}

impl Response {
    /// The response at the beginning, and where it ends.
    fn parse(received: &[u8]) -> Option<(Self, usize)> {
        let text = std::str::from_utf8(received).ok()?;
        let (head, rest) = text.split_once("\r\n\r\n")?;
        let mut response = Self { head: head.to_owned(), body: String::new() };
        assert!(head.starts_with("HTTP/1.1 20"), "{text}");
        let rest = match response.header("content-length") {
            Some(length) => {
                let (body, rest) = rest.split_at_checked(length.parse().expect("a number"))?;
                response.body.push_str(body);
                rest
            }
            None => response.dechunk(rest)?,
        };
        Some((response, text.len() - rest.len()))
    }

    /// Puts the body together from its chunks, and returns what comes after it.
    fn dechunk<'a>(&mut self, mut rest: &'a str) -> Option<&'a str> {
        loop {
            let (length, data) = rest.split_once("\r\n")?;
            let length = usize::from_str_radix(length, 16).expect("a number");
            let (chunk, after) = data.split_at_checked(length)?;
            rest = after.strip_prefix("\r\n")?;
            if length == 0 {
                return Some(rest);
            }
            self.body.push_str(chunk);
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find_map(|(header, value)| header.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The answer: the document, or the last event that has one.
    pub fn message(&self) -> &str {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        events.next_back().unwrap_or(&self.body)
    }
}

impl Drop for HttpClient {
    fn drop(&mut self) {
        if self.server.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_to_its_length_and_no_further() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\nHTTP/1.1 202";
        let (response, end) = Response::parse(text).unwrap();
        assert_eq!((response.message(), &text[end..]), ("{}\n", &b"HTTP/1.1 202"[..]));
        assert!(Response::parse(&text[..40]).is_none());
    }

    #[test]
    fn events_in_chunks_end_with_the_answer() {
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
            a\r\nid: 1\n\n: x\r\nb\r\n\ndata: {1}\n\r\n0\r\n\r\n";
        let (response, end) = Response::parse(text).unwrap();
        assert_eq!((response.message(), end), ("{1}", text.len()));
        assert!(Response::parse(&text[..text.len() - 2]).is_none());
    }
}
