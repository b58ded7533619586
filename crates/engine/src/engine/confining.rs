//! Where a command is started: by the agent all share or, confined, by its owner's own.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, Weak};

use mcpz_agent::{FIRST_OWNER, LinkError, Process, Spawn, SpawnFrame, Unsent};

use super::{Agent, Engine, Settings};
use crate::enclosure::{self, Enclosure};
use crate::error::Error;
use crate::gate::Pending;
use crate::store::Owner;

impl Engine {
    /// Has a cleared command started. What it is confined in is kept with what its task needs.
    pub(super) async fn spawn(
        &self,
        owner: &Owner,
        mut spawn: Spawn,
        pending: &mut Pending,
        run: &str,
    ) -> Result<Process, Error> {
        pending.closing = self.shared.closing.clone();
        if self.settings().confining.is_none() {
            let (engine, owner, letter) = (self.clone(), owner.number(), SpawnFrame::new(spawn)?);
            pending.again = Some(Box::new(move |letter| engine.send(owner, letter)));
            return self.send(owner, letter);
        }
        let own = std::mem::take(&mut spawn.environment);
        let mut tries = 0..2;
        loop {
            let enclosure = self.enclosure(owner).await?;
            // What the request sets itself comes last, and counts.
            spawn.environment = enclosure.variables(run).into_iter().chain(own.clone()).collect();
            let sent = enclosure.link().send(FIRST_OWNER, SpawnFrame::new(spawn)?);
            let unsent = match sent {
                Ok(process) => {
                    pending.enclosure = Some(enclosure);
                    return Ok(process);
                }
                Err(unsent) => unsent,
            };
            let gone = matches!(unsent.error, LinkError::Gone) && tries.next().is_some();
            let Some(letter) = gone.then_some(unsent.frame).and_then(SpawnFrame::decode) else {
                return Err(unsent.error.into());
            };
            spawn = letter;
        }
    }

    /// Has the agent start a command or, if it was killed and nobody knew, the next one.
    fn send(&self, owner: u64, letter: SpawnFrame) -> Result<Process, Error> {
        match self.link()?.send(owner, letter) {
            Ok(process) => Ok(process),
            Err(Unsent { error: LinkError::Gone, frame: letter }) => {
                let sent = self.link()?.send(owner, letter);
                Ok(sent.map_err(|unsent| unsent.error)?)
            }
            Err(unsent) => Err(unsent.error.into()),
        }
    }

    /// What an owner's commands are confined in: what there is, if it still holds.
    pub(super) async fn enclosure(&self, owner: &Owner) -> Result<Arc<Enclosure>, Error> {
        let mut own = owner.enclosure.lock().await;
        if let Some(enclosure) = own.as_ref().filter(|enclosure| enclosure.holds()) {
            return Ok(enclosure.clone());
        }
        let Some(confining) = &self.settings().confining else { return Err(Error::Closed) };
        let _making = self.shared.making.read().await;
        if matches!(*self.lock(), Agent::Closed) {
            return Err(Error::Closed);
        }
        // Inside of it, the link of our own process would lead to another program.
        let program: PathBuf = self.settings().agent.canonicalize().map_err(Error::Resources)?;
        let Settings { variables, limits, .. } = self.settings();
        let inside = enclosure::Agent { program: &program, variables, limits: *limits };
        let made = Enclosure::make(confining, &inside).await?;
        if own.is_some() {
            made.note_anew();
        }
        let made = Arc::new(made);
        let mut all = self.shared.enclosures.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&made));
        drop(all);
        Ok(own.insert(made).clone())
    }

    /// All there are.
    pub(super) fn enclosures(&self) -> Vec<Arc<Enclosure>> {
        let all = self.shared.enclosures.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}
