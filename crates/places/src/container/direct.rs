//! A socket into a new container, beside the engine, which passes each byte through several processes of its own.
//!
//!     folder with a socket ─ mounted ─▶ the relay connects, and repeats what it was told by way of the engine
//!                                       it cannot: it says so by way of the engine, which then carries the stream
//!
//! It cannot in gVisor, behind some security modules, or if the engine is on another machine. The connection by way of
//! the engine stays open in any case: what the place says comes there, and when it closes, the place has ended.

use std::fs::{DirBuilder, File, Permissions, read_dir, remove_dir_all, set_permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bollard::models::{Mount as ApiMount, MountType};
use mcpz_agent::{Maker, MakerState, TOKEN_LENGTH, WELCOME, path_of};
use mcpz_runtime::random_name;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::attach::Attached;
use crate::made::ByteStream;

/// Where the folder is in the container.
const TARGET: &str = "/.mcpz-stream";

/// The socket in it.
const SOCKET: &str = "socket";

/// What the names of our folders begin with. Who made one follows, and then random letters.
const PREFIX: &str = "mcpz-place-";

/// How long a container may take to start its first process. After that, the engine carries the stream.
const CHOICE_TIME: Duration = Duration::from_secs(30);

/// How long somebody who has connected may take to say the token.
const TOKEN_TIME: Duration = Duration::from_secs(1);

/// Engines, with a runtime each, whose containers cannot reach a socket. They are not asked again: podman makes a
/// folder that it does not find, and leaves it there.
static UNREACHABLE: Mutex<Vec<Way>> = Mutex::new(Vec::new());

/// The address of an engine, and a runtime.
pub type Way = (String, Option<String>);

/// A socket that a relay in a new container may connect to.
pub struct SharedSocket {
    listener: UnixListener,
    token: String,
    way: Way,
    /// Only we can enter it. The folder in it that is mounted is for all users in the container.
    folder: Folder,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
    }
}

impl SharedSocket {
    pub fn open(parent: &Path, way: Way) -> io::Result<Self> {
        if unreachable().contains(&way) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let folder = Folder::create(parent)?;
        // Whole paths of sockets must be short.
        let mounted = File::open(folder.mounted())?;
        let socket = path_of(&mounted).join(SOCKET);
        let listener = UnixListener::bind(&socket)?;
        set_permissions(&socket, Permissions::from_mode(0o666))?;
        Ok(Self { listener, token: random_name()?, way, folder })
    }

    /// Containers of this engine cannot reach it.
    pub fn give_up(self) {
        unreachable().push(self.way);
    }

    pub fn mount(&self) -> ApiMount {
        ApiMount {
            typ: Some(MountType::BIND),
            source: Some(self.folder.mounted().display().to_string()),
            target: Some(TARGET.to_owned()),
            read_only: Some(true),
            ..Default::default()
        }
    }

    /// What the relay finds in the container.
    pub fn path_inside() -> String {
        format!("{TARGET}/{SOCKET}")
    }

    /// The stream to a relay that has been started. Nobody can connect afterwards.
    pub async fn stream(self, mut attached: Attached) -> Box<dyn ByteStream> {
        let mut said = [0; 64];
        let choice = async {
            // Before its greeting, a relay skips what it does not need.
            attached.write_all(self.token.as_bytes()).await.ok()?;
            tokio::select! {
                socket = self.accept() => socket.ok(),
                _ = attached.read(&mut said) => None,
            }
        };
        match timeout(CHOICE_TIME, choice).await {
            Ok(Some(socket)) => return Box::new(Direct { socket, attached }),
            // It has ended, so nothing is known.
            Ok(None) if said[0] == 0 => {}
            _ => self.give_up(),
        }
        Box::new(attached)
    }

    /// Others of our user can connect as well, but only the relay was told the token.
    async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (mut socket, _) = self.listener.accept().await?;
            let mut token = [0; TOKEN_LENGTH];
            let said = timeout(TOKEN_TIME, socket.read_exact(&mut token)).await;
            if matches!(said, Ok(Ok(_))) && token == *self.token.as_bytes() {
                socket.write_all(WELCOME).await?;
                return Ok(socket);
            }
        }
    }
}

fn unreachable() -> MutexGuard<'static, Vec<Way>> {
    UNREACHABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folder {
    fn create(parent: &Path) -> io::Result<Self> {
        let (maker, random) = (Maker::own().ok_or(io::ErrorKind::NotFound)?, random_name()?);
        let folder = Self(parent.join(format!("{PREFIX}{maker}-{random}")));
        DirBuilder::new().mode(0o700).create(&folder.0)?;
        let mounted = folder.mounted();
        DirBuilder::new().create(&mounted)?;
        set_permissions(&mounted, Permissions::from_mode(0o755))?;
        Ok(folder)
    }

    fn mounted(&self) -> PathBuf {
        self.0.join("in")
    }
}

/// Removes the folders of servers that were killed while they started a container.
pub fn sweep(parent: &Path) {
    let Ok(entries) = read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let made = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.rsplit_once('-'));
        let maker = made.and_then(|(maker, _)| Maker::from_str(maker).ok());
        if maker.is_some_and(|maker| maker.state() == MakerState::Gone) {
            let _ = remove_dir_all(entry.path());
        }
    }
}

/// A stream by way of the socket, for as long as the engine's is open.
struct Direct {
    socket: UnixStream,
    attached: Attached,
}

impl AsyncRead for Direct {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let read @ Poll::Ready(_) = Pin::new(&mut self.socket).poll_read(context, into) {
            return read;
        }
        // What the place says is collected on the way, and nothing else comes there.
        let mut nothing = [0; 64];
        loop {
            let mut nothing = ReadBuf::new(&mut nothing);
            ready!(Pin::new(&mut self.attached).poll_read(context, &mut nothing))?;
            if nothing.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Direct {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_shutdown(context))?;
        Pin::new(&mut self.attached).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        read_dir(folder).unwrap().count()
    }

    #[tokio::test]
    async fn only_who_knows_the_token_comes_in_and_nothing_is_left() {
        let parent = tempfile::tempdir().unwrap();
        let way = |engine: &str| (engine.to_owned(), None);
        let socket = SharedSocket::open(parent.path(), way("a")).unwrap();
        let directory = File::open(socket.folder.mounted()).unwrap();
        let path = path_of(&directory).join(SOCKET);
        let mut stranger = UnixStream::connect(&path).await.unwrap();
        stranger.write_all(&[b'0'; TOKEN_LENGTH]).await.unwrap();
        let mut relay = UnixStream::connect(&path).await.unwrap();
        relay.write_all(socket.token.as_bytes()).await.unwrap();
        let mut accepted = socket.accept().await.unwrap();
        relay.write_all(b"hello").await.unwrap();
        let mut said = [0; 5];
        accepted.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello");
        let mut welcome = [0];
        relay.read_exact(&mut welcome).await.unwrap();
        assert_eq!(welcome, *WELCOME);
        assert_eq!(stranger.read(&mut said).await.unwrap_or(0), 0);
        assert_eq!(entries(parent.path()), 1);
        socket.give_up();
        assert_eq!(entries(parent.path()), 0);
        assert!(SharedSocket::open(parent.path(), way("a")).is_err());
        assert!(SharedSocket::open(parent.path(), way("b")).is_ok());
    }

    #[test]
    fn folders_of_servers_that_are_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let own = Maker::own().unwrap().to_string();
        let (before, _) = own.rsplit_once('.').unwrap();
        let names = [format!("{before}.1"), own, "another boot.1.2.3".to_owned()];
        for name in &names {
            std::fs::create_dir(parent.path().join(format!("{PREFIX}{name}-abc"))).unwrap();
        }
        std::fs::create_dir(parent.path().join("mcpz-place-1")).unwrap();
        sweep(parent.path());
        assert_eq!(entries(parent.path()), 3);
        assert!(!parent.path().join(format!("{PREFIX}{}-abc", names[0])).exists());
    }
}
