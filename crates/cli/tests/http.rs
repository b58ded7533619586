//! Streamable HTTP: sessions, requests that stand alone, and what a lost connection does.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use support::http::{Events, HttpServer, Request, call, initialize};
use support::{Gate, MCPZ, mark, survivors, wait_until};

fn execute(command: &str) -> Value {
    json!({"command": command})
}

/// A call that reports progress.
fn followed(id: i64, command: &str) -> Value {
    let mut call = call(id, "execute_command", execute(command));
    call["params"]["_meta"] = json!({"progressToken": id});
    call
}

#[test]
fn a_session_is_opened_used_and_ended() {
    let server = HttpServer::start(&[]);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = server.send(&Request::post(&initialize(version)));
        assert_eq!(opened.json()["result"]["protocolVersion"], version);
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let result = server.call(&session, "execute_command", execute("echo hi"));
        assert_eq!(result["structuredContent"]["output"], "hi\n");
        let end = Request::new("DELETE", "/mcp").session(&session);
        assert_eq!(server.send(&end).status, 200);
        let after = call(2, "execute_command", execute("echo hi"));
        assert_eq!(server.send(&Request::post(&after).session(&session)).status, 404);
        assert_eq!(server.send(&end).status, 404);
    }
}

#[test]
fn a_short_answer_is_a_document_and_a_long_one_comes_as_events() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    // A busy machine may take longer than what counts as short.
    wait_until("a short answer is a document", || {
        let short = call(1, "execute_command", execute("echo hi"));
        let short = server.send(&Request::post(&short).session(&session));
        (short.header("content-type") == Some("application/json")).then_some(())
    });
    let long = call(2, "execute_command", execute("sleep 1; echo hi"));
    let long = server.send(&Request::post(&long).session(&session));
    assert_eq!(long.header("content-type"), Some("text/event-stream"));
    let text = long.text();
    let (id, rest) = text.split_once('\n').unwrap();
    assert!(id.starts_with("id: ") && id.ends_with("-0"), "{text}");
    assert!(rest.starts_with("retry: 1000\ndata: \n\n"), "{text}");
    assert_eq!(long.messages().pop().unwrap()["result"]["structuredContent"]["output"], "hi\n");
}

#[test]
fn a_request_of_the_newest_revision_stands_alone() {
    let server = HttpServer::start(&[]);
    let discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"});
    let found = server.send(&Request::alone(discover));
    assert_eq!(found.status, 200, "{found:?}");
    let versions = found.json()["result"]["supportedVersions"].clone();
    assert!(versions.as_array().unwrap().contains(&json!("2026-07-28")));
    let listed =
        server.send(&Request::alone(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})));
    let result = listed.json()["result"].clone();
    assert_eq!(result["resultType"], "complete");
    assert!(result["ttlMs"].is_number() && result["cacheScope"].is_string(), "{result}");
    let called = Request::alone(call(3, "execute_command", execute("sleep 0.3; echo hi")));
    let called = server.send(&called);
    assert_eq!(called.header("mcp-session-id"), None);
    assert_eq!(called.header("content-type"), Some("text/event-stream"));
    let message = called.messages().pop().unwrap();
    assert_eq!(message["result"]["structuredContent"]["output"], "hi\n");
    assert_eq!(
        server.send(&Request::get("x").with("mcp-protocol-version", "2026-07-28")).status,
        405
    );
}

#[test]
fn headers_must_say_what_the_message_says() {
    let server = HttpServer::start(&[]);
    let request = || Request::alone(call(1, "execute_command", execute("true")));
    let code = |request: Request| {
        let response = server.send(&request);
        (response.status, response.json()["error"]["code"].as_i64().unwrap_or(0))
    };
    assert_eq!(code(request()), (200, 0));
    for header in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
        let other = request().without(header).with(header, "something else");
        assert_eq!(code(other), (400, -32020), "{header}");
    }
    assert_eq!(code(request().without("mcp-method")), (400, -32020));
    assert_eq!(code(request().without("mcp-name")), (400, -32020));
    let wrapped = request().without("mcp-name").with("mcp-name", "=?base64?ZXhlY3V0ZV9jb21tYW5k?=");
    assert_eq!(code(wrapped), (200, 0));
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let bare = Request::post(&bare).with("mcp-method", "tools/list");
    assert_eq!(code(bare.with("mcp-protocol-version", "2026-07-28")), (400, -32602));
    for method in ["ping", "initialize", "logging/setLevel", "no/such"] {
        let params = json!({
            "level": "info", "protocolVersion": "2026-07-28", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}});
        for params in [params, json!({})] {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            assert_eq!(code(Request::alone(request)), (404, -32601), "{method}");
        }
    }
}

#[test]
fn a_stream_that_was_lost_is_resumed_and_the_command_ran_once() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new();
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let runs = folder.path().join("runs");
    let command =
        format!("echo run >> '{}'; echo begun; {}; echo done", runs.display(), gate.wait());
    let mut events =
        Events::open(&server, &Request::post(&followed(7, &command)).session(&session));
    let (first, _) = events.next().unwrap();
    let (second, progress) = events.next().unwrap();
    assert_eq!(progress["params"]["message"], "begun\n");
    drop(events);
    drop(gate);
    let resume = Request::get(&session).with("last-event-id", &second);
    let resumed = server.send(&resume);
    let answer = resumed.messages().pop().unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["output"]),
        (&json!(7), &json!("begun\ndone\n"))
    );
    // From the beginning, all is there once more.
    let again = server.send(&Request::get(&session).with("last-event-id", &first));
    assert_eq!(again.messages().first().unwrap(), &progress);
    assert_eq!(std::fs::read_to_string(runs).unwrap(), "run\n");
    for nonsense in ["", "x", "99-1", "7", "-1"] {
        let response = server.send(&Request::get(&session).with("last-event-id", nonsense));
        assert_eq!(response.status, 400, "{nonsense}");
    }
}

#[test]
fn one_of_a_batch_is_cancelled_and_the_others_are_answered() {
    let server = HttpServer::start(&[]);
    let session = server.open_session_in("2025-03-26");
    let batch = json!([
        call(1, "execute_command", execute("sleep 1; echo answered")),
        call(2, "execute_command", execute("sleep 300")),
    ]);
    let mut events = Events::open(&server, &Request::post(&batch).session(&session));
    let params = json!({"requestId": 2});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    server.send(&Request::post(&cancel).session(&session));
    let answers: Vec<_> = std::iter::from_fn(|| events.next()).map(|(_, said)| said).collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["result"]["structuredContent"]["output"], "answered\n");
}

#[test]
fn a_command_waits_for_its_turn_no_longer_than_it_may_take() {
    let server = HttpServer::start_with(&[], "[limits]\nruns = 1\n");
    let session = server.open_session();
    let first = call(1, "execute_command", execute("echo begun; sleep 300"));
    let _running = Events::open(&server, &Request::post(&first).session(&session));
    let arguments = json!({"command": "true", "timeout": 0.5});
    let second = Request::post(&call(2, "execute_command", arguments)).session(&session);
    let result = server.send(&second).messages().pop().unwrap()["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
}

#[test]
fn a_command_nobody_comes_back_for_ends_when_the_grace_is_over() {
    let server = HttpServer::start_with(&[], "[http]\ngrace = 1\n");
    let session = server.open_session();
    let mark = mark();
    let command = format!("export MARK={mark}; echo begun; sleep 300");
    let mut events =
        Events::open(&server, &Request::post(&followed(7, &command)).session(&session));
    events.next();
    wait_until("it runs", || (!survivors(&mark).is_empty()).then_some(()));
    drop(events);
    wait_until("it is over", || survivors(&mark).is_empty().then_some(()));
    let after = server.call(&session, "execute_command", execute("echo still here"));
    assert_eq!(after["structuredContent"]["output"], "still here\n");
}

#[test]
fn a_request_that_stands_alone_ends_with_its_connection() {
    let server = HttpServer::start(&[]);
    let mark = mark();
    let command = format!("export MARK={mark}; sleep 300");
    let request = Request::alone(call(1, "execute_command", execute(&command)));
    let events = Events::open(&server, &request);
    wait_until("it runs", || (!survivors(&mark).is_empty()).then_some(()));
    drop(events);
    wait_until("it is over", || survivors(&mark).is_empty().then_some(()));
}

#[test]
fn a_session_that_ends_takes_its_commands_along() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let mark = mark();
    let command = format!("export MARK={mark}; sleep 300");
    let call = call(1, "execute_command", execute(&command));
    let mut events = Events::open(&server, &Request::post(&call).session(&session));
    wait_until("it runs", || (!survivors(&mark).is_empty()).then_some(()));
    server.send(&Request::new("DELETE", "/mcp").session(&session));
    wait_until("it is over", || survivors(&mark).is_empty().then_some(()));
    while events.next().is_some() {}
}

#[test]
fn a_session_nobody_uses_ends() {
    let server = HttpServer::start_with(&[], "[http]\nsession_time = 1\n");
    let session = server.open_session();
    // While something runs, it is in use.
    let result = server.call(&session, "execute_command", execute("sleep 2; echo hi"));
    assert_eq!(result["structuredContent"]["output"], "hi\n");
    server.wait_for_metric("mcpz_sessions 0");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(server.send(&Request::post(&ping).session(&session)).status, 404);
}

#[test]
fn a_cancelled_call_ends_its_command_and_its_stream() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let mark = mark();
    let command = format!("export MARK={mark}; echo begun; sleep 300");
    let mut events =
        Events::open(&server, &Request::post(&followed(7, &command)).session(&session));
    events.next();
    events.next();
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(server.send(&Request::post(&cancel).session(&session)).status, 202);
    while let Some((_, message)) = events.next() {
        assert!(message["result"].is_null(), "a cancelled call is not answered");
    }
    wait_until("it is over", || survivors(&mark).is_empty().then_some(()));
}

#[test]
fn progress_comes_on_the_stream_of_its_call_in_both_eras() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let command = "echo one; sleep 0.4; echo two; sleep 0.4; echo three";
    let call = followed(7, command);
    for request in [Request::post(&call).session(&session), Request::alone(call)] {
        let messages = server.send(&request).messages();
        let told: Vec<_> =
            messages.iter().filter_map(|message| message["params"]["progress"].as_f64()).collect();
        assert!(told.len() >= 2 && told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
        assert!(messages.last().unwrap()["result"].is_object());
    }
}

#[test]
fn a_client_that_asks_is_told_about_its_commands() {
    let server = HttpServer::start(&[]);
    let session = server.open_session();
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "notice"}});
    assert_eq!(server.send(&Request::post(&level).session(&session)).json()["result"], json!({}));
    let arguments = json!({"command": "sleep 300", "timeout": 0.2});
    let request = Request::post(&call(1, "execute_command", arguments.clone())).session(&session);
    let messages = server.send(&request).messages();
    assert_eq!(messages[0]["method"], "notifications/message");
    assert_eq!(messages[0]["params"]["data"], "the command timed out after 0.2 s");
    let mut alone = call(1, "execute_command", arguments);
    alone["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    let messages = server.send(&Request::alone(alone)).messages();
    assert_eq!(messages[0]["params"]["level"], "warning");
    assert_eq!(messages.len(), 2);
}

#[test]
fn an_output_that_is_followed_is_told_of_in_both_eras() {
    let server = HttpServer::start(&["--tools", "all"]);
    let session = server.open_session();
    let gate = Gate::new();
    let command = format!("echo one; {}; echo two", gate.wait());
    let arguments = json!({"command": command, "is_background": true});
    let uri =
        server.call(&session, "run_shell_command", arguments)["structuredContent"]["spill_uri"]
            .clone();
    let mut common = Events::open(&server, &Request::get(&session));
    common.next();
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}});
    assert_eq!(
        server.send(&Request::post(&subscribe).session(&session)).json()["result"],
        json!({})
    );
    let listen = json!({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": {
        "notifications": {"resourceSubscriptions": [uri, "mcp://tmp/exec-x.out"]}}});
    let mut listening = Events::open(&server, &Request::alone(listen));
    let (_, acknowledged) = listening.next().unwrap();
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!([uri]));
    drop(gate);
    for events in [&mut common, &mut listening] {
        let (_, update) = events.next().unwrap();
        assert_eq!(update["method"], "notifications/resources/updated");
        assert_eq!(update["params"]["uri"], uri);
    }
    let unknown = json!({"jsonrpc": "2.0", "id": 4, "method": "resources/subscribe", "params": {"uri": "mcp://tmp/exec-x.out"}});
    let refused = server.send(&Request::post(&unknown).session(&session)).json();
    assert_eq!(refused["error"]["code"], -32002);
}

#[test]
fn the_messages_of_a_batch_are_answered_on_one_stream() {
    let server = HttpServer::start(&[]);
    let session = server.open_session_in("2025-03-26");
    let batch = json!([
        call(1, "execute_command", execute("sleep 0.2; echo one")),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, "execute_command", execute("echo two")),
    ]);
    let answered = server.send(&Request::post(&batch).session(&session)).messages();
    let output = |message: &Value| message["result"]["structuredContent"]["output"].clone();
    let outputs: Vec<_> = answered.iter().map(output).collect();
    assert_eq!(outputs, ["two\n", "one\n"]);
}

#[test]
fn two_hundred_clients_at_once_all_get_their_own_answer() {
    let server = HttpServer::start(&[]);
    std::thread::scope(|scope| {
        for client in 0..200 {
            let server = &server;
            scope.spawn(move || {
                let session = server.open_session();
                let result =
                    server.call(&session, "execute_command", execute(&format!("echo {client}")));
                assert_eq!(result["structuredContent"]["output"], format!("{client}\n"));
            });
        }
    });
}

#[test]
fn commands_wait_for_their_turn_and_too_many_are_told_so() {
    let server = HttpServer::start_with(&[], "[limits]\nruns = 1\nwaiting = 1\n");
    let session = server.open_session();
    let gate = Gate::new();
    let command = format!("{}; echo done", gate.wait());
    let open = |id| {
        let call = call(id, "execute_command", execute(&command));
        Events::open(&server, &Request::post(&call).session(&session))
    };
    let (mut first, mut second) = (open(1), open(2));
    let third =
        server.send(&Request::post(&call(3, "execute_command", execute("true"))).session(&session));
    let result = third.messages().pop().unwrap()["result"].clone();
    assert_eq!(result["isError"], true);
    let text = result["structuredContent"]["output"].as_str().unwrap().to_owned();
    assert!(text.contains("too many commands are running and waiting"), "{text}");
    drop(gate);
    for events in [&mut first, &mut second] {
        let answer = std::iter::from_fn(|| events.next()).last().unwrap().1;
        assert_eq!(answer["result"]["structuredContent"]["output"], "done\n");
    }
}

#[test]
fn the_oldest_session_that_is_not_used_makes_room_for_a_new_one() {
    let server = HttpServer::start_with(&[], "[http]\nsessions_per_client = 2\n");
    let (one, two) = (server.open_session(), server.open_session());
    std::thread::sleep(Duration::from_millis(20));
    server.call(&one, "execute_command", execute("true"));
    let three = server.open_session();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let status = |session: &str| server.send(&Request::post(&ping).session(session)).status;
    assert_eq!((status(&one), status(&two), status(&three)), (200, 404, 200));
}

#[test]
fn the_health_of_a_server_is_an_exit_code() {
    let health = |url: &str, bind: &str| {
        let mut command = Command::new(MCPZ);
        command.arg("health").args(Some(url).filter(|url| !url.is_empty()));
        let output = command.env("MCP_HTTP_BIND", bind).output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
    };
    let server = HttpServer::start(&[]);
    let (address, port) = (server.address, server.address.port());
    assert_eq!(health(&format!("http://{address}/healthz"), ""), (String::new(), 0));
    assert_eq!(health("", &format!("0.0.0.0:{port}")), (String::new(), 0));
    let (said, code) = health(&format!("http://{address}/metrics"), "");
    assert!(
        code == 1 && said.ends_with("is not healthy: the response was 401 Unauthorized\n"),
        "{said}"
    );
    drop(server);
    let (said, code) = health("", &address.to_string());
    assert!(code == 1 && said.contains("is not healthy: Connection refused"), "{said}");
    let (said, code) = health("localhost", "");
    assert!(code == 1 && said.contains("`localhost` is not a URL such as http://"), "{said}");
}

#[test]
fn numbers_are_told_to_those_who_may_know_and_health_to_everybody() {
    let server = HttpServer::start(&[]);
    let health = server.send(&Request::new("GET", "/healthz").without("authorization"));
    assert_eq!((health.status, health.text().as_str()), (200, "ok\n"));
    let metrics = Request::new("GET", "/metrics");
    assert_eq!(server.send(&metrics.without("authorization")).status, 401);
    let session = server.open_session();
    server.call(&session, "execute_command", execute("echo hi"));
    let text = server.metrics();
    for line in [
        "mcpz_calls_total 1",
        "mcpz_runs_total{outcome=\"exited\"} 1",
        "mcpz_runs_running 0",
        "mcpz_output_bytes_total 3",
        "mcpz_spawn_seconds_count 1",
        "mcpz_run_seconds_bucket{le=\"+Inf\"} 1",
        "mcpz_spill_bytes 0",
        "mcpz_sessions 1",
    ] {
        assert!(text.lines().any(|said| said == line), "{line} is not in\n{text}");
    }
}
