//! Servers whose commands are confined, and the folders they work in.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MCPZ, Server, copy_program, survivors, wait_until};

/// Somebody who is not root.
pub const NOBODY: u32 = 65534;

/// What somebody who is not root can run.
pub const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A folder that is not where temporary files are: a sandbox has its own. Where this was checked out
/// may be among those, or closed to others, so root has another place.
pub fn visible_folder() -> TempDir {
    let root = rustix::process::geteuid().is_root();
    let places = ["/srv", "/opt", "/var/lib"].map(Path::new).into_iter();
    let base = match places.filter(|_| root).find(|place| place.is_dir()) {
        Some(place) => place.to_owned(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/sandbox"),
    };
    fs::create_dir_all(&base).unwrap();
    TempDir::new_in(base.canonicalize().unwrap()).unwrap()
}

/// A home, a folder to work in, and the records of the servers that do.
pub struct Place {
    folder: TempDir,
    pub user: Option<u32>,
}

impl Place {
    pub fn new() -> Self {
        let folder = visible_folder();
        fs::create_dir_all(folder.path().join("home/work")).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        Self { folder, user: None }
    }

    /// The same for somebody who is not root, if we are: servers are started as them.
    pub fn ordinary() -> Self {
        let mut place = Self::new();
        if rustix::process::geteuid().is_root() {
            place.user = Some(NOBODY);
            copy_program(place.folder.path());
            fs::set_permissions(place.folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
            for name in ["home", "home/work", "state"] {
                chown(place.folder.path().join(name), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        place
    }

    /// What its user can execute: where it was built, others may not look.
    pub fn program(&self) -> PathBuf {
        match self.user {
            None => MCPZ.into(),
            Some(_) => self.folder.path().join("mcpz"),
        }
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.home().join("work")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// What is in the folder to work in, but for what people have put there.
    pub fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.work()).unwrap().flatten();
        let mut names: Vec<_> =
            names.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs git outside of any sandbox, in the folder to work in.
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let output = command.args(who).args(arguments).current_dir(self.work()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Has a command run as the user of this place, with temporary files where they can make some.
    pub fn run_as_user(&self, command: &mut Command) {
        if let Some(user) = self.user {
            command.uid(user).gid(user).env_remove("TMPDIR");
        }
    }

    /// How a server is started here.
    pub fn command(&self, flags: &[&str], config: &str) -> Command {
        let path = self.folder.path().join("config.toml");
        fs::write(&path, config).unwrap();
        let mut command = Command::new(self.program());
        self.run_as_user(&mut command);
        if self.user.is_some() {
            command.env("PATH", PLAIN_PATH).env("HOME", self.home());
        }
        command.args(["server", "shell", "--config"]).arg(path).args(flags);
        command.current_dir(self.work()).env("XDG_STATE_HOME", self.state());
        command.env("XDG_CACHE_HOME", self.state().join("cache"));
        command
    }

    pub fn start(&self, flags: &[&str], config: &str) -> Server {
        let mut server = Server::from_command(&mut self.command(flags, config));
        server.initialize("2025-11-25");
        server
    }

    /// The same for a user whose home is the one here.
    pub fn start_at_home(&self, flags: &[&str], config: &str) -> Server {
        let mut command = self.command(flags, config);
        let mut server = Server::from_command(command.env("HOME", self.home()));
        server.initialize("2025-11-25");
        server
    }

    /// A server whose commands may write the folder to work in.
    pub fn workspace(&self) -> Server {
        self.start(&["--sandbox", "workspace"], "")
    }

    /// What a server says that does not start.
    pub fn refused(&self, flags: &[&str], config: &str) -> String {
        refused(&mut self.command(flags, config))
    }

    /// Waits until nothing of a sandbox is left: no process with the mark, no file in the work folder.
    pub fn wait_until_tidy(&self, mark: &str, expected: &[&str]) {
        wait_until("nothing is left", || survivors(mark).is_empty().then_some(()));
        wait_until("nothing of ours is left", || (self.left() == expected).then_some(()));
    }
}

/// Ends the jobs that outlive their servers, before their records go.
impl Drop for Place {
    fn drop(&mut self) {
        if !self.state().join("mcpz").exists() {
            return;
        }
        let jobs = |arguments: &[&str]| {
            let mut command = Command::new(MCPZ);
            command.arg("jobs").args(arguments).env("XDG_STATE_HOME", self.state()).output()
        };
        let Ok(list) = jobs(&["list", "--json"]) else { return };
        let list: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap_or_default();
        for run in list.iter().filter_map(|job| job["run"].as_str()) {
            let _ = jobs(&["stop", run]);
        }
    }
}

/// What a server says that does not start.
pub fn refused(command: &mut Command) -> String {
    let Output { status, stderr, .. } =
        command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null()).output().unwrap();
    assert!(!status.success());
    String::from_utf8(stderr).unwrap()
}

/// A folder with all programs of the machine but one.
pub fn programs_without(name: &str) -> TempDir {
    let folder = visible_folder();
    for entry in PLAIN_PATH.split(':').chain(["/usr/sbin"]).flat_map(fs::read_dir).flatten() {
        let entry = entry.unwrap();
        if entry.file_name() != name {
            // The first of a name counts.
            let link = folder.path().join(entry.file_name());
            let _ = std::os::unix::fs::symlink(entry.path(), link);
        }
    }
    folder
}

/// What a command has printed that must succeed.
#[track_caller]
pub fn works(server: &mut Server, command: &str) -> String {
    let reply = server.call(json!({"command": command, "timeout": 100}));
    assert_eq!(reply["return_code"], 0, "{reply}");
    reply["output"].as_str().unwrap().to_owned()
}

/// The answer to a command that must run and fail.
#[track_caller]
pub fn fails(server: &mut Server, command: &str) -> Value {
    let reply = server.run(command);
    assert!(reply["return_code"].as_i64().unwrap() > 0, "{reply}");
    reply
}

/// What is said of a command besides what it printed.
pub fn warnings(reply: &Value) -> String {
    let warnings = reply["warnings"].as_array().into_iter().flatten();
    warnings.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// The structure of a tool's answer.
pub fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}
