//! From a request to a run: cleared, counted, and started by the right agent.
//!
//! If the agent is killed before a keeper has read a command, the command has not begun, and a new agent starts it
//! ([`Backing::restart`]).

use std::sync::Arc;
use std::time::Instant;

use mcpz_agent::{FIRST_OWNER, LinkError, Process, Spawn, SpawnFrame, Unsent};
use tokio::time::timeout;

use super::Engine;
use crate::error::Error;
use crate::gate::Cleared;
use crate::observer::RunObserver;
use crate::open_place::OpenPlace;
use crate::owner::Owner;
use crate::places::Venue;
use crate::request::{Origin, RunRequest};
use crate::run::{Accounting, Backing, Restart, Run};
use crate::sandbox::Occupied;
use crate::turns::Turn;

impl Engine {
    /// Starts a command as a process of its own.
    pub(super) async fn start_alone(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Run, Error> {
        let asked = Instant::now();
        let shown = self.masked_command(&request.command);
        let venue = self.venue(owner, &request).await?;
        let request = self.resolve(&venue, request);
        let entry = self.log_entry(owner, origin, &request, &shown);
        let cleared = self.gate(&venue).clear(&owner.identity, origin, request).await;
        let cleared = self.log_start(entry, cleared)?;
        let turn = self.turn(owner, &cleared).await;
        let (spawn, mut plan, recorded) = cleared.into_parts();
        plan.description = plan.description.map(|text| self.mask(&text));
        let ready = match turn {
            Ok(turn) => {
                let spawned = self.spawn(owner, &venue, spawn, recorded.id()).await;
                spawned.map(|(process, backing)| (turn, process, backing))
            }
            Err(error) => Err(error),
        };
        let (turn, process, backing) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
        let observer = self.observer(origin, &shown);
        let accounting = Accounting::open(self.shared.stats.clone(), turn, asked, observer);
        let (engine, adopter) = (self.clone(), owner.adopter());
        let backing = Backing {
            accounting: Some(accounting),
            adopt: Some(Box::new(move |handle, outcome| {
                engine.open_control();
                adopter.adopt(handle, outcome)
            })),
            ..backing
        };
        let output = owner.new_output().with_secrets(plan.secrets.clone());
        Ok(Run::start(process, shown, plan, recorded, output, backing))
    }

    /// Waits until it is a command's turn, but no longer than the command itself may take.
    pub(super) async fn turn(&self, owner: &Owner, cleared: &Cleared) -> Result<Turn, Error> {
        let patience = cleared.timeout().unwrap_or(self.settings().timeout);
        let turn = timeout(patience, self.shared.turns.take(&owner.identity.share)).await;
        turn.map_err(|_| Error::Busy).flatten()
    }

    /// The observer of a request, if it has one.
    pub(super) fn observer(&self, origin: &Origin, shown: &str) -> Option<RunObserver> {
        let observer = origin.observer.clone()?;
        let command = self.settings().log_commands.then(|| shown.to_owned());
        Some(RunObserver { observer, command })
    }

    /// Starts a process: in a place, through the shared agent or, in a sandbox, through the owner's own.
    pub(super) async fn spawn(
        &self,
        owner: &Owner,
        venue: &Venue,
        mut spawn: Spawn,
        run: &str,
    ) -> Result<(Process, Backing), Error> {
        let (closing, later) = (self.shared.closing.clone(), self.shared.later.clone());
        let backing = Backing { closing, later, ..Backing::default() };
        if let Some(place) = &venue.place {
            let owner = owner.identity.number();
            let process = send_to(place, owner, SpawnFrame::new(spawn)?)?;
            // The run itself holds the place, and counts once.
            let place = Arc::downgrade(place);
            let restart = move |frame| match place.upgrade() {
                Some(place) => send_to(&place, owner, frame),
                None => Err(Error::Closed),
            };
            let (venue, restart) = (venue.clone(), Some(Box::new(restart) as Restart));
            return Ok((process, Backing { venue, restart, ..backing }));
        }
        if self.settings().sandbox.is_none() {
            let (engine, owner) = (self.clone(), owner.identity.number());
            let process = self.send(owner, SpawnFrame::new(spawn)?)?;
            let restart = move |frame| engine.send(owner, frame);
            return Ok((process, Backing { restart: Some(Box::new(restart)), ..backing }));
        }
        let own = std::mem::take(&mut spawn.environment);
        let mut tries = 0..2;
        loop {
            let sandbox = self.sandbox(owner).await?;
            let occupied = Occupied::new(sandbox.clone());
            // Last, so that the request's own variables win.
            spawn.environment = sandbox.variables(run).into_iter().chain(own.clone()).collect();
            let unsent = match sandbox.link().send(FIRST_OWNER, SpawnFrame::new(spawn)?) {
                Ok(process) => {
                    return Ok((process, Backing { sandbox: Some(occupied), ..backing }));
                }
                Err(unsent) => unsent,
            };
            let gone = matches!(unsent.error, LinkError::Gone) && tries.next().is_some();
            let again = gone.then_some(unsent.frame).and_then(SpawnFrame::decode);
            spawn = again.ok_or(unsent.error)?;
        }
    }

    /// Sends a command to the agent, or to the next one if this one turns out to be dead.
    fn send(&self, owner: u64, frame: SpawnFrame) -> Result<Process, Error> {
        match self.link()?.send(owner, frame) {
            Ok(process) => Ok(process),
            Err(Unsent { error: LinkError::Gone, frame }) => {
                let sent = self.link()?.send(owner, frame);
                Ok(sent.map_err(|unsent| unsent.error)?)
            }
            Err(unsent) => Err(unsent.error.into()),
        }
    }
}

/// Sends a command to a place.
fn send_to(place: &OpenPlace, owner: u64, frame: SpawnFrame) -> Result<Process, Error> {
    place.link().send(owner, frame).map_err(|unsent| match unsent.error {
        LinkError::Gone => Error::PlaceLost { name: place.name.to_string() },
        other => other.into(),
    })
}
