//! A server over HTTP, and a client that says exactly what it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MCPZ, PATIENCE, meta, wait_until};

pub const TOKEN: &str = "0123456789abcdef-token";

/// A running `mcpz server shell --http`.
pub struct HttpServer {
    pub child: Child,
    pub address: SocketAddr,
    /// What the server says first on stderr, and then.
    pub first: String,
    pub said: Mutex<Receiver<String>>,
    /// Where it keeps its records, unless the test has said where.
    pub state: TempDir,
    _config: tempfile::NamedTempFile,
}

impl HttpServer {
    pub fn start(flags: &[&str]) -> Self {
        Self::start_with(flags, "")
    }

    /// Starts a server that has the token and a configuration.
    pub fn start_with(flags: &[&str], config: &str) -> Self {
        Self::start_command(Command::new(MCPZ).env("MCP_HTTP_TOKEN", TOKEN), flags, config)
    }

    /// An honest request is answered.
    pub fn assert_serves(&self) {
        let request = Request::alone(call(1, "execute_command", json!({"command": "echo hi"})));
        let answer = self.send(&request).messages().pop().unwrap();
        assert_eq!(answer["result"]["structuredContent"]["output"], "hi\n", "{answer}");
    }

    pub fn start_command(command: &mut Command, flags: &[&str], config: &str) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), config).unwrap();
        let state = super::state();
        super::keep_state_in(command, &state);
        let mut child = command
            .args(["server", "shell", "--http", "--bind", "127.0.0.1:0", "--config"])
            .arg(file.path())
            .args(flags)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        let (_, address) = first.split_once("listening on ").expect(&first);
        let address = address.split(',').next().unwrap().parse().unwrap();
        let (sender, said) = sync_channel(0);
        std::thread::spawn(move || {
            // Only when the test asks for them: until then nobody reads what the server says.
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, address, first, said: Mutex::new(said), state, _config: file }
    }

    pub fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Sends bytes as they are and reads the response to its end.
    pub fn raw(&self, bytes: &[u8]) -> Response {
        let mut socket = self.connect();
        let _ = socket.write_all(bytes);
        Response::read(&mut BufReader::new(socket))
    }

    /// A request with a token, over a connection of its own.
    pub fn send(&self, request: &Request) -> Response {
        self.raw(request.bytes().as_slice())
    }

    /// What a tool answers somebody who has this token.
    pub fn tool_by(&self, token: &str, name: &str, arguments: Value) -> Value {
        let request = Request::alone(call(1, name, arguments)).by(token);
        self.send(&request).messages().pop().unwrap()["result"].clone()
    }

    /// Opens a session and returns its id.
    pub fn open_session(&self) -> String {
        self.open_session_in("2025-11-25")
    }

    /// Opens a session in this revision and returns its id.
    pub fn open_session_in(&self, version: &str) -> String {
        let response = self.send(&Request::post(&initialize(version)));
        assert_eq!(response.status, 200, "{response:?}");
        let id = response.header("mcp-session-id").expect("a session has an id").to_owned();
        let told = Request::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(self.send(&told.session(&id)).status, 202);
        id
    }

    /// The numbers the server tells about itself, a line each.
    pub fn metrics(&self) -> String {
        self.send(&Request::new("GET", "/metrics")).text()
    }

    /// Waits until a line is among the numbers.
    pub fn wait_for_metric(&self, line: &str) {
        wait_until(line, || self.metrics().lines().any(|said| said == line).then_some(()));
    }

    /// Calls a tool in a session and returns the result.
    pub fn call(&self, session: &str, name: &str, arguments: Value) -> Value {
        let response = self.send(&Request::post(&call(1, name, arguments)).session(session));
        assert_eq!(response.status, 200, "{response:?}");
        response.messages().pop().unwrap()["result"].clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = Command::new("sh").args(["-c", &format!("kill {}", self.child.id())]).status();
        let _ = self.child.wait();
    }
}

pub fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
}

pub fn call(id: i64, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": name, "arguments": arguments}})
}

/// A request, as it goes over the wire.
#[derive(Clone)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn new(method: &'static str, path: &str) -> Self {
        let headers = vec![
            ("host".into(), "localhost".into()),
            ("authorization".into(), format!("Bearer {TOKEN}")),
        ];
        Self { method, path: path.into(), headers, body: Vec::new() }
    }

    /// A message to the endpoint.
    pub fn post(message: &Value) -> Self {
        let request = Self::new("POST", "/mcp")
            .with("content-type", "application/json")
            .with("accept", "application/json, text/event-stream");
        Self { body: message.to_string().into_bytes(), ..request }
    }

    /// A message of the newest revision, which stands alone.
    pub fn alone(mut message: Value) -> Self {
        for (key, value) in meta().as_object().unwrap() {
            message["params"]["_meta"][key] = value.clone();
        }
        let method = message["method"].as_str().unwrap().to_owned();
        let named = ["name", "uri"].iter().find_map(|key| message["params"][key].as_str());
        let named = named.map(str::to_owned);
        let request = Self::post(&message)
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", &method);
        match named {
            Some(name) => request.with("mcp-name", &name),
            None => request,
        }
    }

    pub fn get(session: &str) -> Self {
        Self::new("GET", "/mcp").with("accept", "text/event-stream").session(session)
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// By somebody else than the owner of [`TOKEN`].
    pub fn by(self, token: &str) -> Self {
        self.without("authorization").with("authorization", &format!("Bearer {token}"))
    }

    pub fn session(self, id: &str) -> Self {
        self.with("mcp-session-id", id)
    }

    /// The last request of its connection.
    pub fn bytes(&self) -> Vec<u8> {
        self.clone().with("connection", "close").bytes_kept_open()
    }

    /// A request after which the connection stays open.
    pub fn bytes_kept_open(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        [text.as_bytes(), &self.body].concat()
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Reads the head of a response.
    pub fn read_head(reader: &mut impl BufRead) -> Self {
        let mut line = String::new();
        let _ = reader.read_line(&mut line);
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            let _ = reader.read_line(&mut line);
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Self { status, headers, body: Vec::new() }
    }

    pub fn read(reader: &mut impl BufRead) -> Self {
        let mut response = Self::read_head(reader);
        let chunked = response.header("transfer-encoding") == Some("chunked");
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        if chunked {
            while let Some(chunk) = read_chunk(reader) {
                response.body.extend(chunk);
            }
        } else if let Some(length) = length {
            let _ = reader.take(length).read_to_end(&mut response.body);
        }
        response
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The messages of a response, be it a document or events.
    pub fn messages(&self) -> Vec<Value> {
        if self.header("content-type") == Some("application/json") {
            return vec![self.json()];
        }
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

pub fn read_chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let length = usize::from_str_radix(line.trim(), 16).ok().filter(|length| *length > 0)?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(length);
    Some(chunk)
}

/// Events as they come, over a connection that stays open.
pub struct Events {
    reader: BufReader<TcpStream>,
    pub head: Response,
    rest: String,
}

impl Events {
    pub fn open(server: &HttpServer, request: &Request) -> Self {
        let mut socket = server.connect();
        socket.write_all(&request.bytes()).unwrap();
        let mut reader = BufReader::new(socket);
        let head = Response::read_head(&mut reader);
        Self { reader, head, rest: String::new() }
    }

    /// The next event that has data: its id and its message.
    pub fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some((event, rest)) = self.rest.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim().to_owned()
                };
                let (id, data) = (field("id:"), field("data:"));
                let has_data = event.lines().any(|line| line.starts_with("data:"));
                self.rest = rest.to_owned();
                if has_data {
                    return Some((id, serde_json::from_str(&data).unwrap_or_default()));
                }
            }
            let chunk = read_chunk(&mut self.reader)?;
            self.rest.push_str(&String::from_utf8(chunk).unwrap());
        }
    }
}
