//! Files for output that does not fit in memory.
//!
//! They live in a private folder that is made when the first one is needed and removed with the
//! engine. A file is removed when nobody can read its run's output any more.

mod folder;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;

use folder::{Folder, sweep};

use crate::stream::Stream;
use mcpz_runtime::random_name;

/// How much of each stream's beginning is in memory.
pub const HEAD: usize = 64 << 10;

/// Little enough to be in the cache still when it is written, and much for the file system to take at
/// once.
pub const LARGE_PIECE: usize = 256 << 10;

/// How many of them have room when nobody moves any.
const MOST_BUFFERS: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillSettings {
    /// Where the private folder is made.
    pub parent: PathBuf,
    /// The most that is kept of one run.
    pub per_run: u64,
    /// The most that is kept of one owner's runs.
    pub per_owner: u64,
    /// The most that is kept of all.
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
    /// Held by whoever looks something up that takes much memory.
    lookups: Mutex<()>,
    /// Room for large pieces, for the next who needs some: memory that is new each time is slow.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// Gives back some of what an account has, or anybody; says whether there was something to give.
type MakeRoom = dyn Fn(Option<u64>) -> bool + Send + Sync;

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spill").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What is kept of one owner's runs.
#[derive(Debug)]
pub struct Account {
    spill: Arc<Spill>,
    number: u64,
    used: AtomicU64,
}

/// One run's quota, shared by its files.
#[derive(Debug)]
pub struct Quota {
    account: Arc<Account>,
    used: AtomicU64,
    /// How much of each stream's beginning may be in memory.
    pub in_memory: usize,
    limit: u64,
    place: Place,
}

/// Where the files of a run are.
#[derive(Debug)]
enum Place {
    /// In the private folder, and nowhere when nobody reads them any more.
    Folder,
    /// Here, where it stays. It has all of stdout; all of stderr is beside it.
    Kept(PathBuf),
    /// The same, written by another process.
    Elsewhere(PathBuf),
}

/// One stream's file.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    quota: Arc<Quota>,
    /// What is to be removed with it.
    path: Option<PathBuf>,
    /// How much of its beginning is in memory, too.
    repeated: u64,
}

impl Spill {
    pub fn new(settings: SpillSettings) -> Self {
        let (used, accounts, folder) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(None));
        let (make_room, lookups, buffers) =
            (Box::new(|_| false), Mutex::default(), Mutex::default());
        Self { settings, used, accounts, folder, make_room, lookups, buffers }
    }

    /// Has `make_room` called with the number of an account that is used up, or none if all is.
    pub fn making_room(
        self,
        make_room: impl Fn(Option<u64>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { make_room: Box::new(make_room), ..self }
    }

    /// For the runs of somebody new.
    pub fn account(self: &Arc<Self>) -> Arc<Account> {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        Arc::new(Account { spill: self.clone(), number, used: AtomicU64::new(0) })
    }

    /// How much is spilled now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Removes what servers that were killed have left.
    pub fn sweep(&self) {
        sweep(&self.settings.parent);
    }

    /// Removes what was spilled, whoever may still hold it: at the end nobody reads any more.
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

impl Account {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How much there is of this owner's runs.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The quota of one run: the usual one, or less.
    pub fn quota(self: &Arc<Self>, wanted: Option<u64>) -> Arc<Quota> {
        let wanted = wanted.unwrap_or(u64::MAX);
        let in_memory = wanted.min(HEAD as u64) as usize;
        let limit = (wanted - in_memory as u64).min(self.spill.settings.per_run);
        self.place(Place::Folder, in_memory, limit)
    }

    /// For an output that is written to a file of its own as it comes, up to the quota of one run.
    pub fn recording(self: &Arc<Self>, file: PathBuf) -> Arc<Quota> {
        self.place(Place::Kept(file), 0, self.spill.settings.per_run)
    }

    /// For an output that another process writes to a file.
    pub fn recorded(self: &Arc<Self>, file: PathBuf) -> Arc<Quota> {
        self.place(Place::Elsewhere(file), HEAD, 0)
    }

    fn place(self: &Arc<Self>, place: Place, in_memory: usize, limit: u64) -> Arc<Quota> {
        let (account, used) = (self.clone(), AtomicU64::new(0));
        Arc::new(Quota { account, used, in_memory, limit, place })
    }

    /// Takes up to `wanted` bytes off the owner's and everybody's quota; returns how many.
    fn take(&self, wanted: u64) -> u64 {
        let (spill, settings) = (&self.spill, &self.spill.settings);
        let own = || (spill.make_room)(Some(self.number));
        let granted = take_with_room(&self.used, settings.per_owner, wanted, own);
        let all = || (spill.make_room)(None);
        let granted_of_all = take_with_room(&spill.used, settings.total, granted, all);
        self.used.fetch_sub(granted - granted_of_all, Ordering::Relaxed);
        granted_of_all
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.spill.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Quota {
    pub fn create(self: &Arc<Self>, stream: Stream) -> io::Result<SpillFile> {
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
        match &self.place {
            Place::Folder => self.create_private(),
            Place::Kept(path) => {
                Ok(SpillFile { file: open(path, true)?, quota, path: None, repeated: 0 })
            }
            Place::Elsewhere(path) => {
                let repeated = self.in_memory as u64;
                Ok(SpillFile { file: open(path, false)?, quota, path: None, repeated })
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
        Ok(SpillFile { file, quota: self.clone(), path: Some(path), repeated: 0 })
    }

    pub fn lookups(&self) -> &Mutex<()> {
        &self.account.spill.lookups
    }

    /// Room for a large piece, to be given back.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers().pop().unwrap_or_else(|| vec![0; LARGE_PIECE])
    }

    pub fn give_buffer(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers();
        if buffers.len() < MOST_BUFFERS {
            buffers.push(buffer);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.account.spill.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much of the run is on the disk, if we have put it there.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Gives all of it back.
    pub fn release(&self) {
        self.account.give_back(self.used.swap(0, Ordering::Relaxed));
    }

    /// Takes up to `wanted` bytes off the run's, its owner's and everybody's quota; returns how many.
    fn take(&self, wanted: u64) -> u64 {
        let granted = take(&self.used, self.limit, wanted);
        let granted_of_all = self.account.take(granted);
        self.used.fetch_sub(granted - granted_of_all, Ordering::Relaxed);
        granted_of_all
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
        self.file.read_exact_at(bytes, offset + self.repeated)
    }

    /// Appends as much of `bytes` as quota and disk take; returns how many.
    pub fn append(&self, bytes: &[u8]) -> usize {
        if let Place::Elsewhere(_) = self.quota.place {
            return bytes.len();
        }
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
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// The same as [`take`], as long as room can be made for all of it.
fn take_with_room(used: &AtomicU64, limit: u64, wanted: u64, make_room: impl Fn() -> bool) -> u64 {
    let mut granted = take(used, limit, wanted);
    while granted < wanted && make_room() {
        used.fetch_sub(granted, Ordering::Relaxed);
        granted = take(used, limit, wanted);
    }
    granted
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
