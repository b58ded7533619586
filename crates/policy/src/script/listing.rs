//! Commands whose output is only file names, numbers and the like.
//!
//! Their output cannot be an option, so it may become an argument. A function of the same name could print
//! anything, so the parser refuses to define one.

use std::borrow::Cow;
use std::ops::Range;

use super::{Script, SimpleCommand, Word};
use crate::names::Names;

/// Commands that list, unless they are given a format.
const LISTING: Names = Names("docker fd find kubectl ls nproc pwd readlink realpath wc which");

/// Sub-commands of git that list.
const GIT: Names = Names("branch describe ls-files merge-base remote rev-list rev-parse tag");

/// Commands that print some of the lines they read.
const CHOOSING: Names = Names("grep head rg sort tail uniq");

/// Whether a function of this name could pass for a command that lists.
pub(super) fn is_listing(name: &str) -> bool {
    let counts = ["git", "nproc", "getconf"].contains(&name);
    counts || LISTING.has(name) || CHOOSING.has(name)
}

impl SimpleCommand {
    /// Whether all it prints is a number.
    pub(super) fn counts(&self) -> bool {
        let name = self.words.first().and_then(Word::literal).unwrap_or_default();
        name == "nproc" || name == "getconf"
    }

    fn lists(&self) -> bool {
        let words: Option<Vec<_>> = self.words.iter().map(Word::text).collect();
        // A format makes them print anything.
        let Some(words) =
            words.filter(|words| !words.concat().contains(['%', '{', '+', '=', '\\']))
        else {
            return false;
        };
        let names_files = |text: &Cow<'_, str>| {
            let letters = text.strip_prefix('-').is_some_and(|letters| letters.contains('l'));
            text == "--files" || text.starts_with("--files-with") || letters
        };
        let second = words.get(1).map(AsRef::as_ref).unwrap_or_default();
        match words.first().map(AsRef::as_ref).unwrap_or_default() {
            "git" if second == "diff" => words.iter().any(|word| word == "--name-only"),
            "git" => GIT.has(second),
            name if CHOOSING.has(name) => self.piped || words.iter().any(names_files),
            name => LISTING.has(name),
        }
    }
}

impl Script {
    /// Whether there are commands in this range, and all of them list.
    pub fn lists(&self, commands: Range<usize>) -> bool {
        !commands.is_empty() && self.commands[commands].iter().all(SimpleCommand::lists)
    }
}
