//! Connections are limited, and nobody can use up those of others.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use support::http::{Events, HttpServer, Request, Response, call};
use support::{Gate, wait_until};

#[test]
fn a_thousand_connections_that_say_nothing() {
    // Users usually begin with fewer files than they may have.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let server = HttpServer::start(&[]);
    let silent: Vec<TcpStream> =
        (0..1000).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    server.assert_serves();
    drop(silent);
    server.assert_serves();
}

#[test]
fn connections_that_say_nothing_are_closed_to_make_room() {
    let server = HttpServer::start_with(&[], "[http]\nconnections = 10\nheader_time = 1\n");
    let _silent: Vec<TcpStream> =
        (0..50).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    server.assert_serves();
}

#[test]
fn a_connection_that_asks_nothing_more_is_closed() {
    let server = HttpServer::start_with(&[], "[http]\nheader_time = 1\n");
    let request = Request::new("GET", "/metrics").bytes_kept_open();
    let mut reader = BufReader::new(server.connect());
    for _ in 0..2 {
        reader.get_mut().write_all(&request).unwrap();
        assert_eq!(Response::read(&mut reader).status, 200);
    }
    assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the server closes it");
    server.assert_serves();
}

#[test]
fn silent_connections_keep_out_nobody_and_who_is_answered_stays() {
    let server = HttpServer::start_with(&[], "[http]\nconnections = 10\nheader_time = 1000\n");
    let session = server.open_session();
    let gate = Gate::new();
    let arguments = json!({"command": format!("echo begun; {}; echo ended", gate.wait())});
    let message = call(77, "execute_command", arguments);
    let mut answered = Events::open(&server, &Request::post(&message).session(&session));
    let _silent: Vec<_> = (0..50).map(|_| server.connect()).collect();
    assert_eq!(server.send(&Request::new("GET", "/healthz").without("authorization")).status, 200);
    let reply = server.call(&session, "execute_command", json!({"command": "echo hi"}));
    assert_eq!(reply["structuredContent"]["output"], "hi\n");
    drop(gate);
    let mut events = std::iter::from_fn(|| answered.next());
    let (_, told) = events.find(|(_, told)| told["id"] == 77).unwrap();
    assert_eq!(told["result"]["structuredContent"]["output"], "begun\nended\n", "{told}");
}

#[test]
fn one_client_cannot_keep_all_connections_busy() {
    let config = "[http]\nconnections = 10\nheader_time = 1000\n\
                  [http.tokens]\nother = \"the-token-of-the-other-one\"\n";
    let server = HttpServer::start_with(&[], config);
    let sessions: Vec<_> = (0..10).map(|_| server.open_session()).collect();
    let open = |session: &String| Events::open(&server, &Request::get(session));
    let streams: Vec<_> = sessions.iter().map(open).collect();
    let statuses: Vec<_> = streams.iter().map(|stream| stream.head.status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 503, 503, 503, 503, 503]);
    let echo = json!({"command": "echo hi"});
    let reply = server.tool_by("the-token-of-the-other-one", "execute_command", echo);
    assert_eq!(reply["structuredContent"]["output"], "hi\n");
    drop(streams);
    wait_until("the streams are gone", || (open(&sessions[0]).head.status == 200).then_some(()));
}

#[test]
fn those_who_do_not_say_who_they_are_keep_no_place() {
    let server = HttpServer::start(&[]);
    for request in [Request::new("GET", "/healthz"), Request::new("GET", "/mcp")] {
        let mut socket = server.connect();
        socket.write_all(&request.without("authorization").bytes_kept_open()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("connection: close"), "{answer}");
    }
}
