//! `[audit]`: the record of what was run and refused.

use std::path::PathBuf;

use mcpz_audit::AuditSettings;

use super::section::section;
use super::size::Size;

section! {
    /// The record of what was run and refused.
    pub struct Audit {
        /// Where the records are.
        folder: Option<PathBuf> = None, words: "`mcpz` in `$XDG_STATE_HOME` (`~/.local/state`)";

        /// The size at which another file is begun.
        max_size: Size = Size(AuditSettings::new("").max_size);

        /// Older files that stay.
        keep: u64 = AuditSettings::new("").keep;
    }
}
