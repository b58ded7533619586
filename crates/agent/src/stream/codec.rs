//! Frames on the stream, and the messages in them.
//!
//!     u32 length │ u8 kind │ rest          little-endian; the length counts kind and rest
//!
//!     message    postcard                  ToPlace or FromPlace
//!     data       u64 run │ u8 pipe │ bytes
//!     end        u64 run │ u8 pipe         nothing more comes, or nobody reads any more
//!     credit     u64 run │ u8 pipe │ u32 bytes

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frame::{self, Exit, Failure, MAX_FRAME};
use crate::inspect::{Answer, Question};
use crate::limits::{Limit, Limits};
use crate::lookup::{Found, Lookup};

/// What both ends say first.
pub const MAGIC: &[u8] = b"\0mcpz stream\n";

/// The version of these frames, raised whenever one changes its meaning or its bytes, and that of what keepers get.
pub const VERSIONS: (u16, u16) = (2, frame::VERSION);

/// The most bytes of a pipe in one frame.
pub const MAX_DATA: usize = 64 << 10;

/// The longest frame: a request that starts a program, and a little around it.
const MAX_LENGTH: usize = MAX_FRAME + 1024;

const LENGTH: usize = 4;
const RUN_AND_PIPE: usize = 9;

/// The bytes before the data in a frame.
pub const DATA_HEADER: usize = LENGTH + 1 + RUN_AND_PIPE;

/// Which of its pipes, for one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PipeId {
    pub run: u64,
    pub pipe: u8,
}

/// The pipes of a run. A terminal is stdin and stdout.
pub const STDIN: u8 = 0;
pub const STDOUT: u8 = 1;
pub const STDERR: u8 = 2;
pub const REPLIES: u8 = 3;
pub const PIPES: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a, M> {
    Message(M),
    Data(PipeId, &'a [u8]),
    End(PipeId),
    Credit(PipeId, u32),
}

/// What the server says. The first message is `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToPlace {
    Hello {
        version: (u16, u16),
        beat: Duration,
    },
    /// What commands start with. Precedes the first of them.
    Start {
        variables: Vec<(OsString, OsString)>,
        limits: Limits,
    },
    /// Starts a run of an owner, by an encoded request to a keeper.
    Spawn {
        run: u64,
        owner: u64,
        request: Vec<u8>,
    },
    Run {
        run: u64,
        request: RunRequest,
    },
    /// Ends a run that nobody is interested in any more.
    Drop {
        run: u64,
    },
    Look {
        id: u64,
        lookup: Lookup,
    },
    Beat,
    /// Ends everything. The relay answers with the same when nothing is left.
    Bye,
}

/// What the place says. The first message is `Hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromPlace {
    Hello { version: (u16, u16), facts: PlaceFacts },
    Run { run: u64, event: RunEvent },
    Found { id: u64, found: Found },
    Beat,
    Bye,
}

/// What a server wants to know about a place before it runs anything there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceFacts {
    pub variables: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
}

/// What the server asks of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunRequest {
    Kill { grace: Duration },
    Signal(i32),
    Ask(Question),
}

/// What happens to a run, as in [`ProcessEvent`](crate::ProcessEvent).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEvent {
    NotStarted,
    Failed(Failure),
    Started { pid: i32, pipes: StartedPipes },
    Exited { exit: Exit, gone: bool },
    Gone { survivors: Vec<i32>, limit: Option<Limit> },
    Answered(Answer),
    Lost,
}

impl RunEvent {
    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Started { .. } | Self::Answered(_) => false,
            Self::Exited { gone, .. } => *gone,
            Self::Failed(_) | Self::Gone { .. } | Self::Lost | Self::NotStarted => true,
        }
    }
}

/// Which pipes a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedPipes {
    /// Its stdin and stdout are one terminal.
    pub terminal: bool,
    pub stderr: bool,
    pub stdin: bool,
    pub replies: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("a frame has {0} bytes")]
    Length(usize),
    #[error("a frame is of the unknown kind {0}")]
    Kind(u8),
    #[error("a frame is too short for its kind")]
    Short,
    #[error("a message does not decode")]
    Message(#[source] postcard::Error),
}

const MESSAGE: u8 = 0;
const DATA: u8 = 1;
const END: u8 = 2;
const CREDIT: u8 = 3;

impl<M: Serialize> Frame<'_, M> {
    /// Appends the frame. Fails if it is too long, and then appends nothing.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH]);
        let encoded = self.encode_body(out);
        let length = out.len() - start - LENGTH;
        let encoded = encoded.and(match length > MAX_LENGTH {
            true => Err(CodecError::Length(length)),
            false => Ok(()),
        });
        match encoded {
            Ok(()) => {
                out[start..start + LENGTH].copy_from_slice(&(length as u32).to_le_bytes());
            }
            Err(_) => out.truncate(start),
        }
        encoded
    }

    fn encode_body(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            Self::Message(message) => {
                out.push(MESSAGE);
                let body = postcard::to_allocvec(message).map_err(CodecError::Message)?;
                out.extend_from_slice(&body);
            }
            Self::Data(pipe, bytes) => {
                pipe.encode(DATA, out);
                out.extend_from_slice(bytes);
            }
            Self::End(pipe) => pipe.encode(END, out),
            Self::Credit(pipe, bytes) => {
                pipe.encode(CREDIT, out);
                out.extend_from_slice(&bytes.to_le_bytes());
            }
        }
        Ok(())
    }
}

impl PipeId {
    fn encode(self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        out.extend_from_slice(&self.run.to_le_bytes());
        out.push(self.pipe);
    }

    fn decode(rest: &[u8]) -> Result<(Self, &[u8]), CodecError> {
        let (header, rest) = rest.split_first_chunk::<RUN_AND_PIPE>().ok_or(CodecError::Short)?;
        let (run, pipe) = header.split_first_chunk::<8>().ok_or(CodecError::Short)?;
        Ok((Self { run: u64::from_le_bytes(*run), pipe: pipe[0] }, rest))
    }

    /// The bytes before so much data.
    pub fn data_header(self, length: usize) -> [u8; DATA_HEADER] {
        let mut header = [0; DATA_HEADER];
        let rest = (length + 1 + RUN_AND_PIPE) as u32;
        header[..LENGTH].copy_from_slice(&rest.to_le_bytes());
        header[LENGTH] = DATA;
        header[LENGTH + 1..LENGTH + 9].copy_from_slice(&self.run.to_le_bytes());
        header[DATA_HEADER - 1] = self.pipe;
        header
    }
}

/// Decodes the first frame of `bytes`: the frame and its length, or how many bytes it has if they are not all here.
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<Decoded<'_, M>, CodecError> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else {
        return Ok(Decoded::Incomplete(LENGTH));
    };
    let length = u32::from_le_bytes(*length) as usize;
    if !(1..=MAX_LENGTH).contains(&length) {
        return Err(CodecError::Length(length));
    }
    let Some((kind, body)) = rest.get(..length).and_then(<[u8]>::split_first) else {
        return Ok(Decoded::Incomplete(LENGTH + length));
    };
    let frame = match *kind {
        MESSAGE => match postcard::take_from_bytes(body).map_err(CodecError::Message)? {
            (message, []) => Frame::Message(message),
            (_, over) => return Err(CodecError::Length(over.len())),
        },
        DATA => {
            let (pipe, data) = PipeId::decode(body)?;
            match data.len() {
                1..=MAX_DATA => Frame::Data(pipe, data),
                length => return Err(CodecError::Length(length)),
            }
        }
        END => match PipeId::decode(body)? {
            (pipe, []) => Frame::End(pipe),
            (_, over) => return Err(CodecError::Length(over.len())),
        },
        CREDIT => {
            let (pipe, bytes) = PipeId::decode(body)?;
            let bytes = bytes.try_into().map_err(|_| CodecError::Short)?;
            Frame::Credit(pipe, u32::from_le_bytes(bytes))
        }
        kind => return Err(CodecError::Kind(kind)),
    };
    Ok(Decoded::Frame(frame, LENGTH + length))
}

#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a, M> {
    /// With its length.
    Frame(Frame<'a, M>, usize),
    /// So many bytes are needed.
    Incomplete(usize),
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn pipe() -> impl Strategy<Value = PipeId> {
        (any::<u64>(), any::<u8>()).prop_map(|(run, pipe)| PipeId { run, pipe })
    }

    fn message() -> impl Strategy<Value = ToPlace> {
        let run = any::<u64>();
        let request = vec(any::<u8>(), 0..50);
        prop_oneof![
            Just(ToPlace::Beat),
            Just(ToPlace::Bye),
            run.prop_map(|run| ToPlace::Drop { run }),
            (run, run, request).prop_map(|(run, owner, request)| ToPlace::Spawn {
                run,
                owner,
                request
            }),
            (run, any::<i32>()).prop_map(|(run, signal)| ToPlace::Run {
                run,
                request: RunRequest::Signal(signal)
            }),
        ]
    }

    #[derive(Debug, Clone)]
    enum Owned {
        Message(ToPlace),
        Data(PipeId, Vec<u8>),
        End(PipeId),
        Credit(PipeId, u32),
    }

    impl Owned {
        fn frame(&self) -> Frame<'_, ToPlace> {
            match self {
                Self::Message(message) => Frame::Message(message.clone()),
                Self::Data(pipe, bytes) => Frame::Data(*pipe, bytes),
                Self::End(pipe) => Frame::End(*pipe),
                Self::Credit(pipe, bytes) => Frame::Credit(*pipe, *bytes),
            }
        }
    }

    fn frame() -> impl Strategy<Value = Owned> {
        prop_oneof![
            message().prop_map(Owned::Message),
            (pipe(), vec(any::<u8>(), 1..100)).prop_map(|(pipe, bytes)| Owned::Data(pipe, bytes)),
            pipe().prop_map(Owned::End),
            (pipe(), any::<u32>()).prop_map(|(pipe, bytes)| Owned::Credit(pipe, bytes)),
        ]
    }

    fn encoded(frames: &[Owned]) -> Vec<u8> {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.frame().encode(&mut bytes).unwrap());
        bytes
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded_one_by_one(frames in vec(frame(), 0..6)) {
            let bytes = encoded(&frames);
            let mut rest = bytes.as_slice();
            for frame in &frames {
                let Decoded::Frame(decoded, length) = decode::<ToPlace>(rest).unwrap() else {
                    panic!("a whole frame is not decoded");
                };
                prop_assert_eq!(decoded, frame.frame());
                rest = &rest[length..];
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn a_frame_that_is_cut_off_anywhere_tells_how_much_it_needs(frame in frame(), cut in any::<prop::sample::Index>()) {
            let bytes = encoded(&[frame]);
            let cut = cut.index(bytes.len());
            let needed = if cut < LENGTH { LENGTH } else { bytes.len() };
            prop_assert_eq!(decode::<ToPlace>(&bytes[..cut]).unwrap(), Decoded::Incomplete(needed));
        }

        #[test]
        fn garbage_is_an_error_or_a_frame_but_never_a_panic(bytes in vec(any::<u8>(), 0..80)) {
            let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
            framed.extend(&bytes);
            for bytes in [&framed, &bytes] {
                let _ = decode::<ToPlace>(bytes);
                let _ = decode::<FromPlace>(bytes);
            }
        }

        #[test]
        fn a_header_and_its_data_are_a_frame(pipe in pipe(), bytes in vec(any::<u8>(), 1..100)) {
            let by_hand = [&pipe.data_header(bytes.len())[..], &bytes].concat();
            prop_assert_eq!(by_hand, encoded(&[Owned::Data(pipe, bytes)]));
        }
    }

    #[test]
    fn lengths_out_of_bounds_are_refused() {
        let pipe = PipeId { run: 1, pipe: STDOUT };
        let data = vec![0; MAX_DATA + 1];
        let refused = [
            (MAX_LENGTH as u32 + 1).to_le_bytes().to_vec(),
            0_u32.to_le_bytes().to_vec(),
            [&pipe.data_header(data.len())[..], &data].concat(),
            pipe.data_header(0).to_vec(),
        ];
        for bytes in refused {
            assert!(matches!(decode::<ToPlace>(&bytes), Err(CodecError::Length(_))));
        }
        let mut bytes = vec![1];
        let request = vec![0; MAX_LENGTH];
        let spawn = Frame::Message(ToPlace::Spawn { run: 1, owner: 0, request });
        assert!(matches!(spawn.encode(&mut bytes), Err(CodecError::Length(_))));
        assert_eq!(bytes, [1], "nothing is left of a frame that is too long");
    }
}
