//! Where the trail is, and how long it becomes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSettings {
    /// The folder of the trail, created with the first record.
    pub folder: PathBuf,
    /// The size at which a file is rotated, in bytes.
    pub max_size: u64,
    /// How many files to keep besides the current one.
    pub keep: u64,
}

impl AuditSettings {
    /// The lowest allowed `max_size`: more than what is written at the start of a file.
    pub const MIN_SIZE: u64 = 4 << 10;

    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), max_size: 64_000_000, keep: 16 }
    }
}
