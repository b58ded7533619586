//! A command that is about to be judged, with what it finds when it starts.

use crate::paths::base_name;
use crate::script::{Shell, Span, Word};

#[derive(Clone)]
pub struct Call<'a> {
    /// The command's name and arguments: at least one word.
    pub words: &'a [Word],
    pub input: Input,
    pub listing: Listing,
    /// The language of the script it stands in.
    pub shell: Shell,
    /// How many commands are between it and the script: two for the `ls` in `sudo env ls`.
    pub wrappers: u32,
}

/// What a command reads on its standard input, if other commands list it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Anything.
    No,
    /// Names and numbers, no part of which can be an option: branches, containers.
    Names,
    /// Names of files that are trusted not to be options.
    Files,
    /// Paths that begin with a directory, each with a zero byte behind it. Parts of them can be options.
    Paths,
}

/// What a command reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A text in the script.
    Text(String),
    /// The output of another command, or a text that only the run will know.
    Unknown,
    /// What is typed while it runs, which is judged then.
    Typed,
    /// A file, or whatever the script itself reads.
    Other,
}

impl Call<'_> {
    /// The program's base name, if it is known.
    pub fn name(&self) -> Option<String> {
        let word = self.words.first()?;
        match word.literal() {
            Some(name) => Some(base_name(&name).to_owned()),
            None => {
                let suffix = word.suffix();
                let base = suffix.rsplit_once('/').filter(|_| word.is_single())?.1;
                Some(base.to_owned())
            }
        }
    }

    pub fn arguments(&self) -> &[Word] {
        &self.words[1..]
    }

    pub fn span(&self) -> Span {
        span_of(self.words)
    }
}

/// The span from the first word to the end of the last.
pub fn span_of(words: &[Word]) -> Span {
    let start = words.first().map_or(0, |word| word.span.start);
    start..words.iter().map(|word| word.span.end).max().unwrap_or(start).max(start)
}
