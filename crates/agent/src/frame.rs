//! What server, agent and keepers say to each other, and how it looks on the wire.
//!
//! A frame is a little-endian `u32` length and that many bytes of [postcard]. Anything that does
//! not decode, is longer than [`MAX_FRAME`] or leaves bytes over is garbage, and garbage ends the
//! connection.
//!
//!     server ── Order ──▶ agent       makes keepers, a connection each
//!     server ◀── Report ── agent
//!
//!     server ── Request ──▶ keeper    minds one run at a time
//!     server ◀── Event ── keeper
//!
//! A run is always told in this order: `Failed`, or `Started`, `Exited` and, unless `Exited` said
//! that nothing was left, `Gone`. A connection that ends before is a keeper that was killed. In between,
//! every `Look` is answered by one `Seen`, in the order they were asked.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use mcpz_sandbox::Permissions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::{Limit, Limits};
use crate::look::{Question, Seen};

/// Raised whenever a frame changes its meaning or its bytes.
pub const VERSION: u16 = 9;

/// The longest frame either side accepts.
pub const MAX_FRAME: usize = 16 << 20;

/// Where a program that is directed reads what it is told, and where it answers: out of the way of
/// the low numbers scripts use themselves.
pub const ORDERS_FD: i32 = 61;
pub const ANSWERS_FD: i32 = 62;

const HEADER: usize = 4;

/// What the server wants of the agent. The first order is `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    Hello {
        version: u16,
        /// What every command is held to, if anything.
        confinement: Option<Box<Confinement>>,
        /// What every run may use.
        limits: Limits,
    },
    /// Make a keeper for runs of one owner. It serves the socket which travels with this frame.
    Keep { keeper: u64, owner: u64 },
}

/// What commands of an agent are held to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub permissions: Permissions,
    /// Whether somebody outside serves them a way out.
    pub proxied: bool,
}

/// What the agent has to say. The first report is `Hello` or `Refused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    Hello {
        version: u16,
        /// Folders to clear away should the agent be killed.
        cgroups: Vec<PathBuf>,
        /// Where commands find their way out. The listener travels with this frame.
        port: Option<u16>,
    },
    /// Commands cannot be held to what was asked for: nothing will be started.
    Refused { why: String },
    /// The keeper ended, and whatever it left behind is gone.
    Buried { keeper: u64 },
}

/// What the server wants of a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A directory that is held travels with this frame.
    Spawn(Spawn<Enclosed>),
    /// Sends one signal to the run's first process.
    Signal(i32),
    /// Ends the whole tree: SIGTERM now, SIGKILL after the grace.
    Kill {
        grace: Duration,
    },
    Look(Question),
}

/// What a keeper tells about its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    Failed(Failure),
    /// The program runs. `fds` descriptors travel with this frame: its terminal, or the read ends of
    /// stdout and stderr, then the write end of stdin if one was asked for; then the write end of its
    /// orders and the read end of its answers, if it is directed.
    Started {
        pid: i32,
        fds: u8,
    },
    /// The first process ended. With `gone`, so did everything it started. Of a run that is being ended
    /// it is told when all of it has, or cannot be.
    Exited {
        exit: Exit,
        gone: bool,
    },
    /// The tree ended, but for `survivors` that even SIGKILL did not end in time.
    Gone {
        survivors: Vec<i32>,
        /// The limit that ended what was left, if one did.
        limit: Option<Limit>,
    },
    Seen(Seen),
}

/// One program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn<H = OwnedFd> {
    pub program: Program,
    pub directory: Directory<H>,
    /// Changes to the agent's own environment: a value sets, `None` removes.
    pub environment: Vec<(OsString, Option<OsString>)>,
    pub stdin: Stdin,
    /// Whether what it writes to stderr goes where stdout goes.
    pub joined: bool,
    /// Whether it is talked to on descriptors of its own: it reads from [`ORDERS_FD`] and answers on
    /// [`ANSWERS_FD`].
    pub directed: bool,
}

/// Where a program starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Directory<H = OwnedFd> {
    /// Where the agent is.
    Own,
    /// What has this name when the program starts.
    Path(PathBuf),
    /// What is held, whatever its name is by then.
    Handle(H),
}

/// Stands for a descriptor that travels with the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosed;

impl<H> Spawn<H> {
    /// The same with another kind of handle.
    fn with<T>(self, directory: Directory<T>) -> Spawn<T> {
        let Self { program, environment, stdin, joined, directed, .. } = self;
        Spawn { program, directory, environment, stdin, joined, directed }
    }
}

impl Spawn {
    /// What goes into a frame, and what goes with it.
    pub fn enclose(mut self) -> (Spawn<Enclosed>, Option<OwnedFd>) {
        match std::mem::replace(&mut self.directory, Directory::Own) {
            Directory::Own => (self.with(Directory::Own), None),
            Directory::Path(path) => (self.with(Directory::Path(path)), None),
            Directory::Handle(handle) => (self.with(Directory::Handle(Enclosed)), Some(handle)),
        }
    }
}

impl Spawn<Enclosed> {
    /// The opposite, if what came with the frame is there.
    pub fn unpack(mut self, enclosed: impl FnOnce() -> Option<OwnedFd>) -> Option<Spawn> {
        let directory = match std::mem::replace(&mut self.directory, Directory::Own) {
            Directory::Own => Directory::Own,
            Directory::Path(path) => Directory::Path(path),
            Directory::Handle(Enclosed) => Directory::Handle(enclosed()?),
        };
        Some(self.with(directory))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// A program and its arguments; a name without a slash is looked up on `PATH`.
    Argv(Vec<OsString>),
    /// A text for a shell, of any length.
    Script { shell: OsString, text: OsString },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    Null,
    Pipe,
    /// A terminal of this size, which is its output too.
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
    /// Making pipes, processes or other things of the system.
    Resources,
    /// Entering the working directory.
    Directory,
    /// Confining it, as every command here must be.
    Confinement,
    /// Executing the program.
    Program,
}

/// How a run's first process ended, and what all of the run has used so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub status: Status,
    pub usage: Usage,
    /// Processes of the run that were still alive.
    pub left: Vec<i32>,
    /// The limit that ended it, if one did.
    pub limit: Option<Limit>,
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
    #[error("a frame has {0} bytes too many")]
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

/// Reads the first frame of `bytes`: the message and how many bytes it took, or `None` when the
/// frame is not complete yet.
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

    fn spawn() -> impl Strategy<Value = Spawn<Enclosed>> {
        let directory = prop_oneof![
            Just(Directory::Own),
            "/[a-z]{0,9}".prop_map(|path| Directory::Path(path.into())),
            Just(Directory::Handle(Enclosed)),
        ];
        let environment = vec((text(), proptest::option::of(text())), 0..4);
        let terminal = (1..99_u16, 1..999_u16);
        let stdin = prop_oneof![
            Just(Stdin::Null),
            Just(Stdin::Pipe),
            terminal.prop_map(|(rows, columns)| Stdin::Terminal { rows, columns }),
        ];
        let flags = any::<(bool, bool)>();
        (program(), directory, environment, stdin, flags).prop_map(
            |(program, directory, environment, stdin, (joined, directed))| Spawn {
                program,
                directory,
                environment,
                stdin,
                joined,
                directed,
            },
        )
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            spawn().prop_map(Request::Spawn),
            any::<i32>().prop_map(Request::Signal),
            any::<Duration>().prop_map(|grace| Request::Kill { grace }),
            any::<u16>().prop_map(|port| Request::Look(Question::Listens { port })),
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
                let (decoded, length) = decode::<Request>(rest).unwrap().unwrap();
                prop_assert_eq!(decoded, request);
                rest = &rest[length..];
            }
            prop_assert!(decode::<Request>(rest).unwrap().is_none());
        }

        #[test]
        fn a_frame_that_is_cut_off_anywhere_is_not_complete(request in request(), cut in any::<prop::sample::Index>()) {
            let bytes = encoded(&[request]);
            let cut = cut.index(bytes.len());
            prop_assert!(decode::<Request>(&bytes[..cut]).unwrap().is_none());
        }

        #[test]
        fn garbage_is_an_error_or_a_message_but_never_a_panic(bytes in vec(any::<u8>(), 0..64)) {
            let mut frame = (bytes.len() as u32).to_le_bytes().to_vec();
            frame.extend(&bytes);
            let _ = decode::<Request>(&frame);
            let _ = decode::<Event>(&frame);
            let _ = decode::<Order>(&frame);
            let _ = decode::<Report>(&frame);
            let _ = decode::<Request>(&bytes);
        }

        #[test]
        fn bytes_over_are_garbage(request in request(), over in 1_u32..9) {
            let mut bytes = encoded(&[request]);
            let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) + over;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            bytes.resize(bytes.len() + over as usize, 0);
            prop_assert!(decode::<Request>(&bytes).is_err());
        }
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_by_both_sides() {
        let text = OsString::from("x".repeat(MAX_FRAME));
        let program = Program::Script { shell: "sh".into(), text };
        let directory = Directory::Own;
        let (environment, stdin) = (Vec::new(), Stdin::Null);
        let spawn =
            Spawn { program, directory, environment, stdin, joined: false, directed: false };
        let mut bytes = Vec::new();
        assert!(matches!(encode(&Request::Spawn(spawn), &mut bytes), Err(FrameError::TooLong(_))));
        assert!(bytes.is_empty());
        let header = u32::try_from(MAX_FRAME + 1).unwrap().to_le_bytes();
        assert!(matches!(decode::<Request>(&header), Err(FrameError::TooLong(_))));
    }
}
