//! Attempts to get out of a sandbox, and the machine they are tried on: a home with secrets in it, a
//! folder to work in, a process of somebody else's, and sockets that lead to others.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "tests")]

use std::fs::{self, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use crate::support::sandbox::visible_folder;

const TABLE: &str = include_str!("leaks.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    python: String,
    attempt: Vec<Attempt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    #[default]
    Workspace,
    ReadOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    #[default]
    Anybody,
    Root,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub name: String,
    #[serde(default, rename = "as")]
    pub who: Who,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default)]
    pub net: bool,
    #[serde(default)]
    sh: String,
    #[serde(default)]
    python: String,
    /// What is there outside if something got out.
    pub leaves: Option<String>,
    /// What comes into being in the folder to work in, and must be gone when the command is answered.
    pub taken: Option<String>,
    /// What one that is held says, one of these.
    error: Vec<String>,
}

impl Attempt {
    pub fn all() -> Vec<Self> {
        let mut table: Table = toml::from_str(TABLE).unwrap();
        for attempt in table.attempt.iter_mut().filter(|it| it.sh.is_empty()) {
            let (before, python) = (&table.python, &attempt.python);
            attempt.sh = format!("python3 - <<'PYTHON'\n{before}{python}\nPYTHON\n");
        }
        table.attempt
    }

    /// What a shell is told, in `fixture`'s work folder.
    pub fn command(&self, fixture: &Fixture) -> String {
        fixture.fill(&self.sh)
    }

    /// Whether it was held in the way it should be, by what it said.
    pub fn is_held(&self, said: &str) -> bool {
        self.error.is_empty() || self.error.iter().any(|error| said.contains(error))
    }
}

pub struct Fixture {
    folder: TempDir,
    name: String,
    port: u16,
    victim: Child,
    _streams: Vec<UnixListener>,
    _datagrams: UnixDatagram,
    _ports: (TcpListener, UdpSocket),
}

impl Fixture {
    /// Belongs to `owner`, who is somebody else if given.
    pub fn make(owner: Option<u32>) -> Self {
        let folder = visible_folder();
        let name = folder.path().file_name().unwrap().to_str().unwrap().replace('.', "leak-");
        let home = folder.path().join("home");
        fill_home(&home);
        fill_work(&home.join("work"));
        let tmp = PathBuf::from("/tmp").join(&name);
        write(&tmp, "secret");
        let paths = [home.join("agent.sock"), tmp.with_extension("sock")];
        let mut streams: Vec<_> = paths.iter().map(|it| UnixListener::bind(it).unwrap()).collect();
        let nameless = SocketAddr::from_abstract_name(&name).unwrap();
        streams.push(UnixListener::bind_addr(&nameless).unwrap());
        let datagrams = home.join("datagrams.sock");
        let bound = UnixDatagram::bind(&datagrams).unwrap();
        for path in paths.iter().chain([&datagrams, &tmp]) {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        give(folder.path(), owner);
        let ports = ports();
        let port = ports.0.local_addr().unwrap().port();
        let victim = victim(&home, owner);
        Self { folder, name, port, victim, _streams: streams, _datagrams: bound, _ports: ports }
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.home().join("work")
    }

    /// What is to be hidden besides what everybody hides.
    pub fn hidden(&self) -> PathBuf {
        self.home().join("state")
    }

    /// Puts what is here in the place of the words that stand for it.
    pub fn fill(&self, text: &str) -> String {
        text.replace("@HOME@", self.home().to_str().unwrap())
            .replace("@WORK@", self.work().to_str().unwrap())
            .replace("@PID@", &self.victim.id().to_string())
            .replace("@PORT@", &self.port.to_string())
            .replace("@NAME@", &self.name)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        for name in ["", ".sock", "-out"] {
            let _ = fs::remove_file(format!("/tmp/{}{name}", self.name));
        }
    }
}

fn fill_home(home: &Path) {
    for secret in [
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".mozilla/firefox/p/cookies.sqlite",
        ".netrc",
        ".bash_history",
        "state/audit.key",
    ] {
        write(&home.join(secret), "secret");
    }
    for file in ["notes.txt", ".bashrc", ".config/mcpz/config.toml"] {
        write(&home.join(file), "");
    }
}

fn fill_work(work: &Path) {
    for git in [".git", ".git/modules/sub"].map(|it| work.join(it)) {
        for folder in ["hooks", "objects", "refs"] {
            fs::create_dir_all(git.join(folder)).unwrap();
        }
        write(&git.join("HEAD"), "ref: refs/heads/main\n");
        write(&git.join("config"), "[core]\n\tbare = false\n");
    }
    write(&work.join(".vscode/settings.json"), "{}");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn give(path: &Path, owner: Option<u32>) {
    let Some(owner) = owner else { return };
    chown(path, Some(owner), Some(owner)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), Some(owner)));
    }
}

fn ports() -> (TcpListener, UdpSocket) {
    loop {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(datagrams) = UdpSocket::bind(stream.local_addr().unwrap()) {
            return (stream, datagrams);
        }
    }
}

/// A process that has nothing to do with the sandbox.
fn victim(home: &Path, owner: Option<u32>) -> Child {
    let mut command = Command::new("sleep");
    command.arg0("leak-victim").arg("600").env("LEAK_SECRET", "secret");
    if let Some(owner) = owner {
        command.uid(owner).gid(owner);
    }
    command.current_dir(home).stdin(Stdio::null()).spawn().unwrap()
}
