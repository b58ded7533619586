//! A child process through which a place is reached: its standard input and output are the stream.
//!
//! It dies with us without being told to: its input ends, and so does the relay's at the other end of it. A program
//! that may not notice has a supervisor between us and it. If a child is dropped, because its place took too long or
//! nobody waits for it any more, it is ended nevertheless.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use mcpz_agent::{Found, Lookup, look_up, start_child, wait_for_child};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::error::PlaceError;
use crate::opening::Opening;
use crate::said::Said;

/// How long it may take to end by itself.
const END_TIME: Duration = Duration::from_secs(2);

/// How long it may take to end after its stream, and to say why.
const LAST_WORDS_TIME: Duration = Duration::from_millis(500);

/// Of a thread that only waits.
const STACK: usize = 64 << 10;

/// Where programs are if no variable says so.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The argument with which this program supervises the one that the others name.
pub const SUPERVISE: &str = "supervise";

/// A command that runs one of the user's programs with the user's variables, and ends it when we are gone.
pub fn supervised(program: &str, opening: &Opening<'_>) -> io::Result<Command> {
    let path = opening.variables.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or_else(|| DEFAULT_PATH.into(), |(_, value)| value.clone());
    let found = look_up(&Lookup::Program { name: program.into(), path });
    let Found::Program(Some(found)) = found else { return Err(Errno::NOENT.into()) };
    let mut command = Command::new(opening.program);
    command.env_clear().envs(opening.variables.iter().map(|(name, value)| (name, value)));
    command.arg(SUPERVISE).arg(found);
    Ok(command)
}

pub struct Child {
    pid: Pid,
    stream: Option<UnixStream>,
    /// What it says on stderr.
    said: Said,
    /// Until somebody ends it.
    running: Option<Running>,
}

struct Running {
    /// Completes when it has ended.
    ended: oneshot::Receiver<Never>,
    _alive: watch::Receiver<()>,
}

impl Child {
    /// Starts a command with a stream.
    pub fn start(mut command: Command, opening: &Opening<'_>) -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let output = theirs.try_clone()?;
        command.stdin(theirs).stdout(output).stderr(Stdio::piped());
        // A terminal's signals are meant for us, and we decide when it ends.
        command.process_group(0);
        let said = Said::default();
        let (hand, ended) = attendant(said.clone())?;
        let child = start_child(&mut command)?;
        // The command holds the other end, which must close when the child does.
        drop(command);
        let pid = Pid::from_child(&child);
        let _ = hand.send(child);
        let running = Some(Running { ended, _alive: opening.children.subscribe() });
        let mut child = Self { pid, stream: None, said, running };
        child.stream = Some(connect(ours)?);
        Ok(child)
    }

    /// The stream, once.
    pub fn take_stream(&mut self) -> Result<UnixStream, PlaceError> {
        let stream = self.stream.take();
        Ok(stream.ok_or_else(not_connected)?)
    }

    /// The stream, while nobody has taken it.
    pub fn stream(&mut self) -> Result<&mut UnixStream, PlaceError> {
        Ok(self.stream.as_mut().ok_or_else(not_connected)?)
    }

    /// Forgets what it has said.
    pub fn forget_words(&self) {
        self.said.clear();
    }

    /// What it has said, once it has ended, if that was anything.
    pub async fn last_words(&mut self) -> Option<String> {
        if let Some(running) = &mut self.running
            && timeout(LAST_WORDS_TIME, &mut running.ended).await.is_ok()
        {
            self.running = None;
        }
        Some(self.said.text()).filter(|said| !said.is_empty())
    }

    /// Ends it, if it does not by itself, and returns what it has said.
    pub async fn end(mut self) -> String {
        self.stream = None;
        if let Some(running) = self.running.take() {
            // A task, as nobody may wait for us so long.
            let _ = tokio::spawn(running.end(self.pid, END_TIME)).await;
        }
        self.said.text()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stream = None;
        if let Some(running) = self.running.take() {
            tokio::spawn(running.end(self.pid, Duration::ZERO));
        }
    }
}

impl Running {
    /// Ends the process and those in its group, unless it ends by itself within this time.
    async fn end(mut self, group: Pid, mut patience: Duration) {
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(patience, &mut self.ended).await.is_ok() {
                return;
            }
            // It is not reaped before `ended` completes, so the id is still its own.
            let _ = kill_process_group(group, signal);
            patience = END_TIME;
        }
        let _ = (&mut self.ended).await;
    }
}

/// Nothing is ever sent: the end of the channel is what counts.
enum Never {}

/// A thread that takes a child, listens to it and waits for its end. Not one of those for work that blocks: a thousand
/// children would leave none of them.
fn attendant(said: Said) -> io::Result<(Sender<std::process::Child>, oneshot::Receiver<Never>)> {
    let (hand, given) = channel::<std::process::Child>();
    let (over, ended) = oneshot::channel();
    std::thread::Builder::new().stack_size(STACK).spawn(move || {
        if let Ok(mut child) = given.recv() {
            if let Some(stderr) = child.stderr.take() {
                listen(stderr, &said);
            }
            wait_for_child(child);
        }
        drop(over);
    })?;
    Ok((hand, ended))
}

fn not_connected() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

fn connect(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Keeps what is said.
fn listen(mut stderr: impl Read, said: &Said) {
    let mut bytes = [0; 512];
    while let Ok(read @ 1..) = stderr.read(&mut bytes) {
        said.add(&bytes[..read]);
    }
}
