//! What those try who should not get in, or should not get far; each time the next honest request
//! is served.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::http::{Events, HttpServer, Request, TOKEN, call, initialize};
use support::{PATIENCE, wait_until};

const TWO_TOKENS: &str =
    "[http.tokens]\nada = \"ada-0123456789abcdef\"\nbob = \"bob-0123456789abcdef\"\n";

fn as_bob(request: Request) -> Request {
    request.by("bob-0123456789abcdef")
}

fn as_ada(request: Request) -> Request {
    request.by("ada-0123456789abcdef")
}

#[test]
fn no_token_and_a_wrong_one() {
    let server = HttpServer::start(&[]);
    let request = Request::post(&initialize("2025-11-25"));
    let none = server.send(&request.clone().without("authorization"));
    assert_eq!(none.status, 401);
    assert_eq!(none.header("www-authenticate"), Some("Bearer realm=\"mcpz\""));
    for wrong in
        ["Bearer wrong", "Bearer", "Basic dXNlcjpwYXNz", TOKEN, &format!("Bearer {TOKEN}x")]
    {
        let refused =
            server.send(&request.clone().without("authorization").with("authorization", wrong));
        assert_eq!(refused.status, 401, "{wrong}");
    }
    // Nothing of a body is waited for.
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    assert_eq!(server.raw(head.as_bytes()).status, 401);
    server.assert_serves();
}

#[test]
fn a_foreign_host_and_a_foreign_origin() {
    let server = HttpServer::start(&["--allowed-host", "mcp.example.org"]);
    let request = Request::post(&initialize("2025-11-25"));
    let for_host =
        |host: &str| server.send(&request.clone().without("host").with("host", host)).status;
    assert_eq!(for_host("evil.example"), 403);
    assert_eq!(for_host("mcp.example.org"), 200);
    assert_eq!(for_host(""), 400);
    let from = |origin: &str| server.send(&request.clone().with("origin", origin)).status;
    assert_eq!(from("https://evil.example"), 403);
    assert_eq!(from("null"), 403);
    assert_eq!(from("http://localhost:5173"), 200);
    // Also where everybody may ask.
    let health = Request::new("GET", "/healthz").without("host").with("host", "evil.example");
    assert_eq!(server.send(&health).status, 403);
    server.assert_serves();
}

#[test]
fn two_host_headers_and_a_whole_address_in_the_request_line() {
    let server = HttpServer::start(&[]);
    let request = Request::post(&initialize("2025-11-25"));
    assert_eq!(server.send(&request.clone().with("host", "evil.example")).status, 400);
    assert_eq!(server.send(&request.clone().with("authorization", "Bearer x")).status, 400);
    let mut absolute = request.clone();
    absolute.path = "http://evil.example/mcp".into();
    assert_eq!(server.send(&absolute).status, 403);
    absolute.path = "http://localhost/mcp".into();
    assert_eq!(server.send(&absolute).status, 200);
    server.assert_serves();
}

#[test]
fn a_body_that_is_too_long_and_one_without_end() {
    let server = HttpServer::start_with(&[], "[http]\nmax_body = \"100KB\"\n");
    let mut long = Request::post(&initialize("2025-11-25"));
    long.body.resize(200_000, b' ');
    assert_eq!(server.send(&long).status, 413);
    let mut endless = server.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    endless.write_all(head.as_bytes()).unwrap();
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    let refused = (0..1000).any(|_| endless.write_all(chunk.as_bytes()).is_err());
    let mut answer = Vec::new();
    let _ = endless.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(refused || answer.starts_with("HTTP/1.1 413"), "{answer}");
    server.assert_serves();
}

/// Sends a little at a time; returns how long the server bore it.
fn drip(server: &HttpServer, first: &str, piece: &str) -> Duration {
    let began = Instant::now();
    let mut socket = server.connect();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket.write_all(first.as_bytes()).unwrap();
    while began.elapsed() < PATIENCE {
        let mut byte = [0];
        let closed = socket.write_all(piece.as_bytes()).is_err();
        match socket.read(&mut byte) {
            Ok(_) => break,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && !closed => {}
            Err(_) => break,
        }
    }
    began.elapsed()
}

#[test]
fn heads_and_bodies_that_come_slowly() {
    let server = HttpServer::start_with(&[], "[http]\nheader_time = 1\nbody_time = 1\n");
    assert!(drip(&server, "POST /mcp HTTP/1.1\r\n", "x-slow: 1\r\n") < PATIENCE);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: 100000\r\n\r\n"
    );
    assert!(drip(&server, &head, " ") < PATIENCE);
    server.assert_serves();
}

#[test]
fn a_head_that_is_too_long() {
    let server = HttpServer::start(&[]);
    let request = Request::new("GET", "/healthz").with("x-long", &"x".repeat(100_000));
    let status = server.send(&request).status;
    assert!(status == 431 || status == 0, "{status}");
    server.assert_serves();
}

#[test]
fn what_is_no_message() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let post = |body: &[u8]| {
        let mut request = Request::post(&Value::Null).session(&session);
        request.body = body.to_vec();
        let response = server.send(&request);
        (response.status, response.json()["error"]["code"].as_i64().unwrap_or(0))
    };
    assert_eq!(post(b"{nonsense"), (400, -32700));
    assert_eq!(post(b"\xff\xfe"), (400, -32700));
    assert_eq!(post(b"[]"), (400, -32600));
    assert_eq!(post(b"{}"), (400, -32600));
    let twice = br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#;
    assert_eq!(post(twice), (400, -32600));
    assert_eq!(post(b""), (400, 0));
    assert_eq!(post(&b"[".repeat(10_000)), (400, -32700));
    let deep = [
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":".as_slice(),
        &b"[".repeat(10_000),
    ];
    assert_eq!(post(&deep.concat()), (400, -32700));
    let batch =
        format!("[{}]", vec!["{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"; 1000].join(","));
    assert_eq!(post(batch.as_bytes()), (400, -32600));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"] {
        let request = Request::post(&initialize("2025-11-25")).without("content-type");
        assert_eq!(server.send(&request.with("content-type", kind)).status, 415, "{kind}");
    }
    let picky =
        Request::post(&initialize("2025-11-25")).without("accept").with("accept", "text/html");
    assert_eq!(server.send(&picky).status, 406);
    server.assert_serves();
}

#[test]
fn huge_ids() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let ping = |id: String| {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        server.send(&Request::post(&ping).session(&session))
    };
    assert_eq!(ping("x".repeat(1000)).json()["id"], "x".repeat(1000));
    assert_eq!(ping("x".repeat(1_000_000)).status, 400);
    let mut number = Request::post(&Value::Null).session(&session);
    number.body =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}}", "9".repeat(1000))
            .into_bytes();
    assert_eq!(server.send(&number).status, 400);
    let long = Request::get(&"s".repeat(10_000));
    assert_eq!(server.send(&long).status, 404);
    server.assert_serves();
}

#[test]
fn an_id_that_is_in_use() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let sleep = call(1, "execute_command", json!({"command": "sleep 300"}));
    let _running = Events::open(&server, &Request::post(&sleep).session(&session));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let refused = server.send(&Request::post(&ping).session(&session));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32600)));
}

#[test]
fn anothers_session_stream_spill_and_cursor() {
    let server = HttpServer::start_with(&["--tools", "all"], TWO_TOKENS);
    let opened = server.send(&as_ada(Request::post(&initialize("2025-11-25"))));
    let ada = opened.header("mcp-session-id").unwrap().to_owned();
    let opened = server.send(&as_bob(Request::post(&initialize("2025-11-25"))));
    let bob = opened.header("mcp-session-id").unwrap().to_owned();
    let call_in = |session: &str, name: &str, arguments: Value, who: fn(Request) -> Request| {
        let response = server.send(&who(Request::post(&call(5, name, arguments)).session(session)));
        (response.status, response.messages().pop().unwrap_or_default())
    };
    let (_, printed) = call_in(&ada, "shell_exec", json!({"cmd": "seq 1 100000"}), as_ada);
    let reply = printed["result"]["structuredContent"].clone();
    let (uri, cursor) = (reply["spill_uri"].clone(), reply["next_cursor"].clone());

    // A session and its streams: like one that is not there.
    let nowhere = server.send(&as_bob(Request::get("nowhere")));
    for request in [
        Request::get(&ada),
        Request::get(&ada).with("last-event-id", "1-0"),
        Request::new("DELETE", "/mcp").session(&ada),
        Request::post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).session(&ada),
    ] {
        let refused = server.send(&as_bob(request));
        assert_eq!((refused.status, refused.body), (404, nowhere.body.clone()));
    }
    assert_eq!(nowhere.status, 404);

    // An output: like one that is not there.
    for (name, arguments) in [
        ("read_file_chunk", json!({"uri": uri})),
        ("shell_exec", json!({"cmd": "seq 1 100000", "page": {"cursor": cursor}})),
        ("shell_exec", json!({"cmd": "seq 1 100000", "page": {"cursor": "bytes:5"}})),
    ] {
        let (_, answer) = call_in(&bob, name, arguments, as_bob);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let read =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
    let refused = server.send(&as_bob(Request::alone(read.clone())));
    assert_eq!(refused.json()["error"]["code"], -32602);
    let listed = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list"});
    let listed = server.send(&as_bob(Request::alone(listed))).json();
    assert_eq!(listed["result"]["resources"], json!([]));

    // Its owner has it still, also in another session and in none.
    let text = server.send(&as_ada(Request::alone(read))).messages().pop().unwrap();
    assert!(text["result"]["contents"][0]["text"].as_str().unwrap().starts_with("1\n2\n"));
    let (status, chunk) = call_in(&ada, "read_file_chunk", json!({"uri": uri}), as_ada);
    assert_eq!((status, &chunk["result"]["isError"]), (200, &json!(false)));
}

#[test]
fn line_ends_and_control_characters_in_what_is_logged() {
    let server = HttpServer::start(&["--tools", "all", "-v"]);
    let evil = "x\r\nINFO forged\x1b[31m\u{0007}\u{009b}1m\u{2028}";
    let session = server.open_session();
    server.call(
        &session,
        "execute_command",
        json!({"command": format!("echo '{evil}' '{TOKEN}'")}),
    );
    server.call(&session, "execute", json!({"command": format!("printf '%s' '{evil}'")}));
    server.call(
        &session,
        "execute_command",
        json!({"command": "true", "environment": {evil: "x"}}),
    );
    server.call(&session, "execute_command", json!({"command": "true", "working_directory": evil}));
    let request =
        Request::new("GET", "/mcp").session("forged-session").with("accept", "text/event-stream");
    server.send(&request.with("user-agent", "a\u{1b}[31m"));
    server.call(&session, "execute_command", json!({"command": "echo the-last-one"}));
    let said = server.said.lock().unwrap();
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("the-last-one")) {
        lines.push(said.recv_timeout(PATIENCE).unwrap());
    }
    for line in &lines {
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{2028}'), "{line:?}");
        assert!(!line.trim_start().starts_with("INFO forged"), "{line:?}");
        assert!(!line.contains(&session), "no session is named: {line:?}");
    }
}

#[test]
fn a_client_that_stops_reading() {
    let server = HttpServer::start_with(&[], "[http]\nwrite_time = 1\n");
    let session = server.open_session();
    let mut loud =
        call(1, "execute_command", json!({"command": "yes | head -c 30000000; sleep 300"}));
    loud["params"]["_meta"] = json!({"progressToken": 1});
    let mut deaf = server.connect();
    deaf.write_all(&Request::post(&loud).session(&session).bytes()).unwrap();
    // Answers it asks for and does not read, many at once.
    let many: Vec<_> = (0..50)
        .map(|_| {
            let mut socket = server.connect();
            let command = "yes | head -c 60000";
            let request = Request::alone(call(1, "execute_command", json!({"command": command})));
            socket.write_all(&request.bytes()).unwrap();
            socket
        })
        .collect();
    server.assert_serves();
    server.assert_serves();
    let status = || std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let memory = |text: String| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:").map(str::to_owned));
        line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
    };
    assert!(memory(status()) < 100_000);
    drop((deaf, many));
    server.wait_for_metric("mcpz_runs_running 1");
}

#[test]
fn a_client_that_stops_reading_is_cut_off_and_loses_its_place() {
    let config = "[http]\nwrite_time = 1\nheader_time = 300\nconnections = 1\n";
    let server = HttpServer::start_with(&["--tools", "all"], config);
    let session = server.open_session_in("2025-03-26");
    let printed = server.call(&session, "shell_exec", json!({"cmd": "yes | head -c 1000000"}));
    let uri = &printed["structuredContent"]["spill_uri"];
    // Far more than the buffers between the two hold.
    let reads = 30;
    let batch: Vec<_> = (0..reads)
        .map(|id| {
            let params = json!({"uri": uri});
            json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params})
        })
        .collect();
    let mut deaf = Events::open(&server, &Request::post(&json!(batch)).session(&session));
    assert_eq!(deaf.head.status, 200);
    // Only one connection is allowed: the next is served once the deaf one has been cut off.
    server.assert_serves();
    let received = std::iter::from_fn(|| deaf.next()).count();
    assert!(received < reads, "all was sent");
}

#[test]
fn a_log_nobody_reads() {
    let server = HttpServer::start(&["-v"]);
    let session = server.open_session();
    // Far more than a pipe holds.
    let text = "x".repeat(60_000);
    let request = |id| {
        let arguments = json!({"command": format!("true '{text}'")});
        Request::post(&call(id, "execute_command", arguments)).session(&session)
    };
    for id in 1..30 {
        assert_eq!(server.send(&request(id)).status, 200);
    }
    server.assert_serves();
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let config = "[http]\nsession_time = 1\nsessions_per_client = 1\n";
    let server = HttpServer::start_with(&[], config);
    let session = server.open_session();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    std::thread::scope(|scope| {
        for client in 0..10 {
            let (server, session, told) = (&server, &session, &told);
            scope.spawn(move || {
                for round in 0..3 {
                    let mut batch = vec![told.clone(); 99];
                    let id = format!("{client}-{round}");
                    batch.push(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
                    server.send(&Request::post(&json!(batch)).session(session));
                }
            });
        }
    });
    server.wait_for_metric("mcpz_sessions 0");
    server.open_session();
}

#[test]
fn more_cancellations_than_there_are_places() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    for round in 0..12 {
        let numbers = || (0..100).map(|n| round * 100 + n);
        let calls: Vec<_> = numbers()
            .map(|id| call(id, "execute_command", json!({"command": "sleep 300"})))
            .collect();
        let events = Events::open(&server, &Request::post(&json!(calls)).session(&session));
        let cancelled: Vec<_> = numbers()
            .map(|id| {
                let params = json!({"requestId": id});
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            })
            .collect();
        server.send(&Request::post(&json!(cancelled)).session(&session));
        drop(events);
        server.wait_for_metric("mcpz_runs_running 0");
    }
    let result = wait_until("there is room again", || {
        let call = call(9999, "execute_command", json!({"command": "echo hi"}));
        let response = server.send(&Request::post(&call).session(&session));
        (response.status == 200).then(|| response.messages().pop().unwrap())
    });
    assert_eq!(result["result"]["structuredContent"]["output"], "hi\n", "{result}");
}

#[test]
fn a_body_whose_length_is_said_twice() {
    let server = HttpServer::start(&[]);
    let request = Request::post(&initialize("2025-11-25"));
    assert_eq!(server.send(&request.clone().with("transfer-encoding", "chunked")).status, 400);
    assert_eq!(server.send(&request.with("transfer-encoding", "chunked, chunked")).status, 400);
    server.assert_serves();
}
