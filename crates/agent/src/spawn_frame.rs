//! The encoded request that starts a program.
//!
//! It is encoded once and kept until a keeper has answered, so that another agent can be sent the same
//! bytes if the first one was killed before it read them.

use std::os::fd::OwnedFd;

use crate::error::LinkError;
use crate::frame::{KeeperRequest, Spawn, Stdin, decode, encode};

/// The frame that starts a run, and the descriptor that travels with it.
#[derive(Debug)]
pub struct SpawnFrame {
    pub(crate) bytes: Vec<u8>,
    /// The directory to start in, if it is given as a descriptor.
    pub(crate) directory: Option<OwnedFd>,
    pub(crate) expected: ExpectedFds,
}

/// Which descriptors the keeper sends back once the program runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedFds {
    pub terminal: bool,
    pub replies: bool,
}

impl SpawnFrame {
    /// Fails if the request is longer than a frame can be.
    pub fn new(spawn: Spawn) -> Result<Self, LinkError> {
        let terminal = matches!(spawn.stdin, Stdin::Terminal { .. });
        let expected = ExpectedFds { terminal, replies: spawn.replies };
        let (spawn, directory) = spawn.split_directory();
        let mut bytes = Vec::new();
        encode(&KeeperRequest::Spawn(spawn), &mut bytes).map_err(LinkError::TooLong)?;
        Ok(Self { bytes, directory, expected })
    }

    /// The request itself, for callers that have to change it before they send it again.
    pub fn decode(self) -> Option<Spawn> {
        match decode(&self.bytes).ok()?? {
            (KeeperRequest::Spawn(spawn), _) => spawn.join_directory(|| self.directory),
            _ => None,
        }
    }
}
