//! Shorter forms of an output, for readers who pay for every word: [`folded`], only its [`errors`], or its
//! [`changes`] since an earlier one. This crate is pure: text in, text out.
//!
//!     bytes ─▶ Lines ─┬─▶ folded: runs of alike lines become two lines and a count ─┬─▶ Shown
//!                     ├─▶ errors ───┬─▶ Groups: lines that matter, and those around ┘
//!             before ─┴─▶ changes ──┘
//!
//! Every form says exactly how many lines it left out. It ends at a line of the output before it outgrows its room;
//! `consumed` says where the next page begins. Memory is bounded by that room, whatever the output is.

mod alike;
mod changes;
mod errors;
mod folded;
mod groups;
mod lines;
mod passing;
mod shown;
mod trouble;
mod words;

pub use changes::{Changes, changes, changes_so_far};
pub use errors::{count_errors, errors};
pub use folded::folded;
pub use shown::Shown;
pub use trouble::{Level, trouble};
