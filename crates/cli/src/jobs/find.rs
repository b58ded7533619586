//! Finds the jobs of this user: asks every server and recorder, and reads the folders of those that have left.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{
    AccessDenied, Connection, End, JobEnd, JobFolder, JobListing, JobOutcome, JobState, JobsFolder,
    PeerRefusal,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::JobsError;

/// How long an answer may take. A stopped process never answers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How many to ask at once: each takes a descriptor.
const AT_ONCE: usize = 256;

/// Where a job can be reached.
pub enum Location {
    /// Its server or recorder answers in this folder.
    Served(PathBuf),
    /// It has ended, and its output is kept here.
    Finished(JobFolder),
    /// Its recorder runs but does not answer.
    Unresponsive(JobFolder),
}

impl Location {
    /// The folder of a job that runs.
    pub fn running(self, job: &JobListing) -> Result<PathBuf, JobsError> {
        match self {
            Self::Served(folder) if job.state == JobState::Running => Ok(folder),
            Self::Unresponsive(_) => Err(JobsError::Unresponsive(job.name.clone())),
            Self::Served(_) | Self::Finished(_) => Err(JobsError::Ended(job.name.clone())),
        }
    }
}

#[derive(Default)]
pub struct Found {
    /// Oldest first.
    pub jobs: Vec<(Location, JobListing)>,
    /// Why a server refused to list its jobs.
    pub refused: Option<JobsError>,
    /// The process ids of servers that do not answer, if known.
    pub unresponsive: Vec<Option<i32>>,
}

/// The answer of a server or recorder that was asked for its jobs.
enum Answer {
    Jobs(Vec<JobListing>),
    Refused(JobsError),
    /// It runs, but does not answer.
    Unresponsive(Option<i32>),
    /// It has left.
    Gone,
}

/// All jobs, unless this process may not see them.
pub async fn all(shelf: &JobsFolder) -> Result<Found, JobsError> {
    shelf.sweep();
    let (mut asked, turns) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for folder in shelf.folders() {
        let turns = turns.clone();
        asked.spawn(async move {
            let _turn = turns.acquire().await;
            (ask(&folder).await, folder)
        });
    }
    let mut found = Found::default();
    for (answer, folder) in asked.join_all().await {
        match (answer, JobFolder::open(folder.clone())) {
            (Answer::Refused(refused), _) => found.refused = Some(refused),
            (Answer::Jobs(jobs), _) => {
                found
                    .jobs
                    .extend(jobs.into_iter().map(|job| (Location::Served(folder.clone()), job)));
            }
            (Answer::Unresponsive(_) | Answer::Gone, Some(standing)) => {
                let job = from_folder(&standing);
                let location = match standing.is_over() {
                    true => Location::Finished(standing),
                    false => Location::Unresponsive(standing),
                };
                found.jobs.push((location, job));
            }
            (Answer::Unresponsive(pid), None) => found.unresponsive.push(pid),
            (Answer::Gone, None) => {}
        }
    }
    // Jobs that have ended are read from files, where no server refuses anything.
    if let Some(own) = PeerRefusal::own() {
        return Err(found.refused.unwrap_or_else(|| JobsError::Refused(own.to_string())));
    }
    found.jobs.sort_by_key(|(_, job)| job.started_at);
    found.unresponsive.sort_unstable();
    Ok(found)
}

async fn ask(folder: &Path) -> Answer {
    let mut visit = match Connection::open(folder) {
        Ok(visit) => visit,
        // Too many clients wait for it.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Answer::Unresponsive(None);
        }
        Err(_) => return Answer::Gone,
    };
    match timeout(TIMEOUT, visit.list()).await {
        Ok(Ok(jobs)) => Answer::Jobs(jobs),
        Ok(Err(error)) => match error.downcast::<AccessDenied>() {
            Ok(refused) => Answer::Refused(JobsError::Refused(refused.0)),
            Err(_) => Answer::Gone,
        },
        Err(_) => Answer::Unresponsive(visit.pid()),
    }
}

/// Warns of servers whose jobs are missing from the list.
pub fn warn(unresponsive: &[Option<i32>]) {
    for pid in unresponsive {
        let server = pid.map_or("a server".to_owned(), |pid| format!("server {pid}"));
        // If stderr cannot be written, there is nowhere else to say it.
        let _ = writeln!(io::stderr(), "mcpz: {server} is not responding; its jobs are not shown");
    }
}

/// The one job with this name, or whose run starts with this id.
pub async fn find(shelf: &JobsFolder, id: &str) -> Result<(Location, JobListing), JobsError> {
    let named = |job: &JobListing| job.name == id || (id.len() >= 4 && job.run.starts_with(id));
    let Found { jobs, refused, unresponsive } = all(shelf).await?;
    warn(&unresponsive);
    let mut named: Vec<_> = jobs.into_iter().filter(|(_, job)| named(job)).collect();
    // A running job is preferred over those of the same name that have ended.
    if named.iter().filter(|(_, job)| job.state == JobState::Running).count() == 1 {
        named.retain(|(_, job)| job.state == JobState::Running);
    }
    match named.len() {
        0 => Err(refused.unwrap_or_else(|| JobsError::UnknownJob(id.to_owned()))),
        1 => Ok(named.remove(0)),
        _ => {
            let runs = named.into_iter().map(|(_, job)| job.run).collect();
            Err(JobsError::Ambiguous { id: id.to_owned(), runs })
        }
    }
}

/// A job by what its folder says, as its recorder does not answer.
fn from_folder(standing: &JobFolder) -> JobListing {
    let ending = standing.read_end();
    let state = match &ending {
        None | Some(JobEnd { outcome: JobOutcome::Ran(End::Lost, _), .. }) => JobState::Lost,
        Some(JobEnd { stopped: true, .. }) => JobState::Stopped,
        Some(_) => JobState::Exited,
    };
    let duration = ending.as_ref().map(|ending| ending.took);
    JobListing {
        run: standing.manifest.run.clone(),
        name: standing.manifest.name(),
        owner: standing.manifest.owner.clone(),
        command: standing.manifest.command.clone(),
        state,
        pid: ending.and_then(|ending| ending.pid),
        started_at: standing.manifest.started_at,
        duration: duration.unwrap_or_default(),
        terminal: false,
        detached: true,
        writable: false,
    }
}
