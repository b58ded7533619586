//! `[audit]`: the record of what was run and refused.

use std::path::PathBuf;

use mcpz_audit::AuditSettings;

use super::section::section;
use super::size::Size;

section! {
    /// The records of what ran and what was refused.
    pub struct Audit {
        /// The folder of the records.
        folder: Option<PathBuf> = None, words: "`mcpz` in `$XDG_STATE_HOME` (`~/.local/state`)";

        /// The size at which a new file is started.
        max_size: Size = Size(AuditSettings::new("").max_size);

        /// The number of older files to keep.
        keep: u64 = AuditSettings::new("").keep;
    }
}
