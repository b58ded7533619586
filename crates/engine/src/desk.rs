//! Where other processes of the same user ask for the jobs of this one.
//!
//!     mcpz jobs ──┐                      ┌── server: the jobs of all its owners
//!                 ├── Ask ──▶ desk ──────┤
//!     server ─────┘ ◀── Tell             └── recorder: its one job
//!
//! A desk is a socket in a folder only its user can enter. Nothing is asked of a policy here: whoever
//! can come here could as well attach a debugger.

mod letters;
mod service;
mod visit;

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixListener;

pub use letters::{Listed, Saying, Tell, Wanted};
pub use visit::Visit;

use crate::jobs::Job;

/// The name of the socket in its folder.
const SOCKET: &str = "desk";

/// All jobs somebody may ask for, with the names of their owners.
pub type Register = Arc<dyn Fn() -> Vec<(Arc<str>, Arc<Job>)> + Send + Sync>;

/// Serves whoever comes, in a task of its own that lives as long as the runtime.
pub fn open(folder: &Path, register: Register) -> io::Result<()> {
    let listener = bind(folder)?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The folder is closed to others; this is the second lock.
            let own = rustix::process::geteuid().as_raw();
            let known = stream.peer_cred().is_ok_and(|peer| [own, 0].contains(&peer.uid()));
            if known {
                tokio::spawn(service::serve(stream, register.clone()));
            }
        }
    });
    Ok(())
}

/// Makes a folder that only its user can enter, if it is not there.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn bind(folder: &Path) -> io::Result<UnixListener> {
    private_folder(folder)?;
    let _ = std::fs::remove_file(folder.join(SOCKET));
    reached(folder, |path| UnixListener::bind(path))
}

/// Whether nobody sits at the desk in a folder, and nobody will.
pub fn is_deserted(folder: &Path) -> bool {
    connect(folder).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn connect(folder: &Path) -> io::Result<UnixStream> {
    reached(folder, |path| UnixStream::connect(path))
}

/// The socket in a folder under a name of any length: addresses have room for some hundred bytes.
fn reached<T>(folder: &Path, use_it: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(SOCKET);
    use_it(&path)
}
