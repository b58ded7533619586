//! Judges commands as the aliases that the request defines make them.
//!
//! Some shells expand aliases in a script and some do not, so a command is judged both ways.

use super::{Judge, Ruling};
use crate::script::{Script, Word};

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
}
