//! Judges commands as the aliases that the request defines make them, those of the shell and those of git.
//!
//! Some shells expand aliases in a script and some do not, so a command is judged both ways.

use super::{Judge, Ruling};
use crate::names::Names;
use crate::paths::base_name;
use crate::rule::Rule;
use crate::script::{Script, Word};
use crate::subcommands::is_git_alias;

impl Judge<'_> {
    pub(super) fn aliases(&mut self, script: &Script, at: usize, words: &[Word]) -> Ruling {
        let name = words[0].literal().unwrap_or_default().into_owned();
        // A shell does not expand an alias within itself.
        if self.expanding.contains(&name) {
            return Ok(());
        }
        for alias in self.knowledge.aliases(&name) {
            let expanded = [&alias, &words[1..]].concat();
            self.expanding.push(name.clone());
            self.reading(script, at, &expanded)?;
            self.expanding.pop();
        }
        Ok(())
    }

    /// Whether a command of git may be what a rule about its arguments denies, by an alias in settings that the request
    /// wrote. Those that were there before are their owner's.
    pub(super) fn may_be_git_alias(&self, rule: &Rule, words: &[Word]) -> bool {
        // `python3 -m` alone opens nothing.
        let Some((first, arguments)) = words.split_first() else { return false };
        let name = first.literal().unwrap_or_default();
        rule.program() == Some("git")
            && base_name(&name) == "git"
            && SETTINGS.iter().any(|file| self.knowledge.has_written(file))
            && is_git_alias(arguments)
    }
}

/// Base names of files with settings of git.
const SETTINGS: Names = Names(".gitconfig config config.worktree gitconfig");
