//! The outputs that running servers and detached jobs keep.
//!
//! Servers and recorders search what they keep themselves, and send a few lines. The outputs of detached jobs that
//! have ended are files, which are searched here.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use mcpz_engine::{
    AccessDenied, Connection, ControlReply, End, JobFolder, JobOutcome, JobsFolder, PeerRefusal,
};
use mcpz_output::{Grep, Stream, plain};
use tokio::time::{Instant, timeout};

use super::HistoryError;

/// How long an answer may take. A stopped process never answers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a search may take: a little longer than servers search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(25);

/// How many lines of one output are shown.
const MAX_LINES: usize = 5;

/// A longer line is searched in parts.
const MAX_LINE: u64 = 64 << 10;

/// An output that is kept, and its run.
pub struct Kept {
    pub owner: String,
    /// Empty if it is not known.
    pub command: String,
    pub started_at: SystemTime,
    pub end: Option<(End, Duration)>,
    pub is_job: bool,
    /// The first lines that match.
    pub lines: Vec<String>,
    pub more: bool,
}

/// What is kept, by run.
#[derive(Default)]
pub struct KeptOutputs {
    pub outputs: HashMap<String, Kept>,
    /// What was not searched, and why.
    pub remarks: Vec<String>,
}

/// All outputs that are kept or, with a pattern, those with lines that match it.
pub async fn search(
    folder: &JobsFolder,
    pattern: Option<(&str, &Grep)>,
) -> Result<KeptOutputs, HistoryError> {
    folder.sweep();
    let mut found = KeptOutputs::default();
    let mut refused = None;
    for path in folder.folders() {
        let asked = ask(&path, pattern.map(|(text, _)| text), &mut found).await;
        match asked {
            Asked::Answered => {}
            Asked::Refused(reason) => refused = Some(HistoryError::Refused(reason)),
            // Nobody serves it: the job has ended.
            Asked::Gone => read_folder(path, pattern.map(|(_, grep)| grep), &mut found),
        }
    }
    if let Some(own) = PeerRefusal::own() {
        return Err(refused.unwrap_or_else(|| HistoryError::Refused(own.to_string())));
    }
    refused.map_or(Ok(found), Err)
}

enum Asked {
    Answered,
    Refused(String),
    Gone,
}

async fn ask(folder: &Path, pattern: Option<&str>, found: &mut KeptOutputs) -> Asked {
    let Ok(mut server) = Connection::open(folder) else { return Asked::Gone };
    let name = server.pid().map_or("a server".to_owned(), |pid| format!("server {pid}"));
    // One that lives answers this at once, also if it takes long to search.
    match timeout(TIMEOUT, server.list()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            let denied = error.downcast::<AccessDenied>();
            return denied.map_or(Asked::Gone, |denied| Asked::Refused(denied.0));
        }
        Err(_) => {
            found.remarks.push(format!("{name} is not responding; its outputs are not shown"));
            return Asked::Answered;
        }
    }
    let until = Instant::now() + SEARCH_TIMEOUT;
    if server.search_outputs(pattern).is_err() {
        return Asked::Gone;
    }
    loop {
        match tokio::time::timeout_at(until, server.next_output()).await {
            Ok(Ok(Ok(listed))) => {
                let kept = Kept {
                    owner: listed.owner,
                    command: listed.command,
                    started_at: listed.started_at,
                    end: listed.end,
                    is_job: listed.is_job,
                    lines: listed.lines,
                    more: listed.more,
                };
                // A server also lists detached jobs that it has started. Their recorders know more.
                let known = found.outputs.get(&listed.run).is_some_and(|known| known.is_job);
                if !known {
                    found.outputs.insert(listed.run, kept);
                }
            }
            Ok(Ok(Err(true))) => return Asked::Answered,
            Ok(Ok(Err(false))) | Err(_) => {
                let much = format!("{name} keeps too much output to search all of it");
                found.remarks.push(much);
                return Asked::Answered;
            }
            Ok(Err(_)) => {
                let other = format!("{name} is of another version; its outputs are not shown");
                found.remarks.push(other);
                return Asked::Answered;
            }
        }
    }
}

/// A detached job that has ended.
fn read_folder(path: std::path::PathBuf, pattern: Option<&Grep>, found: &mut KeptOutputs) {
    let Some(job) = JobFolder::open(path) else { return };
    let searched = pattern.map_or(Ok((Vec::new(), false)), |pattern| lines(&job, pattern));
    let (lines, more) = searched.unwrap_or_default();
    if pattern.is_some() && lines.is_empty() {
        return;
    }
    let end = job.read_end().map_or((End::Lost, Duration::ZERO), |end| match end.outcome {
        JobOutcome::Ran(how, _) => (how, end.took),
        JobOutcome::NotStarted(_) => (End::Lost, end.took),
    });
    let kept = Kept {
        owner: job.manifest.owner.clone(),
        command: job.manifest.command.clone(),
        started_at: job.manifest.started_at,
        end: Some(end),
        is_job: true,
        lines,
        more,
    };
    found.outputs.insert(job.manifest.run.clone(), kept);
}

/// The first lines of a job's output that match, and whether there are more.
fn lines(job: &JobFolder, pattern: &Grep) -> io::Result<(Vec<String>, bool)> {
    let mut output = BufReader::new(File::open(job.output())?);
    let (mut found, mut line) = (Vec::new(), Vec::new());
    while output.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? > 0 {
        let text = plain(&line);
        let text = text.trim_end_matches('\n');
        if pattern.find(text).is_some() {
            if found.len() == MAX_LINES {
                return Ok((found, true));
            }
            found.push(text.to_owned());
        }
        line.clear();
    }
    Ok((found, false))
}

/// Writes an output that a server keeps.
pub async fn write_output(
    folder: &JobsFolder,
    run: &str,
    to: &mut dyn Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let kept = search(folder, None).await?;
    let mut runs: Vec<_> = kept.outputs.iter().filter(|(id, _)| id.starts_with(run)).collect();
    runs.sort_unstable_by_key(|(id, _)| *id);
    let id = match runs.as_slice() {
        [] => return Err(HistoryError::NotKept(run.to_owned()).into()),
        [(_, kept)] if kept.is_job => return Err(HistoryError::Job(run.to_owned()).into()),
        [(id, _)] => (*id).clone(),
        [(one, _), (other, _), ..] => {
            let runs = [(*one).clone(), (*other).clone()];
            return Err(HistoryError::Ambiguous { id: run.to_owned(), runs }.into());
        }
    };
    for path in folder.folders() {
        let Ok(mut server) = Connection::open(&path) else { continue };
        let mut is_here = true;
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut at = 0;
            while is_here {
                server.read_output(&id, stream, at)?;
                let (start, bytes) = match timeout(TIMEOUT, server.next()).await {
                    Ok(Some(
                        ControlReply::Output { at, bytes, .. }
                        | ControlReply::Passing { at, bytes, .. },
                    )) => (at, bytes),
                    _ => {
                        is_here = false;
                        break;
                    }
                };
                if bytes.is_empty() {
                    break;
                }
                if start > at {
                    write!(to, "\n[{} bytes of output were not kept]\n", start - at)?;
                }
                to.write_all(&bytes)?;
                at = start + bytes.len() as u64;
            }
        }
        if is_here {
            return Ok(());
        }
    }
    Err(HistoryError::NotKept(run.to_owned()).into())
}
