//! Outputs that can be read later, each by its owner alone.
//!
//! An output is kept under an id nobody can guess, until its owner goes, its time is over or the disk needs the room.
//! The answer is the same for an id that is unknown, malformed or someone else's: nothing is there.
//!
//!     Store ── one per server: time limit, room on the disk
//!       └─ Outputs ── one per owner: keep, find, list
//!            └─ Kept ── an output, and what its owner notes about it

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::spill::Account;

/// The most outputs one owner may have; the oldest go first.
const MAX_OUTPUTS: usize = 200;

/// When to look again at an output whose time is over but which is still being written.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The outputs of all owners.
#[derive(Debug)]
pub struct Store<T> {
    table: Mutex<Table<T>>,
    time: Duration,
}

/// The outputs of one owner. They go with it.
#[derive(Debug)]
pub struct Outputs<T> {
    store: Arc<Store<T>>,
    account: Arc<Account>,
}

/// An output that is kept.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    pub output: Output,
    /// What its owner knows about it.
    pub about: T,
    /// A compressed copy, if there is one.
    pub zipped: Option<Output>,
}

#[derive(Debug)]
struct Table<T> {
    by_id: HashMap<String, Entry<T>>,
    /// The ids of each account's own, oldest first.
    own: HashMap<u64, BTreeMap<u64, String>>,
    made: u64,
}

#[derive(Debug)]
struct Entry<T> {
    owner: Arc<Account>,
    /// Counts up: the newest has the highest.
    number: u64,
    since: Instant,
    kept: Kept<T>,
}

impl<T> Store<T> {
    /// A store that forgets after some time.
    pub fn new(time: Duration) -> Self {
        let table = Table { by_id: HashMap::new(), own: HashMap::new(), made: 0 };
        Self { table: Mutex::new(table), time }
    }

    /// The outputs of a new owner.
    pub fn outputs(self: &Arc<Self>, account: Arc<Account>) -> Outputs<T> {
        Outputs { store: self.clone(), account }
    }

    /// Drops the oldest complete output of an account or, without one, of the account that has most on the disk.
    /// False if there is none.
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
        // A job that has ended may hold it as well.
        forgotten.inspect(|entry| entry.kept.output.release()).is_some()
    }

    /// Drops what was kept long enough. Returns when to look again, if there is more.
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

    /// Whether its time is over.
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

    /// What an account has, oldest first.
    fn own(&self, account: &Account) -> impl DoubleEndedIterator<Item = (&String, &Entry<T>)> {
        let ids = self.own.get(&account.number()).into_iter().flat_map(BTreeMap::values);
        ids.filter_map(|id| Some((id, self.by_id.get(id)?)))
    }
}

impl<T> Outputs<T> {
    /// Keeps an output under an id, unless there is one of that id.
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
        let kept = Kept { output, about, zipped: None };
        table.insert(id.to_owned(), Entry { owner, number, since, kept });
        let surplus = table.own(&self.account).count().saturating_sub(MAX_OUTPUTS);
        // Those still being written stay: their number has a limit of its own.
        let over = table.own(&self.account).filter(|(_, entry)| entry.kept.output.is_finished());
        let over: Vec<_> = over.map(|(id, _)| id.clone()).take(surplus).collect();
        let over: Vec<_> = over.iter().filter_map(|id| table.remove(id)).collect();
        // Not under the lock: dropping removes files.
        drop(table);
        drop(over);
    }

    /// Changes what is noted about an output. Its time begins again.
    pub fn note(&self, id: &str, note: impl FnOnce(&mut T)) {
        if let Some(entry) = self.store.lock().by_id.get_mut(id) {
            note(&mut entry.kept.about);
            entry.since = Instant::now();
        }
    }

    /// Keeps a compressed copy beside an output.
    pub fn keep_zipped(&self, id: &str, zipped: Output) {
        if let Some(entry) = self.store.lock().by_id.get_mut(id) {
            entry.kept.zipped = Some(zipped);
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

    /// The newest output about which something holds, with its id.
    pub fn find_newest(&self, holds: impl Fn(&T) -> bool) -> Option<(String, Kept<T>)> {
        let table = self.store.lock();
        let mut own = table.own(&self.account).rev();
        let (id, entry) =
            own.find(|(_, entry)| holds(&entry.kept.about) && !self.store.is_expired(entry))?;
        Some((id.clone(), entry.kept.clone()))
    }

    /// Everything that is kept, oldest first.
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

    struct House {
        store: Arc<Store<&'static str>>,
        spill: Arc<Spill>,
        made: std::cell::Cell<usize>,
    }

    impl House {
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
        let house = House::in_memory(MINUTE);
        let (one, other) = (house.owner(), house.owner());
        let id = house.keep(&one, "x", 4);
        assert!(one.find(&id).is_some() && other.find(&id).is_none());
        assert!(one.find_newest(|about| *about == "x").is_some());
        assert!(other.find_newest(|about| *about == "x").is_none());
        assert!(one.find("").is_none() && one.find("../x").is_none());
        assert_eq!((one.list().len(), other.list().len()), (1, 0));
    }

    #[test]
    fn the_newest_about_the_same_is_found() {
        let house = House::in_memory(MINUTE);
        let owner = house.owner();
        house.keep(&owner, "x", 3);
        let newer = house.keep(&owner, "x", 3);
        house.keep(&owner, "y", 5);
        assert_eq!(owner.find_newest(|about| *about == "x").unwrap().0, newer);
    }

    #[test]
    fn what_is_kept_under_an_id_stays_there() {
        let house = House::in_memory(MINUTE);
        let owner = house.owner();
        let id = house.keep(&owner, "x", 4);
        owner.keep_new(&id, Output::new(owner.account.quota(None)), "y");
        assert_eq!(owner.find(&id).unwrap().about, "x");
        owner.note(&id, |about| *about = "z");
        assert_eq!(owner.find(&id).unwrap().about, "z");
        owner.forget(&id);
        assert!(owner.find(&id).is_none());
    }

    #[test]
    fn outputs_go_with_their_owner_and_after_their_time() {
        let house = House::in_memory(MINUTE);
        let one = house.owner();
        house.keep(&one, "x", 4);
        drop(one);
        assert!(house.store.lock().by_id.is_empty() && house.store.lock().own.is_empty());
        let hasty = House::in_memory(Duration::ZERO);
        let other = hasty.owner();
        let id = hasty.keep_unfinished(&other, "x");
        let output = other.find(&id).unwrap().output;
        output.finish();
        assert!(other.find(&id).is_none());
    }

    #[test]
    fn of_too_many_the_oldest_go_but_not_those_still_being_written() {
        let house = House::in_memory(MINUTE);
        let (one, other) = (house.owner(), house.owner());
        let running = house.keep_unfinished(&one, "running");
        let ended = house.keep(&one, "ended", 0);
        let strangers = house.keep(&other, "x", 0);
        (2..=MAX_OUTPUTS).for_each(|_| drop(house.keep(&one, "x", 0)));
        assert_eq!(one.list().len(), MAX_OUTPUTS);
        assert!(one.find(&running).is_some() && one.find(&ended).is_none());
        assert!(other.find(&strangers).is_some());
    }

    #[test]
    fn when_room_is_needed_the_oldest_that_is_complete_goes() {
        let folder = tempfile::tempdir().unwrap();
        let house = House::new(MINUTE, folder.path());
        let owner = house.owner();
        let running = house.keep_unfinished(&owner, "running");
        let small = house.keep(&owner, "small", 0);
        let old = house.keep(&owner, "old", 100_000);
        let new = house.keep(&owner, "new", 100_000);
        assert!(house.store.forget_oldest(None));
        assert!(owner.find(&old).is_none() && owner.find(&new).is_some());
        assert!(house.store.forget_oldest(None) && !house.store.forget_oldest(None));
        assert!(owner.find(&running).is_some() && owner.find(&small).is_some());
    }

    #[test]
    fn the_largest_owner_makes_room_for_all_and_each_owner_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let house = House::new(MINUTE, folder.path());
        let (one, other) = (house.owner(), house.owner());
        let older = house.keep(&one, "x", 100_000);
        let newer = [0, 1].map(|_| house.keep(&other, "x", 200_000));
        let left = || newer.each_ref().map(|id| other.find(id).is_some());
        assert!(house.store.forget_oldest(None));
        assert_eq!((one.find(&older).is_some(), left()), (true, [false, true]));
        assert!(house.store.forget_oldest(Some(one.account.number())));
        assert_eq!((one.find(&older).is_some(), left()), (false, [false, true]));
        assert!(!house.store.forget_oldest(Some(one.account.number())));
    }
}
