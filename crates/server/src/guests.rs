//! Whoever comes over HTTP, each with what is their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mcpz_engine::Owner;

use crate::handler::Shell;
use crate::http::{Principal, Reception, one, write_engine};

/// The most owners that are remembered although nothing is theirs.
const MAX_OWNERS: usize = 1000;

/// Gives everybody the same shell, and each principal outputs of their own.
pub struct Guests {
    shell: Shell,
    owners: Mutex<HashMap<Arc<str>, Arc<Owner>>>,
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
            owners.retain(|_, owner| Arc::strong_count(owner) > 1 || !owner.list().is_empty());
        }
        let new = || Arc::new(self.shell.engine().owner(&principal.name));
        let owner = owners.entry(principal.name.clone()).or_insert_with(new);
        self.shell.for_owner(owner.clone())
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        one(&mut text, "mcpz_calls_total", "counter", "Calls of tools", self.shell.calls());
        write_engine(&mut text, self.shell.engine());
        text
    }
}
