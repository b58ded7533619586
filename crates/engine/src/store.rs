//! Outputs that can be read later, each by its owner alone.
//!
//! An output is kept under an id nobody can guess, until its owner goes, its time is over or room is
//! needed. An id that is not there, is somebody else's or is no id at all: the answer is the same.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::enclosure::Enclosure;
use crate::jobs::Jobs;
use crate::outcome::Outcome;
use crate::request::RunRequest;
use crate::sessions::Sessions;
use crate::turns::Share;
use mcpz_output::Account;
use mcpz_output::Output;

/// The most outputs one owner may have; the oldest go first.
const MAX_OUTPUTS: usize = 200;

/// When to look again at an output whose time is over but whose command is not.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Store {
    table: Mutex<Table>,
    /// How many owners have run something.
    runners: AtomicU64,
    time: Duration,
}

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<String, Kept>,
    /// The ids of each account's own, oldest first.
    own: HashMap<u64, BTreeMap<u64, String>>,
    made: u64,
}

#[derive(Debug)]
struct Kept {
    owner: Arc<Account>,
    /// Counts up: the newest has the highest.
    number: u64,
    since: Instant,
    /// What a plain cursor finds it by.
    request: Option<RunRequest>,
    found: Found,
}

/// What is known of a kept run.
#[derive(Debug, Clone)]
pub struct Found {
    pub output: Output,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// A compressed form of its stdout, if somebody wanted one.
    pub zipped: Option<Output>,
}

impl Found {
    pub fn new(output: Output, outcome: Option<Outcome>) -> Self {
        Self { output, outcome, zipped: None }
    }
}

/// Whoever runs commands and may read what they printed. What is kept goes with it.
#[derive(Debug)]
pub struct Owner {
    pub(crate) account: Arc<Account>,
    /// From when it first runs something.
    number: OnceLock<u64>,
    name: Arc<str>,
    /// What it is found again by when this process is gone.
    estate: String,
    store: Arc<Store>,
    /// How many commands it may run at once.
    pub(crate) share: Share,
    pub jobs: Arc<Jobs>,
    pub sessions: Sessions,
    /// What its commands are confined in, if they are and there were any.
    pub(crate) enclosure: tokio::sync::Mutex<Option<Arc<Enclosure>>>,
}

impl Store {
    /// A store that forgets after some time.
    pub fn new(time: Duration) -> Self {
        Self { table: Mutex::default(), runners: AtomicU64::new(0), time }
    }

    pub fn owner(
        self: &Arc<Self>,
        name: &str,
        estate: String,
        account: Arc<Account>,
        share: Share,
        jobs: Jobs,
    ) -> Owner {
        Owner {
            account,
            number: OnceLock::new(),
            name: name.into(),
            estate,
            store: self.clone(),
            share,
            jobs: Arc::new(jobs),
            sessions: Sessions::default(),
            enclosure: tokio::sync::Mutex::default(),
        }
    }

    /// Lets go of an owner's oldest output whose command has ended; of that owner's who has the most
    /// on the disk, if it is for everybody. False if there is none.
    pub fn forget_oldest(&self, owner: Option<u64>) -> bool {
        let mut table = self.lock();
        let gives = |(_, kept): &(_, &Kept)| {
            let output = &kept.found.output;
            let whose = owner.is_none_or(|number| number == kept.owner.number());
            whose && output.is_finished() && output.spilled() > 0
        };
        let oldest_of_most = |(_, kept): &(_, &Kept)| (Reverse(kept.owner.used()), kept.number);
        let oldest = table.by_id.iter().filter(gives).min_by_key(oldest_of_most);
        let oldest = oldest.map(|(id, _)| id.clone());
        let forgotten = oldest.and_then(|id| table.remove(&id));
        drop(table);
        // A job that has ended may have it as well.
        forgotten.inspect(|kept| kept.found.output.release()).is_some()
    }

    /// Lets go of what was kept long enough. Returns when to look again, if there is more.
    pub fn forget_expired(&self) -> Option<Instant> {
        let mut table = self.lock();
        let now = Instant::now();
        let expired = table.by_id.iter().filter(|(_, kept)| self.is_expired(kept));
        let expired: Vec<_> = expired.map(|(id, _)| id.clone()).collect();
        let expired: Vec<_> = expired.iter().filter_map(|id| table.remove(id)).collect();
        let due = |kept: &Kept| match kept.since + self.time {
            due if due > now => due,
            _ => now + LOOK_AGAIN,
        };
        let next = table.by_id.values().map(due).min();
        drop(table);
        drop(expired);
        next
    }

    /// Whether its time is over.
    fn is_expired(&self, kept: &Kept) -> bool {
        Instant::now() >= kept.since + self.time && kept.found.output.is_finished()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn insert(&mut self, id: String, kept: Kept) {
        self.remove(&id);
        let own = self.own.entry(kept.owner.number()).or_default();
        own.insert(kept.number, id.clone());
        self.by_id.insert(id, kept);
    }

    fn remove(&mut self, id: &str) -> Option<Kept> {
        let kept = self.by_id.remove(id)?;
        let account = kept.owner.number();
        if let Some(own) = self.own.get_mut(&account) {
            own.remove(&kept.number);
            if own.is_empty() {
                self.own.remove(&account);
            }
        }
        Some(kept)
    }

    /// What an account has, oldest first.
    fn own(&self, account: &Account) -> impl DoubleEndedIterator<Item = (&String, &Kept)> {
        let ids = self.own.get(&account.number()).into_iter().flat_map(BTreeMap::values);
        ids.filter_map(|id| Some((id, self.by_id.get(id)?)))
    }
}

impl Owner {
    /// What it is called in the audit trail; not by what it gets in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells it apart from others that run something.
    pub(crate) fn number(&self) -> u64 {
        *self.number.get_or_init(|| self.store.runners.fetch_add(1, Ordering::Relaxed))
    }

    /// Lets go of what its commands are confined in, with its temporary files, once none runs there.
    pub fn vacate(&self) {
        // Whoever is making one needs it.
        if let Ok(mut enclosure) = self.enclosure.try_lock() {
            enclosure.take();
        }
    }

    /// Which detached jobs are its own: those of the same estate.
    pub fn estate(&self) -> &str {
        &self.estate
    }

    /// An empty output for a run, or for another form of one.
    pub fn new_output(&self) -> Output {
        Output::new(self.account.quota(None))
    }

    /// Keeps what a command that ended has printed, under the id of its run.
    pub fn keep(&self, outcome: Outcome) {
        let id = outcome.id.to_string();
        let found = Found::new(outcome.output.clone(), Some(outcome));
        self.insert(id, None, found);
    }

    /// Keeps what a command prints, from now on, under the id of its run.
    pub fn follow(&self, id: &str, request: Option<RunRequest>, output: Output) {
        if self.store.lock().by_id.contains_key(id) {
            return;
        }
        self.insert(id.to_owned(), request, Found::new(output, None));
    }

    /// Notes how a command that is followed ended.
    pub fn note_end(&self, id: &str, outcome: &Outcome) {
        if let Some(kept) = self.store.lock().by_id.get_mut(id) {
            kept.found.outcome = Some(outcome.clone());
            kept.since = Instant::now();
        }
    }

    /// Keeps a compressed form beside what was printed.
    pub fn keep_zipped(&self, id: &str, zipped: Output) {
        if let Some(kept) = self.store.lock().by_id.get_mut(id) {
            kept.found.zipped = Some(zipped);
        }
    }

    /// Lets go of an output nobody needs.
    pub fn forget(&self, id: &str) {
        let forgotten = self.store.lock().remove(id);
        drop(forgotten);
    }

    pub fn find(&self, id: &str) -> Option<Found> {
        let table = self.store.lock();
        let kept = table.by_id.get(id).filter(|kept| self.owns(kept))?;
        (!self.store.is_expired(kept)).then(|| kept.found.clone())
    }

    /// The newest run of the same request, with its id.
    pub fn find_newest(&self, request: &RunRequest) -> Option<(String, Found)> {
        let table = self.store.lock();
        let mut own = table.own(&self.account).rev();
        let (id, kept) = own.find(|(_, kept)| {
            kept.request.as_ref() == Some(request) && !self.store.is_expired(kept)
        })?;
        Some((id.clone(), kept.found.clone()))
    }

    /// Everything that is kept, oldest first.
    pub fn list(&self) -> Vec<(String, Found)> {
        let table = self.store.lock();
        let own = table.own(&self.account).filter(|(_, kept)| !self.store.is_expired(kept));
        own.map(|(id, kept)| (id.clone(), kept.found.clone())).collect()
    }

    fn owns(&self, kept: &Kept) -> bool {
        Arc::ptr_eq(&kept.owner, &self.account)
    }

    fn insert(&self, id: String, request: Option<RunRequest>, found: Found) {
        let mut table = self.store.lock();
        table.made += 1;
        let (owner, number, since) = (self.account.clone(), table.made, Instant::now());
        table.insert(id, Kept { owner, number, since, request, found });
        let surplus = table.own(&self.account).count().saturating_sub(MAX_OUTPUTS);
        // What still runs may be asked for by whoever knows of it; the number of those has a limit.
        let over = table.own(&self.account).filter(|(_, kept)| kept.found.output.is_finished());
        let over: Vec<_> = over.map(|(id, _)| id.clone()).take(surplus).collect();
        let over: Vec<_> = over.iter().filter_map(|id| table.remove(id)).collect();
        // Not under the lock: its file is removed with it.
        drop(table);
        drop(over);
    }
}

impl Drop for Owner {
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
    use crate::outcome::{End, Usage};
    use crate::turns::{RunLimits, Turns};
    use mcpz_output::Stream;
    use mcpz_output::{Spill, SpillSettings};
    use mcpz_runtime::random_name;

    fn output(text: &str) -> Outcome {
        let outcome = running_outcome();
        outcome.output.append(Stream::Stdout, text.as_bytes());
        outcome.output.finish();
        outcome
    }

    fn running_outcome() -> Outcome {
        let output = Output::new(spill().account().quota(None));
        Outcome {
            id: random_name().unwrap().into(),
            end: End::Exited(0),
            limit: None,
            usage: Usage::default(),
            output,
            background: Vec::new(),
            warnings: Vec::new(),
            refused: Vec::new(),
            job: None,
            session: None,
        }
    }

    fn keep(owner: &Owner, text: &str, outcome: Outcome) -> String {
        owner.follow(&outcome.id, Some(request(text)), outcome.output.clone());
        owner.note_end(&outcome.id, &outcome);
        outcome.id.to_string()
    }

    fn request(text: &str) -> RunRequest {
        RunRequest::script(text)
    }

    fn spill() -> Arc<Spill> {
        Arc::new(Spill::new(SpillSettings::new("/nonexistent")))
    }

    fn owner(store: &Arc<Store>, spill: &Arc<Spill>) -> Owner {
        let share = Turns::new(RunLimits::default()).share();
        store.owner("somebody", String::new(), spill.account(), share, Jobs::default())
    }

    #[test]
    fn only_its_owner_finds_an_output() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let spill = spill();
        let (one, other) = (owner(&store, &spill), owner(&store, &spill));
        let id = keep(&one, "x", output("text"));
        assert_eq!(id.len(), 32);
        assert!(one.find(&id).is_some() && other.find(&id).is_none());
        assert!(one.find_newest(&request("x")).is_some());
        assert!(other.find_newest(&request("x")).is_none());
        assert!(one.find("").is_none() && one.find("../x").is_none());
        assert_eq!((one.list().len(), other.list().len()), (1, 0));
    }

    #[test]
    fn the_newest_of_the_same_request_is_found() {
        let owner = owner(&Arc::new(Store::new(Duration::from_secs(60))), &spill());
        keep(&owner, "x", output("old"));
        let newer = keep(&owner, "x", output("new"));
        keep(&owner, "y", output("other"));
        assert_eq!(owner.find_newest(&request("x")).unwrap().0, newer);
    }

    #[test]
    fn outputs_go_with_their_owner_and_after_their_time() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let one = owner(&store, &spill());
        keep(&one, "x", output("text"));
        drop(one);
        assert!(store.lock().by_id.is_empty() && store.lock().own.is_empty());
        let hasty = Arc::new(Store::new(Duration::ZERO));
        let other = owner(&hasty, &spill());
        let id = keep(&other, "x", output("text"));
        assert!(other.find(&id).is_none());
    }

    #[test]
    fn of_too_many_the_oldest_go_but_for_what_still_runs() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let spill = spill();
        let (one, other) = (owner(&store, &spill), owner(&store, &spill));
        let running = keep(&one, "running", running_outcome());
        let ended = keep(&one, "ended", output(""));
        let strangers = keep(&other, "x", output(""));
        (2..=MAX_OUTPUTS).for_each(|_| drop(keep(&one, "x", output(""))));
        assert_eq!(one.list().len(), MAX_OUTPUTS);
        assert!(one.find(&running).is_some() && one.find(&ended).is_none());
        assert!(other.find(&strangers).is_some());
    }

    #[test]
    fn when_room_is_needed_the_oldest_that_has_ended_goes() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
        let owner = owner(&store, &spill);
        let running = keep(&owner, "running", running_outcome());
        let small = keep(&owner, "small", output(""));
        let old = keep(&owner, "old", spilled(&owner, 1));
        let new = keep(&owner, "new", spilled(&owner, 1));
        assert!(store.forget_oldest(None));
        assert!(owner.find(&old).is_none() && owner.find(&new).is_some());
        assert!(store.forget_oldest(None) && !store.forget_oldest(None));
        assert!(owner.find(&running).is_some() && owner.find(&small).is_some());
    }

    #[test]
    fn whoever_has_the_most_makes_room_for_all_and_each_for_themselves() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
        let (one, other) = (owner(&store, &spill), owner(&store, &spill));
        let older = keep(&one, "x", spilled(&one, 1));
        let newer = [0, 1].map(|_| keep(&other, "x", spilled(&other, 2)));
        let left = || newer.each_ref().map(|id| other.find(id).is_some());
        assert!(store.forget_oldest(None));
        assert_eq!((one.find(&older).is_some(), left()), (true, [false, true]));
        assert!(store.forget_oldest(Some(one.account.number())));
        assert_eq!((one.find(&older).is_some(), left()), (false, [false, true]));
        assert!(!store.forget_oldest(Some(one.account.number())));
    }

    /// The output of a command that ended and has printed so much more than memory holds.
    fn spilled(owner: &Owner, times: usize) -> Outcome {
        let output = owner.new_output();
        output.append(Stream::Stdout, &vec![b'x'; 100_000 * times]);
        output.finish();
        Outcome { output, ..running_outcome() }
    }
}
