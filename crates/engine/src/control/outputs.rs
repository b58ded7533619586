//! Outputs that people can search and read while a process keeps them.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcpz_output::{Data, Filter, Output, PageRequest, Reader, Rendering, Room, Stop, Stream};

use super::messages::OutputListing;
use crate::jobs::{Job, JobState};
use crate::outcome::End;

/// How much of the lines that match is sent.
const MAX_LINES: usize = 5;
const MAX_BYTES: usize = 2 << 10;

/// How much of a command is sent.
const MAX_COMMAND: usize = 4 << 10;

/// The output of a run, and what is known about the run.
pub struct KeptRun {
    pub run: Arc<str>,
    pub owner: Arc<str>,
    /// The command with secrets masked; empty if it is not known here.
    pub command: String,
    pub started_at: SystemTime,
    /// How it ended, and how long it took, once it has.
    pub end: Option<(End, Duration)>,
    pub is_job: bool,
    pub output: Output,
}

impl KeptRun {
    pub fn of(owner: &Arc<str>, job: &Job) -> Self {
        let ended = job.end().outcome.and_then(Result::ok);
        let ended = ended.filter(|_| job.state() != JobState::Running);
        Self {
            run: job.run.clone(),
            owner: owner.clone(),
            command: job.command.clone(),
            started_at: job.started_at,
            end: ended.map(|outcome| (outcome.end, job.duration())),
            is_job: true,
            output: job.output.clone(),
        }
    }

    /// Its entry in a list, with the first lines that match a filter. Reading may block on the disk.
    pub fn list(&self, filter: Option<&Filter>, stop: &Stop) -> io::Result<OutputListing> {
        let mut command = self.command.clone();
        command.truncate(command.floor_char_boundary(MAX_COMMAND));
        let mut listing = OutputListing {
            run: self.run.to_string(),
            owner: self.owner.to_string(),
            command,
            started_at: self.started_at,
            end: self.end,
            is_job: self.is_job,
            lines: Vec::new(),
            more: false,
        };
        for stream in [Stream::Stdout, Stream::Stderr].into_iter().filter(|_| filter.is_some()) {
            let (lines, more) = self.search(stream, filter, stop)?;
            listing.lines.extend(lines);
            listing.more |= more;
        }
        listing.more |= listing.lines.len() > MAX_LINES;
        listing.lines.truncate(MAX_LINES);
        Ok(listing)
    }

    /// The first lines of a stream that match, and whether there are more.
    fn search(
        &self,
        stream: Stream,
        filter: Option<&Filter>,
        stop: &Stop,
    ) -> io::Result<(Vec<String>, bool)> {
        let reader = Reader::new(self.output.clone(), stream, Rendering::default()).live();
        let reader = reader.until(stop.clone());
        let request =
            PageRequest { offset: 0, room: Room::bytes(MAX_BYTES), limit_lines: MAX_LINES };
        let page = filter.map(|filter| filter.page(&reader, request)).transpose();
        // A stream that is not text has no lines. Those of one that is gone meanwhile do not match.
        stop.check()?;
        let Ok(Some(page)) = page else { return Ok((Vec::new(), false)) };
        let Data::Text(text) = page.data else { return Ok((Vec::new(), false)) };
        Ok((text.lines().map(str::to_owned).collect(), page.end < page.total))
    }
}
