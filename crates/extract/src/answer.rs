//! What is asked with an output, and what is answered.

use serde::Serialize;
use serde_json::Value;

/// What is known of the command that printed the output.
#[derive(Debug, Clone, Copy)]
pub struct Hint<'a> {
    pub command: Option<&'a str>,
    pub exit_code: Option<i32>,
    /// Whether the command ended by itself and all of its output is here.
    pub ended: bool,
}

/// What was found. `value` serializes to at most the room given; `omitted` elements did not fit.
#[derive(Debug, Clone, Serialize)]
pub struct Extracted {
    pub value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The last lines of the output, if the value does not tell what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    pub omitted: u64,
}

/// Nothing that this crate knows was printed: why, and the last lines of the output.
#[derive(Debug, Clone, Serialize)]
pub struct NotFound {
    pub message: String,
    pub tail: String,
}
