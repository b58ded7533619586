//! The owner of a command.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use mcpz_output::{DiskAccount, Output};

use crate::turns::Share;

/// An owner: its names, and its share of what all owners use together.
#[derive(Debug)]
pub struct OwnerIdentity {
    name: Arc<str>,
    key: String,
    /// Assigned when it first runs something.
    number: OnceLock<u64>,
    /// How many owners have run something.
    owner_count: Arc<AtomicU64>,
    /// What it may keep on the disk.
    pub(crate) account: Arc<DiskAccount>,
    /// How many commands it may run at once.
    pub(crate) share: Share,
}

impl OwnerIdentity {
    pub(crate) fn new(
        name: &str,
        key: String,
        owner_count: &Arc<AtomicU64>,
        account: Arc<DiskAccount>,
        share: Share,
    ) -> Self {
        let (number, owner_count) = (OnceLock::new(), owner_count.clone());
        Self { name: name.into(), key, number, owner_count, account, share }
    }

    /// Its name in the audit trail. The name grants no access.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Identifies it beyond the life of this process: detached jobs belong to the key they were started with.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Distinguishes it from other owners that run something.
    pub(crate) fn number(&self) -> u64 {
        *self.number.get_or_init(|| self.owner_count.fetch_add(1, Ordering::Relaxed))
    }

    /// An empty output.
    pub(crate) fn new_output(&self) -> Output {
        Output::new(self.account.quota(None))
    }
}
