//! Frames and file descriptors over a unix stream socket.
//!
//! The kernel delivers descriptors together with the bytes they were sent with, so a frame's descriptors have
//! arrived once the frame has. [`Inbox`] queues both. Code that decodes a frame with descriptors must take
//! that many from the front, or later frames get the wrong ones.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::frame::{self, FrameError};

/// The most descriptors that travel with one frame: stdout, stderr, stdin, replies.
pub const MAX_FDS: usize = 4;

/// The least room for one read. The buffer grows to the length of a longer frame.
const READ_SIZE: usize = 4 << 10;

/// A connected pair. Programs do not inherit it.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Registers one end with the runtime. Must be called within one.
pub fn connect(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// What has arrived on a socket and was not taken yet: the bytes are `bytes[start..end]`.
#[derive(Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    fds: VecDeque<OwnedFd>,
}

impl Inbox {
    /// Receives once. `Ok(0)` is the end of the stream.
    pub fn fill(&mut self, socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<usize, Errno> {
        self.make_room();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let target = &mut [IoSliceMut::new(&mut self.bytes[self.end..])];
            let flags = flags | RecvFlags::CMSG_CLOEXEC;
            match recvmsg(socket, target, &mut ancillary, flags) {
                Err(Errno::INTR) => continue,
                other => break other?.bytes,
            }
        };
        self.end += received;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        Ok(received)
    }

    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() - self.end < READ_SIZE {
            self.bytes.resize((self.bytes.len() * 2).max(2 * READ_SIZE), 0);
        }
    }

    /// The next whole message, if one is here.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((message, length)) = frame::decode(&self.bytes[self.start..self.end])? else {
            return Ok(None);
        };
        self.start += length;
        Ok(Some(message))
    }

    /// Whether one of the messages that are here is such a one. They stay here.
    pub fn any<T: DeserializeOwned>(&self, is_it: impl Fn(&T) -> bool) -> bool {
        let mut bytes = &self.bytes[self.start..self.end];
        while let Ok(Some((message, length))) = frame::decode(bytes) {
            if is_it(&message) {
                return true;
            }
            bytes = &bytes[length..];
        }
        false
    }

    /// Frees the room that a long frame took, if the buffer is empty.
    pub fn shrink(&mut self) {
        if self.start == self.end && self.bytes.len() > 16 * READ_SIZE {
            self.bytes = Vec::new();
            (self.start, self.end) = (0, 0);
        }
    }

    /// The next `count` descriptors, or `None` if fewer came than were announced.
    pub fn take_fds(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        (count <= self.fds.len()).then(|| self.fds.drain(..count).collect())
    }
}

/// Sends as much of `bytes` as the socket takes, and `fds` with the first of them.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(fds));
        debug_assert!(fits, "no frame carries more than MAX_FDS descriptors");
    }
    loop {
        let flags = flags | SendFlags::NOSIGNAL;
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags) {
            Err(Errno::INTR) => continue,
            other => return other,
        }
    }
}

/// Sends whole messages at once, with the descriptors of the first one, and blocks until all are sent.
pub fn send_all<T: Serialize>(
    socket: BorrowedFd<'_>,
    messages: &[T],
    mut fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for message in messages {
        frame::encode(message, &mut bytes).map_err(io::Error::other)?;
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let sent = send(socket, rest, fds, SendFlags::empty())?;
        rest = &rest[sent..];
        fds = &[];
    }
    Ok(())
}
