//! A server whose answers are read only when the test wants them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::io::ioctl_fionread;
use serde_json::Value;
use tempfile::TempDir;

use super::http::initialize;
use super::{MCPZ, state};

pub struct Reserved {
    pub child: Child,
    stdout: BufReader<ChildStdout>,
    _state: TempDir,
}

impl Reserved {
    /// Starts a server and shakes hands.
    pub fn start(config: &str) -> Self {
        let state = state();
        let file = state.path().join("config.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--config"]).arg(file);
        command.env("XDG_STATE_HOME", state.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, stdout, _state: state };
        server.ask(&initialize("2025-11-25"));
        server
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        loop {
            let answer = self.next();
            if answer["id"] == message["id"] {
                return answer;
            }
        }
    }

    /// How many bytes nobody has read.
    pub fn unread(&self) -> u64 {
        ioctl_fionread(self.stdout.get_ref()).unwrap()
    }
}
