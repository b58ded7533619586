//! The encoded request that starts a program.
//!
//! It is encoded once and kept until a keeper has answered, so that another agent can be sent the same
//! bytes if the first one was killed before it read them.

use std::os::fd::OwnedFd;

use crate::error::LinkError;
use crate::frame::{Attached, Directory, KeeperRequest, Spawn, Stdin, decode, encode};

/// The frame that starts a run, and the descriptor that travels with it.
#[derive(Debug)]
pub struct SpawnFrame {
    pub(crate) bytes: Vec<u8>,
    /// The directory to start in, if it is given as a descriptor.
    pub(crate) directory: Option<OwnedFd>,
    pub(crate) expected: ExpectedFds,
}

/// A request that could not be sent, and why.
pub struct Unsent {
    pub error: LinkError,
    pub frame: SpawnFrame,
}

/// Which descriptors the keeper sends back once the program runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedFds {
    pub terminal: bool,
    pub replies: bool,
}

impl ExpectedFds {
    fn of<H>(spawn: &Spawn<H>) -> Self {
        let terminal = matches!(spawn.stdin, Stdin::Terminal { .. });
        Self { terminal, replies: spawn.replies }
    }
}

impl SpawnFrame {
    /// Fails if the request is longer than a frame can be.
    pub fn new(spawn: Spawn) -> Result<Self, LinkError> {
        let expected = ExpectedFds::of(&spawn);
        let (spawn, directory) = spawn.split_directory();
        let mut bytes = Vec::new();
        encode(&KeeperRequest::Spawn(spawn), &mut bytes).map_err(LinkError::TooLong)?;
        Ok(Self { bytes, directory, expected })
    }

    /// A request that was encoded elsewhere. `None` if it is none, or a descriptor should have travelled with it.
    pub(crate) fn received(bytes: Vec<u8>) -> Option<Self> {
        let (KeeperRequest::Spawn(spawn), length) = decode(&bytes).ok()?? else { return None };
        let is_whole = length == bytes.len() && spawn.directory != Directory::Handle(Attached);
        let expected = ExpectedFds::of(&spawn);
        is_whole.then_some(Self { bytes, directory: None, expected })
    }

    /// The request itself, for callers that have to change it before they send it again.
    pub fn decode(self) -> Option<Spawn> {
        match decode(&self.bytes).ok()?? {
            (KeeperRequest::Spawn(spawn), _) => spawn.join_directory(|| self.directory),
            _ => None,
        }
    }
}
