//! The sandboxes of owners.

use std::sync::{Arc, PoisonError, Weak};

use mcpz_agent::program_path;

use super::Engine;
use crate::error::Error;
use crate::jobs::{Job, JobState};
use crate::owner::Owner;
use crate::sandbox::{Broken, InnerAgent, Sandbox};

impl Engine {
    /// The sandbox of an owner's commands: the current one if it is intact, or a new one.
    pub(super) async fn sandbox(&self, owner: &Owner) -> Result<Arc<Sandbox>, Error> {
        let mut own = owner.sandbox.lock().await;
        let mut broken = own.as_ref().and_then(|sandbox| sandbox.broken());
        if let (Some(sandbox), None) = (own.as_ref(), &broken) {
            if sandbox.renew().await {
                return Ok(sandbox.clone());
            }
            broken = Some(Broken::HelperEnded);
        }
        let Some(settings) = &self.settings().sandbox else { return Err(Error::Closed) };
        let _making = self.shared.making.read().await;
        if self.is_closed() {
            return Err(Error::Closed);
        }
        // `/proc/self/exe` would be another program inside.
        let outside = &self.settings().agent;
        let program = program_path(outside).ok_or(Error::Replaced)?;
        let (variables, limits) = (&self.environment().variables, self.settings().limits);
        let inner = InnerAgent { program: &program, outside, variables, limits };
        let jobs = owner.jobs.list();
        let is_inside = |job: &&Arc<Job>| job.state() == JobState::Running && !job.is_detached();
        let left: Vec<_> = jobs.iter().filter(is_inside).map(|job| job.id().to_owned()).collect();
        let made = Arc::new(Sandbox::make(settings, &inner).await?.replacing(broken, &left));
        let mut all = self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&made));
        drop(all);
        Ok(own.insert(made).clone())
    }

    /// All that exist.
    pub(super) fn sandboxes(&self) -> Vec<Arc<Sandbox>> {
        let all = self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}
