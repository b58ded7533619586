//! What the tools that read output page by page have in common.

use std::time::Duration;

use mcpz_output::{Error, Filter, Output, Page, Stop};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::error::{InvalidCursor, ToolError};
use crate::blocking::run_blocking;
use crate::output_uri::Cursor;

/// The most bytes of a page.
pub const MAX_BYTES: usize = 1 << 18;

/// How long an empty page of a running command waits for output. Without that, a client that asks for page after page
/// would ask again at once, in vain.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two looks while waiting: a growing line is shown once it has an end.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
#[error("`limit_bytes` must be from 1 to {MAX_BYTES}, not {0}")]
struct LimitOutOfRange(usize);

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

/// Reads a page, and waits a moment while it is empty and may get more.
pub async fn read_page<T: Send + 'static>(
    cancelled: &CancellationToken,
    output: &Output,
    read: impl FnOnce(Stop) -> Result<T, Error> + Clone + Send + 'static,
    may_get_more: impl Fn(&T) -> bool,
) -> Result<T, ToolError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let (mut arrived, began) = (output.watch(), Instant::now());
        let page = run_blocking(cancelled, read.clone()).await?;
        if !may_get_more(&page) || Instant::now() >= until {
            return Ok(page);
        }
        let _ = timeout_at(until, arrived.changed()).await;
        if !output.is_finished() {
            sleep_until(began + LOOK_AGAIN).await;
        }
    }
}

pub fn check_limit(limit_bytes: usize) -> Result<usize, ToolError> {
    match (1..=MAX_BYTES).contains(&limit_bytes) {
        true => Ok(limit_bytes),
        false => Err(ToolError::arguments(LimitOutOfRange(limit_bytes))),
    }
}

/// Where to begin: at the beginning, if there is no cursor.
pub fn parse_cursor(cursor: Option<&str>) -> Result<Cursor, ToolError> {
    let Some(text) = cursor else { return Ok(Cursor::default()) };
    text.parse().map_err(|_| ToolError::arguments(InvalidCursor(text.to_owned())))
}

/// Whether a page is empty but may have something on it later.
pub fn is_pending(page: &Page, ended: bool) -> bool {
    page.end == page.start && next_page(page, ended).is_some()
}

/// Where the next page begins, if there is one. Processes that an ended command left running may print more, but
/// nobody knows whether and when; `read_job` reports that.
pub fn next_page(page: &Page, ended: bool) -> Option<u64> {
    (page.end < page.total || (page.running && !ended)).then_some(page.end)
}
