//! Files for output that does not fit in memory, and the quotas they count against.
//!
//!     Spill ── total, and the private folder
//!       └─ DiskAccount ── what one owner's runs use together
//!            └─ Quota ── what one run uses
//!                 └─ SpillFile ── one stream, after what is in memory
//!
//! The private folder is created for the first file and removed with the engine. It is locked while the server
//! lives, and a starting server removes folders that are not ([`Spill::sweep`]). A file is removed as soon as
//! nobody can read its output any more. Files are read through the descriptor they were written with, so removing
//! or replacing one behind our back changes nothing.
//!
//! When a limit is reached, `make_room` may drop older outputs: those of the same owner for an owner's limit, those of
//! the owner who uses most for the total. If it cannot, the stream is cut (see [`Output`](crate::Output)).

mod folder;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::OFlags;

use folder::{Folder, sweep};

use crate::loss::Loss;
use crate::stream::Stream;
use mcpz_runtime::random_name;

/// How much of each stream's start is in memory.
pub const HEAD: usize = 64 << 10;

/// The size of a large read: small enough to be in the CPU's cache when it is written, large enough for the file
/// system to be efficient.
pub const LARGE_PIECE: usize = 256 << 10;

/// How many idle buffers are kept for reuse.
const MAX_BUFFERS: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillSettings {
    /// The folder in which the private folder is created.
    pub parent: PathBuf,
    /// The limit for one run, in bytes.
    pub per_run: u64,
    /// The limit for all runs of one owner.
    pub per_owner: u64,
    /// The limit for all owners together.
    pub total: u64,
}

impl SpillSettings {
    pub fn new(parent: impl Into<PathBuf>) -> Self {
        Self { parent: parent.into(), per_run: 1 << 30, per_owner: 4 << 30, total: 8 << 30 }
    }
}

pub struct Spill {
    settings: SpillSettings,
    used: AtomicU64,
    accounts: AtomicU64,
    folder: Mutex<Option<Folder>>,
    make_room: Box<MakeRoom>,
    /// Held while a lookup uses much memory, so that only one does at a time.
    lookups: Mutex<()>,
    /// Idle buffers for large pieces: fresh memory for each piece is slow.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// Frees space used by one account, or by any; returns whether it could.
type MakeRoom = dyn Fn(Option<u64>) -> bool + Send + Sync;

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spill").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What one owner's runs use.
#[derive(Debug)]
pub struct DiskAccount {
    spill: Arc<Spill>,
    number: u64,
    used: AtomicU64,
}

/// The quota of one run, shared by its files.
#[derive(Debug)]
pub struct Quota {
    account: Arc<DiskAccount>,
    used: AtomicU64,
    /// How much of each stream's start may be in memory.
    pub in_memory: usize,
    limit: u64,
    files: Files,
    /// Why not all could be kept. The first reason, as what comes later is lost anyway.
    loss: OnceLock<Loss>,
}

/// Which files a run's output goes to.
#[derive(Debug)]
enum Files {
    /// Files in the private folder, removed when nobody reads them any more.
    Temporary,
    /// A file that stays, with all of stdout. All of stderr goes to a file beside it. The recorder of a detached
    /// job writes these.
    Permanent(PathBuf),
    /// The same files, written by another process. A server that follows a detached job reads these.
    ReadOnly(PathBuf),
}

/// The file of one stream.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    quota: Arc<Quota>,
    /// The path to remove on drop.
    path: Option<PathBuf>,
    /// How many bytes at the start of the file are in memory as well.
    also_in_memory: u64,
}

impl Spill {
    pub fn new(settings: SpillSettings) -> Self {
        let (used, accounts, folder) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(None));
        let (make_room, lookups, buffers) =
            (Box::new(|_| false), Mutex::default(), Mutex::default());
        Self { settings, used, accounts, folder, make_room, lookups, buffers }
    }

    /// Sets what frees space when a limit is reached. It is called with the number of the account that is full, or
    /// with `None` if the total is.
    pub fn making_room(
        self,
        make_room: impl Fn(Option<u64>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { make_room: Box::new(make_room), ..self }
    }

    /// Opens an account for a new owner.
    pub fn account(self: &Arc<Self>) -> Arc<DiskAccount> {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        Arc::new(DiskAccount { spill: self.clone(), number, used: AtomicU64::new(0) })
    }

    /// The number of bytes spilled now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Removes folders that killed servers have left.
    pub fn sweep(&self) {
        sweep(&self.settings.parent);
    }

    /// Removes all spilled files, even if outputs still use them: at the end, nobody reads any more.
    pub fn close(&self) {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(folder);
    }

    fn folder(&self) -> io::Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*folder {
            return Ok(folder.path.clone());
        }
        Ok(folder.insert(Folder::create(&self.settings.parent)?).path.clone())
    }
}

impl DiskAccount {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes this owner's runs use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The quota of one run: the usual one, or `wanted` bytes if that is less.
    pub fn quota(self: &Arc<Self>, wanted: Option<u64>) -> Arc<Quota> {
        let wanted = wanted.unwrap_or(u64::MAX);
        let in_memory = wanted.min(HEAD as u64) as usize;
        let limit = (wanted - in_memory as u64).min(self.spill.settings.per_run);
        self.quota_for(Files::Temporary, in_memory, limit)
    }

    /// A quota for output that goes to a file that stays, byte for byte from the start.
    pub fn permanent(self: &Arc<Self>, file: PathBuf) -> Arc<Quota> {
        self.quota_for(Files::Permanent(file), 0, self.spill.settings.per_run)
    }

    /// A quota for output that another process writes to a file.
    pub fn read_only(self: &Arc<Self>, file: PathBuf) -> Arc<Quota> {
        self.quota_for(Files::ReadOnly(file), HEAD, 0)
    }

    fn quota_for(self: &Arc<Self>, files: Files, in_memory: usize, limit: u64) -> Arc<Quota> {
        let (account, used) = (self.clone(), AtomicU64::new(0));
        Arc::new(Quota { account, used, in_memory, limit, files, loss: OnceLock::new() })
    }

    /// Takes up to `wanted` bytes from the limits of the owner and of the total; returns how many, and why not more.
    fn take(&self, wanted: u64) -> (u64, Option<Loss>) {
        let (spill, settings) = (&self.spill, &self.spill.settings);
        let own = || (spill.make_room)(Some(self.number));
        let granted = take_with_room(&self.used, settings.per_owner, wanted, own);
        let all = || (spill.make_room)(None);
        let granted_of_all = take_with_room(&spill.used, settings.total, granted, all);
        self.used.fetch_sub(granted - granted_of_all, Ordering::Relaxed);
        let loss = match (granted < wanted, granted_of_all < granted) {
            (_, true) => Some(Loss::OfAll),
            (true, false) => Some(Loss::OfOwner),
            (false, false) => None,
        };
        (granted_of_all, loss)
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.spill.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Quota {
    /// Creates the file for a stream, unless that fails.
    pub fn create(self: &Arc<Self>, stream: Stream) -> Option<SpillFile> {
        self.try_create(stream).map_err(|error| self.note_error(error)).ok()
    }

    fn try_create(self: &Arc<Self>, stream: Stream) -> io::Result<SpillFile> {
        let quota = self.clone();
        let open = |path: &Path, write| {
            let path = match stream {
                Stream::Stdout => path.to_owned(),
                Stream::Stderr => path.with_extension("errors"),
            };
            let mut options = OpenOptions::new();
            options.read(true).append(write).create(write).mode(0o600);
            options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)
        };
        match &self.files {
            Files::Temporary => self.create_private(),
            Files::Permanent(path) => {
                Ok(SpillFile { file: open(path, true)?, quota, path: None, also_in_memory: 0 })
            }
            Files::ReadOnly(path) => {
                let also_in_memory = self.in_memory as u64;
                Ok(SpillFile { file: open(path, false)?, quota, path: None, also_in_memory })
            }
        }
    }

    fn create_private(self: &Arc<Self>) -> io::Result<SpillFile> {
        let create = || {
            let path = self.account.spill.folder()?.join(random_name()?);
            let mut new = OpenOptions::new();
            new.read(true).write(true).create_new(true).mode(0o600);
            new.custom_flags(OFlags::NOFOLLOW.bits() as i32);
            Ok::<_, io::Error>((new.open(&path)?, path))
        };
        let (file, path) = match create() {
            // Somebody has removed our folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.account.spill.close();
                create()?
            }
            other => other?,
        };
        Ok(SpillFile { file, quota: self.clone(), path: Some(path), also_in_memory: 0 })
    }

    pub fn lookups(&self) -> &Mutex<()> {
        &self.account.spill.lookups
    }

    /// Lends a buffer for a large piece.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers().pop().unwrap_or_else(|| vec![0; LARGE_PIECE])
    }

    pub fn give_buffer(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers();
        if buffers.len() < MAX_BUFFERS {
            buffers.push(buffer);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.account.spill.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes of the run are on the disk in files that this process wrote.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Gives everything back to the account.
    pub fn release(&self) {
        self.account.give_back(self.used.swap(0, Ordering::Relaxed));
    }

    /// Takes up to `wanted` bytes from the limits of the run, its owner and the total; returns how many.
    fn take(&self, wanted: u64) -> u64 {
        let granted = take(&self.used, self.limit, wanted);
        let (granted_of_all, loss) = self.account.take(granted);
        self.used.fetch_sub(granted - granted_of_all, Ordering::Relaxed);
        if let Some(loss) = loss.or((granted < wanted).then_some(Loss::OfRun)) {
            self.note(loss);
        }
        granted_of_all
    }

    fn note(&self, loss: Loss) {
        let _ = self.loss.set(loss);
    }

    fn note_error(&self, error: io::Error) {
        let folder = match &self.files {
            Files::Temporary => Some(self.account.spill.settings.parent.as_path()),
            Files::Permanent(path) | Files::ReadOnly(path) => path.parent(),
        };
        self.note(Loss::Disk { folder: folder.unwrap_or(Path::new("/")).to_owned(), error });
    }

    /// Why not all could be kept, if this process has tried.
    pub fn loss(&self) -> Option<&Loss> {
        self.loss.get()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.account.give_back(bytes);
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        self.release();
    }
}

impl SpillFile {
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset + self.also_in_memory)
    }

    /// Appends as much of `bytes` as quota and disk allow; returns how many.
    pub fn append(&self, bytes: &[u8]) -> usize {
        if let Files::ReadOnly(_) = self.quota.files {
            return bytes.len();
        }
        let granted = self.quota.take(bytes.len() as u64) as usize;
        let mut written = 0;
        while written < granted {
            match (&self.file).write(&bytes[written..granted]) {
                Ok(0) => break,
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.quota.note_error(error);
                    break;
                }
            }
        }
        self.quota.give_back((granted - written) as u64);
        written
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Like [`take`], but makes room until all of `wanted` fits or no more can be freed.
fn take_with_room(used: &AtomicU64, limit: u64, wanted: u64, make_room: impl Fn() -> bool) -> u64 {
    let mut granted = take(used, limit, wanted);
    while granted < wanted && make_room() {
        used.fetch_sub(granted, Ordering::Relaxed);
        granted = take(used, limit, wanted);
    }
    granted
}

/// Adds up to `wanted` to `used` without exceeding `limit`; returns how much.
fn take(used: &AtomicU64, limit: u64, wanted: u64) -> u64 {
    let mut granted = 0;
    let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        granted = wanted.min(limit.saturating_sub(used));
        Some(used + granted)
    });
    granted
}
