//! `[environment]`: what commands are told about the one who reads what they print.

use super::section::section;

section! {
    /// The variables of commands.
    pub struct CommandVariables {
        /// Whether commands receive variables that say that a program reads what they print: `AI_AGENT`, `AGENT`, and
        /// switches that turn off colours, pagers and, without a terminal, editors.
        agent: bool = true;
    }
}
