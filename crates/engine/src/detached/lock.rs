//! Limits how many detached jobs of an owner run at once, whichever servers start them.
//!
//!     mcpz/jobs/locks/OWNER-0, OWNER-1, … up to the limit       each locked by the recorder of a job
//!
//! There are as many files as there may be jobs, and a recorder locks one before its run starts. The kernel releases
//! the lock when the recorder is gone, for whatever reason. The files are empty and stay for the next jobs.
//!
//! Counting jobs would not do: without a lock the count is wrong whenever two servers count at once, and with one a
//! stopped server keeps all others waiting.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use mcpz_audit::sha256;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::time::sleep;

use crate::control::create_private_folder;

/// The name of their folder.
pub const LOCKS: &str = "locks";

/// How long to wait for a lock: followers may hear of a job's end before its recorder unlocks.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The right to run one detached job. Hold it while the job runs.
#[derive(Debug)]
pub struct JobLock {
    /// `None` where files cannot be locked. The job runs anyway.
    _locked: Option<File>,
}

impl JobLock {
    /// Takes one of an owner's locks, if one is free now or soon.
    pub async fn take(jobs: &Path, owner_key: &str, limit: usize) -> Option<Self> {
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match lock_one(jobs, owner_key, limit) {
                Ok(None) if Instant::now() < until => sleep(RETRY_PAUSE).await,
                Ok(locked) => return locked.map(|file| Self { _locked: Some(file) }),
                Err(_) => return Some(Self { _locked: None }),
            }
        }
    }
}

fn lock_one(jobs: &Path, owner_key: &str, limit: usize) -> io::Result<Option<File>> {
    let folder = jobs.join(LOCKS);
    create_private_folder(&folder)?;
    // The name of an owner can contain anything.
    let owner = sha256(owner_key.as_bytes());
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    for number in 0..limit {
        let file = options.open(folder.join(format!("{owner}-{number}")))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_owner_has_its_own_locks_and_released_ones_are_reused() {
        let folder = tempfile::tempdir().unwrap();
        let take = |owner_key, limit| JobLock::take(folder.path(), owner_key, limit);
        let (first, _second) = (take("stdio a/b", 2).await.unwrap(), take("stdio a/b", 2).await);
        assert!(take("stdio a/b", 2).await.is_none());
        let _others = take("http a/b", 1).await.unwrap();
        drop(first);
        let (again, third) = tokio::join!(take("stdio a/b", 2), take("stdio a/b", 2));
        assert_eq!((again.is_some(), third.is_some()), (true, false));
    }

    #[tokio::test]
    async fn a_lock_that_is_about_to_be_released_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let held = JobLock::take(folder.path(), "ann", 1).await.unwrap();
        let given = async {
            sleep(2 * RETRY_PAUSE).await;
            drop(held);
        };
        let (taken, ()) = tokio::join!(JobLock::take(folder.path(), "ann", 1), given);
        assert!(taken.is_some());
    }

    #[tokio::test]
    async fn a_job_runs_without_a_lock_if_no_lock_file_can_be_made() {
        assert!(JobLock::take(Path::new("/dev/null/nowhere"), "ann", 1).await.is_some());
    }
}
