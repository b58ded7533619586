//! Which variables commands get.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{MCPZ, Server};

/// A server in an environment of its own, with a `[shell_tool]` table.
fn start(variables: &[(&str, &str)], flags: &[&str], table: &str) -> Server {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("[shell_tool]\n{table}")).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--config"]).arg(file.path()).args(flags);
    command.env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}

/// What tells programs that a program reads what they print.
const TOLD: [(&str, &str); 6] = [
    ("AI_AGENT", "mcpz"),
    ("AGENT", "1"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("TERM", "dumb"),
];

/// The variables of a command, but for those its shell makes up, those of the test's client and [`TOLD`].
fn variables(server: &mut Server) -> BTreeMap<String, String> {
    let printed = server.run("env")["output"].as_str().unwrap().to_owned();
    let lines = printed.lines().map(|line| line.split_once('=').unwrap());
    let others = ["PWD", "OLDPWD", "SHLVL", "_", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];
    let lines = lines.filter(|line| !others.contains(&line.0) && !TOLD.contains(line));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn names(server: &mut Server) -> Vec<String> {
    variables(server).into_keys().collect()
}

const OWN: &[(&str, &str)] = &[
    ("HOME", "/"),
    ("LC_ALL", "C"),
    ("AWS_REGION", "north"),
    ("AWS_PROFILE", "me"),
    ("MCP_HTTP_TOKEN", "0123456789abcdef"),
    ("EDITOR", "ed"),
];

#[test]
fn commands_get_everything_but_our_token() {
    let mut server = start(OWN, &[], "");
    assert_eq!(
        names(&mut server),
        ["AWS_PROFILE", "AWS_REGION", "EDITOR", "HOME", "LC_ALL", "PATH"]
    );
}

#[test]
fn what_env_pass_names_is_passed_with_what_every_program_needs() {
    let mut server = start(OWN, &[], "env_pass = [\"AWS_*\"]\n");
    assert_eq!(names(&mut server), ["AWS_PROFILE", "AWS_REGION", "HOME", "LC_ALL", "PATH"]);
    let mut server = start(OWN, &[], "env_pass = []\n");
    assert_eq!(names(&mut server), ["HOME", "LC_ALL", "PATH"]);
}

#[test]
fn what_env_drop_names_is_dropped_and_our_token_is_never_passed() {
    let mut server = start(OWN, &[], "env_drop = [\"*_PROFILE\", \"HOME\"]\n");
    assert_eq!(names(&mut server), ["AWS_REGION", "EDITOR", "LC_ALL", "PATH"]);
    let table = "env_pass = [\"*\", \"MCP_HTTP_TOKEN\"]\nenv_drop = [\"AWS*\"]\n";
    let mut server = start(OWN, &[], table);
    assert_eq!(names(&mut server), ["EDITOR", "HOME", "LC_ALL", "PATH"]);
}

#[test]
fn a_request_can_set_what_is_not_passed() {
    let mut server = start(OWN, &[], "env_drop = [\"EDITOR\"]\n");
    let environment = json!({"EDITOR": "vi"});
    let reply = server.call(json!({"command": "echo $EDITOR", "environment": environment}));
    assert_eq!(reply["output"], "vi\n");
}

#[test]
fn detached_jobs_and_sessions_get_no_more() {
    let mut server = start(OWN, &[], "env_pass = [\"EDITOR\"]\n");
    let command = "echo $EDITOR.$AWS_REGION.$MCP_HTTP_TOKEN.";
    let reply = server.call(json!({"command": command, "session": "one"}));
    assert_eq!(reply["output"], "ed...\n");
    let reply = server.call(json!({"command": command, "background": true, "detach": true}));
    let arguments = json!({"job_id": reply["job_id"], "wait_for": "exit", "cursor": "bytes:0"});
    let read = server.tool("read_job", arguments);
    assert_eq!(read["structuredContent"]["output"], "ed...\n", "{read}");
}

#[test]
fn what_is_no_name_of_a_variable_is_refused() {
    for pattern in ["", "A=b", "AWS_*, EDITOR", "two words"] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("[shell_tool]\nenv_drop = [{pattern:?}]\n")).unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--config"]).arg(file.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{pattern}");
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("mcpz: `{pattern}` in env_drop is not a variable name");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn commands_learn_that_a_program_reads_what_they_print() {
    let ask = "env | grep -E '^(AI_AGENT|AGENT|NO_COLOR|PAGER|GIT_PAGER|TERM|CI)='";
    let printed = |server: &mut Server| {
        let printed = server.run(ask)["output"].as_str().unwrap().to_owned();
        let mut lines: Vec<_> = printed.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let mut all = TOLD.map(|(name, value)| format!("{name}={value}"));
    all.sort();
    assert_eq!(printed(&mut start(OWN, &[], "")), all);
    assert_eq!(printed(&mut start(OWN, &[], "env_pass = []\nenv_drop = [\"*\"]")), [""; 0]);
    assert_eq!(printed(&mut start(OWN, &[], "[environment]\nagent = false")), [""; 0]);
    let own = [("AGENT", "goose"), ("PAGER", "less"), ("TERM", "xterm")];
    let mut server = start(&own, &[], "");
    let told = printed(&mut server);
    for kept in ["AGENT=goose", "PAGER=less", "TERM=dumb"] {
        assert!(told.contains(&kept.to_owned()), "{told:?}");
    }
    let own = server.call(json!({"command": "echo $TERM", "environment": {"TERM": "vt100"}}));
    assert_eq!(own["output"], "vt100\n");
}

#[test]
fn git_does_not_wait_in_an_editor_that_has_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display().to_string();
    let mut server = start(&[("HOME", &here), ("TERM", "xterm-256color")], &["-w", &here], "");
    let made =
        "git init -q . && git -c user.name=me -c user.email=me@example.org commit -q --allow-empty";
    let reply = server.run(made);
    assert_eq!((&reply["return_code"], &reply["timed_out"]), (&json!(1), &Value::Null), "{reply}");
    assert!(reply["output"].as_str().unwrap().contains("Please supply the message"), "{reply}");
}
