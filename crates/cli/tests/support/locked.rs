//! Programs that a policy denies, and servers that hold commands to it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{MCPZ, Server};

/// A program that prints its arguments, and says so.
const SPEAKER: &str = "#!/bin/sh\necho \"speaker ran: $*\"\n";

/// A folder of programs in front of the others of `PATH`, for servers with a policy.
pub struct Programs {
    state: TempDir,
    folder: TempDir,
}

impl Programs {
    pub fn new() -> Self {
        let place = Self { state: super::state(), folder: super::plain_folder() };
        place.file("speaker", SPEAKER);
        place
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file that can be executed, whose text the policy does not read.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    pub fn server(&self, policy: &str) -> Server {
        self.server_in(Path::new("."), policy)
    }

    /// The same for a server in this directory.
    pub fn server_in(&self, directory: &Path, policy: &str) -> Server {
        let config = self.state.path().join("config.toml");
        std::fs::write(&config, format!("[policy]\n{policy}\n")).unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--tools", "all", "--config"]).arg(config);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.folder().display()));
        command.env("XDG_STATE_HOME", self.state.path()).current_dir(directory);
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        server
    }

    /// Runs a program for Python, which the policy does not read either.
    pub fn python(&self, server: &mut Server, text: &str) -> Value {
        let path = self.file("program.py", text);
        server.run(&format!("python3 {}", path.display()))
    }
}

/// Whether the program that prints its arguments has done so.
pub fn has_run(reply: &Value) -> bool {
    reply["output"].as_str().unwrap().lines().any(|line| line.starts_with("speaker ran"))
}
