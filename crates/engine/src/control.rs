//! The control socket, through which other processes of the same user manage the jobs of this one.
//!
//!     mcpz jobs ──┐                          ┌── server: the jobs of all its owners
//!                 ├── request ──▶ socket ────┤
//!     server ─────┘ ◀── reply                └── recorder: its one job
//!
//! People can also search and read the outputs that a server keeps ([`KeptRun`]).
//!
//! The socket is in a folder that only its user can enter. Processes that a server runs are refused ([`Access`]). The
//! policy is not consulted: any other process of that user could just as well attach a debugger.

mod access;
mod connection;
mod messages;
mod outputs;
mod service;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::path_of;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::time::sleep;

pub use access::{Access, PeerRefusal};
pub use connection::{AccessDenied, Connection};
pub use messages::{ControlReply, JobListing, OutputRange, PlaceListing};
pub use outputs::KeptRun;

use crate::jobs::Job;

/// Opens a folder, and no link to one.
const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::PATH);

/// The name of the socket in its folder.
const SOCKET: &str = "control";

/// What can be managed through a socket.
pub trait Managed: Send + Sync {
    /// All jobs, with the names of their owners.
    fn jobs(&self) -> Vec<(Arc<str>, Arc<Job>)>;

    /// The outputs of these jobs, and all others that are kept.
    fn outputs(&self) -> Vec<KeptRun> {
        self.jobs().iter().map(|(owner, job)| KeptRun::of(owner, job)).collect()
    }

    /// All places that are open.
    fn places(&self) -> Vec<PlaceListing> {
        Vec::new()
    }

    /// Ends the places with this name, with everything in them.
    fn stop_places(&self, _name: &str) -> Stopping {
        Box::pin(std::future::ready(0))
    }
}

impl<F: Fn() -> Vec<(Arc<str>, Arc<Job>)> + Send + Sync> Managed for F {
    fn jobs(&self) -> Vec<(Arc<str>, Arc<Job>)> {
        self()
    }
}

/// Completes when places have ended, and returns how many those were.
pub type Stopping = Pin<Box<dyn Future<Output = usize> + Send>>;

pub type Register = Arc<dyn Managed>;

/// The pause after failing to accept a connection because there are too many.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A served socket. Counts the connections that follow a job.
#[derive(Debug, Clone)]
pub struct ControlSocket {
    followers: watch::Receiver<usize>,
}

impl ControlSocket {
    /// Serves all connections, in a task that lives as long as the runtime.
    pub fn open(folder: &Path, register: Register, access: Access) -> io::Result<Self> {
        let listener = bind(folder)?;
        let (counted, followers) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                // The folder already keeps other users out.
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
    pub async fn wait_until_unfollowed(&self) {
        let _ = self.followers.clone().wait_for(|followers| *followers == 0).await;
    }
}

/// Makes a folder that only its user can enter, unless it exists.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn bind(folder: &Path) -> io::Result<UnixListener> {
    create_private_folder(folder)?;
    let _ = std::fs::remove_file(folder.join(SOCKET));
    at_short_path(folder, |path| UnixListener::bind(path))
}

/// Whether nobody serves the socket in a folder, and nobody will.
pub fn is_abandoned(folder: &Path) -> bool {
    connect(folder).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Connects without waiting: a socket with too many connections is busy.
fn connect(folder: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    at_short_path(folder, |path| Ok(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?))?;
    Ok(socket.into())
}

/// Calls `with` with a short path to the socket in a folder. Socket addresses have room for about a hundred bytes.
fn at_short_path<T>(folder: &Path, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    with(&path_of(&folder).join(SOCKET))
}
