//! The control socket of this process. It opens with the first job.

use std::sync::{Arc, PoisonError, Weak};

use mcpz_runtime::spawn_blocking;

use super::{Engine, Shared};
use crate::control::{Access, ControlSocket};
use crate::detached::JobsFolder;
use crate::jobs::{Job, Jobs};

impl Engine {
    /// Lets other processes of the same user manage the jobs of all owners. Needs a jobs folder.
    pub(super) fn open_control(&self) {
        let Some(jobs_folder) = self.jobs_folder() else { return };
        self.shared.opening_control.call_once(|| {
            let shared = Arc::downgrade(&self.shared);
            let register = move || shared.upgrade().map_or_else(Vec::new, |all| all.all_jobs());
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

impl Shared {
    /// The jobs of all owners, except detached ones, whose recorders have their own sockets.
    fn all_jobs(&self) -> Vec<(Arc<str>, Arc<Job>)> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|(_, jobs)| jobs.strong_count() > 0);
        let jobs = owners.iter().filter_map(|(name, jobs)| Some((name, Weak::upgrade(jobs)?)));
        let each = |(name, jobs): (&Arc<str>, Arc<Jobs>)| {
            let own = jobs.list().into_iter().filter(|job| !job.is_detached());
            own.map(|job| (name.clone(), job)).collect::<Vec<_>>()
        };
        jobs.flat_map(each).collect()
    }
}
