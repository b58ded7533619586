//! Outputs that can be read later, each by its owner alone.
//!
//! An output is kept under an id nobody can guess, until its owner goes, its time is over or room is
//! needed. An id that is not there, is somebody else's or is no id at all: the answer is the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::enclosure::Enclosure;
use crate::jobs::Jobs;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::request::RunRequest;
use crate::sessions::Sessions;
use crate::turns::Share;

/// The most outputs one owner may have; the oldest go first.
const MAX_OUTPUTS: usize = 200;

/// When to look again at an output whose time is over but whose command is not.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Store {
    outputs: Mutex<HashMap<String, Kept>>,
    owners: AtomicU64,
    /// How many of them have run something.
    runners: AtomicU64,
    time: Duration,
}

#[derive(Debug)]
struct Kept {
    owner: u64,
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
}

/// Whoever runs commands and may read what they printed. What is kept goes with it.
#[derive(Debug)]
pub struct Owner {
    id: u64,
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
        let (outputs, owners, runners) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        Self { outputs, owners, runners, time }
    }

    pub fn owner(self: &Arc<Self>, name: &str, estate: String, share: Share, jobs: Jobs) -> Owner {
        let id = self.owners.fetch_add(1, Ordering::Relaxed);
        Owner {
            id,
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

    /// Lets go of the oldest output whose command has ended. False if there is none.
    pub fn forget_oldest(&self) -> bool {
        let mut outputs = self.lock();
        let finished = outputs
            .iter()
            .filter(|(_, kept)| kept.found.output.is_finished() && kept.found.output.has_spilled());
        let oldest = finished.min_by_key(|(_, kept)| kept.number).map(|(id, _)| id.clone());
        let forgotten = oldest.and_then(|id| outputs.remove(&id));
        // Not under the lock: its file is removed with it.
        drop(outputs);
        forgotten.is_some()
    }

    /// Lets go of what was kept long enough. Returns when to look again, if there is more.
    pub fn forget_expired(&self) -> Option<Instant> {
        let mut outputs = self.lock();
        let now = Instant::now();
        let over = |kept: &Kept| now >= kept.since + self.time && kept.found.output.is_finished();
        let expired: Vec<_> = outputs.extract_if(|_, kept| over(kept)).collect();
        let due = |kept: &Kept| match kept.since + self.time {
            due if due > now => due,
            _ => now + LOOK_AGAIN,
        };
        let next = outputs.values().map(due).min();
        drop(outputs);
        drop(expired);
        next
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Keeps what a command that ended has printed, under the id of its run.
    pub fn keep(&self, outcome: Outcome) {
        let id = outcome.id.to_string();
        let found = Found { output: outcome.output.clone(), outcome: Some(outcome) };
        self.insert(id, None, found);
    }

    /// Keeps what a command prints, from now on, under the id of its run.
    pub fn follow(&self, id: &str, request: Option<RunRequest>, output: Output) {
        if self.store.lock().contains_key(id) {
            return;
        }
        self.insert(id.to_owned(), request, Found { output, outcome: None });
    }

    /// Notes how a command that is followed ended.
    pub fn note_end(&self, id: &str, outcome: &Outcome) {
        if let Some(kept) = self.store.lock().get_mut(id) {
            kept.found.outcome = Some(outcome.clone());
            kept.since = Instant::now();
        }
    }

    /// Lets go of an output nobody needs.
    pub fn forget(&self, id: &str) {
        let forgotten = self.store.lock().remove(id);
        drop(forgotten);
    }

    pub fn find(&self, id: &str) -> Option<Found> {
        self.store.forget_expired();
        let outputs = self.store.lock();
        let kept = outputs.get(id).filter(|kept| kept.owner == self.id)?;
        Some(kept.found.clone())
    }

    /// The newest run of the same request, with its id.
    pub fn find_newest(&self, request: &RunRequest) -> Option<(String, Found)> {
        self.store.forget_expired();
        let outputs = self.store.lock();
        let same = |kept: &&Kept| kept.owner == self.id && kept.request.as_ref() == Some(request);
        let (id, kept) =
            outputs.iter().filter(|(_, kept)| same(kept)).max_by_key(|(_, kept)| kept.number)?;
        Some((id.clone(), kept.found.clone()))
    }

    /// Everything that is kept, oldest first.
    pub fn list(&self) -> Vec<(String, Output)> {
        self.store.forget_expired();
        let outputs = self.store.lock();
        let mut own: Vec<_> = outputs.iter().filter(|(_, kept)| kept.owner == self.id).collect();
        own.sort_by_key(|(_, kept)| kept.number);
        own.into_iter().map(|(id, kept)| (id.clone(), kept.found.output.clone())).collect()
    }

    fn insert(&self, id: String, request: Option<RunRequest>, found: Found) {
        let mut outputs = self.store.lock();
        let number = outputs.values().map(|kept| kept.number).max().unwrap_or(0) + 1;
        let kept = Kept { owner: self.id, number, since: Instant::now(), request, found };
        let own = outputs.values().filter(|kept| kept.owner == self.id).count();
        let surplus = (own >= MAX_OUTPUTS).then(|| {
            let own = outputs.iter().filter(|(_, kept)| kept.owner == self.id);
            own.min_by_key(|(_, kept)| kept.number).map(|(id, _)| id.clone())
        });
        let surplus = surplus.flatten().and_then(|id| outputs.remove(&id));
        outputs.insert(id, kept);
        // Not under the lock: its file is removed with it.
        drop(outputs);
        drop(surplus);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let own: Vec<_> = self.store.lock().extract_if(|_, kept| kept.owner == self.id).collect();
        drop(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{End, Usage};
    use crate::output::Stream;
    use crate::random::random_name;
    use crate::spill::{Spill, SpillSettings};
    use crate::turns::{RunLimits, Turns};

    fn output(text: &str) -> Outcome {
        let outcome = running_outcome();
        outcome.output.append(Stream::Stdout, text.as_bytes());
        outcome.output.finish();
        outcome
    }

    fn running_outcome() -> Outcome {
        let spill = Arc::new(Spill::new(SpillSettings::new("/nonexistent")));
        let output = Output::new(spill.quota(None));
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

    fn owner(store: &Arc<Store>) -> Owner {
        let share = Turns::new(RunLimits::default()).share();
        store.owner("somebody", String::new(), share, Jobs::default())
    }

    #[test]
    fn only_its_owner_finds_an_output() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let (one, other) = (owner(&store), owner(&store));
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
        let owner = owner(&Arc::new(Store::new(Duration::from_secs(60))));
        keep(&owner, "x", output("old"));
        let newer = keep(&owner, "x", output("new"));
        keep(&owner, "y", output("other"));
        assert_eq!(owner.find_newest(&request("x")).unwrap().0, newer);
    }

    #[test]
    fn outputs_go_with_their_owner_and_after_their_time() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let one = owner(&store);
        keep(&one, "x", output("text"));
        drop(one);
        assert!(store.lock().is_empty());
        let hasty = Arc::new(Store::new(Duration::ZERO));
        let other = owner(&hasty);
        let id = keep(&other, "x", output("text"));
        assert!(other.find(&id).is_none());
    }

    #[test]
    fn when_room_is_needed_the_oldest_that_has_ended_goes() {
        let store = Arc::new(Store::new(Duration::from_secs(60)));
        let owner = owner(&store);
        let running = keep(&owner, "running", running_outcome());
        let folder = tempfile::tempdir().unwrap();
        let spilled = || {
            let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
            let output = Output::new(spill.quota(None));
            output.append(Stream::Stdout, &[b'x'; 100_000]);
            output.finish();
            Outcome { output, ..running_outcome() }
        };
        let small = keep(&owner, "small", output(""));
        let old = keep(&owner, "old", spilled());
        let new = keep(&owner, "new", spilled());
        assert!(store.forget_oldest());
        assert!(owner.find(&old).is_none() && owner.find(&new).is_some());
        assert!(store.forget_oldest() && !store.forget_oldest());
        assert!(owner.find(&running).is_some() && owner.find(&small).is_some());
    }
}
