//! Where detached jobs are kept: a folder each, named by its run.

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
use crate::control::{self, private_folder};

/// How long a job that has ended can be read.
const KEEP_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most jobs of one owner that have ended and are kept.
const MAX_ENDED: usize = 50;

/// How the folder of a server's control socket begins.
const SERVER: &str = "server-";

/// How long a recorder may take until its job has begun.
const UNBEGUN: Duration = Duration::from_secs(600);

/// More than the tick of the clock by which a disk notes changes.
const COARSE: Duration = Duration::from_millis(100);

/// The folder of all detached jobs. Clones share what they have seen.
#[derive(Debug, Clone)]
pub struct JobsFolder {
    folder: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

/// Whose job each folder is. That never changes, so whoever looks for their own reads no others.
#[derive(Debug, Default)]
struct Seen {
    /// When the folder of all had last changed; nothing if that was too short ago to tell.
    at: Option<SystemTime>,
    owner_keys: HashMap<PathBuf, String>,
    /// Those that are no jobs, or not yet.
    others: Vec<PathBuf>,
}

impl JobsFolder {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), seen: Arc::default() }
    }

    /// All folders: of jobs, and of those who can be asked for theirs.
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

    /// The jobs of an owner_key, oldest first.
    pub fn jobs_of(&self, owner_key: &str) -> Vec<JobFolder> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = fs::metadata(&self.folder).and_then(|folder| folder.modified()).ok();
        if changed.is_none() || changed != seen.at {
            let (mut before, now) = (std::mem::take(&mut *seen), self.folders());
            for folder in now {
                match before.owner_keys.remove_entry(&folder) {
                    Some((folder, owner_key)) => drop(seen.owner_keys.insert(folder, owner_key)),
                    None => seen.others.push(folder),
                }
            }
            // The clock of the disk may not have moved on since: more can come within the same tick.
            let settled = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > COARSE);
            seen.at = changed.filter(settled);
        }
        for folder in std::mem::take(&mut seen.others) {
            match JobFolder::open(folder.clone()) {
                Some(job) => drop(seen.owner_keys.insert(folder, job.manifest.owner_key)),
                None => seen.others.push(folder),
            }
        }
        let own = seen.owner_keys.iter().filter(|(_, whose)| *whose == owner_key);
        let own: Vec<_> = own.map(|(folder, _)| folder.clone()).collect();
        drop(seen);
        let mut jobs: Vec<_> = own.into_iter().filter_map(JobFolder::open).collect();
        jobs.sort_by_key(|job| job.manifest.started_at);
        jobs
    }

    /// Removes what servers, and recorders that had not begun, have left when they were killed.
    pub fn sweep(&self) {
        for folder in self.folders() {
            let begun = folder.join(MANIFEST).exists();
            let young = age(&folder).is_none_or(|age| age < UNBEGUN);
            let server = is_server(&folder);
            if control::is_abandoned(&folder) && !begun && (server || !young) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// Makes a folder for the control socket of a server.
    pub fn add_server(&self) -> io::Result<PathBuf> {
        let folder = self.folder.join(format!("{SERVER}{}", random_name()?));
        private_folder(&folder)?;
        Ok(folder)
    }

    /// Makes a folder for a job that is about to begin.
    pub(crate) fn add(&self, run: &str) -> io::Result<PathBuf> {
        JobFolder::reserve(&self.folder, run)
    }

    /// Removes what has ended long ago, what is more of each owner's than can be kept, and what takes
    /// too much room: of this owner_key's, oldest first, then of whose is most. Returns how much more there
    /// may be of it.
    pub fn tidy(&self, owner_key: &str, most: &SpillSettings) -> u64 {
        self.sweep();
        let jobs = self.jobs();
        let mut used = Used::default();
        jobs.iter().for_each(|job| used.add(job));
        let mut ended: Vec<_> = jobs.iter().filter(|job| job.is_over()).collect();
        // Recorders that were killed have left it.
        ended.iter().for_each(|job| job.release_newest());
        let mut kept: HashMap<&str, usize> = HashMap::new();
        // From the newest on: the oldest are those that are too many.
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
        // From the oldest on.
        ended.reverse();
        ended.retain(|job| {
            let stays = job.manifest.owner_key != owner_key || used.of(owner_key) <= most.per_owner;
            if !stays {
                used.remove(job);
            }
            stays
        });
        while used.all > most.total
            && let Some(next) = (0..ended.len()).max_by_key(|&at| {
                let used = used.of(&ended[at].manifest.owner_key);
                (used, Reverse(at))
            })
        {
            used.remove(ended.remove(next));
        }
        let own = most.per_owner.saturating_sub(used.of(owner_key));
        own.min(most.total.saturating_sub(used.all))
    }
}

/// How much is on the disk.
#[derive(Debug, Default)]
struct Used {
    all: u64,
    of_each: HashMap<String, u64>,
}

impl Used {
    fn of(&self, owner_key: &str) -> u64 {
        self.of_each.get(owner_key).copied().unwrap_or(0)
    }

    fn add(&mut self, job: &JobFolder) {
        let size = job.size();
        self.all += size;
        *self.of_each.entry(job.manifest.owner_key.clone()).or_default() += size;
    }

    /// Removes a job with its folder.
    fn remove(&mut self, job: &JobFolder) {
        let size = job.size();
        self.all = self.all.saturating_sub(size);
        if let Some(own) = self.of_each.get_mut(&job.manifest.owner_key) {
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
