//! Files for output that does not fit in memory.
//!
//! They live in a private folder that is made when the first one is needed and removed with the
//! engine. A file is removed when nobody can read its run's output any more.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillSettings {
    /// Where the private folder is made.
    pub parent: PathBuf,
    /// The most that is kept of one run.
    pub per_run: u64,
    /// The most that is kept of all.
    pub total: u64,
}

impl SpillSettings {
    pub fn new(parent: impl Into<PathBuf>) -> Self {
        Self { parent: parent.into(), per_run: 1 << 30, total: 8 << 30 }
    }
}

#[derive(Debug)]
pub struct Spill {
    settings: SpillSettings,
    used: AtomicU64,
    folder: Mutex<Option<PathBuf>>,
}

/// One run's quota, shared by its files.
#[derive(Debug)]
pub struct Quota {
    spill: Arc<Spill>,
    used: AtomicU64,
    limit: u64,
}

/// One stream's file.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    path: PathBuf,
    quota: Arc<Quota>,
}

impl Spill {
    pub fn new(settings: SpillSettings) -> Self {
        Self { settings, used: AtomicU64::new(0), folder: Mutex::new(None) }
    }

    /// The quota of one run: the usual one, or less.
    pub fn quota(self: &Arc<Self>, wanted: Option<u64>) -> Arc<Quota> {
        let limit = wanted.unwrap_or(u64::MAX).min(self.settings.per_run);
        Arc::new(Quota { spill: self.clone(), used: AtomicU64::new(0), limit })
    }

    fn folder(&self) -> io::Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*folder {
            return Ok(folder.clone());
        }
        let path = self.settings.parent.join(format!("mcpz-{}", random_name()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(folder.insert(path).clone())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        let folder = self.folder.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

impl Quota {
    pub fn create(self: &Arc<Self>) -> io::Result<SpillFile> {
        let path = self.spill.folder()?.join(random_name()?);
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(SpillFile { file, path, quota: self.clone() })
    }

    /// Takes up to `wanted` bytes off the run's and everybody's quota; returns how many.
    fn take(&self, wanted: u64) -> u64 {
        let granted = take(&self.used, self.limit, wanted);
        let granted_of_all = take(&self.spill.used, self.spill.settings.total, granted);
        self.used.fetch_sub(granted - granted_of_all, Ordering::Relaxed);
        granted_of_all
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.spill.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        self.spill.used.fetch_sub(*self.used.get_mut(), Ordering::Relaxed);
    }
}

impl SpillFile {
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    /// Appends as much of `bytes` as quota and disk take; returns how many.
    pub fn append(&self, bytes: &[u8]) -> usize {
        let granted = self.quota.take(bytes.len() as u64) as usize;
        let mut written = 0;
        while written < granted {
            match (&self.file).write(&bytes[written..granted]) {
                Ok(0) => break,
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.quota.give_back((granted - written) as u64);
        written
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Adds up to `wanted` to `used` without passing `limit`; returns how much.
fn take(used: &AtomicU64, limit: u64, wanted: u64) -> u64 {
    let mut granted = 0;
    let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        granted = wanted.min(limit.saturating_sub(used));
        Some(used + granted)
    });
    granted
}

/// 128 random bits.
fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
