//! The agent that all owners share, and the one for the login shell.

use std::sync::{MutexGuard, PoisonError};

use mcpz_agent::Link;

use super::Engine;
use crate::error::Error;
use crate::settings::Settings;

/// Which agent is running.
pub enum AgentState {
    NotNeededYet,
    /// One that only serves the login shell.
    ForLogin(Link),
    Linked(Link),
    /// The engine is closed: nothing starts any more.
    Closed,
}

impl Engine {
    /// The current agent, or a new one if that was killed.
    pub(super) fn link(&self) -> Result<Link, Error> {
        let mut agent = self.lock_agent();
        match &*agent {
            AgentState::Linked(link) if !link.is_closed() => return Ok(link.clone()),
            AgentState::Closed => return Err(Error::Closed),
            _ => {}
        }
        let Settings { agent: program, limits, .. } = self.settings();
        let link = Link::start(program, self.environment().variables.all(), *limits)?;
        *agent = AgentState::Linked(link.clone());
        Ok(link)
    }

    pub(super) fn link_for_login(&self) -> Result<Link, Error> {
        let mut agent = self.lock_agent();
        if let AgentState::Closed = *agent {
            return Err(Error::Closed);
        }
        let Settings { agent: program, environment, limits, .. } = self.settings();
        let link = Link::start(program, environment.variables.all(), *limits)?;
        *agent = AgentState::ForLogin(link.clone());
        Ok(link)
    }

    /// Makes way for the agent that serves commands, unless the engine is closed.
    pub(super) fn end_login(&self) -> Result<(), Error> {
        let mut agent = self.lock_agent();
        if let AgentState::Closed = *agent {
            return Err(Error::Closed);
        }
        *agent = AgentState::NotNeededYet;
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.lock_agent(), AgentState::Closed)
    }

    pub(super) fn lock_agent(&self) -> MutexGuard<'_, AgentState> {
        self.shared.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
