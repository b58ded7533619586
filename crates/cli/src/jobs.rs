//! `mcpz jobs`: lists, shows, stops and attaches to the jobs of all servers of this user.

mod attach;
mod find;
mod table;

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use mcpz_audit::visible;
use mcpz_engine::{Connection, ControlReply, Job, JobFolder, JobsFolder, OutputRange, RunAction};
use mcpz_output::Stream;
use tokio::runtime::Builder;

use crate::args::JobsCommand;
use crate::environment;
use crate::highlight::{Highlighted, Highlighter};
use find::{Found, Location, all, find, warn};
pub use table::time;

/// How long a job may take to stop after its grace has passed.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    #[error("there is no folder for jobs; set HOME or XDG_STATE_HOME")]
    NoFolder,
    #[error("there is no job `{0}`; `mcpz jobs list` shows all jobs")]
    UnknownJob(String),
    #[error("`{id}` matches several jobs; choose one by its run:\n{}", candidates.join("\n"))]
    Ambiguous { id: String, candidates: Vec<String> },
    #[error("the job {0} has ended; `mcpz jobs logs {0}` shows what it printed")]
    Ended(String),
    #[error("the job {0} has no input; `mcpz jobs logs -f {0}` follows its output")]
    NoInput(String),
    #[error("attaching is interactive; standard input and output must be a terminal")]
    NoTerminal,
    #[error("the supervisor of the job {0} is not responding; try again, or stop its server")]
    Unresponsive(String),
    #[error("{0}")]
    Refused(String),
    #[error("the job {0} is still running; `ps` shows its processes")]
    StillRunning(String),
}

pub fn run(command: JobsCommand) -> Result<ExitCode, Box<dyn Error>> {
    let shelf = JobsFolder::new(environment::jobs_folder().ok_or(JobsError::NoFolder)?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let done: Result<ExitCode, Box<dyn Error>> = runtime.block_on(async {
        match command {
            JobsCommand::List { json } => list(&shelf, json).await?,
            JobsCommand::Logs { job, follow } => logs(&shelf, &job, follow).await?,
            JobsCommand::Stop { job } => stop(&shelf, &job).await?,
            JobsCommand::Attach { job } => return attach::attach(&shelf, &job).await,
        }
        Ok(ExitCode::SUCCESS)
    });
    // Does not wait for the thread that may still read from the terminal.
    runtime.shutdown_background();
    done
}

async fn list(shelf: &JobsFolder, json: bool) -> Result<(), Box<dyn Error>> {
    let Found { jobs, refused, unresponsive } = all(shelf).await?;
    warn(&unresponsive);
    if json {
        let listed: Vec<_> = jobs.iter().map(|(_, job)| job).collect();
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&listed)?)?;
    } else if !jobs.is_empty() {
        table::print(&jobs)?;
    } else if refused.is_none() && unresponsive.is_empty() {
        writeln!(io::stdout(), "no jobs")?;
    }
    // After the jobs that other servers did list.
    refused.map_or(Ok(()), |refused| Err(refused.into()))
}

/// Prints the output of a job and, with `follow`, what it prints until it ends.
async fn logs(shelf: &JobsFolder, id: &str, follow: bool) -> Result<(), Box<dyn Error>> {
    let (location, job) = find(shelf, id).await?;
    let stdout = io::stdout().lock();
    let highlighter = Highlighter::on(&stdout, None);
    let mut to = Highlighted::new(stdout, highlighter, follow);
    match location {
        Location::Finished(standing) | Location::Unresponsive(standing) => {
            print_rest(&standing, 0, &mut to)?
        }
        Location::Served(folder) => {
            let printed = print_streamed(&folder, &job.run, follow, &mut to).await?;
            // Its server may have left before the end; the folder then has the rest.
            if let Some(standing) = JobFolder::open(folder).filter(|job| job.read_end().is_some()) {
                print_rest(&standing, printed, &mut to)?;
            }
        }
    }
    Ok(to.finish()?)
}

/// Prints the output that a job's server sends. Returns the number of bytes of stdout.
async fn print_streamed(
    folder: &Path,
    run: &str,
    follow: bool,
    to: &mut impl Write,
) -> io::Result<u64> {
    let Ok(mut visit) = Connection::open(folder) else { return Ok(0) };
    visit.follow(run, OutputRange::Everything, follow)?;
    let mut printed = HashMap::from([(Stream::Stdout, 0)]);
    while let Some(tell) = visit.next().await {
        if let ControlReply::Output { stream, at, bytes }
        | ControlReply::Passing { stream, at, bytes } = tell
        {
            let before = printed.insert(stream, at + bytes.len() as u64).unwrap_or(0);
            if at > before {
                write!(to, "{}", missing(at - before))?;
            }
            to.write_all(&bytes)?;
            to.flush()?;
        }
    }
    Ok(printed[&Stream::Stdout])
}

/// Prints the output of a job that is kept in its folder, after the bytes that were printed before.
fn print_rest(standing: &JobFolder, printed: u64, to: &mut impl Write) -> io::Result<()> {
    let mut file = File::open(standing.output())?;
    let printed = printed.max(file.seek(SeekFrom::Start(printed))? + io::copy(&mut file, to)?);
    let lost = standing.read_end().map_or(0, |ending| ending.lost);
    let (at, newest) = standing.newest_after(printed, lost)?;
    if at > printed {
        write!(to, "{}", missing(at - printed))?;
    }
    to.write_all(&newest)
}

fn missing(bytes: u64) -> String {
    format!("\n[{bytes} bytes of output were not kept]\n")
}

async fn stop(shelf: &JobsFolder, id: &str) -> Result<(), Box<dyn Error>> {
    let (location, job) = find(shelf, id).await?;
    let folder = location.running(&job)?;
    let mut visit = Connection::open(&folder)?;
    // Follows first: a recorder exits when its job has ended and nobody follows it.
    visit.follow(&job.run, OutputRange::Nothing, true)?;
    visit.say(&job.run, RunAction::Stop { grace: Job::STOP_GRACE }, || ())?;
    let ended = async {
        while let Some(tell) = visit.next().await {
            if let ControlReply::Ended(ending) = tell {
                return Some(ending.survivors);
            }
        }
        None
    };
    let survivors = tokio::time::timeout(Job::STOP_GRACE + STOP_TIMEOUT, ended).await;
    match survivors.map_err(|_| JobsError::StillRunning(job.name.clone()))? {
        Some(survivors) if survivors.is_empty() => {
            writeln!(io::stdout(), "stopped {}: {}", job.name, visible(&job.command))?;
            Ok(())
        }
        Some(_) => Err(JobsError::StillRunning(job.name).into()),
        None => Err(JobsError::Unresponsive(job.name).into()),
    }
}
