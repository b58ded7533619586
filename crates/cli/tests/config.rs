//! Where settings come from.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::{MCPZ, Server};

fn write(folder: &Path, text: &str) -> String {
    let file = folder.join("config.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn complaint(command: &mut Command) -> String {
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_says_what_flags_can_say_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[shell_tool]\ntimeout = 1\nno_stderr = true\nworking_dir = \"/usr\"\n\
                shell = \"/bin/bash\"\ntools = [\"execute_command\"]\n\
                [policy]\ndeny = [\"rm*\"]\n";
    let file = write(folder.path(), text);
    let mut server = Server::start(&["--config", &file, "-w", "/"]);
    assert_eq!(server.run("pwd")["output"], "/\n");
    assert_eq!(server.run("ls /no/such")["output"], "");
    let message = server.run("sleep 300")["message"].clone();
    assert!(message.as_str().unwrap().starts_with("timed out after 1 second;"), "{message}");
    assert_eq!(server.call_raw(json!({"command": "rm x"}))["isError"], true);
}

#[test]
fn a_file_is_found_by_variable_and_in_the_usual_place_but_never_in_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let denied = "[policy]\nallow = [\"nothing\"]\n";
    std::fs::create_dir(folder.path().join("mcpz")).unwrap();
    write(&folder.path().join("mcpz"), denied);
    let file = write(folder.path(), denied);
    for (variable, value, expected) in [
        ("MCPZ_CONFIG", file.as_str(), 1),
        ("XDG_CONFIG_HOME", folder.path().to_str().unwrap(), 1),
        ("UNUSED", "", 0),
    ] {
        let status = Command::new(MCPZ)
            .args(["call", "execute_command", "command=ls"])
            .current_dir(folder.path())
            .env("XDG_STATE_HOME", folder.path())
            .env_remove("MCPZ_CONFIG")
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env(variable, value)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(expected), "{variable}");
    }
}

#[test]
fn mistakes_in_a_file_are_told_with_file_key_and_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, parts) in [
        ("[policy]\ndenny = [\"rm\"]\n", ["line 2", "denny", "unknown field"]),
        ("[shell_tool]\n\ntimeout = \"long\"\n", ["line 3", "timeout", "invalid type"]),
        ("[polcy]\n", ["line 1", "polcy", "unknown field"]),
    ] {
        let file = write(folder.path(), text);
        let said = complaint(Command::new(MCPZ).args(["server", "shell", "--config", &file]));
        assert!(said.contains(&file), "{said}");
        for part in parts {
            assert!(said.contains(part), "no {part} in: {said}");
        }
    }
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let said = complaint(Command::new(MCPZ).args(["server", "shell", "--config", "/no/such.toml"]));
    assert_eq!(
        said,
        "mcpz: cannot read the configuration file /no/such.toml: No such file or directory (os error 2)\n"
    );
}

#[test]
fn an_empty_allow_list_is_a_mistake() {
    let expected =
        "mcpz: the allow list is empty; leave it out to allow everything, or list what may run\n";
    let said = complaint(Command::new(MCPZ).args(["server", "shell", "--allow", " , "]));
    assert_eq!(said, expected);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "[policy]\nallow = []\n");
    let said = complaint(Command::new(MCPZ).args(["server", "shell", "--config", &file]));
    assert_eq!(said, expected);
}

#[test]
fn a_timeout_out_of_bounds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "[shell_tool]\ntimeout = 0\n");
    let said = complaint(Command::new(MCPZ).args(["server", "shell", "--config", &file]));
    assert_eq!(said, "mcpz: the timeout is 0 seconds, but must be from 1 to 86400\n");
}

#[test]
fn verbose_logs_go_to_stderr_and_nothing_else_to_stdout() {
    let output = Command::new(MCPZ)
        .args(["call", "-v", "execute_command", "command=echo hi; exit 4"])
        .env("XDG_STATE_HOME", support::state().path())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"hi\n");
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("executing") && log.contains("echo hi; exit 4"), "{log}");
    assert!(log.contains("exit code 4"), "{log}");
}
