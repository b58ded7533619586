//! Waiting for something to happen to a job.

use std::sync::Arc;
use std::time::Duration;

use mcpz_output::{Data, Filter, PageRequest, Point, Reader, Stream};
use mcpz_runtime::aside;
use regex::{Regex, RegexBuilder};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{Job, Place, State};
use crate::error::Error;
use crate::run::{Inspector, wait_for_prompt};

/// How often it is looked whether somebody listens on a port: the kernel does not tell.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// How much text is looked through at a time.
const AT_ONCE: usize = 256 << 10;

/// The most memory a pattern may take.
const MAX_PATTERN: usize = 10 << 20;

/// What to wait for. The end of the job ends every wait.
#[derive(Debug, Clone)]
pub enum Condition {
    Exit,
    /// Anything, in what comes after the place.
    Output,
    /// No output for this long.
    Quiet(Duration),
    /// A line that matches, in what comes after the place.
    Text(Regex),
    /// Something of the job listens on this port.
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
    /// What was waited for has happened; the line, if it was one.
    Yes(Option<String>),
    /// The job has ended without it.
    Ended,
    /// It sits at its terminal and waits for somebody to type.
    Asked,
    TimedOut,
}

/// Waits until something has happened to a job. `place` is where in its output to look from.
pub async fn wait(job: &Arc<Job>, condition: &Condition, place: Place, until: Instant) -> Met {
    let _use = job.begin_use();
    let inspector = job.controls.inspector();
    let happening = async {
        match condition {
            Condition::Exit => std::future::pending().await,
            Condition::Output => {
                text(job, None, place).await;
                None
            }
            Condition::Quiet(time) => quiet(job, *time).await,
            Condition::Text(pattern) => Some(text(job, Some(pattern), place).await),
            Condition::Port(port) => listening(&inspector, *port).await,
        }
    };
    let waited = async {
        tokio::select! {
            biased;
            line = happening => Met::Yes(line),
            () = ended(job) => Met::Ended,
            () = wait_for_prompt(&job.output, &inspector), if job.has_terminal() => Met::Asked,
        }
    };
    match (timeout_at(until, waited).await, condition) {
        (Ok(Met::Ended), Condition::Exit) => Met::Yes(None),
        // All that was printed before that counts.
        (Ok(met @ (Met::Ended | Met::Asked)), Condition::Text(pattern)) => {
            match matching_line(job, Some(pattern), &mut place.clone()).await {
                Some(line) => Met::Yes(Some(line)),
                None => met,
            }
        }
        (Ok(met), _) => met,
        (Err(_), _) => Met::TimedOut,
    }
}

async fn ended(job: &Job) {
    let mut end = job.end.clone();
    // Its sender lives until all is told.
    while job.state() == State::Running && end.changed().await.is_ok() {}
}

async fn quiet(job: &Job, time: Duration) -> Option<String> {
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

/// The first line behind a place that matches, or the first of all.
async fn text(job: &Arc<Job>, pattern: Option<&Regex>, mut place: Place) -> String {
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

/// The first line behind a place that matches. The place is moved to the last line that may yet
/// grow.
async fn matching_line(
    job: &Arc<Job>,
    pattern: Option<&Regex>,
    place: &mut Place,
) -> Option<String> {
    let (job, pattern, mut next) = (job.clone(), pattern.cloned(), *place);
    let searched = aside(move || {
        let matches = |line: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(line));
        // A prompt is a line without an end.
        let [stdout, stderr] = [Stream::Stdout, Stream::Stderr]
            .map(|stream| Reader::new(job.output.clone(), stream, job.view()).live());
        let line = search(&stdout, &matches, &mut next.stdout)
            .or_else(|| search(&stderr, &matches, &mut next.stderr))
            .or_else(|| drawn(&job, &stdout, pattern.as_ref()));
        (line, next)
    });
    let (line, next) = searched.await.ok()?;
    *place = next;
    line
}

/// The first line that matches on the screen of a program that uses all of it, or anything that is new
/// there.
fn drawn(job: &Job, output: &Reader, pattern: Option<&Regex>) -> Option<String> {
    if !job.has_terminal() || !output.draws().unwrap_or(false) {
        return None;
    }
    match pattern {
        Some(pattern) => {
            job.screen()?.text.lines().find(|line| pattern.is_match(line)).map(str::to_owned)
        }
        None => job.has_drawn_more().then(String::new),
    }
}

/// The first line behind a point that matches.
fn search(reader: &Reader, matches: &dyn Fn(&str) -> bool, from: &mut Point) -> Option<String> {
    let mut offset = reader.resume(&Filter::Everything, *from).ok()?;
    loop {
        let request = PageRequest::bytes(offset, AT_ONCE);
        let page = reader.page(request).ok()?;
        let Data::Text(text) = &page.data else { return None };
        if let Some(line) = text.lines().find(|line| matches(line)) {
            return Some(line.to_owned());
        }
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let last = page.end >= page.total || text.is_empty();
        // A line longer than a page is looked at in parts.
        let passed = if whole > 0 || last { whole } else { text.len() };
        offset = page.end - (text.len() - passed) as u64;
        *from = Point::at(offset);
        if last {
            return None;
        }
    }
}

async fn listening(inspector: &Inspector, port: u16) -> Option<String> {
    loop {
        if inspector.listens(port).await {
            return None;
        }
        sleep(LOOK_AGAIN).await;
    }
}
