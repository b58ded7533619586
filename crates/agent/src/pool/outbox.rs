//! Requests on their way to the agent, in order.
//!
//! A request is sent at once unless others wait. One that the agent does not take now waits: the agent is
//! busy, or the kernel has as many descriptors in flight as it allows. So a burst of requests takes longer, but none
//! of them fails.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::sync::Notify;

use crate::socket;

#[derive(Default)]
pub struct Outbox {
    waiting: Mutex<VecDeque<Waiting>>,
    /// Notified when a request has to wait.
    filled: Notify,
}

struct Waiting {
    bytes: Vec<u8>,
    fd: Option<OwnedFd>,
}

impl Outbox {
    /// Sends a request, or queues it. An error concerns this request alone.
    pub fn send(
        &self,
        socket: BorrowedFd<'_>,
        bytes: Vec<u8>,
        fd: Option<OwnedFd>,
    ) -> Result<(), Errno> {
        let mut waiting = self.lock();
        waiting.push_back(Waiting { bytes, fd });
        if waiting.len() > 1 {
            return Ok(());
        }
        match send_first(socket, &mut waiting) {
            Ok(true) => {}
            Ok(false) => self.filled.notify_one(),
            Err(errno) => {
                waiting.clear();
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Waits until a request has to wait.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Sends as many waiting requests as the agent takes now. False if there are more.
    pub fn send_waiting(&self, socket: BorrowedFd<'_>) -> bool {
        let mut waiting = self.lock();
        while !waiting.is_empty() {
            match send_first(socket, &mut waiting) {
                Ok(true) => {}
                Ok(false) => return false,
                // The agent is gone; reading will report it.
                Err(_) => waiting.clear(),
            }
        }
        true
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the first request, if there is one. False if the agent does not take it now.
fn send_first(socket: BorrowedFd<'_>, waiting: &mut VecDeque<Waiting>) -> Result<bool, Errno> {
    let Some(first) = waiting.front_mut() else { return Ok(true) };
    let fds: Vec<_> = first.fd.iter().map(AsFd::as_fd).collect();
    match socket::send(socket, &first.bytes, &fds, SendFlags::DONTWAIT) {
        Ok(sent) if sent == first.bytes.len() => {
            waiting.pop_front();
            Ok(true)
        }
        Ok(sent) => {
            first.bytes.drain(..sent);
            first.fd = None;
            Ok(false)
        }
        Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => Ok(false),
        Err(errno) => Err(errno),
    }
}
