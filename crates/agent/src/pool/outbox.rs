//! Orders on their way to the agent, in the order they were given.
//!
//! One is sent at once, unless others wait. What the agent does not take now waits until it does: it is
//! behind with others, or as many descriptors are on their way as may be.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::sync::Notify;

use crate::wire;

#[derive(Default)]
pub struct Outbox {
    orders: Mutex<VecDeque<Posted>>,
    /// Told when one has to wait.
    filled: Notify,
}

struct Posted {
    bytes: Vec<u8>,
    fd: Option<OwnedFd>,
}

impl Outbox {
    /// Sends an order, or has it wait. An error is about this one alone.
    pub fn post(
        &self,
        socket: BorrowedFd<'_>,
        bytes: Vec<u8>,
        fd: Option<OwnedFd>,
    ) -> Result<(), Errno> {
        let mut orders = self.lock();
        orders.push_back(Posted { bytes, fd });
        if orders.len() > 1 {
            return Ok(());
        }
        match send_first(socket, &mut orders) {
            Ok(true) => {}
            Ok(false) => self.filled.notify_one(),
            Err(errno) => {
                orders.clear();
                return Err(errno);
            }
        }
        Ok(())
    }

    /// Waits until an order has to wait.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Sends as many orders as the agent takes now. False if there are more.
    pub fn send(&self, socket: BorrowedFd<'_>) -> bool {
        let mut orders = self.lock();
        while !orders.is_empty() {
            match send_first(socket, &mut orders) {
                Ok(true) => {}
                Ok(false) => return false,
                // The agent is gone, which reading tells.
                Err(_) => orders.clear(),
            }
        }
        true
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Posted>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the first order there is. False if the agent does not take it now.
fn send_first(socket: BorrowedFd<'_>, orders: &mut VecDeque<Posted>) -> Result<bool, Errno> {
    let Some(first) = orders.front_mut() else { return Ok(true) };
    let fds: Vec<_> = first.fd.iter().map(AsFd::as_fd).collect();
    match wire::send(socket, &first.bytes, &fds, SendFlags::DONTWAIT) {
        Ok(sent) if sent == first.bytes.len() => {
            orders.pop_front();
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
