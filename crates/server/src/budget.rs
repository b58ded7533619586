//! How long an answer may be, and how much of that is left for output.
//!
//! Clients pass only so much of an answer on to their model; a longer one they cut in the wrong place, or replace with
//! the name of a file. So answers are kept short here, where the middle of an output can be left out and read
//! later. What counts is the answer as it is sent: its content as JSON and its structure as JSON, each on its own.
//! Pages count the same way, unless their size is given in bytes: by `limit_bytes`, or as the default of `shell_exec`.
//!
//! # What hosts show
//!
//! A host decides what its model sees of an answer: its text, its structure, or both. `tests/hosts` runs four of them
//! with a model that follows a script, and checks what arrives there. The versions it pins show this:
//!
//! | host | an answer | an error (`isError`) |
//! |---|---|---|
//! | Claude Code | links, then the structure | the text |
//! | Codex | the structure, no links | the structure, no links |
//! | Gemini CLI | the text, then links | both, as JSON |
//! | Qwen Code | text, structure, links[^once] | the text twice and the structure, as JSON |
//!
//! [^once]: Without the structure if the text is exactly that, as compact JSON.
//!
//! | host | cuts what is longer than | and shows |
//! |---|---|---|
//! | Claude Code | 50,000 characters, or what the tool's `_meta` asks for, up to 500,000 | the first 2,000 |
//! | Claude Code, errors | 11,000 characters | the first and the last 5,000 |
//! | Codex | 10,000 tokens; 10,000 bytes for a model it does not know | everything but the middle |
//! | Gemini CLI | 40,000 characters, unless there are links | the first 8,000 and the last 32,000 |
//! | Qwen Code | 28,000 characters of everything it shows | the first 2,000 |
//!
//! So everything that a model must know is in the text and in the structure, near the beginning or the end of each.

use mcpz_output::{Measure, Room, shorten};
use rmcp::model::ContentBlock;
use serde::Serialize;

/// The most characters of an answer: short enough for every client that is known to cut.
const DEFAULT: usize = 24_000;

/// An error has this part of the room: clients pass on less of one, or repeat it.
const ERRORS: usize = 3;

/// A text that is only repeated, such as the command, has this part of the room.
const ECHO: usize = 8;

/// Each short text beside the output has this part of the room, and at most so many characters.
const PREVIEW: usize = 24;
const LONGEST_PREVIEW: usize = 500;

/// What the pointers to an output take at most: its size, two URIs and two links.
const POINTERS: usize = 900;

/// The longest answer that Claude Code passes on without being asked to.
const CUT: usize = 50_000;

/// The most characters of an answer, and whether somebody chose that.
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
    /// With less, there is no room for what an answer must say.
    pub const LEAST: usize = 6000;
    /// With more, some clients cannot read a message.
    pub const MOST: usize = 1_000_000;

    /// A limit that somebody has set.
    pub fn chosen(characters: usize) -> Self {
        Self { characters, chosen: true }
    }

    pub fn characters(self) -> usize {
        self.characters
    }

    /// Whether clients cut an answer of that length unless they are asked not to.
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

    /// The limit for text and structure each, where they are not the same byte for byte: some clients show one
    /// after the other. The limit for errors allows for that already.
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

    /// Room for output in an answer of which the rest takes `taken`.
    pub(crate) fn room(self, taken: usize, measure: Measure) -> Room {
        Room { size: self.characters.saturating_sub(taken + POINTERS), measure }
    }

    /// Room for a short text beside the output.
    pub(crate) fn preview(self) -> Room {
        let size = (self.characters / PREVIEW).min(LONGEST_PREVIEW);
        Room { size, measure: Measure::QuotedTwice }
    }

    /// Shortens a text that is only repeated.
    pub(crate) fn echo(self, text: &str) -> String {
        let room = Room { size: self.characters / ECHO, measure: Measure::QuotedTwice };
        shorten(text, room).into_owned()
    }

    /// Shortens a text that is most of what an answer says.
    pub(crate) fn shorten(self, text: &str) -> String {
        let room = Room { size: self.characters / 2, measure: Measure::QuotedTwice };
        shorten(text, room).into_owned()
    }
}

/// The length of an answer whose content is its structure as JSON.
pub(crate) fn size_as_json<R: Serialize>(reply: &R) -> usize {
    let text = serde_json::to_string_pretty(reply).unwrap_or_default();
    size_of_text(&text)
}

/// The length of a text as the content of an answer.
pub(crate) fn size_of_text(text: &str) -> usize {
    size(&[ContentBlock::text("")]) + Measure::Quoted.of(text)
}

/// The length of a value as JSON.
pub(crate) fn size<T: Serialize + ?Sized>(value: &T) -> usize {
    serde_json::to_string(value).map_or(0, |json| json.len())
}
