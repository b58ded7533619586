//! Output of any size: kept in memory and on disk, read a page at a time, shown in part, searched. Knows nothing of
//! commands.
//!
//!     bytes ─▶ Output ─┬─▶ Reader ─▶ Page, grep, JMESPath
//!              (spill) ├─▶ Excerpt: its beginning and its end
//!                      └─▶ Screen: what a terminal shows of it

mod error;
mod excerpt;
mod json;
mod keys;
mod mark;
mod mime;
mod nature;
mod output;
mod page;
mod reading;
mod render;
mod room;
mod screen;
mod search;
mod secrets;
mod spill;
mod store;
mod stream;
mod text;
mod zip;

pub use error::Error;
pub use excerpt::{Excerpt, shortened};
pub use keys::{KEY_NAMES, key_bytes};
pub use mime::mime;
pub use output::{Excerpts, NEWEST_KEPT, Output, Piece};
pub use page::{Data, Page, PageRequest, Reader, Stop};
pub use reading::Point;
pub use render::{Newline, View};
pub use room::{Measure, Room};
pub use screen::{Screen, Shown};
pub use search::{Filter, Summary};
pub use secrets::{Masker, Secrets};
pub use spill::{Account, LARGE_PIECE, Quota, Spill, SpillSettings};
pub use store::{Kept, Outputs, Store};
pub use stream::Stream;
pub use zip::zip;
