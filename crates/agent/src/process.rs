//! One run, as its keeper tells it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, Shutdown};
use tokio::io::Interest;

use crate::frame::{self, Event, Exit, Failure, Request};
use crate::link::{Keeper, Link};
use crate::wire;

/// How long the agent may take to kill what a killed keeper left behind.
const BURIAL: Duration = Duration::from_secs(5);

/// What happens to one run, in this order.
#[derive(Debug)]
pub enum Happening {
    Failed(Failure),
    Started(Started),
    Exited {
        exit: Exit,
        gone: bool,
    },
    Gone {
        survivors: Vec<i32>,
    },
    /// The run's keeper was killed. Nothing of the run is left.
    Lost,
}

/// A program that runs, and our ends of its pipes. They do not block.
#[derive(Debug)]
pub struct Started {
    pub pid: i32,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub stdin: Option<OwnedFd>,
}

/// A run and its keeper. Dropped before the run is over, it ends the run.
pub struct Process {
    /// Gone when the keeper is.
    keeper: Option<Keeper>,
    unsent: Vec<u8>,
    over: bool,
    link: Link,
}

impl Process {
    /// Sends `request`, the frame that starts the run.
    pub(crate) fn new(keeper: Keeper, request: Vec<u8>, link: Link) -> Self {
        let mut process = Self { keeper: Some(keeper), unsent: request, over: false, link };
        // What cannot be sent now is sent while waiting; a dead keeper is noticed there.
        let _ = process.send();
        process
    }

    /// What happens next. After the last happening: `Lost`. Nothing is lost if this is dropped
    /// before it is done.
    pub async fn next(&mut self) -> Happening {
        while let Some(keeper) = &mut self.keeper
            && !self.over
        {
            let event = match keeper.inbox.next() {
                Ok(Some(event)) => event,
                Ok(None) => {
                    if self.exchange().await.is_err() {
                        self.mourn().await;
                    }
                    continue;
                }
                Err(_) => {
                    self.mourn().await;
                    continue;
                }
            };
            if let Some(happening) = self.happening(event) {
                return happening;
            }
            self.mourn().await;
        }
        Happening::Lost
    }

    /// Asks the whole tree to end, and kills what is left of it after the grace.
    pub fn kill(&mut self, grace: Duration) {
        self.ask(&Request::Kill { grace });
    }

    /// Sends one signal to the first process.
    pub fn signal(&mut self, signal: i32) {
        self.ask(&Request::Signal(signal));
    }

    fn ask(&mut self, request: &Request) {
        let encoded = frame::encode(request, &mut self.unsent);
        debug_assert!(encoded.is_ok(), "only a spawn can be too long");
        let _ = self.send();
    }

    /// Takes an event for what it means; `None` if the keeper broke the protocol.
    fn happening(&mut self, event: Event) -> Option<Happening> {
        Some(match event {
            Event::Failed(failure) => {
                self.over = true;
                Happening::Failed(failure)
            }
            Event::Started { pid, fds } => {
                let mut fds = self.keeper.as_mut()?.inbox.take_fds(fds.into())?.into_iter();
                let (stdout, stderr, stdin) = (fds.next()?, fds.next()?, fds.next());
                Happening::Started(Started { pid, stdout, stderr, stdin })
            }
            Event::Exited { exit, gone } => {
                self.over = gone;
                Happening::Exited { exit, gone }
            }
            Event::Gone { survivors } => {
                self.over = true;
                // It stays with them, and ends when they do.
                if !survivors.is_empty() {
                    self.keeper = None;
                }
                Happening::Gone { survivors }
            }
        })
    }

    /// Waits until the keeper says something, sending meanwhile what is still to be sent.
    async fn exchange(&mut self) -> io::Result<()> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let interest = match self.unsent.is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let ready = keeper.socket.ready(interest).await?;
        if ready.is_readable() {
            let Keeper { socket, inbox, .. } = keeper;
            let received = socket.try_io(Interest::READABLE, || {
                Ok(inbox.fill(socket.as_fd(), RecvFlags::DONTWAIT)?)
            });
            match received {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        if ready.is_writable() { self.send() } else { Ok(()) }
    }

    /// Sends what the socket takes now.
    fn send(&mut self) -> io::Result<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let socket = &keeper.socket;
        while !self.unsent.is_empty() {
            let sent = socket.try_io(Interest::WRITABLE, || {
                Ok(wire::send(socket.as_fd(), &self.unsent, &[], SendFlags::DONTWAIT)?)
            });
            match sent {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The keeper is dead. Waits until the agent has killed what it left behind.
    async fn mourn(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = tokio::time::timeout(BURIAL, &mut keeper.buried).await;
        }
        self.keeper = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        match self.over && self.unsent.is_empty() {
            true => self.link.give_back(keeper),
            false => drop(rustix::net::shutdown(&*keeper.socket, Shutdown::Write)),
        }
    }
}
