//! The least that can be called an MCP shell server, as an opponent: `mcpz-bench minimal [--http]`.
//!
//! One thread, one epoll. A call is `posix_spawn` of `/bin/sh -c` with both streams on one pipe, read
//! to its end. No timeout, no policy, no record, no memory of anything: what a call costs here, a
//! server over this transport cannot do without.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::rc::Rc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Deserialize;

use crate::bare;

/// What is listened to. Each stands at the number of its descriptor.
enum Source {
    Listener(TcpListener),
    Connection(Connection),
    Run(Run),
}

struct Connection {
    input: File,
    output: Rc<Output>,
    received: Vec<u8>,
}

struct Output {
    file: File,
    http: bool,
}

struct Run {
    child: Child,
    /// Its pipe, and when nobody has the other end any more, the process itself.
    watched: File,
    silent: bool,
    printed: Vec<u8>,
    id: u64,
    output: Rc<Output>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    command: Cow<'a, str>,
}

struct Server {
    epoll: OwnedFd,
    sources: Vec<Option<Source>>,
    buffer: Vec<u8>,
}

/// Serves until its client leaves, or for ever.
pub fn serve(http: bool) {
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("there is epoll");
    let mut server = Server { epoll, sources: Vec::new(), buffer: vec![0; 64 << 10] };
    if http {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        writeln!(std::io::stderr(), "minimal: listening on {address}").expect("somebody listens");
        server.listen(Source::Listener(listener));
    } else {
        let copy =
            |fd: BorrowedFd<'_>| File::from(fd.try_clone_to_owned().expect("a descriptor is free"));
        let output = Output { file: copy(rustix::stdio::stdout()), http: false };
        server.listen(Source::Connection(Connection {
            input: copy(rustix::stdio::stdin()),
            output: Rc::new(output),
            received: Vec::new(),
        }));
    }
    let mut events = Vec::<Event>::with_capacity(64);
    loop {
        events.clear();
        let filled = epoll::wait(&server.epoll, rustix::buffer::spare_capacity(&mut events), None);
        filled.expect("nothing interrupts it");
        for event in &events {
            let number = usize::try_from(event.data.u64()).expect("it was one");
            let source = server.sources[number].take();
            if !server.attend(source.expect("it is listened to")) && !http {
                return;
            }
        }
    }
}

impl Server {
    fn listen(&mut self, source: Source) {
        let fd = source.as_fd();
        let data = EventData::new_u64(fd.as_raw_fd() as u64);
        epoll::add(&self.epoll, fd, data, EventFlags::IN).expect("it can be listened to");
        self.put(source);
    }

    fn put(&mut self, source: Source) {
        let number = source.as_fd().as_raw_fd() as usize;
        if self.sources.len() <= number {
            self.sources.resize_with(number + 1, || None);
        }
        self.sources[number] = Some(source);
    }

    /// Does what there is to do; false when a connection has ended.
    fn attend(&mut self, source: Source) -> bool {
        match source {
            Source::Listener(listener) => {
                let (socket, _) = listener.accept().expect("somebody connects");
                socket.set_nodelay(true).expect("it is a socket");
                let input = File::from(OwnedFd::from(socket));
                let file = input.try_clone().expect("a descriptor is free");
                let output = Rc::new(Output { file, http: true });
                self.listen(Source::Connection(Connection { input, output, received: Vec::new() }));
                self.put(Source::Listener(listener));
            }
            Source::Connection(mut connection) => {
                let length = connection.input.read(&mut self.buffer).unwrap_or(0);
                if length == 0 {
                    return false;
                }
                connection.received.extend_from_slice(&self.buffer[..length]);
                while let Some((message, end)) = connection.message() {
                    self.answer(&connection.received[message], &connection.output);
                    connection.received.drain(..end);
                }
                self.put(Source::Connection(connection));
            }
            Source::Run(run) => self.follow(run),
        }
        true
    }

    /// Reads the pipe to its end, then waits for the shell.
    fn follow(&mut self, mut run: Run) {
        if !run.silent {
            let length = run.watched.read(&mut self.buffer).expect("the pipe is open");
            run.printed.extend_from_slice(&self.buffer[..length]);
            if length > 0 {
                return self.put(Source::Run(run));
            }
        }
        // To close it is not enough: a child has a copy until its exec is done.
        epoll::delete(&self.epoll, &run.watched).expect("it is listened to");
        match run.child.try_wait().expect("it is our child") {
            Some(status) => run.end(status),
            None => {
                let process = pidfd_open(Pid::from_child(&run.child), PidfdFlags::empty());
                run.watched = File::from(process.expect("it is our child"));
                run.silent = true;
                self.listen(Source::Run(run));
            }
        }
    }

    fn answer(&mut self, message: &[u8], output: &Rc<Output>) {
        let message: Message<'_> = serde_json::from_slice(message).expect("only we call it");
        match (message.id, message.params.and_then(|params| params.arguments)) {
            (Some(id), Some(arguments)) if message.method == "tools/call" => {
                self.listen(Source::Run(Run::start(&arguments.command, id, Rc::clone(output))));
            }
            (Some(id), _) => {
                let who =
                    r#""capabilities":{"tools":{}},"serverInfo":{"name":"minimal","version":"1"}"#;
                output.answer(id, &format!(r#"{{"protocolVersion":"2025-11-25",{who}}}"#));
            }
            (None, _) => output.say(""),
        }
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Listener(listener) => listener.as_fd(),
            Self::Connection(connection) => connection.input.as_fd(),
            Self::Run(run) => run.watched.as_fd(),
        }
    }
}

impl Connection {
    /// Where the first message is, and what comes after it, if it is there as a whole.
    fn message(&self) -> Option<(Range<usize>, usize)> {
        if !self.output.http {
            let end = self.received.iter().position(|byte| *byte == b'\n')?;
            return Some((0..end, end + 1));
        }
        let head = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&self.received[..head]).expect("only we call it");
        let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let end = head + length.map_or(0, |length| length.parse().expect("only we call it"));
        (end <= self.received.len()).then_some((head..end, end))
    }
}

impl Output {
    fn answer(&self, id: u64, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    fn say(&self, message: &str) {
        let text = match (self.http, message) {
            (false, "") => return,
            (false, _) => format!("{message}\n"),
            (true, "") => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
            (true, _) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: minimal\r\n\
                 Content-Length: {}\r\n\r\n{message}",
                message.len()
            ),
        };
        (&self.file).write_all(text.as_bytes()).expect("the client reads");
    }
}

impl Run {
    fn start(command: &str, id: u64, output: Rc<Output>) -> Self {
        let (child, pipe) = bare::spawn(command);
        let watched = File::from(OwnedFd::from(pipe));
        Self { child, watched, silent: false, printed: Vec::new(), id, output }
    }

    fn end(&self, status: ExitStatus) {
        let text = serde_json::Value::from(String::from_utf8_lossy(&self.printed));
        let code = status.code().unwrap_or(-1);
        let content = format!(r#""content":[{{"type":"text","text":{text}}}]"#);
        let result = format!(r#"{{{content},"structuredContent":{{"return_code":{code}}}}}"#);
        self.output.answer(self.id, &result);
    }
}
