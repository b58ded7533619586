//! The control socket, where other processes of the same user ask for the jobs of this one.
//!
//!     mcpz jobs ──┐                          ┌── server: the jobs of all its clients
//!                 ├── Request ──▶ socket ────┤
//!     server ─────┘ ◀── Reply                └── recorder: its one job
//!
//! The socket is in a folder only its user can enter. Processes that a server runs are refused ([`Access`]). The
//! policy is not asked: any other process of that user could as well attach a debugger.

mod access;
mod connection;
mod messages;
mod service;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::path_of;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::time::sleep;

pub use access::{Access, Refusal};
pub use connection::{Connection, Refused};
pub use messages::{JobListing, OutputRange, Reply};

use crate::jobs::Job;

/// A folder and nothing that leads to one.
const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::PATH);

/// The name of the socket in its folder.
const SOCKET: &str = "control";

/// All jobs that can be asked for, with the names of their owners.
pub type Register = Arc<dyn Fn() -> Vec<(Arc<str>, Arc<Job>)> + Send + Sync>;

/// How long to wait after a connection could not be accepted, because there are too many.
const REST: Duration = Duration::from_millis(100);

/// A socket that is served. Connections that follow a job are counted.
#[derive(Debug, Clone)]
pub struct ControlSocket {
    followers: watch::Receiver<usize>,
}

impl ControlSocket {
    /// Serves all connections, in a task of its own that lives as long as the runtime.
    pub fn open(folder: &Path, register: Register, access: Access) -> io::Result<Self> {
        let listener = bind(folder)?;
        let (counted, followers) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    sleep(REST).await;
                    continue;
                };
                // The folder is closed to others; this is the second lock.
                let own = rustix::process::geteuid().as_raw();
                let known = stream.peer_cred().is_ok_and(|peer| [own, 0].contains(&peer.uid()));
                if known && let Some(stream) = access.admit(stream) {
                    tokio::spawn(service::serve(stream, register.clone(), counted.clone()));
                }
            }
        });
        Ok(Self { followers })
    }

    /// Waits until nobody follows a job any more.
    pub async fn unfollowed(&self) {
        let _ = self.followers.clone().wait_for(|followers| *followers == 0).await;
    }
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

/// Whether nobody serves the socket in a folder, and nobody will.
pub fn is_abandoned(folder: &Path) -> bool {
    connect(folder).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Does not wait: a socket with too many connections is busy.
fn connect(folder: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    reached(folder, |path| Ok(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?))?;
    Ok(socket.into())
}

/// The socket in a folder under a name of any length: addresses have room for some hundred bytes.
fn reached<T>(folder: &Path, use_it: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    use_it(&path_of(&folder).join(SOCKET))
}
