//! Output of any size, from one command: kept in memory and on disk, read in pages, rendered, excerpted, searched
//! and masked. This crate knows bytes, not commands.
//!
//!     bytes ─▶ Masker ─▶ Output ─┬─▶ Reader ─▶ Page, grep, JMESPath, View
//!                        (spill) ├─▶ Excerpt: its start and its end
//!                                └─▶ Screen: what a terminal shows of it
//!     Store: which outputs are kept, for whom and how long

mod changes;
mod checkpoint;
mod content_kind;
mod digest;
mod error;
mod excerpt;
mod gzip;
mod json;
mod keys;
mod loss;
mod mime;
mod output;
mod page;
mod read_position;
mod render;
mod room;
mod screen;
mod search;
mod secrets;
mod spill;
mod store;
mod stream;
mod text;
mod view;

pub use changes::{BothPlaces, Compared};
pub use digest::excerpts;
pub use error::Error;
pub use excerpt::{Excerpt, shorten};
pub use gzip::gzip;
pub use json::JsonPath;
pub use keys::{KEY_NAMES, key_bytes};
pub use mime::mime;
pub use output::{Excerpts, NEWEST_KEPT, Output, Piece};
pub use page::{Data, LeftOut, Page, PageRequest, Reader, Stop};
pub use read_position::ReadPosition;
pub use render::{Newline, Rendering};
pub use room::{Measure, Room};
pub use screen::{Screen, ScreenContents};
pub use search::{Filter, Grep, Summary};
pub use secrets::{Masker, Secrets};
pub use spill::{DiskAccount, LARGE_PIECE, Quota, Spill, SpillSettings};
pub use store::{Kept, Outputs, Store};
pub use stream::Stream;
pub use text::plain;
pub use view::View;
