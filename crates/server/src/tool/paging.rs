//! What the tools that read output a page at a time have in common.

use std::time::Duration;

use mcpz_output::{Error, Filter, Output, Page, Stop};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::error::{InvalidCursor, ToolError};
use crate::blocking::run_blocking;
use crate::kept::Cursor;

/// The most bytes a page may have.
pub const MAX_BYTES: usize = 1 << 18;

/// How long an empty page of a command that still runs waits for output: whoever asks for page after page would
/// ask in vain again and again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks meanwhile: a line that grows is shown when it has an end.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What to filter a page by. A pattern can take a tenth of a second to compile.
pub async fn filter(
    cancelled: &CancellationToken,
    grep: Option<&str>,
    json_path: Option<&str>,
) -> Result<Filter, ToolError> {
    if grep.is_none() && json_path.is_none() {
        return Ok(Filter::Everything);
    }
    let (grep, path) = (grep.map(str::to_owned), json_path.map(str::to_owned));
    let compile = move |_| Filter::new(grep.as_deref(), path.as_deref());
    Ok(run_blocking(cancelled, compile).await?)
}

/// Reads a page, and waits a moment if nothing is on it yet.
pub async fn read_patiently<T: Send + 'static>(
    cancelled: &CancellationToken,
    output: &Output,
    read: impl FnOnce(Stop) -> Result<T, Error> + Clone + Send + 'static,
    may_get_more: impl Fn(&T) -> bool,
) -> Result<T, ToolError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let (mut arrived, looked) = (output.watch(), Instant::now());
        let page = run_blocking(cancelled, read.clone()).await?;
        if !may_get_more(&page) || Instant::now() >= until {
            return Ok(page);
        }
        let _ = timeout_at(until, arrived.changed()).await;
        if !output.is_finished() {
            sleep_until(looked + LOOK_AGAIN).await;
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`limit_bytes` must be from 1 to {MAX_BYTES}, not {0}")]
struct LimitOutOfRange(usize);

/// A number of bytes somebody has asked for, if a page may have so many.
pub fn checked_limit(limit_bytes: usize) -> Result<usize, ToolError> {
    match (1..=MAX_BYTES).contains(&limit_bytes) {
        true => Ok(limit_bytes),
        false => Err(ToolError::arguments(LimitOutOfRange(limit_bytes))),
    }
}

/// The place to begin at: the beginning, if none is named.
pub fn parse_cursor(cursor: Option<&str>) -> Result<Cursor, ToolError> {
    let Some(text) = cursor else { return Ok(Cursor::default()) };
    text.parse().map_err(|_| ToolError::arguments(InvalidCursor(text.to_owned())))
}

/// Whether nothing is on a page, and something may be when it is read again.
pub fn is_pending(page: &Page, ended: bool) -> bool {
    page.end == page.start && next_page(page, ended).is_some()
}

/// Where the next page begins, if there is one. What a command that has ended left running may print
/// more, but nobody can say whether and when: that is for a job to tell.
pub fn next_page(page: &Page, ended: bool) -> Option<u64> {
    (page.end < page.total || (page.running && !ended)).then_some(page.end)
}
