//! The call of `bwrap` that puts an agent where it sees a [`Layout`].
//!
//! The agent speaks on standard input, a socket, which `bwrap` passes on with all other descriptors
//! that are inherited; the agent closes those. Descriptors that are sent over the socket cross
//! namespaces. One of a folder leads back to all of the machine: its `..` is the one outside.

mod version;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use serde::{Deserialize, Serialize};

use crate::known_paths;
use crate::layout::{Cover, Layout};
use crate::view::Network;
pub use version::Version;

/// Where the agent's own program is inside, whatever is hidden.
const PROGRAM: &str = "/run/mcpz";

const NAMESPACES: &[&str] =
    &["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];

/// The way into a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bubblewrap {
    pub program: PathBuf,
    pub version: Version,
}

/// A call that is ready to be made.
#[derive(Debug)]
pub struct PreparedCommand {
    pub command: Command,
    options: OwnedFd,
}

impl PreparedCommand {
    /// The call, and what is inherited by it: that must live until it is made.
    pub fn into_parts(self) -> (Command, OwnedFd) {
        (self.command, self.options)
    }
}

impl Bubblewrap {
    /// Has `program` called with `arguments` inside. The options go by a descriptor: on the command
    /// line everybody inside would see them, in every list of processes.
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

    /// What `bwrap` is told, but for what to call.
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
                    // Nothing inside can be seen, unless the view has something there.
                    let perms = if layout.has_below(path) { "0711" } else { "0000" };
                    options.add(&["--perms", perms, "--size", "65536"]);
                    options.add_paths("--tmpfs", &[path]);
                }
                // A device on a mount without devices cannot be opened.
                Cover::Hidden => options.add_paths("--ro-bind", &[Path::new("/dev/null"), path]),
            }
        }
        options.add_paths("--ro-bind", &[program, Path::new(PROGRAM)]);
        known_paths::SERVICE_VARIABLES.iter().for_each(|name| options.add(&["--unsetenv", name]));
        options.add(&["--setenv", "TMPDIR", "/tmp"]);
        options.add_paths("--chdir", &[&layout.directory]);
        options.0
    }
}

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
