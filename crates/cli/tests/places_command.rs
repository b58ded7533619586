//! `mcpz places`: what is open, and how a person ends it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{MCPZ, Server};
use tempfile::TempDir;

/// A server with a place, and the commands of a person.
struct Person {
    folder: TempDir,
}

impl Person {
    fn server(&self) -> Server {
        let config = self.folder.path().join("config.toml");
        std::fs::write(
            &config,
            "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"process\"\n",
        )
        .unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--config"]).arg(config);
        let mut server = Server::from_command(command.env("XDG_STATE_HOME", self.folder.path()));
        server.initialize("2025-11-25");
        server
    }

    /// What `mcpz places` prints, and its exit code.
    fn places(&self, arguments: &[&str]) -> (String, i32) {
        let mut command = Command::new(MCPZ);
        command.arg("places").args(arguments).env("XDG_STATE_HOME", self.folder.path());
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8(text).unwrap(), output.status.code().unwrap())
    }

    fn open(&self) -> usize {
        let (listed, _) = self.places(&["--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed.as_array().unwrap().len()
    }
}

#[test]
fn a_place_that_was_stopped_is_gone_when_the_command_returns() {
    let person = Person { folder: tempfile::tempdir().unwrap() };
    let mut server = person.server();
    let job = json!({"command": "sleep 300", "background": true});
    assert_eq!(server.call(job)["state"], "running");
    assert_eq!(person.open(), 1);
    assert_eq!(person.places(&["stop", "box"]), ("1 place `box` ended\n".to_owned(), 0));
    assert_eq!(person.open(), 0);
    let (said, code) = person.places(&["stop", "box"]);
    assert_eq!(said, "mcpz: no place `box` is open; `mcpz places` shows all that are\n");
    assert_ne!(code, 0);
    // The next command makes it again.
    assert_eq!(server.run("echo hi")["output"], "hi\n");
    assert_eq!(person.open(), 1);
}

#[test]
fn a_session_that_ended_with_its_place_is_said_to_be_a_new_one() {
    let person = Person { folder: tempfile::tempdir().unwrap() };
    let mut server = person.server();
    let mut say = |command: &str| server.call(json!({"command": command, "session": "work"}));
    assert_eq!(say("x=1; echo $x")["output"], "1\n");
    assert_eq!(person.places(&["stop", "box"]).1, 0);
    let told = say("echo \"[$x]\"");
    assert_eq!(told["output"], "[]\n");
    assert_eq!(told["message"], "the session was lost; this command started a new one");
    assert_eq!(say("echo again")["message"], Value::Null);
}
