//! Shells that remember where they are.
//!
//! A session is a shell that carries out one order after the other. Orders come, and answers go, on
//! descriptors of their own, so nothing of them is in what commands read and print. What is printed
//! until the answer is the command's.
//!
//!     order ─▶ shell: eval ─┬─▶ stdout, stderr ─▶ the command's output
//!                           └─▶ answer: exit code, directory
//!
//! A name stands for one shell at a time, from the moment somebody asks for it ([`Slot`]).

mod command;
mod dialect;
mod slot;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_output::Output;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};

pub(crate) use command::SessionCommand;
pub use dialect::Dialect;
pub(crate) use slot::{Queued, Slot};

use crate::error::Error;
use crate::jobs::{Job, State};
use crate::outcome::End;
use crate::sandbox::Sandbox;

/// The sessions of one owner.
#[derive(Debug, Default)]
pub struct Sessions {
    by_name: Mutex<HashMap<String, Arc<Slot>>>,
}

/// A shell that is kept.
#[derive(Debug)]
pub struct Session {
    pub name: String,
    pub(crate) job: Arc<Job>,
    dialect: Dialect,
    line: tokio::sync::Mutex<Line>,
    /// All it was told so far. Whoever judges what comes next keeps others from judging.
    said: tokio::sync::Mutex<String>,
    /// How long the one before was not used, if it was ended for that and nobody was told.
    expired: Mutex<Option<Duration>>,
    /// The sandbox of its shell, if there is one.
    sandbox: Option<Arc<Sandbox>>,
}

/// What a session is talked to through; one order at a time.
#[derive(Debug)]
struct Line {
    orders: Sender,
    answers: BufReader<Receiver>,
}

impl Sessions {
    /// What stands under a name. It is reserved if nothing does, unless there are too many.
    pub(crate) fn slot(&self, name: &str, limit: usize) -> Result<Arc<Slot>, Error> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.retain(|_, slot| slot.is_used());
        match by_name.get(name) {
            Some(slot) => Ok(slot.clone()),
            None if by_name.len() >= limit => Err(Error::TooManySessions { limit }),
            None => Ok(by_name.entry(name.to_owned()).or_default().clone()),
        }
    }
}

impl Session {
    pub(crate) fn new(
        name: String,
        job: Arc<Job>,
        dialect: Dialect,
        (orders, answers): (OwnedFd, OwnedFd),
        sandbox: Option<Arc<Sandbox>>,
    ) -> Result<Self, Error> {
        let line = Line {
            orders: Sender::from_owned_fd_unchecked(orders).map_err(Error::Resources)?,
            answers: BufReader::new(
                Receiver::from_owned_fd_unchecked(answers).map_err(Error::Resources)?,
            ),
        };
        let line = tokio::sync::Mutex::new(line);
        let (said, expired) = (tokio::sync::Mutex::default(), Mutex::default());
        Ok(Self { name, job, dialect, line, said, expired, sandbox })
    }

    /// What the sandbox has refused a command that ended so.
    fn refused(&self, end: End, output: &Output, directory: Option<&Path>) -> Vec<String> {
        let directory = directory.unwrap_or(Path::new("/"));
        let refused = |it: &Arc<Sandbox>| it.refused(&self.job.run, end, output, directory);
        self.sandbox.as_ref().map(refused).unwrap_or_default()
    }

    /// The same, after a shell whose end nobody was told of.
    pub(crate) fn in_place_of(self, before: Option<&Job>) -> Self {
        Self { expired: Mutex::new(before.and_then(Job::expired)), ..self }
    }

    /// How long the one before was not used, for whoever is told first.
    fn take_expired(&self) -> Option<Duration> {
        self.expired.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Says what has to be said before the first order.
    pub(crate) async fn greet(&self) {
        let greeting = self.dialect.greeting();
        // A shell that does not listen answers no order either, which tells.
        let _ = self.line.lock().await.orders.write_all(greeting.as_bytes()).await;
    }

    /// All it was told so far, for whoever adds to it. Others wait, in the order they came.
    pub(crate) async fn said(&self) -> Said<'_> {
        Said(self.said.lock().await)
    }

    /// Whether it carries out orders.
    fn is_alive(&self) -> bool {
        self.job.state() == State::Running && self.job.expired().is_none()
    }
}

/// What a session was told, in the hands of whoever judges what it is told next.
pub(crate) struct Said<'a>(tokio::sync::MutexGuard<'a, String>);

impl Said<'_> {
    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn add(&mut self, text: &str) {
        self.0.push_str(text);
        // Two, as a backslash may take one.
        self.0.push_str("\n\n");
    }
}
