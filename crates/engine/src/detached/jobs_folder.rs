//! The folder of all detached jobs. Each job has a folder in it, named by its run.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcpz_output::SpillSettings;
use mcpz_runtime::random_name;

use super::job_folder::{JobFolder, MANIFEST};
use super::lock::LOCKS;
use crate::control::{self, create_private_folder};

/// How long an ended job stays readable.
const KEEP_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// How many ended jobs of one owner are kept.
const MAX_ENDED: usize = 50;

/// The prefix of the folder of a server's control socket.
const SERVER: &str = "server-";

/// How long a recorder may take to start its job.
const START_TIMEOUT: Duration = Duration::from_secs(600);

/// Longer than a tick of the clock in file timestamps.
const CLOCK_TICK: Duration = Duration::from_millis(100);

/// The folder of all detached jobs. Clones share a cache.
#[derive(Debug, Clone)]
pub struct JobsFolder {
    folder: PathBuf,
    cache: Arc<Mutex<OwnerCache>>,
}

/// The owner of each job's folder. That never changes, so nobody reads the folders of others twice.
#[derive(Debug, Default)]
struct OwnerCache {
    /// When the folder of all jobs had last changed; `None` if that was too recent to rely on.
    changed_at: Option<SystemTime>,
    owner_keys: HashMap<PathBuf, String>,
    /// Folders that are not jobs, or not yet.
    others: Vec<PathBuf>,
}

impl JobsFolder {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), cache: Arc::default() }
    }

    /// All folders: those of jobs, and those of servers' control sockets.
    pub fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| !path.ends_with(LOCKS)).collect()
    }

    /// All jobs, oldest first.
    pub fn jobs(&self) -> Vec<JobFolder> {
        let mut jobs: Vec<_> = self.folders().into_iter().filter_map(JobFolder::open).collect();
        jobs.sort_by_key(|job| job.manifest.started_at);
        jobs
    }

    /// The jobs of one owner, oldest first.
    pub fn jobs_of(&self, owner_key: &str) -> Vec<JobFolder> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = fs::metadata(&self.folder).and_then(|folder| folder.modified()).ok();
        if changed.is_none() || changed != cache.changed_at {
            let (mut before, now) = (std::mem::take(&mut *cache), self.folders());
            for folder in now {
                match before.owner_keys.remove_entry(&folder) {
                    Some((folder, owner_key)) => drop(cache.owner_keys.insert(folder, owner_key)),
                    None => cache.others.push(folder),
                }
            }
            // More folders may appear within the same tick of the clock.
            let settled = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > CLOCK_TICK);
            cache.changed_at = changed.filter(settled);
        }
        for folder in std::mem::take(&mut cache.others) {
            match JobFolder::open(folder.clone()) {
                Some(job) => drop(cache.owner_keys.insert(folder, job.manifest.owner_key)),
                None => cache.others.push(folder),
            }
        }
        let own = cache.owner_keys.iter().filter(|(_, whose)| *whose == owner_key);
        let own: Vec<_> = own.map(|(folder, _)| folder.clone()).collect();
        drop(cache);
        let mut jobs: Vec<_> = own.into_iter().filter_map(JobFolder::open).collect();
        jobs.sort_by_key(|job| job.manifest.started_at);
        jobs
    }

    /// Removes what killed servers left behind, and recorders killed before their job started.
    pub fn sweep(&self) {
        for folder in self.folders() {
            let begun = folder.join(MANIFEST).exists();
            let young = age(&folder).is_none_or(|age| age < START_TIMEOUT);
            let server = is_server(&folder);
            if control::is_abandoned(&folder) && !begun && (server || !young) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// Makes a folder for the control socket of a server.
    pub fn add_server(&self) -> io::Result<PathBuf> {
        let folder = self.folder.join(format!("{SERVER}{}", random_name()?));
        create_private_folder(&folder)?;
        Ok(folder)
    }

    /// Makes a folder for a job that is about to start.
    pub(crate) fn add(&self, run: &str) -> io::Result<PathBuf> {
        JobFolder::reserve(&self.folder, run)
    }

    /// Removes ended jobs that are too old, too many, or take too much room: first the oldest of this owner, then the
    /// oldest of the largest one. Returns how much room is left for this owner.
    pub fn tidy(&self, owner_key: &str, limits: &SpillSettings) -> u64 {
        self.sweep();
        let jobs = self.jobs();
        let mut used = DiskUse::default();
        jobs.iter().for_each(|job| used.add(job));
        let mut ended: Vec<_> = jobs.iter().filter(|job| job.is_over()).collect();
        // Killed recorders left it behind.
        ended.iter().for_each(|job| job.release_newest());
        let mut kept: HashMap<&str, usize> = HashMap::new();
        // Newest first, so that the oldest are the surplus.
        ended.reverse();
        ended.retain(|job| {
            let own = kept.entry(&job.manifest.owner_key).or_default();
            *own += 1;
            let old = age(&job.output()).is_some_and(|age| age > KEEP_TIME);
            if *own > MAX_ENDED || old {
                used.remove(job);
            }
            *own <= MAX_ENDED && !old
        });
        // Oldest first.
        ended.reverse();
        ended.retain(|job| {
            let stays =
                job.manifest.owner_key != owner_key || used.of(owner_key) <= limits.per_owner;
            if !stays {
                used.remove(job);
            }
            stays
        });
        while used.all > limits.total
            && let Some(next) = (0..ended.len()).max_by_key(|&at| {
                let used = used.of(&ended[at].manifest.owner_key);
                (used, Reverse(at))
            })
        {
            used.remove(ended.remove(next));
        }
        let own = limits.per_owner.saturating_sub(used.of(owner_key));
        own.min(limits.total.saturating_sub(used.all))
    }
}

/// How much is on the disk.
#[derive(Debug, Default)]
struct DiskUse {
    all: u64,
    by_owner: HashMap<String, u64>,
}

impl DiskUse {
    fn of(&self, owner_key: &str) -> u64 {
        self.by_owner.get(owner_key).copied().unwrap_or(0)
    }

    fn add(&mut self, job: &JobFolder) {
        let size = job.size();
        self.all += size;
        *self.by_owner.entry(job.manifest.owner_key.clone()).or_default() += size;
    }

    /// Removes a job's folder.
    fn remove(&mut self, job: &JobFolder) {
        let size = job.size();
        self.all = self.all.saturating_sub(size);
        if let Some(own) = self.by_owner.get_mut(&job.manifest.owner_key) {
            *own = own.saturating_sub(size);
        }
        job.remove();
    }
}

fn is_server(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(SERVER))
}

fn age(path: &Path) -> Option<Duration> {
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified()).ok()?;
    SystemTime::now().duration_since(changed).ok()
}
