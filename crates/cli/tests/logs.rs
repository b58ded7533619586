//! What a server says on stderr while it serves: lines for people, objects for programs.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Read;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::http::{HttpServer, Request, TOKEN, call};
use support::{MCPZ, Server};

const SECRET: &str = "s3cr3t-0123456789";

/// Whatever is done to them, all they say has to be objects.
fn objects(said: &str) -> Vec<Value> {
    let lines: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && &time[10..11] == "T", "{line}");
        assert!(["ERROR", "WARN", "INFO", "DEBUG"].contains(&line["level"].as_str().unwrap()));
        assert!(line["target"].as_str().unwrap().starts_with("mcpz"), "{line}");
        assert!(line["message"].is_string(), "{line}");
    }
    let plain = |said: char| said == '\n' || !said.is_control() && said != '\u{202e}';
    assert!(said.chars().all(plain), "{said:?}");
    assert!(!said.contains(SECRET), "{said}");
    lines
}

/// The first line that says so.
fn with<'a>(lines: &'a [Value], message: &str) -> &'a Value {
    let says = |line: &&Value| line["message"].as_str().unwrap().contains(message);
    lines.iter().find(says).unwrap_or_else(|| panic!("{message} is not in {lines:#?}"))
}

/// A server on stdio that is told to run, refuse and misread something; and what it says meanwhile.
fn spoken(flags: &[&str]) -> String {
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell"]).args(flags).env("FOO_TOKEN", SECRET);
    let mut server = Server::from_command(command.stderr(Stdio::piped()));
    let mut stderr = server.child.stderr.take().unwrap();
    server.initialize("2025-11-25");
    server.run(&format!("echo {SECRET} '\u{202e}\u{1b}[2J\n'; exit 4"));
    server.run("rm\u{9b} -rf \"$HOME\"");
    server.send_bytes(b"{ nonsense\n");
    server.tool("read_job", json!({"job_id": "job-7"}));
    server.close_stdin();
    server.wait();
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn every_line_on_stdio_is_an_object() {
    let flags = ["-v", "--log-format", "json", "--allow", "echo*,exit,python3", "--deny", "rm*"];
    let lines = objects(&spoken(&flags));
    assert_eq!(with(&lines, "programs that can run any other: python3")["level"], "WARN");
    assert_eq!(with(&lines, "mcpz shell server started")["level"], "INFO");
    let command = format!("{}", with(&lines, "executing")["fields"]["command"]);
    assert!(command.starts_with("\"echo [FOO_TOKEN] "), "{command}");
    let ended = with(&lines, "exit code 4");
    assert_eq!(ended["fields"]["exit_code"], 4);
    assert_eq!(ended["fields"]["run"].as_str().unwrap().len(), 32);
    assert!(ended["fields"]["duration_ms"].is_u64(), "{ended}");
    assert!(with(&lines, "not run: refused by the policy")["fields"].is_null());
    assert_eq!(with(&lines, "Parse error")["level"], "DEBUG");
}

#[test]
fn lines_for_people_are_one_for_each_thing_said_without_fields() {
    let said = spoken(&["-v", "--allow", "echo*,exit", "--deny", "rm*"]);
    assert!(said.contains(" INFO exit code 4\n"), "{said}");
    assert!(said.contains(r#" INFO executing "echo [FOO_TOKEN] '\u{202e}\u{1b}[2J\n'; exit 4""#));
    assert!(!said.contains("exit_code=") && !said.contains(SECRET), "{said}");
    assert!(said.chars().all(|said| said == '\n' || !said.is_control()), "{said:?}");
}

#[test]
fn the_form_is_a_setting_of_the_file_too_and_without_a_log_only_warnings_are_said() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[shell_tool]\nlog_format = \"json\"\n").unwrap();
    let config = file.path().to_str().unwrap();
    let lines = objects(&spoken(&["--config", config, "--allow", "echo*,exit,python3"]));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    with(&lines, "programs that can run any other: python3");
    let said = spoken(&["--config", config, "--log-format", "text", "--allow", "python3"]);
    assert!(said.starts_with("mcpz: warning: the allow list contains programs"), "{said}");
}

#[test]
fn every_line_over_http_is_an_object() {
    let flags = ["--log-format", "json", "--deny", "rm*", "-v"];
    let server = HttpServer::start(&flags);
    let session = server.open_session();
    server.call(&session, "execute_command", json!({"command": "exit 4"}));
    server.call(&session, "execute_command", json!({"command": "rm x"}));
    server.raw(b"nonsense\r\n\r\n");
    let stranger = Request::post(&call(1, "execute_command", json!({}))).without("authorization");
    assert_eq!(server.send(&stranger.with("authorization", "Bearer wrong")).status, 401);
    support::kill("TERM", server.child.id());
    let said: Vec<String> = server.said.lock().unwrap().iter().collect();
    let lines = objects(&(server.first.clone() + &said.join("\n")));
    assert!(with(&lines, "listening on")["message"].as_str().unwrap().ends_with("/mcp"));
    with(&lines, "exit code 4");
    with(&lines, "not run: refused by the policy");
    assert!(!said.concat().contains(TOKEN));
}

#[test]
fn a_token_that_was_made_is_not_in_a_log_for_programs() {
    let flags = ["--log-format", "json"];
    let server =
        HttpServer::start_command(Command::new(MCPZ).env_remove("MCP_HTTP_TOKEN"), &flags, "");
    support::kill("TERM", server.child.id());
    let said: Vec<String> = server.said.lock().unwrap().iter().collect();
    let lines = objects(&(server.first.clone() + &said.join("\n")));
    let warning = with(&lines, "no client can connect");
    assert!(warning["message"].as_str().unwrap().contains("set MCP_HTTP_TOKEN"), "{warning}");
    let long = |word: &str| word.len() > 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let all = format!("{lines:?}");
    assert!(!all.split(|letter: char| !letter.is_ascii_alphanumeric()).any(long), "{all}");
}

#[test]
fn a_token_that_was_made_is_shown_to_the_person_at_the_terminal() {
    let state = tempfile::tempdir().unwrap();
    let log = state.path().join("log");
    let line = format!(
        "'{MCPZ}' server shell --http --bind 127.0.0.1:0 --log-format json 2>'{}'",
        log.display()
    );
    let mut script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("XDG_STATE_HOME", state.path())
        .env_remove("MCP_HTTP_TOKEN")
        .env_remove("MCPZ_CONFIG")
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdin, mut stdout) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let (mut seen, mut buffer) = (String::new(), [0; 1024]);
    while !seen.contains("Bearer ") {
        let length = stdout.read(&mut buffer).unwrap();
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(seen.contains("token, until the server ends: "), "{seen}");
    // The terminal goes, and the server with it.
    drop(stdin);
    support::kill("TERM", script.id());
    script.wait().unwrap();
    objects(&std::fs::read_to_string(log).unwrap());
}

/// What a server says that cannot start.
fn failed(flags: &[&str]) -> Output {
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--log-format", "json"]).args(flags);
    command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("MCPZ_CONFIG");
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn why_a_server_cannot_start_is_an_object_too() {
    for (flags, message) in [
        (&["--config", "/nonexistent/file"][..], "cannot read the configuration file"),
        (&["--working-dir", "/nonexistent"], "as the working directory: No such file"),
        (&["--http", "--bind", "nowhere"], "`nowhere` is not an address"),
    ] {
        let output = failed(flags);
        let lines = objects(&String::from_utf8(output.stderr).unwrap());
        assert_eq!(with(&lines, message)["level"], "ERROR");
        assert_eq!((lines.len(), output.status.code()), (1, Some(1)));
    }
}
