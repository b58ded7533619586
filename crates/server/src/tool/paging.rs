//! What the tools that read output a page at a time have in common.

use mcpz_engine::Page;

use super::answer::Complaint;
use crate::kept::Cursor;

/// The most bytes a page may have.
pub const MAX_BYTES: usize = 1 << 18;

/// A number of bytes somebody has asked for, if a page may have so many.
pub fn checked_limit(limit_bytes: usize) -> Result<usize, Complaint> {
    match (1..=MAX_BYTES).contains(&limit_bytes) {
        true => Ok(limit_bytes),
        false => {
            let text = format!("`limit_bytes` must be from 1 to {MAX_BYTES}, not {limit_bytes}");
            Err(Complaint::invalid(text))
        }
    }
}

/// The place to begin at: the beginning, if none is named.
pub fn parse_cursor(cursor: Option<&str>) -> Result<Cursor, Complaint> {
    let Some(text) = cursor else { return Ok(Cursor::default()) };
    text.parse().map_err(|_| {
        Complaint::invalid(format!("`{text}` is not a cursor: pass next_cursor on as it was given"))
    })
}

/// Where the next page begins, if there is one. What a command that has ended left running may print
/// more, but nobody can say whether and when: that is for a job to tell.
pub fn next_page(page: &Page, ended: bool) -> Option<u64> {
    (page.end < page.total || (page.running && !ended)).then_some(page.end)
}
