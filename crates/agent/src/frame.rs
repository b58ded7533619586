//! The messages between server, agent and keepers, and how they are encoded.
//!
//! A frame is a little-endian `u32` length and that many bytes of [postcard]. A frame that does not decode, is
//! longer than [`MAX_FRAME`] or has bytes left over is garbage. Garbage ends the connection and never causes a panic.
//!
//!     server ── AgentRequest ──▶ agent       forks keepers, each with its own connection
//!     server ◀── AgentEvent ──── agent
//!
//!     server ── KeeperRequest ──▶ keeper     supervises one run at a time
//!     server ◀── KeeperEvent ──── keeper
//!
//! The events of a run always come in this order: `Failed`, or `Started`, `Exited` and, unless `Exited` said that
//! nothing was left, `Gone`. If the connection ends earlier, the keeper was killed. In between, every `Ask` is
//! answered by one `Answered`, in order.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use mcpz_sandbox::Permissions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exec_rules::{EncodedRules, RefusedExec};
use crate::inspect::{Answer, Question};
use crate::limits::{Limit, Limits};

/// Raised whenever a frame changes its meaning or its bytes.
pub const VERSION: u16 = 19;

/// The longest frame either side accepts.
pub const MAX_FRAME: usize = 16 << 20;

/// The descriptor on which a program replies. High enough not to collide with the low numbers that scripts use
/// themselves.
pub const REPLY_FD: i32 = 62;

const HEADER: usize = 4;

/// What the server asks of the agent. The first request is `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentRequest {
    Hello {
        version: u16,
        /// How every command is confined, if at all.
        confinement: Option<Box<Confinement>>,
        /// The limits of every run.
        limits: Limits,
    },
    /// Lets commands change a configuration of git in harmless ways. The open file travels with this frame.
    ShareConfig {
        /// Where commands see it.
        path: PathBuf,
        /// Where the work tree of its repository must be.
        root: PathBuf,
    },
    /// Lets commands write to these paths as well, which did not exist when the agent was confined.
    AllowWriting(Vec<PathBuf>),
    /// Connects to a port that commands listen on.
    Connect { port: u16 },
    /// Starts a keeper for runs of one owner. It serves the socket that travels with this frame.
    StartKeeper { keeper: u64, owner: u64 },
}

/// How an agent confines its commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub permissions: Permissions,
    /// Whether a proxy outside serves their connections.
    pub proxied: bool,
}

/// What the agent reports. The first event is `Hello` or `Refused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentEvent {
    Hello {
        version: u16,
        /// The cgroup folders to remove if the agent is killed.
        cgroups: Vec<PathBuf>,
        /// The port on which commands reach the proxy. The listener travels with this frame.
        port: Option<u16>,
    },
    /// Commands cannot be confined as asked, so the agent starts none.
    Refused { reason: String },
    /// The answer to `AllowWriting` or `Connect`, in their order. If `attached`, the connection travels with this
    /// frame.
    Answered { attached: bool },
    /// The keeper has ended, and nothing of its run is left.
    KeeperGone { keeper: u64 },
}

/// What the server asks of a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperRequest {
    /// A directory given as a handle travels with this frame.
    Spawn(Spawn<Attached>),
    /// Sends a signal to the run's first process.
    Signal(i32),
    /// Ends the whole process tree: SIGTERM now, SIGKILL after the grace.
    Kill {
        grace: Duration,
    },
    Ask(Question),
}

/// What a keeper reports about its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperEvent {
    Failed(Failure),
    /// The program runs. `fds` descriptors travel with this frame: its terminal, or the read ends of stdout and
    /// stderr and then our end of stdin, if asked for; then the read end of its reply pipe, if it has one.
    Started {
        pid: i32,
        fds: u8,
    },
    /// The first process has ended. If `gone`, everything it started has too. A run that is being killed reports
    /// this only when all of it has ended, or cannot be ended.
    Exited {
        exit: Exit,
        gone: bool,
    },
    /// The process tree has ended, except for `survivors` that even SIGKILL did not end in time.
    Gone {
        survivors: Vec<i32>,
        /// The limit that ended the rest of the tree, if one did.
        limit: Option<Limit>,
    },
    Answered(Answer),
}

/// One program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn<H = OwnedFd> {
    pub program: Program,
    pub directory: Directory<H>,
    /// Changes to the agent's own environment: a value sets, `None` removes.
    pub environment: Vec<(OsString, Option<OsString>)>,
    pub stdin: Stdin,
    /// Whether stderr goes to the same pipe as stdout.
    pub joined: bool,
    /// Whether the program gets a pipe to reply on, [`REPLY_FD`].
    pub replies: bool,
    /// What it and all it starts may execute, if not everything.
    pub exec_rules: Option<EncodedRules>,
}

/// The working directory of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Directory<H = OwnedFd> {
    /// The agent's own.
    Own,
    /// Looked up by name when the program starts.
    Path(PathBuf),
    /// An open directory, whatever its name is by then.
    Handle(H),
    /// One that is beneath one of these, which the keeper opens.
    Beneath { roots: Vec<PathBuf>, path: PathBuf },
}

/// Stands for a descriptor that travels with the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached;

impl<H> Spawn<H> {
    /// The same request with another directory.
    fn with_directory<T>(self, directory: Directory<T>) -> Spawn<T> {
        let Self { program, environment, stdin, joined, replies, exec_rules, .. } = self;
        Spawn { program, directory, environment, stdin, joined, replies, exec_rules }
    }
}

impl Spawn {
    /// Splits the request into what a frame encodes and the descriptor that travels with the frame.
    pub fn split_directory(mut self) -> (Spawn<Attached>, Option<OwnedFd>) {
        match std::mem::replace(&mut self.directory, Directory::Own) {
            Directory::Own => (self.with_directory(Directory::Own), None),
            Directory::Path(path) => (self.with_directory(Directory::Path(path)), None),
            Directory::Beneath { roots, path } => {
                (self.with_directory(Directory::Beneath { roots, path }), None)
            }
            Directory::Handle(handle) => {
                (self.with_directory(Directory::Handle(Attached)), Some(handle))
            }
        }
    }
}

impl Spawn<Attached> {
    /// Puts the request together again. `None` if the descriptor did not arrive.
    pub fn join_directory(mut self, attached: impl FnOnce() -> Option<OwnedFd>) -> Option<Spawn> {
        let directory = match std::mem::replace(&mut self.directory, Directory::Own) {
            Directory::Own => Directory::Own,
            Directory::Path(path) => Directory::Path(path),
            Directory::Beneath { roots, path } => Directory::Beneath { roots, path },
            Directory::Handle(Attached) => Directory::Handle(attached()?),
        };
        Some(self.with_directory(directory))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// A program and its arguments; a name without a slash is looked up on `PATH`.
    Argv(Vec<OsString>),
    /// A script for a shell, of any length.
    Script { shell: OsString, text: OsString },
}

impl Program {
    /// The program and its arguments, as far as they are not a script.
    pub fn words(&self) -> &[OsString] {
        match self {
            Self::Argv(words) => words,
            Self::Script { shell, .. } => std::slice::from_ref(shell),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    Null,
    Pipe,
    /// A socket, from which a shell of ours reads what to do. Unlike a pipe, nobody can open it again through `/proc`,
    /// neither to read what was meant for the shell nor to write to it.
    Orders,
    /// A terminal of this size, which is stdout and stderr too.
    Terminal {
        rows: u16,
        columns: u16,
    },
}

/// Why a program could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub stage: Stage,
    pub errno: i32,
}

/// What was being done when starting failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Creating pipes, processes or other kernel objects.
    Resources,
    /// Entering the working directory.
    Directory,
    /// Applying the restrictions that every command must have.
    Confinement,
    /// Executing the program.
    Program,
    /// Checking the program, which a rule denies.
    Denied,
    /// Entering a directory that is not beneath an allowed one.
    Outside,
}

/// How a run's first process ended, and what the whole run has used so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub status: Status,
    pub usage: Usage,
    /// Processes of the run that were still alive.
    pub left: Vec<i32>,
    /// The limit that ended it, if one did.
    pub limit: Option<Limit>,
    /// What it was not allowed to execute.
    pub refused: Vec<RefusedExec>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub wall: Duration,
    pub cpu: Duration,
    pub max_rss_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes is over the limit of {MAX_FRAME}")]
    TooLong(usize),
    #[error("a frame does not decode")]
    Garbage(#[source] postcard::Error),
    #[error("a frame has {0} bytes left over")]
    Trailing(usize),
}

/// Appends `message` to `out` as one frame.
pub fn encode<T: Serialize>(message: &T, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = out.len();
    let body = postcard::to_allocvec(message).map_err(FrameError::Garbage)?;
    if body.len() > MAX_FRAME {
        return Err(FrameError::TooLong(body.len()));
    }
    out.reserve(HEADER + body.len());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
    debug_assert_eq!(out.len(), start + HEADER + body.len());
    Ok(())
}

/// Decodes the first frame of `bytes`: the message and the frame's length, or `None` if the frame is not complete
/// yet.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(T, usize)>, FrameError> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*header) as usize;
    if length > MAX_FRAME {
        return Err(FrameError::TooLong(length));
    }
    let Some(body) = rest.get(..length) else {
        return Ok(None);
    };
    match postcard::take_from_bytes(body).map_err(FrameError::Garbage)? {
        (message, []) => Ok(Some((message, HEADER + length))),
        (_, rest) => Err(FrameError::Trailing(rest.len())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = OsString> {
        vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
    }

    fn program() -> impl Strategy<Value = Program> {
        prop_oneof![
            vec(text(), 0..4).prop_map(Program::Argv),
            (text(), text()).prop_map(|(shell, text)| Program::Script { shell, text }),
        ]
    }

    fn spawn() -> impl Strategy<Value = Spawn<Attached>> {
        let directory = prop_oneof![
            Just(Directory::Own),
            "/[a-z]{0,9}".prop_map(|path| Directory::Path(path.into())),
            Just(Directory::Handle(Attached)),
        ];
        let environment = vec((text(), proptest::option::of(text())), 0..4);
        let terminal = (1..99_u16, 1..999_u16);
        let stdin = prop_oneof![
            Just(Stdin::Null),
            Just(Stdin::Pipe),
            Just(Stdin::Orders),
            terminal.prop_map(|(rows, columns)| Stdin::Terminal { rows, columns }),
        ];
        let flags = any::<(bool, bool)>();
        (program(), directory, environment, stdin, flags).prop_map(
            |(program, directory, environment, stdin, (joined, replies))| Spawn {
                program,
                directory,
                environment,
                stdin,
                joined,
                replies,
                exec_rules: None,
            },
        )
    }

    fn request() -> impl Strategy<Value = KeeperRequest> {
        prop_oneof![
            spawn().prop_map(KeeperRequest::Spawn),
            any::<i32>().prop_map(KeeperRequest::Signal),
            any::<Duration>().prop_map(|grace| KeeperRequest::Kill { grace }),
            any::<u16>().prop_map(|port| KeeperRequest::Ask(Question::Listens { port })),
        ]
    }

    fn encoded<T: Serialize>(messages: &[T]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            encode(message, &mut bytes).unwrap();
        }
        bytes
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded_one_by_one(requests in vec(request(), 0..5)) {
            let bytes = encoded(&requests);
            let mut rest = bytes.as_slice();
            for request in requests {
                let (decoded, length) = decode::<KeeperRequest>(rest).unwrap().unwrap();
                prop_assert_eq!(decoded, request);
                rest = &rest[length..];
            }
            prop_assert!(decode::<KeeperRequest>(rest).unwrap().is_none());
        }

        #[test]
        fn a_frame_that_is_cut_off_anywhere_is_not_complete(request in request(), cut in any::<prop::sample::Index>()) {
            let bytes = encoded(&[request]);
            let cut = cut.index(bytes.len());
            prop_assert!(decode::<KeeperRequest>(&bytes[..cut]).unwrap().is_none());
        }

        #[test]
        fn garbage_is_an_error_or_a_message_but_never_a_panic(bytes in vec(any::<u8>(), 0..64)) {
            let mut frame = (bytes.len() as u32).to_le_bytes().to_vec();
            frame.extend(&bytes);
            let _ = decode::<KeeperRequest>(&frame);
            let _ = decode::<KeeperEvent>(&frame);
            let _ = decode::<AgentRequest>(&frame);
            let _ = decode::<AgentEvent>(&frame);
            let _ = decode::<KeeperRequest>(&bytes);
        }

        #[test]
        fn bytes_over_are_garbage(request in request(), over in 1_u32..9) {
            let mut bytes = encoded(&[request]);
            let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) + over;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            bytes.resize(bytes.len() + over as usize, 0);
            prop_assert!(decode::<KeeperRequest>(&bytes).is_err());
        }
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_by_both_sides() {
        let text = OsString::from("x".repeat(MAX_FRAME));
        let program = Program::Script { shell: "sh".into(), text };
        let directory = Directory::Own;
        let (environment, stdin) = (Vec::new(), Stdin::Null);
        let (joined, replies, exec_rules) = (false, false, None);
        let spawn = Spawn { program, directory, environment, stdin, joined, replies, exec_rules };
        let mut bytes = Vec::new();
        assert!(matches!(
            encode(&KeeperRequest::Spawn(spawn), &mut bytes),
            Err(FrameError::TooLong(_))
        ));
        assert!(bytes.is_empty());
        let header = u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes();
        assert!(matches!(decode::<KeeperRequest>(&header), Err(FrameError::TooLong(_))));
    }
}
