//! What an output says, as data: test results, diagnostics, tables, JSON. This crate is pure: bytes in, values out.
//!
//!     outputs ─▶ Input ─┬─ lines ────▶ results: Runners ─────┐
//!                       │            ▶ diagnostics: Linters ─┼─▶ Extracted, at most `room` bytes
//!                       └─ document ─▶ table, json ──────────┘
//!
//! Tools are recognised by what they printed; the command only says whether its exit code and its output can be
//! trusted. Nothing is called complete that was not seen to be: see [`results`]. Memory is bounded, whatever the output
//! is, and what does not fit is counted.

mod answer;
mod command;
mod diagnostics;
mod input;
mod json;
mod results;
mod room;
mod table;
mod xml;

use std::io::{self, Read};

pub use answer::{Extracted, Hint, NotFound};
pub use json::{Parsed, parse as parse_json, shrink};

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tests,
    Diagnostics,
    Table,
    Json,
}

/// Looks through the outputs of one command: its standard output, then its standard error, or both in one.
pub fn extract<R: Read>(
    kind: Kind,
    outputs: impl IntoIterator<Item = R>,
    hint: &Hint<'_>,
    room: usize,
) -> io::Result<Result<Extracted, NotFound>> {
    match kind {
        Kind::Tests => results::extract(outputs, hint, room),
        Kind::Diagnostics => diagnostics::extract(outputs, hint, room),
        Kind::Table => table::extract(outputs, hint, room),
        Kind::Json => json::extract(outputs, hint, room),
    }
}
