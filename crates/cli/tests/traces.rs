//! Traces for a collector of OpenTelemetry: what it gets, and that nobody waits for it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use support::collector::Manner::{Fails, Hangs, Takes};
use support::collector::{Collector, Manner};
use support::http::{HttpServer, Request, TOKEN, call};
use support::{Gate, MCPZ, Server, wait_until};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const CALL: &str = "tools/call execute_command";
const RUN: &str = "run command";

/// A command whose server sends to a collector without waiting for more.
fn traced(url: &str) -> Command {
    let mut command = Command::new(MCPZ);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("OTEL_")) {
            command.env_remove(name);
        }
    }
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url).env("OTEL_BSP_SCHEDULE_DELAY", "1");
    command
}

fn start(command: &mut Command, flags: &[&str]) -> Server {
    let mut server = Server::from_command(command.args(["server", "shell"]).args(flags));
    server.initialize("2025-11-25");
    server
}

#[test]
fn a_call_is_a_span_and_its_command_one_below_it() {
    for protocol in [None, Some("http/protobuf"), Some("http/json")] {
        let mut collector = Collector::start(&[Takes]);
        let mut command = traced(&collector.url());
        protocol.map(|protocol| command.env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol));
        command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test%20bed");
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=hunter22-hunter22");
        let mut server = start(&mut command, &[]);
        assert_eq!(server.run("echo hello; exit 3")["return_code"], 3);
        let batch = collector.batch();
        assert_eq!(batch.path, "/v1/traces");
        assert_eq!(batch.headers["api-key"], "hunter22-hunter22");
        assert!(batch.headers["user-agent"].starts_with("mcpz/"));
        server.run("true");
        let run = collector
            .span(|span| span.attributes.get("process.command_line") == Some(&json!("true")));
        let call = collector.span(|span| span.name == CALL && span.trace == run.trace);
        assert_eq!((call.kind, run.kind, run.trace.len(), run.id.len()), (2, 3, 32, 16));
        assert_eq!((&run.trace, &run.parent, call.parent.as_str()), (&call.trace, &call.id, ""));
        let said = |name: &str| call.attributes.get(name).cloned().unwrap_or_default();
        assert_eq!(said("mcp.method.name"), "tools/call");
        assert_eq!(said("gen_ai.tool.name"), "execute_command");
        assert_eq!(said("gen_ai.operation.name"), "execute_tool");
        assert_eq!(said("mcp.protocol.version"), "2025-11-25");
        assert_eq!(said("network.transport"), "pipe");
        assert!(said("jsonrpc.request.id").is_string());
        assert_eq!((call.failed, said("error.type")), (false, Value::Null));
        assert_eq!(run.attributes["process.exit.code"], 0);
        assert_eq!(run.attributes["process.command_line"], "true");
        assert_eq!(run.attributes["mcpz.run.output_bytes"], 0);
        assert!(run.attributes["mcpz.run.cpu_time"].is_f64());
        assert_eq!(run.attributes["mcpz.run.id"].as_str().unwrap().len(), 32);
        assert!(!run.failed && run.nanoseconds > 0 && call.nanoseconds >= run.nanoseconds);
        assert_eq!(call.resource["service.name"], "mcpz");
        assert_eq!(call.resource["deployment.environment.name"], "test bed");
    }
}

#[test]
fn how_a_call_or_a_command_failed_is_told() {
    let mut collector = Collector::start(&[Takes]);
    let mut server = start(&mut traced(&collector.url()), &["--deny", "rm*"]);
    for (arguments, failure, error) in [
        (json!({"command": "exit 3"}), "3", None),
        (json!({"command": "kill -9 $$"}), "SIGKILL", None),
        (json!({"command": "sleep 300", "timeout": 0.1}), "timeout", Some("tool_error")),
    ] {
        server.call(arguments.clone());
        let (call, run) = (collector.named(CALL), collector.named(RUN));
        assert_eq!(run.parent, call.id);
        assert!(run.failed && run.attributes["error.type"] == failure, "{run:?}");
        assert_eq!(call.failed, error.is_some(), "{arguments}: {call:?}");
        assert_eq!(call.attributes.get("error.type").and_then(Value::as_str), error);
        assert_eq!(run.attributes.contains_key("mcpz.run.timed_out"), failure == "timeout");
    }
    server.run("rm x");
    let call = collector.named(CALL);
    assert_eq!(call.attributes["error.type"], "tool_error");
    assert!(collector.seen.is_empty(), "what is refused is not run: {:?}", collector.seen);
    server.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
    let call = collector.named("tools/call");
    assert_eq!(call.attributes["gen_ai.tool.name"], "no_such_tool");
    assert_eq!(call.attributes["error.type"], "-32602");
    assert!(call.failed && call.message == "Unknown tool: no_such_tool", "{call:?}");
}

#[test]
fn a_job_is_told_of_when_it_ends_and_a_cancelled_call_too() {
    let mut collector = Collector::start(&[Takes]);
    let (mut server, gate) = (start(&mut traced(&collector.url()), &[]), Gate::new());
    server.call(json!({"command": gate.wait(), "background": true}));
    let call = collector.named(CALL);
    drop(gate);
    assert_eq!(collector.named(RUN).parent, call.id);
    let id = server.start_call(json!({"command": "echo begun; sleep 300"}));
    server.wait_for_output(id, "begun");
    server.notify("notifications/cancelled", json!({"requestId": id}));
    let run = collector.named(RUN);
    assert_eq!(run.attributes["error.type"], "cancelled");
    assert_eq!(collector.named(CALL).id, run.parent);
}

#[test]
fn a_trace_that_a_caller_began_goes_on() {
    let mut collector = Collector::start(&[Takes]);
    let mut server = start(&mut traced(&collector.url()), &[]);
    let meta = |parent: &str| json!({"traceparent": parent, "tracestate": "a=b"});
    let request = |parent: &str, command: &str| json!({"name": "execute_command", "arguments": {"command": command}, "_meta": meta(parent)});
    // Whoever is not interested is not told.
    server.request("tools/call", request(&PARENT.replace("-01", "-00"), "echo unwanted"));
    server.request("tools/call", request(PARENT, "true"));
    let (call, run) = (collector.named(CALL), collector.named(RUN));
    assert_eq!((call.trace.as_str(), call.parent.as_str()), (&PARENT[3..35], &PARENT[36..52]));
    assert_eq!((run.trace, run.state), (call.trace, "a=b".to_owned()));
    assert_eq!(run.attributes["process.command_line"], "true");
    server.request("tools/call", request("nonsense", "false"));
    assert_eq!(collector.named(CALL).parent, "");
}

#[test]
fn over_http_the_header_counts_unless_the_message_says_more() {
    let mut collector = Collector::start(&[Takes]);
    let mut command = traced(&collector.url());
    let server = HttpServer::start_command(command.env("MCP_HTTP_TOKEN", TOKEN), &[], "");
    let session = server.open_session();
    let mut message = call(1, "execute_command", json!({"command": "true"}));
    let request =
        |message: &Value| Request::post(message).session(&session).with("traceparent", PARENT);
    assert_eq!(server.send(&request(&message)).status, 200);
    let span = collector.named(CALL);
    assert_eq!((span.trace.as_str(), span.parent.as_str()), (&PARENT[3..35], &PARENT[36..52]));
    assert_eq!(span.attributes["mcp.session.id"], session);
    assert_eq!(span.attributes["network.transport"], "tcp");
    assert_eq!(span.attributes["network.protocol.name"], "http");
    let other = PARENT.replace("4bf9", "aaaa");
    message["params"]["_meta"]["traceparent"] = json!(other);
    server.send(&request(&message));
    assert_eq!(collector.named(CALL).trace, other[3..35]);
    let alone = Request::alone(call(2, "execute_command", json!({"command": "true"})));
    assert_eq!(server.send(&alone.with("traceparent", PARENT)).status, 200);
    let span = collector.named(CALL);
    assert_eq!(span.trace, PARENT[3..35]);
    assert_eq!(span.attributes["mcp.protocol.version"], "2026-07-28");
    assert!(!span.attributes.contains_key("mcp.session.id"));
}

#[test]
fn secrets_are_not_sent_and_what_lets_us_in_reaches_no_command() {
    let mut collector = Collector::start(&[Takes]);
    let mut command = traced(&collector.url());
    let headers = "authorization=Bearer%20s3cr3t-0123,x-key=s3cr3t-4567";
    command.env("OTEL_EXPORTER_OTLP_HEADERS", headers).env("FOO_TOKEN", "s3cr3t-89ab");
    let mut server = start(&mut command, &[]);
    let told = server.run("env | grep -c OTEL_EXPORTER_OTLP_HEADERS; echo s3cr3t-0123 s3cr3t-4567");
    let name = "[OTEL_EXPORTER_OTLP_HEADERS]";
    assert_eq!(told["output"], format!("0\n{name} {name}\n"));
    let run = collector.named(RUN);
    let line = run.attributes["process.command_line"].as_str().unwrap();
    assert!(line.ends_with(&format!("echo {name} {name}")), "{line}");
    server.run("echo s3cr3t-89ab");
    let run = collector.named(RUN);
    assert_eq!(run.attributes["process.command_line"], "echo [FOO_TOKEN]");
    server.request("tools/call", json!({"name": "s3cr3t-89ab", "arguments": {}}));
    assert_eq!(collector.named("tools/call").attributes["gen_ai.tool.name"], "[FOO_TOKEN]");
    let sent = String::from_utf8_lossy(&collector.raw).into_owned();
    assert!(!sent.contains("s3cr3t"), "{sent}");
}

#[test]
fn commands_are_told_of_as_in_the_log_and_cut() {
    let mut collector = Collector::start(&[Takes]);
    let mut server = start(&mut traced(&collector.url()), &[]);
    server.run(&format!("true {}", "x".repeat(5000)));
    let run = collector.named(RUN);
    let line = run.attributes["process.command_line"].as_str().unwrap();
    assert!(line.ends_with("xx…") && line.chars().count() == 1025, "{line}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[shell_tool]\nlog_commands = false\n").unwrap();
    let config = file.path().to_str().unwrap();
    let mut server = start(&mut traced(&collector.url()), &["--config", config]);
    server.run("echo private");
    let run = collector.span(|span| span.name == RUN);
    assert!(!run.attributes.contains_key("process.command_line"), "{run:?}");
    assert!(!String::from_utf8_lossy(&collector.raw).contains("private"));
}

/// A server whose collector is like this: its calls are answered, and it ends. What it says.
fn undisturbed(url: &str, mut collector: Option<Collector>) -> String {
    let mut command = traced(url);
    // Whoever waits for that long is not waited for.
    command.env("OTEL_EXPORTER_OTLP_TIMEOUT", "600000").stderr(Stdio::piped());
    let mut server = start(&mut command, &[]);
    let mut stderr = server.child.stderr.take().unwrap();
    for _ in 0..3 {
        assert_eq!(server.run("echo hello")["output"], "hello\n");
    }
    collector.as_mut().map(Collector::batch);
    assert_eq!(server.run("echo again")["output"], "again\n");
    server.close_stdin();
    assert!(server.wait().success());
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_collector_that_is_not_there_hangs_or_fails_disturbs_nobody() {
    // Nobody listens on a port that a connection uses, and nobody else gets it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let url = format!("http://{}", connection.local_addr().unwrap());
    let said = undisturbed(&url, None);
    assert!(said.contains(&format!("spans were not sent to {url}/v1/traces: ")), "{said}");
    assert!(said.contains("check OTEL_EXPORTER_OTLP_ENDPOINT"), "{said}");
    let collector = Collector::start(&[Hangs]);
    assert_eq!(undisturbed(&collector.url(), Some(collector)), "");
    for status in [503, 400] {
        let collector = Collector::start(&[Fails(status)]);
        let said = undisturbed(&collector.url(), Some(collector));
        assert!(said.contains(&format!("the response was {status}")), "{said}");
    }
}

#[test]
fn a_batch_is_sent_again_when_the_collector_asks_for_it_and_not_when_it_refuses() {
    let batches = |manners: &[Manner]| {
        let mut collector = Collector::start(manners);
        let mut server = start(&mut traced(&collector.url()), &[]);
        server.run("true");
        let first = collector.batch().body;
        server.run("false");
        (first, collector.batch().body)
    };
    let (first, second) = batches(&[Fails(503), Fails(429), Takes]);
    assert_eq!(first, second);
    let (first, second) = batches(&[Fails(400), Takes]);
    assert_ne!(first, second);
}

#[test]
fn what_waits_is_sent_when_the_server_ends() {
    let mut collector = Collector::start(&[Takes]);
    let mut command = traced(&collector.url());
    let mut server = start(command.env("OTEL_BSP_SCHEDULE_DELAY", "600000"), &[]);
    server.run("true");
    server.close_stdin();
    assert!(server.wait().success());
    let (call, run) = (collector.named(CALL), collector.named(RUN));
    assert_eq!(run.parent, call.id);
}

/// The names of a server's threads.
fn threads(server: &Server) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    names.flatten().map(|name| name.trim().to_owned()).collect()
}

#[test]
fn without_a_collector_there_is_no_thread_for_it() {
    let collector = Collector::start(&[Takes]);
    let there = |command: &mut Command| threads(&start(command, &[])).contains(&"traces".into());
    let mut command = traced(&collector.url());
    let server = start(&mut command, &[]);
    // A thread has its name once it runs.
    wait_until("it is there", || threads(&server).contains(&"traces".into()).then_some(()));
    assert!(!there(traced(&collector.url()).env("OTEL_SDK_DISABLED", "true")));
    assert!(!there(traced(&collector.url()).env("OTEL_TRACES_EXPORTER", "none")));
    assert!(!there(&mut traced("")));
}

#[test]
fn what_cannot_be_sent_that_way_is_said_and_the_server_serves() {
    for (name, value, expected) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "must be http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4317", "must be a URL such as"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "must be a number of milliseconds"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter22-hunter22", "must look like api-key="),
    ] {
        let mut command = traced("http://127.0.0.1:4318");
        let mut server = start(command.env(name, value).stderr(Stdio::piped()), &[]);
        assert_eq!(server.run("echo hello")["output"], "hello\n");
        let mut stderr = server.child.stderr.take().unwrap();
        server.close_stdin();
        server.wait();
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        assert!(said.starts_with(&format!("mcpz: warning: no traces are sent: {name} ")), "{said}");
        assert!(said.contains(expected) && !said.contains("hunter22"), "{said}");
    }
}

#[test]
fn a_server_asked_for_json_says_once_that_it_sends_protobuf() {
    for name in ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] {
        let mut collector = Collector::start(&[Takes]);
        let mut command = traced(&collector.url());
        let mut server = start(command.env(name, "http/json").stderr(Stdio::piped()), &[]);
        let mut stderr = server.child.stderr.take().unwrap();
        for _ in 0..2 {
            server.run("true");
            collector.named(CALL);
        }
        server.close_stdin();
        assert!(server.wait().success());
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        let warning = "`http/json`, but mcpz sends traces as http/protobuf";
        assert!(said.starts_with(&format!("mcpz: warning: {name} is {warning}; ")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_collector_behind_tls_has_to_be_trusted() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key.into())
        .unwrap();
    let files = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    std::fs::write(files[0].path(), signed.cert.pem()).unwrap();
    let mut collector = Collector::start_with(&[Takes], Some(Arc::new(tls)));
    let url = format!("https://localhost:{}", collector.address.port());
    let [trusting, doubting] = files.map(|file| {
        let mut command = traced(&url);
        command.env("SSL_CERT_FILE", file.path()).env_remove("SSL_CERT_DIR");
        let mut server = start(command.stderr(Stdio::piped()), &[]);
        let mut stderr = server.child.stderr.take().unwrap();
        server.run("true");
        collector.batch();
        server.close_stdin();
        server.wait();
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        said
    });
    assert_eq!(trusting, "");
    assert!(doubting.contains("invalid peer certificate: UnknownIssuer"), "{doubting}");
    assert!(!collector.raw.is_empty());
}
