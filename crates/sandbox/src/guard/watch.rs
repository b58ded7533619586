//! Lets guards check whenever something changes in their folders, as long as commands run there.
//!
//! All guards of a process share one thread and one inotify descriptor, because a user may have only 128 of these. If
//! there is none left, things are still checked before each answer.
//!
//! The kernel has queued an event before the call returns that caused it. So if the queue is empty, and what was in it
//! is dealt with, nothing has changed, and a look at the queue takes the place of a check.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init, remove_watch};
use rustix::io::{Errno, ioctl_fionread, read};

use super::{Guard, Taken, Watched};

/// The size of a buffer for events. Events that do not fit wait.
const EVENT_BYTES: usize = 4096;

static WATCH: LazyLock<Watch> = LazyLock::new(Watch::start);

/// A guard that is called when something changes.
#[derive(Debug)]
pub struct WatchedGuard {
    guard: Mutex<Guard>,
    /// How many commands run.
    occupants: AtomicUsize,
    /// What was taken away and nobody was told yet.
    taken: Mutex<Vec<Taken>>,
    watches: Mutex<BTreeMap<Watched, i32>>,
    /// Whether all folders are watched.
    is_watched: AtomicBool,
    /// How often events had been read when everything was last checked and watched.
    checked: AtomicU64,
    /// The same for what was accepted.
    accepted: AtomicU64,
}

impl WatchedGuard {
    pub fn new(guard: Guard) -> Arc<Self> {
        let watched = Arc::new(Self {
            guard: Mutex::new(guard),
            occupants: AtomicUsize::new(0),
            taken: Mutex::default(),
            watches: Mutex::default(),
            is_watched: AtomicBool::new(true),
            checked: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
        });
        WATCH.add(&watched);
        // No command has run yet.
        if let Some(readings) = WATCH.readings() {
            watched.note_checked(readings);
        }
        watched
    }

    fn note_checked(&self, readings: u64) {
        if self.is_watched.load(Ordering::SeqCst) {
            self.checked.store(readings, Ordering::SeqCst);
        }
    }

    /// Accepts what has changed outside, unless a command runs that may have done it. Returns a reserved name that
    /// exists now, and needs a mount.
    pub fn accept(&self) -> Option<PathBuf> {
        let now = WATCH.readings().filter(|_| self.is_watched.load(Ordering::SeqCst));
        if now.is_some() && now == Some(self.accepted.load(Ordering::SeqCst)) {
            return None;
        }
        let mut guard = locked(&self.guard);
        if self.occupants.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let created = guard.accept();
        // One that needs a mount is told again.
        if let Some(now) = now.filter(|_| created.is_none()) {
            self.accepted.store(now, Ordering::SeqCst);
        }
        created
    }

    /// Folders of hooks that have no mount yet.
    pub fn free_hooks(&self) -> Vec<PathBuf> {
        locked(&self.guard).free_hooks()
    }

    /// Whether a path in a git folder has a mount, or is in a folder that has one.
    pub fn has_mounted(&self, path: &Path) -> bool {
        locked(&self.guard).has_mounted(path)
    }

    /// Commands cannot change these hooks any more.
    pub fn note_mounted_hooks(&self, hooks: &Path) {
        locked(&self.guard).note_mounted_hooks(hooks);
    }

    /// A command starts.
    pub fn enter(&self) {
        self.occupants.fetch_add(1, Ordering::SeqCst);
    }

    /// A command and all it has started are gone.
    pub fn leave(&self) {
        self.check();
        self.occupants.fetch_sub(1, Ordering::SeqCst);
    }

    /// Checks now, and returns what was taken away since the last time.
    pub fn settle(&self) -> Vec<Taken> {
        self.check();
        std::mem::take(&mut locked(&self.taken))
    }

    /// Takes away what must not be there by now, if commands run.
    pub fn check(&self) {
        if WATCH.readings() != Some(self.checked.load(Ordering::SeqCst)) {
            self.check_all();
        }
    }

    fn check_all(&self) {
        let mut guard = locked(&self.guard);
        if self.occupants.load(Ordering::SeqCst) > 0 {
            let taken = guard.check();
            locked(&self.taken).extend(taken);
        }
    }
}

impl Drop for WatchedGuard {
    fn drop(&mut self) {
        WATCH.forget(locked(&self.watches).values().copied());
    }
}

struct Watch {
    inotify: Option<OwnedFd>,
    guards: Mutex<Vec<Weak<WatchedGuard>>>,
    /// How many guards use each watch.
    users: Mutex<BTreeMap<i32, usize>>,
    /// How often events were read. Locked while they are.
    readings: Mutex<u64>,
}

impl Watch {
    fn start() -> Self {
        let thread = thread::Builder::new().name("mcpz-guard".into()).stack_size(256 << 10);
        let work = || {
            while let Some(readings) = WATCH.wait() {
                WATCH.check(readings);
            }
        };
        let is_running = thread.spawn(work).is_ok();
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let inotify = init(flags).ok().filter(|_| is_running);
        // Not the number that a guard begins with.
        let readings = Mutex::new(1);
        Self { inotify, guards: Mutex::default(), users: Mutex::default(), readings }
    }

    fn add(&self, guard: &Arc<WatchedGuard>) {
        locked(&self.guards).push(Arc::downgrade(guard));
        self.watch(guard);
    }

    /// Waits until something changes, and returns how often that happened. `None` if that is not possible.
    fn wait(&self) -> Option<u64> {
        let inotify = self.inotify.as_ref()?;
        // Interrupted or not, whether there are events is seen below.
        let _ = poll(&mut [PollFd::new(inotify, PollFlags::IN)], None);
        let mut readings = locked(&self.readings);
        // What has changed, and how often, the guards find out themselves.
        while read(inotify, &mut [0; EVENT_BYTES]).is_ok() {
            *readings += 1;
        }
        Some(*readings)
    }

    /// How often events were read. `None` if there are more of them, or nobody reads any.
    fn readings(&self) -> Option<u64> {
        let inotify = self.inotify.as_ref()?;
        let readings = locked(&self.readings);
        (ioctl_fionread(inotify) == Ok(0)).then_some(*readings)
    }

    /// Checks all guards: a check is cheap, and most processes have one.
    fn check(&self, readings: u64) {
        for guard in self.guards() {
            guard.check_all();
            // A folder may have got something before it was watched.
            while self.watch(&guard) {
                guard.check_all();
            }
            guard.note_checked(readings);
        }
    }

    fn guards(&self) -> Vec<Arc<WatchedGuard>> {
        let mut guards = locked(&self.guards);
        guards.retain(|guard| guard.strong_count() > 0);
        guards.iter().filter_map(Weak::upgrade).collect()
    }

    /// Watches the folders that a guard has now. True if there is a new one.
    fn watch(&self, guard: &WatchedGuard) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let folders: BTreeSet<_> = locked(&guard.guard).folders().into_iter().collect();
        let mut watches = locked(&guard.watches);
        let mut is_new = false;
        let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        let contents = WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY | WatchFlags::ATTRIB;
        for folder in &folders {
            let (path, flags) = match folder {
                Watched::Names(path) => (path, names),
                Watched::Contents(path) => (path, names | contents),
            };
            // The same folder has the same watch, however many guards it has.
            let flags = flags | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
            let watch = match add_watch(inotify, path, flags) {
                Ok(watch) => watch,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(_) => {
                    guard.is_watched.store(false, Ordering::SeqCst);
                    continue;
                }
            };
            if watches.insert(folder.clone(), watch) != Some(watch) {
                *locked(&self.users).entry(watch).or_default() += 1;
                is_new = true;
            }
        }
        is_new
    }

    fn forget(&self, watches: impl Iterator<Item = i32>) {
        let mut users = locked(&self.users);
        for watch in watches {
            let Some(count) = users.get_mut(&watch) else { continue };
            *count -= 1;
            if *count == 0 {
                users.remove(&watch);
                if let Some(inotify) = &self.inotify {
                    let _ = remove_watch(inotify, watch);
                }
            }
        }
    }
}

/// No code panics while it holds a lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
