//! Whoever comes over HTTP, each with what is their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcpz_engine::Owner;

use crate::handler::Shell;
use crate::http::{Principal, Reception, one, write_engine};
use crate::tasks::Tasks;

/// The most owners that are remembered although nothing is theirs.
const MAX_OWNERS: usize = 1000;

/// Gives everybody the same shell, and each principal outputs of their own.
pub struct Guests {
    shell: Shell,
    owners: Mutex<HashMap<Arc<str>, Guest>>,
}

struct Guest {
    owner: Arc<Owner>,
    /// Held by whoever is here; what goes on without them holds the owner alone.
    tasks: Arc<Tasks>,
    /// When it was last heard of.
    seen: Instant,
}

impl Guest {
    fn is_here(&self) -> bool {
        Arc::strong_count(&self.tasks) > 1
    }

    /// Whether nothing is theirs.
    fn is_idle(&self) -> bool {
        self.owner.list().is_empty() && self.owner.jobs.running() == 0 && self.tasks.is_empty()
    }
}

impl Guests {
    pub fn new(shell: Shell) -> Self {
        Self { shell, owners: Mutex::default() }
    }
}

impl Reception for Guests {
    type Handler = Shell;

    fn handler(&self, principal: &Arc<Principal>) -> Shell {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= MAX_OWNERS && !owners.contains_key(&principal.name) {
            owners.retain(|_, guest| guest.is_here() || !guest.is_idle());
        }
        let new = || Guest {
            owner: Arc::new(self.shell.engine().owner("http", &principal.name)),
            tasks: Arc::new(Tasks::new(self.shell.engine().settings().keep_time)),
            seen: Instant::now(),
        };
        let guest = owners.entry(principal.name.clone()).or_insert_with(new);
        guest.seen = Instant::now();
        self.shell.for_owner(guest.owner.clone(), guest.tasks.clone())
    }

    /// Ends the jobs, tasks and sandboxes of those who were not heard of for so long.
    fn tend(&self, limit: Duration) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        for guest in owners.values_mut() {
            if guest.is_here() {
                guest.seen = Instant::now();
            } else if guest.seen.elapsed() > limit {
                guest.owner.jobs.stop_all();
                guest.tasks.cancel_all();
                guest.owner.vacate();
            }
        }
    }

    fn is_traced(&self) -> bool {
        self.shell.is_traced()
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        one(&mut text, "mcpz_calls_total", "counter", "Calls of tools", self.shell.calls());
        write_engine(&mut text, self.shell.engine());
        text
    }
}
