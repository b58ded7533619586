//! Which jobs there are on this machine, and who can be asked for them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{End, Ending, Listed, Refusal, Refused, Shelf, Standing, State, Visit};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::JobsError;

/// How long whoever is asked may take: one that was stopped never answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many are asked at once: each takes a descriptor.
const AT_ONCE: usize = 256;

/// Where a job is to be asked for.
pub enum Place {
    /// Somebody sits at the desk in this folder.
    Desk(PathBuf),
    /// It has ended, and what it printed is kept here.
    Kept(Standing),
    /// Whoever keeps it is there and does not answer.
    Silent(Standing),
}

impl Place {
    /// Where to ask for a job that runs.
    pub fn desk(self, job: &Listed) -> Result<PathBuf, JobsError> {
        match self {
            Self::Desk(folder) if job.state == State::Running => Ok(folder),
            Self::Silent(_) => Err(JobsError::Silent(job.name.clone())),
            Self::Desk(_) | Self::Kept(_) => Err(JobsError::Ended(job.name.clone())),
        }
    }
}

/// What was found.
#[derive(Default)]
pub struct Found {
    /// Oldest first.
    pub jobs: Vec<(Place, Listed)>,
    /// Why somebody would not tell us of others.
    pub refused: Option<JobsError>,
    /// The processes of servers that do not answer, as far as they can be seen.
    pub silent: Vec<Option<i32>>,
}

/// What somebody says who was asked for their jobs.
enum Answer {
    Jobs(Vec<Listed>),
    Refused(JobsError),
    /// Nothing, though they are there.
    Silent(Option<i32>),
    /// Nothing, as nobody is there.
    Deserted,
}

/// All jobs, unless they are none of our business.
pub async fn all(shelf: &Shelf) -> Result<Found, JobsError> {
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
        match (answer, Standing::open(folder.clone())) {
            (Answer::Refused(refused), _) => found.refused = Some(refused),
            (Answer::Jobs(jobs), _) => {
                found.jobs.extend(jobs.into_iter().map(|job| (Place::Desk(folder.clone()), job)));
            }
            (Answer::Silent(_) | Answer::Deserted, Some(standing)) => {
                let job = kept(&standing);
                let place = match standing.is_over() {
                    true => Place::Kept(standing),
                    false => Place::Silent(standing),
                };
                found.jobs.push((place, job));
            }
            (Answer::Silent(pid), None) => found.silent.push(pid),
            (Answer::Deserted, None) => {}
        }
    }
    // What has ended is read from files, where nobody says so.
    if let Some(own) = Refusal::own() {
        return Err(found.refused.unwrap_or_else(|| JobsError::Refused(own.to_string())));
    }
    found.jobs.sort_by_key(|(_, job)| job.started_at);
    found.silent.sort_unstable();
    Ok(found)
}

async fn ask(folder: &Path) -> Answer {
    let mut visit = match Visit::open(folder) {
        Ok(visit) => visit,
        // Too many wait there.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Answer::Silent(None),
        Err(_) => return Answer::Deserted,
    };
    match timeout(PATIENCE, visit.list()).await {
        Ok(Ok(jobs)) => Answer::Jobs(jobs),
        Ok(Err(error)) => match error.downcast::<Refused>() {
            Ok(refused) => Answer::Refused(JobsError::Refused(refused.0)),
            Err(_) => Answer::Deserted,
        },
        Err(_) => Answer::Silent(visit.pid()),
    }
}

/// Says whose jobs we know nothing of.
pub fn warn(silent: &[Option<i32>]) {
    for pid in silent {
        let server = pid.map_or("a server".to_owned(), |pid| format!("server {pid}"));
        // There is nobody else to tell.
        let _ = writeln!(io::stderr(), "mcpz: {server} is not responding; its jobs are not shown");
    }
}

/// The one job somebody means.
pub async fn find(shelf: &Shelf, id: &str) -> Result<(Place, Listed), JobsError> {
    let named = |job: &Listed| job.name == id || (id.len() >= 4 && job.run.starts_with(id));
    let Found { jobs, refused, silent } = all(shelf).await?;
    warn(&silent);
    let mut named: Vec<_> = jobs.into_iter().filter(|(_, job)| named(job)).collect();
    // One that runs is meant rather than one of the same name that has ended.
    if named.iter().filter(|(_, job)| job.state == State::Running).count() == 1 {
        named.retain(|(_, job)| job.state == State::Running);
    }
    match named.len() {
        0 => Err(refused.unwrap_or_else(|| JobsError::NoSuchJob(id.to_owned()))),
        1 => Ok(named.remove(0)),
        _ => {
            let runs = named.into_iter().map(|(_, job)| job.run).collect();
            Err(JobsError::Ambiguous { id: id.to_owned(), runs })
        }
    }
}

/// A job whose recorder does not say anything, or any more.
fn kept(standing: &Standing) -> Listed {
    let ending = standing.ending();
    let state = match &ending {
        None | Some(Ending { outcome: Ok((End::Lost, _)), .. }) => State::Lost,
        Some(Ending { stopped: true, .. }) => State::Stopped,
        Some(_) => State::Exited,
    };
    let duration = ending.as_ref().map(|ending| ending.took);
    Listed {
        run: standing.card.run.clone(),
        name: standing.card.name(),
        owner: standing.card.owner.clone(),
        command: standing.card.command.clone(),
        state,
        pid: ending.and_then(|ending| ending.pid),
        started_at: standing.card.started_at,
        duration: duration.unwrap_or_default(),
        terminal: false,
        detached: true,
        writable: false,
    }
}
