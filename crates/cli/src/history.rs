//! `mcpz history`: the commands of all servers, for people.
//!
//!     audit trail ──────────────▶ trail ─┬─▶ entries ─▶ table, JSON
//!     servers, detached jobs ───▶ kept ──┘
//!
//! The trail has every command. Outputs are with the servers that keep them, and matches in them are added to their
//! commands. Like `mcpz jobs`, it is for people only.

mod entry;
mod kept;
mod table;
mod trail;

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use mcpz_audit::rfc3339;
use mcpz_engine::JobsFolder;
use mcpz_output::{Grep, plain};
use tokio::runtime::Builder;

use crate::args::HistoryFlags;
use crate::highlight::{Highlighted, Highlighter};
use crate::{audit, environment};
use entry::Entry;
use kept::{Kept, KeptOutputs};
use trail::{Found, Wanted};

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("there is no folder for records and jobs; set HOME or XDG_STATE_HOME")]
    NoFolder,
    #[error("{0}")]
    Refused(String),
    #[error("`--grep`: {0}")]
    Pattern(mcpz_output::Error),
    #[error("no server keeps the output of `{0}` any more")]
    NotKept(String),
    #[error("`{0}` is a job; `mcpz jobs logs {0}` prints its output")]
    Job(String),
    #[error("`{id}` matches several runs, such as {} and {}; use a longer prefix", runs[0], runs[1])]
    Ambiguous { id: String, runs: [String; 2] },
}

pub fn run(flags: HistoryFlags) -> Result<ExitCode, Box<dyn Error>> {
    let jobs = JobsFolder::new(environment::jobs_folder().ok_or(HistoryError::NoFolder)?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    if let Some(run) = &flags.output {
        let stdout = io::stdout().lock();
        let (is_terminal, colours) = (stdout.is_terminal(), Highlighter::on(&stdout, None));
        let to = Highlighted::new(stdout, colours, false);
        let mut to = Sanitised { to, rest: Vec::new() };
        match is_terminal {
            true => runtime.block_on(kept::write_output(&jobs, run, &mut to))?,
            false => runtime.block_on(kept::write_output(&jobs, run, &mut to.to))?,
        }
        to.flush_rest()?;
        to.to.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let pattern = flags.grep.as_deref();
    let grep = pattern.map(Grep::new).transpose().map_err(HistoryError::Pattern)?;
    let searched = pattern.zip(grep.as_ref());
    let KeptOutputs { outputs, remarks } = runtime.block_on(kept::search(&jobs, searched))?;
    let since = flags.since.map(|age| {
        SystemTime::now().checked_sub(age).map_or_else(|| rfc3339(SystemTime::UNIX_EPOCH), rfc3339)
    });
    let wanted = Wanted { pattern: grep, failed: flags.failed, since, count: flags.lines };
    let folder = audit::folder(flags.audit)?;
    let entries = entries(&folder, &wanted, &outputs)?;
    for remark in remarks {
        writeln!(io::stderr(), "mcpz: {remark}")?;
    }
    match () {
        () if flags.json => {
            writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&entries)?)?;
        }
        () if entries.is_empty() && wanted.pattern.is_some() => {
            writeln!(
                io::stdout(),
                "no commands; only outputs that servers still keep are searched"
            )?;
        }
        () if entries.is_empty() => writeln!(io::stdout(), "no commands")?,
        () => table::print(&entries, wanted.pattern.as_ref())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest commands, oldest first: those on record, and those that only a server knows.
fn entries(
    folder: &Path,
    wanted: &Wanted,
    kept: &HashMap<String, Kept>,
) -> Result<Vec<Entry>, Box<dyn Error>> {
    let (mut found, on_record) = match trail::read(folder, wanted, kept) {
        Ok(found) => (found, true),
        Err(error) => {
            let why = error.source().map_or(error.to_string(), ToString::to_string);
            writeln!(
                io::stderr(),
                "mcpz: there is no audit trail in {} ({why}); if your servers have `folder` in [audit], pass \
                 --folder or their --config. Only what running servers keep is shown",
                folder.display()
            )?;
            (Found::default(), false)
        }
    };
    if found.broken > 0 {
        let lines =
            if found.broken == 1 { "line is not a record" } else { "lines are not records" };
        writeln!(
            io::stderr(),
            "mcpz: {} {lines}; `mcpz audit verify` says more about the audit trail",
            found.broken
        )?;
    }
    if !on_record {
        for (run, kept) in kept {
            let entry = Entry::from_kept(run, kept);
            if wanted.includes(&entry, Some(kept)) {
                found.entries.insert((entry.time.clone(), run.clone()), entry);
            }
        }
    }
    let surplus = found.entries.len().saturating_sub(wanted.count);
    Ok(found.entries.into_values().skip(surplus).collect())
}

/// Writes output to a terminal without its control sequences.
struct Sanitised<W: Write> {
    to: W,
    /// A line that is not complete.
    rest: Vec<u8>,
}

/// A longer line is written in parts.
const MAX_LINE: usize = 1 << 20;

impl<W: Write> Sanitised<W> {
    fn flush_rest(&mut self) -> io::Result<()> {
        let rest = plain(&std::mem::take(&mut self.rest));
        self.to.write_all(rest.as_bytes())
    }
}

impl<W: Write> Write for Sanitised<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        let end = end.or((self.rest.len() > MAX_LINE).then_some(self.rest.len()));
        if let Some(end) = end {
            let lines: Vec<u8> = self.rest.drain(..end).collect();
            self.to.write_all(plain(&lines).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
