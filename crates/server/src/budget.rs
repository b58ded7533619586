//! How long an answer may be, and what of that is left for output.
//!
//! Clients pass on only so much of a result to their model; what is longer is cut where nobody wants it
//! cut, or replaced by the name of a file. An answer is therefore kept short here, where its middle can
//! be left out and read later. What counts is the answer as it is sent: its content as JSON, and its
//! structure as JSON, each on its own.

use mcpz_output::{Measure, Room, shortened};
use rmcp::model::ContentBlock;
use serde::Serialize;

/// The most characters of an answer: short enough for every client that is known to cut.
const DEFAULT: usize = 24_000;

/// Of an answer that says what went wrong, clients pass on less, or repeat it.
const ERRORS: usize = 3;

/// How much of the room a text may take that is only told back, such as the command.
const ECHO: usize = 8;

/// How much of the room what stands beside the output may take, each piece of it, and at most.
const ASIDE: usize = 24;
const MOST_ASIDE: usize = 500;

/// What naming the rest of an output takes at most: its size, two URIs and two links.
const POINTERS: usize = 900;

/// The longest answer that Claude Code passes on without being asked to.
const CUT: usize = 50_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxAnswer {
    characters: usize,
    chosen: bool,
}

impl Default for MaxAnswer {
    fn default() -> Self {
        Self { characters: DEFAULT, chosen: false }
    }
}

impl MaxAnswer {
    /// With less, there is no room for what must be told.
    pub const LEAST: usize = 6000;
    /// With more, some clients could not read a message.
    pub const MOST: usize = 1_000_000;

    /// A limit that somebody has set.
    pub fn chosen(characters: usize) -> Self {
        Self { characters, chosen: true }
    }

    pub fn characters(self) -> usize {
        self.characters
    }

    /// Whether clients cut an answer of that length, unless they are asked not to.
    pub(crate) fn is_cut_by_clients(self) -> bool {
        self.characters > CUT
    }

    pub(crate) fn is_chosen(self) -> bool {
        self.chosen
    }

    /// The limit for an answer that may be an error.
    pub(crate) fn of(self, is_error: bool) -> Self {
        if is_error { self.shared_by(ERRORS) } else { self }
    }

    /// The limit for text and structure each, where they do not say the same to the letter: some
    /// clients show both, one after the other. That of an error allows for it already.
    pub(crate) fn of_both(self, is_error: bool) -> Self {
        match is_error {
            true => self.of(true),
            false => Self { characters: self.characters / 16 * 9, ..self },
        }
    }

    /// An equal part for each of several.
    pub(crate) fn shared_by(self, count: usize) -> Self {
        Self { characters: self.characters / count.max(1), ..self }
    }

    /// Room for output in an answer that is `taken` long without it.
    pub(crate) fn left(self, taken: usize, measure: Measure) -> Room {
        Room { size: self.characters.saturating_sub(taken + POINTERS), measure }
    }

    /// Room for a few words beside the output.
    pub(crate) fn aside(self) -> Room {
        let size = (self.characters / ASIDE).min(MOST_ASIDE);
        Room { size, measure: Measure::QuotedTwice }
    }

    /// A text that is only told back, cut if it is long.
    pub(crate) fn echo(self, text: &str) -> String {
        let room = Room { size: self.characters / ECHO, measure: Measure::QuotedTwice };
        shortened(text, room).into_owned()
    }

    /// A text that is most of what an answer says, cut if it is too long.
    pub(crate) fn most(self, text: &str) -> String {
        let room = Room { size: self.characters / 2, measure: Measure::QuotedTwice };
        shortened(text, room).into_owned()
    }
}

/// How long an answer is whose content is its structure as JSON.
pub(crate) fn size_as_json<R: Serialize>(reply: &R) -> usize {
    let text = serde_json::to_string_pretty(reply).unwrap_or_default();
    size_of_text(&text)
}

/// How long a text is as the content of an answer.
pub(crate) fn size_of_text(text: &str) -> usize {
    size(&[ContentBlock::text("")]) + Measure::Quoted.of(text)
}

/// How long something is as JSON.
pub(crate) fn size<T: Serialize + ?Sized>(value: &T) -> usize {
    serde_json::to_string(value).map_or(0, |json| json.len())
}
