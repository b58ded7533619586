//! Waiting for something to happen to a job.
//!
//! Waits subscribe to the output and the end of a job. Only for a port the kernel has to be polled, and only while
//! someone waits for one.

use std::sync::Arc;
use std::time::Duration;

use mcpz_output::{Data, Filter, PageRequest, ReadPosition, Reader, Stream};
use mcpz_runtime::spawn_blocking;
use regex::{Regex, RegexBuilder};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{Job, JobState, Position};
use crate::error::Error;
use crate::run::{Inspector, wait_for_prompt};

/// How often to check for a listening port; the kernel does not notify.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How much text to search at a time.
const SEARCH_SIZE: usize = 256 << 10;

/// How much memory a pattern may take.
const MAX_PATTERN: usize = 10 << 20;

/// What to wait for. The end of the job ends every wait.
#[derive(Debug, Clone)]
pub enum Condition {
    /// The command has ended, even if it left processes running.
    Exit,
    /// Any output after the given position.
    Output,
    /// No output for this long.
    Quiet(Duration),
    /// A matching line after the given position.
    Text(Regex),
    /// A process of the job listens on this port.
    Port(u16),
}

impl Condition {
    /// A line that matches a pattern.
    pub fn text(pattern: &str) -> Result<Self, Error> {
        let regex = RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build();
        regex.map(Self::Text).map_err(|error| mcpz_output::Error::Pattern(error.to_string()).into())
    }
}

/// Why a wait is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    /// The condition is met, with the line that met it if there is one.
    Yes(Option<String>),
    /// The job ended first.
    Ended,
    /// It waits at its terminal for someone to type.
    Asked,
    TimedOut,
}

impl Job {
    /// Waits until something happens. `from` is where in the output to start looking.
    pub async fn wait_for(
        self: &Arc<Self>,
        condition: &Condition,
        from: Position,
        until: Instant,
    ) -> Met {
        let job = self;
        let _in_use = job.begin_use();
        let inspector = job.controls.inspector();
        let condition_met = async {
            match condition {
                Condition::Exit => {
                    wait_while(job, |job| !job.has_ended()).await;
                    None
                }
                Condition::Output => {
                    wait_for_text(job, None, from).await;
                    None
                }
                Condition::Quiet(time) => wait_for_silence(job, *time).await,
                Condition::Text(pattern) => Some(wait_for_text(job, Some(pattern), from).await),
                Condition::Port(port) => wait_for_port(&inspector, *port).await,
            }
        };
        let waited = async {
            tokio::select! {
                biased;
                line = condition_met => Met::Yes(line),
                () = wait_while(job, |job| job.state() == JobState::Running) => Met::Ended,
                () = wait_for_prompt(&job.output, &inspector), if job.has_terminal() => Met::Asked,
            }
        };
        match (timeout_at(until, waited).await, condition) {
            // Everything printed before the end or the prompt counts.
            (Ok(met @ (Met::Ended | Met::Asked)), Condition::Text(pattern)) => {
                match matching_line(job, Some(pattern), &mut from.clone()).await {
                    Some(line) => Met::Yes(Some(line)),
                    None => met,
                }
            }
            (Ok(met), _) => met,
            (Err(_), _) => Met::TimedOut,
        }
    }
}

async fn wait_while(job: &Job, is_so: impl Fn(&Job) -> bool) {
    let mut end = job.end.clone();
    // The sender lives until everything is known.
    while is_so(job) && end.changed().await.is_ok() {}
}

async fn wait_for_silence(job: &Job, time: Duration) -> Option<String> {
    let mut arrived = job.output.watch();
    loop {
        let until = Instant::now() + time;
        tokio::select! {
            changed = arrived.changed() => {
                if changed.is_err() {
                    sleep_until(until).await;
                    return None;
                }
            }
            () = sleep_until(until) => return None,
        }
    }
}

/// Waits for the first line after a position that matches, or the first of all.
async fn wait_for_text(job: &Arc<Job>, pattern: Option<&Regex>, mut place: Position) -> String {
    let mut arrived = job.output.watch();
    loop {
        arrived.mark_unchanged();
        if let Some(line) = matching_line(job, pattern, &mut place).await {
            return line;
        }
        if arrived.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The first matching line after a position. Moves the position to the last line that may still grow.
async fn matching_line(
    job: &Arc<Job>,
    pattern: Option<&Regex>,
    place: &mut Position,
) -> Option<String> {
    let (job, pattern, mut next) = (job.clone(), pattern.cloned(), *place);
    let searched = spawn_blocking(move || {
        let matches = |line: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(line));
        // A prompt is a line without an end.
        let [stdout, stderr] = [Stream::Stdout, Stream::Stderr]
            .map(|stream| Reader::new(job.output.clone(), stream, job.rendering()).live());
        let line = search(&stdout, &matches, &mut next.stdout)
            .or_else(|| search(&stderr, &matches, &mut next.stderr))
            .or_else(|| drawn_line(&job, &stdout, pattern.as_ref()));
        (line, next)
    });
    let (line, next) = searched.await.ok()?;
    *place = next;
    line
}

/// The first matching line on the screen of a full-screen program or, without a pattern, an empty line if anything is
/// new there.
fn drawn_line(job: &Job, output: &Reader, pattern: Option<&Regex>) -> Option<String> {
    if !job.has_terminal() || !output.is_drawing().unwrap_or(false) {
        return None;
    }
    match pattern {
        Some(pattern) => {
            job.screen()?.text.lines().find(|line| pattern.is_match(line)).map(str::to_owned)
        }
        None => job.has_drawn_more().then(String::new),
    }
}

/// The first matching line after a point.
fn search(
    reader: &Reader,
    matches: &dyn Fn(&str) -> bool,
    from: &mut ReadPosition,
) -> Option<String> {
    let mut offset = reader.resume(&Filter::Everything, *from).ok()?;
    loop {
        let request = PageRequest::bytes(offset, SEARCH_SIZE);
        let page = reader.page(request).ok()?;
        let Data::Text(text) = &page.data else { return None };
        if let Some(line) = text.lines().find(|line| matches(line)) {
            return Some(line.to_owned());
        }
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let last = page.end >= page.total || text.is_empty();
        // A line longer than a page is searched in parts.
        let passed = if whole > 0 || last { whole } else { text.len() };
        offset = page.end - (text.len() - passed) as u64;
        *from = ReadPosition::at(offset);
        if last {
            return None;
        }
    }
}

async fn wait_for_port(inspector: &Inspector, port: u16) -> Option<String> {
    loop {
        if inspector.listens(port).await {
            return None;
        }
        sleep(POLL_INTERVAL).await;
    }
}
