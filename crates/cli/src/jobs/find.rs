//! Which jobs there are on this machine, and who can be asked for them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use mcpz_engine::{End, Ending, Listed, Refusal, Refused, Shelf, Standing, State, Visit};
use tokio::time::timeout;

use super::JobsError;

/// How long whoever is asked may take: one that was stopped never answers.
const PATIENCE: Duration = Duration::from_secs(2);

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
}

/// All jobs, unless they are none of our business.
pub async fn all(shelf: &Shelf) -> Result<Found, JobsError> {
    shelf.sweep();
    let mut found = Found::default();
    for folder in shelf.folders() {
        let listed = timeout(PATIENCE, async { Visit::open(&folder)?.list().await });
        let listed = listed.await.map_err(io::Error::from).flatten().map_err(refused);
        if let Err(Some(refused)) = listed {
            found.refused = Some(refused);
            continue;
        }
        match (listed.ok(), Standing::open(folder.clone())) {
            (Some(jobs), _) => {
                found.jobs.extend(jobs.into_iter().map(|job| (Place::Desk(folder.clone()), job)));
            }
            (None, Some(standing)) => {
                let job = kept(&standing);
                let place = match standing.is_over() {
                    true => Place::Kept(standing),
                    false => Place::Silent(standing),
                };
                found.jobs.push((place, job));
            }
            (None, None) => {}
        }
    }
    // What has ended is read from files, where nobody says so.
    if let Some(own) = Refusal::own() {
        return Err(found.refused.unwrap_or_else(|| JobsError::Refused(own.to_string())));
    }
    found.jobs.sort_by_key(|(_, job)| job.started_at);
    Ok(found)
}

/// The word of somebody who does not let us in.
fn refused(error: io::Error) -> Option<JobsError> {
    let refused = error.downcast::<Refused>().ok()?;
    Some(JobsError::Refused(refused.0))
}

/// The one job somebody means.
pub async fn find(shelf: &Shelf, id: &str) -> Result<(Place, Listed), JobsError> {
    let named = |job: &Listed| job.name == id || (id.len() >= 4 && job.run.starts_with(id));
    let Found { jobs, refused } = all(shelf).await?;
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
