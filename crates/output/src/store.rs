//! Outputs that their owners can read later.
//!
//! An output is kept under an id that nobody can guess, until its owner leaves, its time is over or the disk needs
//! the space. Then the oldest finished output goes: of the owner whose account is full or, if the total is, of the
//! owner who uses most. Its file goes even if a job still holds the output.
//!
//! Unknown, malformed and other owners' ids all get the same answer: nothing is there.
//!
//!     Store ── one per server: time limit, space on the disk
//!       └─ Outputs ── one per owner: keep, find, list
//!            └─ Kept ── an output, and what its owner notes about it

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::spill::DiskAccount;

/// The most outputs one owner may have. Beyond that, the oldest go.
const MAX_OUTPUTS: usize = 200;

/// When to check an output again that has expired but is still being written.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The outputs of all owners.
#[derive(Debug)]
pub struct Store<T> {
    table: Mutex<Table<T>>,
    time: Duration,
}

/// The outputs of one owner. They are dropped with it.
#[derive(Debug)]
pub struct Outputs<T> {
    store: Arc<Store<T>>,
    account: Arc<DiskAccount>,
}

/// A kept output.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    pub output: Output,
    /// What its owner knows about it.
    pub about: T,
    /// A copy compressed with gzip, if there is one.
    pub gzipped: Option<Output>,
}

#[derive(Debug)]
struct Table<T> {
    by_id: HashMap<String, Entry<T>>,
    /// The ids of each account's outputs, oldest first.
    own: HashMap<u64, BTreeMap<u64, String>>,
    made: u64,
}

#[derive(Debug)]
struct Entry<T> {
    owner: Arc<DiskAccount>,
    /// Counts up: the newest entry has the highest number.
    number: u64,
    since: Instant,
    kept: Kept<T>,
}

impl<T> Store<T> {
    /// A store that keeps outputs for this long.
    pub fn new(time: Duration) -> Self {
        let table = Table { by_id: HashMap::new(), own: HashMap::new(), made: 0 };
        Self { table: Mutex::new(table), time }
    }

    /// The outputs of a new owner.
    pub fn outputs(self: &Arc<Self>, account: Arc<DiskAccount>) -> Outputs<T> {
        Outputs { store: self.clone(), account }
    }

    /// Drops the oldest finished output of an account or, without one, of the account that uses most of the disk.
    /// Returns false if there is none.
    pub fn forget_oldest(&self, account: Option<u64>) -> bool {
        let mut table = self.lock();
        let gives = |(_, entry): &(_, &Entry<T>)| {
            let output = &entry.kept.output;
            let whose = account.is_none_or(|number| number == entry.owner.number());
            whose && output.is_finished() && output.spilled() > 0
        };
        let oldest_of_most =
            |(_, entry): &(_, &Entry<T>)| (Reverse(entry.owner.used()), entry.number);
        let oldest = table.by_id.iter().filter(gives).min_by_key(oldest_of_most);
        let oldest = oldest.map(|(id, _)| id.clone());
        let forgotten = oldest.and_then(|id| table.remove(&id));
        drop(table);
        // A job that has ended may hold the output as well.
        forgotten.inspect(|entry| entry.kept.output.release()).is_some()
    }

    /// Drops expired outputs. Returns when to check again, if any are left.
    pub fn forget_expired(&self) -> Option<Instant> {
        let mut table = self.lock();
        let now = Instant::now();
        let expired = table.by_id.iter().filter(|(_, entry)| self.is_expired(entry));
        let expired: Vec<_> = expired.map(|(id, _)| id.clone()).collect();
        let expired: Vec<_> = expired.iter().filter_map(|id| table.remove(id)).collect();
        let due = |entry: &Entry<T>| match entry.since + self.time {
            due if due > now => due,
            _ => now + LOOK_AGAIN,
        };
        let next = table.by_id.values().map(due).min();
        drop(table);
        drop(expired);
        next
    }

    /// Whether the output's time is over and it is complete.
    fn is_expired(&self, entry: &Entry<T>) -> bool {
        Instant::now() >= entry.since + self.time && entry.kept.output.is_finished()
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Table<T> {
    fn insert(&mut self, id: String, entry: Entry<T>) {
        self.remove(&id);
        let own = self.own.entry(entry.owner.number()).or_default();
        own.insert(entry.number, id.clone());
        self.by_id.insert(id, entry);
    }

    fn remove(&mut self, id: &str) -> Option<Entry<T>> {
        let entry = self.by_id.remove(id)?;
        let account = entry.owner.number();
        if let Some(own) = self.own.get_mut(&account) {
            own.remove(&entry.number);
            if own.is_empty() {
                self.own.remove(&account);
            }
        }
        Some(entry)
    }

    /// An account's outputs, oldest first.
    fn own(&self, account: &DiskAccount) -> impl DoubleEndedIterator<Item = (&String, &Entry<T>)> {
        let ids = self.own.get(&account.number()).into_iter().flat_map(BTreeMap::values);
        ids.filter_map(|id| Some((id, self.by_id.get(id)?)))
    }
}

impl<T> Outputs<T> {
    /// Keeps an output under an id, unless the id is taken.
    pub fn keep_new(&self, id: &str, output: Output, about: T) {
        if !self.store.lock().by_id.contains_key(id) {
            self.keep(id, output, about);
        }
    }

    /// Keeps an output under an id.
    pub fn keep(&self, id: &str, output: Output, about: T) {
        let mut table = self.store.lock();
        table.made += 1;
        let (owner, number, since) = (self.account.clone(), table.made, Instant::now());
        let kept = Kept { output, about, gzipped: None };
        table.insert(id.to_owned(), Entry { owner, number, since, kept });
        let surplus = table.own(&self.account).count().saturating_sub(MAX_OUTPUTS);
        // Outputs that are still being written stay: runs have a limit of their own.
        let over = table.own(&self.account).filter(|(_, entry)| entry.kept.output.is_finished());
        let over: Vec<_> = over.map(|(id, _)| id.clone()).take(surplus).collect();
        let over: Vec<_> = over.iter().filter_map(|id| table.remove(id)).collect();
        // Not under the lock: dropping an output removes files.
        drop(table);
        drop(over);
    }

    /// Changes what is noted about an output, and restarts its time.
    pub fn note(&self, id: &str, note: impl FnOnce(&mut T)) {
        if let Some(entry) = self.store.lock().by_id.get_mut(id) {
            note(&mut entry.kept.about);
            entry.since = Instant::now();
        }
    }

    /// Keeps a copy compressed with gzip beside an output.
    pub fn keep_gzipped(&self, id: &str, gzipped: Output) {
        if let Some(entry) = self.store.lock().by_id.get_mut(id) {
            entry.kept.gzipped = Some(gzipped);
        }
    }

    /// Drops an output.
    pub fn forget(&self, id: &str) {
        let forgotten = self.store.lock().remove(id);
        drop(forgotten);
    }
}

impl<T: Clone> Outputs<T> {
    pub fn find(&self, id: &str) -> Option<Kept<T>> {
        let table = self.store.lock();
        let entry = table.by_id.get(id)?;
        let own = Arc::ptr_eq(&entry.owner, &self.account);
        (own && !self.store.is_expired(entry)).then(|| entry.kept.clone())
    }

    /// The newest output whose notes satisfy a condition, with its id.
    pub fn find_newest(&self, holds: impl Fn(&T) -> bool) -> Option<(String, Kept<T>)> {
        let table = self.store.lock();
        let mut own = table.own(&self.account).rev();
        let (id, entry) =
            own.find(|(_, entry)| holds(&entry.kept.about) && !self.store.is_expired(entry))?;
        Some((id.clone(), entry.kept.clone()))
    }

    /// All kept outputs, oldest first.
    pub fn list(&self) -> Vec<(String, Kept<T>)> {
        let table = self.store.lock();
        let own = table.own(&self.account).filter(|(_, entry)| !self.store.is_expired(entry));
        own.map(|(id, entry)| (id.clone(), entry.kept.clone())).collect()
    }
}

impl<T> Drop for Outputs<T> {
    fn drop(&mut self) {
        let mut table = self.store.lock();
        let ids: Vec<_> = table.own(&self.account).map(|(id, _)| id.clone()).collect();
        let own: Vec<_> = ids.iter().filter_map(|id| table.remove(id)).collect();
        drop(table);
        drop(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    const MINUTE: Duration = Duration::from_secs(60);

    struct Fixture {
        store: Arc<Store<&'static str>>,
        spill: Arc<Spill>,
        made: std::cell::Cell<usize>,
    }

    impl Fixture {
        fn new(time: Duration, folder: &std::path::Path) -> Self {
            let spill = Arc::new(Spill::new(SpillSettings::new(folder)));
            Self { store: Arc::new(Store::new(time)), spill, made: Default::default() }
        }

        fn in_memory(time: Duration) -> Self {
            Self::new(time, std::path::Path::new("/nonexistent"))
        }

        fn owner(&self) -> Outputs<&'static str> {
            self.store.outputs(self.spill.account())
        }

        fn keep(&self, owner: &Outputs<&'static str>, about: &'static str, size: usize) -> String {
            let id = self.keep_unfinished(owner, about);
            let output = owner.find(&id).unwrap().output;
            output.append(Stream::Stdout, &vec![b'x'; size]);
            output.finish();
            id
        }

        fn keep_unfinished(&self, owner: &Outputs<&'static str>, about: &'static str) -> String {
            self.made.set(self.made.get() + 1);
            let id = format!("output-{}", self.made.get());
            owner.keep(&id, Output::new(owner.account.quota(None)), about);
            id
        }
    }

    #[test]
    fn only_its_owner_finds_an_output() {
        let fixture = Fixture::in_memory(MINUTE);
        let (one, other) = (fixture.owner(), fixture.owner());
        let id = fixture.keep(&one, "x", 4);
        assert!(one.find(&id).is_some() && other.find(&id).is_none());
        assert!(one.find_newest(|about| *about == "x").is_some());
        assert!(other.find_newest(|about| *about == "x").is_none());
        assert!(one.find("").is_none() && one.find("../x").is_none());
        assert_eq!((one.list().len(), other.list().len()), (1, 0));
    }

    #[test]
    fn the_newest_matching_output_is_found() {
        let fixture = Fixture::in_memory(MINUTE);
        let owner = fixture.owner();
        fixture.keep(&owner, "x", 3);
        let newer = fixture.keep(&owner, "x", 3);
        fixture.keep(&owner, "y", 5);
        assert_eq!(owner.find_newest(|about| *about == "x").unwrap().0, newer);
    }

    #[test]
    fn what_is_kept_under_an_id_stays_there() {
        let fixture = Fixture::in_memory(MINUTE);
        let owner = fixture.owner();
        let id = fixture.keep(&owner, "x", 4);
        owner.keep_new(&id, Output::new(owner.account.quota(None)), "y");
        assert_eq!(owner.find(&id).unwrap().about, "x");
        owner.note(&id, |about| *about = "z");
        assert_eq!(owner.find(&id).unwrap().about, "z");
        owner.forget(&id);
        assert!(owner.find(&id).is_none());
    }

    #[test]
    fn outputs_are_dropped_with_their_owner_and_after_their_time() {
        let fixture = Fixture::in_memory(MINUTE);
        let one = fixture.owner();
        fixture.keep(&one, "x", 4);
        drop(one);
        assert!(fixture.store.lock().by_id.is_empty() && fixture.store.lock().own.is_empty());
        let hasty = Fixture::in_memory(Duration::ZERO);
        let other = hasty.owner();
        let id = hasty.keep_unfinished(&other, "x");
        let output = other.find(&id).unwrap().output;
        output.finish();
        assert!(other.find(&id).is_none());
    }

    #[test]
    fn beyond_the_limit_the_oldest_finished_outputs_are_dropped() {
        let fixture = Fixture::in_memory(MINUTE);
        let (one, other) = (fixture.owner(), fixture.owner());
        let running = fixture.keep_unfinished(&one, "running");
        let ended = fixture.keep(&one, "ended", 0);
        let strangers = fixture.keep(&other, "x", 0);
        (2..=MAX_OUTPUTS).for_each(|_| drop(fixture.keep(&one, "x", 0)));
        assert_eq!(one.list().len(), MAX_OUTPUTS);
        assert!(one.find(&running).is_some() && one.find(&ended).is_none());
        assert!(other.find(&strangers).is_some());
    }

    #[test]
    fn the_oldest_finished_output_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Fixture::new(MINUTE, folder.path());
        let owner = fixture.owner();
        let running = fixture.keep_unfinished(&owner, "running");
        let small = fixture.keep(&owner, "small", 0);
        let old = fixture.keep(&owner, "old", 100_000);
        let new = fixture.keep(&owner, "new", 100_000);
        assert!(fixture.store.forget_oldest(None));
        assert!(owner.find(&old).is_none() && owner.find(&new).is_some());
        assert!(fixture.store.forget_oldest(None) && !fixture.store.forget_oldest(None));
        assert!(owner.find(&running).is_some() && owner.find(&small).is_some());
    }

    #[test]
    fn the_largest_owner_makes_room_in_the_total_and_each_owner_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Fixture::new(MINUTE, folder.path());
        let (one, other) = (fixture.owner(), fixture.owner());
        let older = fixture.keep(&one, "x", 100_000);
        let newer = [0, 1].map(|_| fixture.keep(&other, "x", 200_000));
        let left = || newer.each_ref().map(|id| other.find(id).is_some());
        assert!(fixture.store.forget_oldest(None));
        assert_eq!((one.find(&older).is_some(), left()), (true, [false, true]));
        assert!(fixture.store.forget_oldest(Some(one.account.number())));
        assert_eq!((one.find(&older).is_some(), left()), (false, [false, true]));
        assert!(!fixture.store.forget_oldest(Some(one.account.number())));
    }
}
