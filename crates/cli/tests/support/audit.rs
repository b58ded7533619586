//! The records of a server, and the programs that read them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{MCPZ, Server, wait_until};

/// The folder of a server's records.
pub fn folder(state: &TempDir) -> PathBuf {
    state.path().join("mcpz")
}

pub fn file(state: &TempDir) -> PathBuf {
    folder(state).join("audit.jsonl")
}

pub fn read(state: &TempDir) -> String {
    std::fs::read_to_string(file(state)).unwrap_or_default()
}

pub fn records(state: &TempDir) -> Vec<Value> {
    read(state).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records once every run has its end among them: an answer does not wait for that.
pub fn settled(state: &TempDir) -> Vec<Value> {
    let count = |records: &[Value], event| records.iter().filter(|r| r["event"] == event).count();
    wait_until("every end is recorded", || {
        let records = records(state);
        (count(&records, "start") == count(&records, "end")).then_some(records)
    })
}

/// What starts a server with a configuration.
pub fn command(state: &TempDir, config: &str) -> Command {
    let path = state.path().join("config.toml");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all", "--config"]).arg(path);
    command.env("XDG_STATE_HOME", state.path());
    command
}

/// Starts a server with a configuration and shakes hands.
pub fn start(state: &TempDir, config: &str) -> Server {
    let mut server = Server::from_command(&mut command(state, config));
    server.initialize("2025-11-25");
    server
}

/// What `mcpz audit` prints, and its exit code.
pub fn audit(state: &TempDir, arguments: &[&str]) -> (String, i32) {
    let mut command = Command::new(MCPZ);
    command.arg("audit").args(arguments).env("XDG_STATE_HOME", state.path());
    let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (said, output.status.code().unwrap())
}

pub fn verify(state: &TempDir) -> (String, i32) {
    audit(state, &["verify"])
}

/// Changes the lines of a file as whoever can write to it could.
pub fn edit(path: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}
