//! The command line of `bwrap` that starts an agent in namespaces where it sees a [`Layout`].
//!
//! The agent's stdin is its socket. `bwrap` passes that on with all other inherited descriptors, which the agent
//! closes. Descriptors sent over the socket cross namespaces, so never send one of a folder: its `..` leads to the
//! whole machine outside.

mod version;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use serde::{Deserialize, Serialize};

use crate::caches::LAYERS;
use crate::known_paths;
use crate::layout::{Cover, Layout};
use crate::view::Network;
pub use version::Version;

/// Where the agent's own program is mounted inside, whatever else is hidden.
const PROGRAM: &str = "/run/mcpz";

const NAMESPACES: &[&str] =
    &["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];

/// The `bwrap` program, which creates the namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bubblewrap {
    pub program: PathBuf,
    pub version: Version,
}

/// A command line that is ready to be run.
#[derive(Debug)]
pub struct PreparedCommand {
    pub command: Command,
    options: OwnedFd,
}

impl PreparedCommand {
    /// The command, and the descriptor it inherits, which must stay open until the command was started.
    pub fn into_parts(self) -> (Command, OwnedFd) {
        (self.command, self.options)
    }
}

impl Bubblewrap {
    /// Runs `program` with `arguments` inside. `bwrap` reads its options from a descriptor: on its command line, every
    /// process inside could see them.
    pub fn command(
        &self,
        layout: &Layout,
        program: &Path,
        arguments: &[OsString],
    ) -> io::Result<PreparedCommand> {
        let file = memfd_create("options", MemfdFlags::empty())?;
        let options = self.options(layout, program);
        let mut rest =
            options.iter().flat_map(|it| [it.as_bytes(), b"\0"]).collect::<Vec<_>>().concat();
        while !rest.is_empty() {
            let written = rustix::io::write(&file, &rest)?;
            rest.drain(..written);
        }
        seek(&file, SeekFrom::Start(0))?;
        let mut command = Command::new(&self.program);
        command.arg("--args").arg(file.as_raw_fd().to_string());
        command.args(["--", PROGRAM]).args(arguments);
        Ok(PreparedCommand { command, options: file })
    }

    /// The options of `bwrap`, without the program to run.
    pub fn options(&self, layout: &Layout, program: &Path) -> Vec<OsString> {
        let mut options = Options::default();
        NAMESPACES.iter().for_each(|it| options.add(&[it]));
        if layout.network == Network::Off {
            options.add(&["--unshare-net"]);
        }
        if self.version >= Version::WITHOUT_NESTING {
            options.add(&["--disable-userns"]);
        }
        options.add(&["--die-with-parent", "--cap-drop", "ALL"]);
        options.add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
        let size = layout.tmp_bytes.to_string();
        for (path, cover) in layout.covers() {
            match cover {
                Cover::Private => {
                    options.add(&["--perms", "1777", "--size", &size]);
                    options.add_paths("--tmpfs", &[path]);
                }
                Cover::Writable | Cover::Pinned => options.add_paths("--bind", &[path, path]),
                Cover::Shown | Cover::Protected => options.add_paths("--ro-bind", &[path, path]),
                Cover::Hidden if path.is_dir() => {
                    // Closed completely, unless something below it is to be seen.
                    let perms = if layout.has_below(path) { "0711" } else { "0000" };
                    options.add(&["--perms", perms, "--size", "65536"]);
                    options.add_paths("--tmpfs", &[path]);
                }
                // Reading it fails, because devices on this mount cannot be opened.
                Cover::Hidden => options.add_paths("--ro-bind", &[Path::new("/dev/null"), path]),
            }
        }
        options.add_paths("--ro-bind", &[program, Path::new(PROGRAM)]);
        if let Some(layer) = layout.layer() {
            options.add_paths("--bind", &[layer, Path::new(LAYERS)]);
        }
        known_paths::SERVICE_VARIABLES.iter().for_each(|name| options.add(&["--unsetenv", name]));
        options.add(&["--setenv", "TMPDIR", "/tmp"]);
        options.add_paths("--chdir", &[&layout.directory]);
        options.0
    }
}

/// The options of one command line.
#[derive(Default)]
struct Options(Vec<OsString>);

impl Options {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn add_paths(&mut self, option: &str, paths: &[&Path]) {
        self.0.push(option.into());
        self.0.extend(paths.iter().map(|path| OsStr::to_owned(path.as_os_str())));
    }
}
