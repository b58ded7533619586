//! What a command finds on its standard input.

use super::Judge;
use crate::call::{Input, Listing};
use crate::script::{Script, SimpleCommand};

impl Judge<'_> {
    /// What a command reads.
    pub(super) fn input_of(&self, script: &Script, command: &SimpleCommand) -> Input {
        match (script.input(command), command.input_file()) {
            (Some(word), _) => word.text().map_or(Input::Unknown, |text| Input::Text(text.into())),
            (None, Some(file)) => match self.knowledge.texts_of_file(file).as_slice() {
                [text] => Input::Text(text.clone()),
                _ => Input::Other,
            },
            (None, None) if command.piped => Input::Unknown,
            (None, None) if self.is_typed() => Input::Typed,
            (None, None) => Input::Other,
        }
    }

    /// What these commands print.
    pub(super) fn listing(
        &self,
        script: &Script,
        commands: impl Iterator<Item = usize> + Clone,
    ) -> Listing {
        // A pipeline that begins with a group or a loop can print anything.
        if commands.clone().next().is_none_or(|first| script.commands[first].piped) {
            return Listing::No;
        }
        let all = |is: fn(&Script, usize) -> bool| commands.clone().all(|at| is(script, at));
        match commands.clone().all(|at| self.knowledge.lists(script, at..at + 1)) {
            true if all(Script::finds_paths) => Listing::Paths,
            true if all(Script::lists_names) => Listing::Names,
            true if self.knowledge.trusts_file_names => Listing::Files,
            _ => Listing::No,
        }
    }
}
