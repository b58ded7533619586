//! Finds the jobs of this user: asks every server and recorder, and reads the folders of those that have left.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpz_audit::visible;
use mcpz_engine::{
    AccessDenied, Connection, End, JobEnd, JobFolder, JobListing, JobOutcome, JobState, JobsFolder,
    PeerRefusal,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::JobsError;
use crate::terminal;

/// How long an answer may take. A stopped process never answers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How many to ask at once: each takes a descriptor.
const AT_ONCE: usize = 256;

/// How much of a run's id says which is meant.
const SHORTEST_PREFIX: usize = 4;

/// How much of a run's id is shown, unless others begin alike.
const SHOWN_PREFIX: usize = 8;

/// How much of a command is shown where people choose between jobs.
const LONGEST_COMMAND: usize = 60;

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
    /// What people are shown as the state of a job that is here.
    pub fn state(&self, job: &JobListing) -> &'static str {
        match self {
            Self::Unresponsive(_) => "silent",
            Self::Served(_) | Self::Finished(_) => job.state.name(),
        }
    }

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
    let Found { jobs, refused, unresponsive } = all(shelf).await?;
    warn(&unresponsive);
    match choose(jobs, id) {
        Err(JobsError::UnknownJob(id)) => Err(refused.unwrap_or(JobsError::UnknownJob(id))),
        chosen => chosen,
    }
}

fn choose(
    mut jobs: Vec<(Location, JobListing)>,
    id: &str,
) -> Result<(Location, JobListing), JobsError> {
    // The list marks runs of detached jobs with a star.
    let run = id.strip_suffix('*').unwrap_or(id);
    let is_chosen = |job: &JobListing| {
        job.name == id || (run.len() >= SHORTEST_PREFIX && job.run.starts_with(run))
    };
    let chosen = |(_, job): &(Location, JobListing)| is_chosen(job);
    let is_running =
        |(_, job): &(Location, JobListing)| job.name == id && job.state == JobState::Running;
    // Jobs of several servers have the same name. The one that runs is meant, if there is one.
    let running = jobs.iter().filter(|job| is_running(job)).count() == 1;
    let several = jobs.iter().filter(|job| chosen(job)).count() > 1;
    if several && !running {
        let candidates = jobs.iter().filter(|job| chosen(job));
        let candidates = candidates.map(|(at, job)| candidate(at, job, &jobs)).collect();
        return Err(JobsError::Ambiguous { id: id.to_owned(), candidates });
    }
    let at = jobs.iter().position(|job| if running { is_running(job) } else { chosen(job) });
    at.map(|at| jobs.swap_remove(at)).ok_or_else(|| JobsError::UnknownJob(id.to_owned()))
}

/// One of several jobs that may be meant, as a line.
fn candidate(at: &Location, job: &JobListing, jobs: &[(Location, JobListing)]) -> String {
    let command = terminal::cut(&visible(&job.command), LONGEST_COMMAND);
    format!("  {}  {:<8}  {command}", short_run(&job.run, jobs), at.state(job))
}

/// The beginning of a run's id, long enough that no other job's run begins with it.
pub fn short_run<'a>(run: &'a str, jobs: &[(Location, JobListing)]) -> &'a str {
    let others = || jobs.iter().map(|(_, job)| job.run.as_str()).filter(|other| *other != run);
    (SHOWN_PREFIX..run.len())
        .filter_map(|length| run.get(..length))
        .find(|short| !others().any(|other| other.starts_with(short)))
        .unwrap_or(run)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, run: &str, state: JobState) -> (Location, JobListing) {
        let listing = JobListing {
            run: run.to_owned(),
            name: name.to_owned(),
            owner: "stdio".to_owned(),
            command: format!("echo {run}"),
            state,
            pid: None,
            started_at: std::time::UNIX_EPOCH,
            duration: Duration::ZERO,
            terminal: false,
            detached: false,
            writable: false,
        };
        (Location::Served(PathBuf::new()), listing)
    }

    fn jobs() -> Vec<(Location, JobListing)> {
        vec![
            job("job-1", "aaaabbbb1111", JobState::Exited),
            job("job-1", "aaaabbbb2222", JobState::Running),
            job("job-2", "ccccdddd1111", JobState::Exited),
            job("job-2", "ccccdddd2222", JobState::Exited),
            job("job-12", "eeeeffff1111", JobState::Running),
        ]
    }

    fn chosen(id: &str) -> Result<String, String> {
        choose(jobs(), id).map(|(_, job)| job.run).map_err(|error| error.to_string())
    }

    #[test]
    fn every_id_that_is_shown_is_accepted_and_means_one_job() {
        let jobs = jobs();
        let shown: Vec<_> = jobs.iter().map(|(_, job)| short_run(&job.run, &jobs)).collect();
        assert_eq!(shown, ["aaaabbbb1", "aaaabbbb2", "ccccdddd1", "ccccdddd2", "eeeeffff"]);
        for ((_, job), shown) in jobs.iter().zip(shown) {
            assert_eq!(chosen(shown), Ok(job.run.clone()));
            assert_eq!(chosen(&format!("{shown}*")), Ok(job.run.clone()));
        }
    }

    #[test]
    fn of_jobs_of_one_name_the_one_that_runs_is_meant() {
        assert_eq!(chosen("job-1"), Ok("aaaabbbb2222".to_owned()));
    }

    #[test]
    fn an_id_that_several_jobs_have_is_refused_and_the_jobs_are_listed() {
        let listed = |id: &str, runs: [&str; 2], states: [&str; 2]| {
            let lines = [0, 1].map(|at| {
                let run = runs[at];
                format!("\n  {}  {:<8}  echo {run}", &run[..9], states[at])
            });
            format!("`{id}` matches several jobs; choose one by its run:{}", lines.concat())
        };
        let old = ["ccccdddd1111", "ccccdddd2222"];
        assert_eq!(chosen("job-2"), Err(listed("job-2", old, ["exited"; 2])));
        // Nobody stops a job by a prefix that another one has too.
        let either = ["aaaabbbb1111", "aaaabbbb2222"];
        assert_eq!(chosen("aaaa"), Err(listed("aaaa", either, ["exited", "running"])));
        for unknown in ["aaa", "*", "", "job-", "job-3"] {
            assert!(chosen(unknown).unwrap_err().starts_with("there is no job "), "{unknown}");
        }
    }
}
