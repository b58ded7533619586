//! The control socket of this process. It opens with the first job, place or output that is kept.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, Weak};

use mcpz_runtime::spawn_blocking;

use super::{Engine, Possessions, Shared};
use crate::control::{Access, ControlSocket, KeptRun, Managed, PlaceListing, Stopping};
use crate::detached::JobsFolder;
use crate::jobs::{Job, JobState};
use crate::open_place::OpenPlace;
use crate::owner::kept_runs;

impl Engine {
    /// Lets other processes of the same user manage the jobs of all owners. Needs a jobs folder.
    pub(super) fn open_control(&self) {
        let Some(jobs_folder) = self.jobs_folder() else { return };
        self.shared.opening_control.call_once(|| {
            let register = ManagedEngine(Arc::downgrade(&self.shared));
            let opened = jobs_folder.add_server().and_then(|folder| {
                let access = Access::new(self.shared.audit.clone());
                ControlSocket::open(&folder, Arc::new(register), access)?;
                Ok(folder)
            });
            match opened {
                Ok(folder) => drop(self.shared.control.set(folder)),
                Err(error) => {
                    tracing::warn!("cannot open the control socket, so `mcpz jobs` does not list this server: {error}");
                }
            }
            spawn_blocking(move || jobs_folder.sweep());
        });
    }

    pub(super) fn close_control(&self) {
        if let Some(folder) = self.shared.control.get() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    pub(super) fn jobs_folder(&self) -> Option<JobsFolder> {
        let folder = self.settings().jobs_folder.as_ref()?;
        Some(self.shared.jobs_folder.get_or_init(|| JobsFolder::new(folder)).clone())
    }
}

/// An engine, for as long as it exists.
struct ManagedEngine(Weak<Shared>);

impl Managed for ManagedEngine {
    fn jobs(&self) -> Vec<(Arc<str>, Arc<Job>)> {
        self.0.upgrade().map_or_else(Vec::new, |shared| shared.all_jobs())
    }

    fn outputs(&self) -> Vec<KeptRun> {
        self.0.upgrade().map_or_else(Vec::new, |shared| shared.all_outputs())
    }

    fn places(&self) -> Vec<PlaceListing> {
        self.0.upgrade().map_or_else(Vec::new, |shared| shared.list_places())
    }

    fn stop_places(&self, name: &str) -> Stopping {
        let mut places = self.0.upgrade().map_or_else(Vec::new, |shared| shared.places.open());
        places.retain(|place| *place.name == *name);
        places.iter().for_each(|place| place.hang_up());
        Box::pin(async move {
            for place in &places {
                place.close().await;
            }
            places.len()
        })
    }
}

impl Shared {
    /// All places that are open, and the jobs in them.
    fn list_places(&self) -> Vec<PlaceListing> {
        let jobs = self.all_jobs();
        let is_there = |owner: &str, job: &Job, listed: &PlaceListing| {
            job.state() == JobState::Running
                && job.place() == Some(&*listed.name)
                && listed.owner.as_deref().is_none_or(|own| own == owner)
        };
        let list = |place: Arc<OpenPlace>| {
            let (owner, session) = place.whose();
            let mut listed = PlaceListing {
                name: place.name.to_string(),
                kind: place.kind.clone(),
                owner: owner.map(|owner| owner.to_string()),
                session,
                commands: place.count_uses(),
                jobs: Vec::new(),
                age: place.made.elapsed(),
            };
            let there = jobs.iter().filter(|(owner, job)| is_there(owner, job, &listed));
            listed.jobs = there.map(|(_, job)| job.id().to_owned()).collect();
            listed
        };
        self.places.open().into_iter().map(list).collect()
    }

    /// The jobs of all owners, except detached ones, whose recorders have their own sockets.
    fn all_jobs(&self) -> Vec<(Arc<str>, Arc<Job>)> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|owner| owner.jobs.strong_count() > 0);
        let each = |owner: &Possessions| {
            let own = owner.jobs.upgrade().map_or_else(Vec::new, |jobs| jobs.list());
            let own = own.into_iter().filter(|job| !job.is_detached());
            own.map(|job| (owner.owner.clone(), job)).collect::<Vec<_>>()
        };
        owners.iter().flat_map(each).collect()
    }

    /// The outputs of those jobs, and all others that are kept.
    fn all_outputs(&self) -> Vec<KeptRun> {
        let jobs = self.all_jobs();
        let mut all: Vec<_> = jobs.iter().map(|(owner, job)| KeptRun::of(owner, job)).collect();
        let known: HashSet<_> = all.iter().map(|kept| kept.run.clone()).collect();
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        for owner in owners.iter() {
            let kept = owner.outputs.upgrade().map(|outputs| kept_runs(&owner.owner, &outputs));
            all.extend(kept.into_iter().flatten().filter(|kept| !known.contains(&kept.run)));
        }
        all
    }
}
