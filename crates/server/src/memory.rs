//! How much memory messages may take: for all clients together, and for each.
//!
//! A request counts until it is answered; an answer counts until it is sent and can no longer be resumed. Each
//! of the two has half of the budget, so waiting requests never block answers. At the limit the client's input
//! is not read, no further answer is built, and the oldest resumable answers are dropped.
//!
//!     request ─▶ arriving ─▶ handler ─▶ make (waits for room) ─▶ leaving ─▶ client
//!                                                                   └──▶ resumable, oldest go first

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcpz_engine::give_memory_back;
use mcpz_runtime::aside;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lines::MAX_LINE;

/// The pause between two searches for something to drop, while the budget is used up.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// After a peak of this size free memory is returned to the system.
const PEAK: usize = 8 << 20;

/// How long to wait before that.
const CALM: Duration = Duration::from_millis(500);

/// Roughly what an answer takes: to a command, and with a page as long as a client may ask for.
pub const ANSWER: usize = 64 << 10;
pub const PAGE: usize = 512 << 10;

/// The most that messages may take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    pub total: usize,
    pub per_client: usize,
}

impl MemoryLimits {
    /// Room for two long pages.
    pub const LEAST: usize = 1 << 20;
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { total: 256 << 20, per_client: 64 << 20 }
    }
}

/// The memory of all messages.
#[derive(Debug)]
pub struct Memory {
    limits: MemoryLimits,
    arriving: Ledger,
    leaving: Ledger,
    accounts: Mutex<Vec<Weak<Account>>>,
    /// Counts what can be asked for again, in order of age.
    kept: AtomicUsize,
}

/// The memory of one client's messages.
pub struct Account {
    memory: Arc<Memory>,
    arriving: Ledger,
    leaving: Ledger,
    /// What can be asked for again, by age.
    resumable: Mutex<BTreeMap<usize, Resumable>>,
}

/// Drops something that could be resumed, unless a client is reading it again.
pub type Resumable = Box<dyn Fn() -> Forgotten + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    Now,
    Before,
    /// Somebody uses it.
    NotYet,
}

/// Something that is kept only in case a client resumes it, and is dropped first.
#[derive(Debug)]
pub struct Kept {
    account: Arc<Account>,
    age: usize,
}

/// The bytes of a message, which count as long as somebody has them.
struct Counted {
    bytes: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// How much there is, and may be.
#[derive(Debug)]
struct Ledger {
    used: AtomicUsize,
    limit: usize,
    freed: Notify,
    /// A queue: room is granted in the order it was asked for.
    line: tokio::sync::Mutex<()>,
    /// The most there was since memory was last given back.
    peak: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Arriving,
    Leaving,
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub struct Held {
    account: Arc<Account>,
    way: Way,
    bytes: usize,
}

impl Ledger {
    fn new(limit: usize) -> Self {
        let (used, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { used, limit, freed: Notify::new(), line: tokio::sync::Mutex::default(), peak }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether there is room for so much more. One message always has some, however long it is.
    fn has_room(&self, bytes: usize) -> bool {
        let used = self.used();
        used == 0 || used.saturating_add(bytes) <= self.limit
    }

    fn add(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(used, Ordering::Relaxed);
    }

    fn take_off(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }
}

impl Memory {
    pub fn new(limits: MemoryLimits) -> Arc<Self> {
        let half = limits.total / 2;
        Arc::new(Self {
            limits,
            arriving: Ledger::new(half.max(2 * MAX_LINE)),
            leaving: Ledger::new(half),
            accounts: Mutex::default(),
            kept: AtomicUsize::new(0),
        })
    }

    /// For one more client.
    pub fn account(self: &Arc<Self>) -> Arc<Account> {
        let half = self.limits.per_client.min(self.limits.total) / 2;
        let account = Arc::new(Account {
            memory: self.clone(),
            // Two of the longest messages: a cancellation must fit beside the request it is for.
            arriving: Ledger::new(half.max(2 * MAX_LINE)),
            leaving: Ledger::new(half),
            resumable: Mutex::default(),
        });
        let mut accounts = self.accounts();
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Weak<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self, way: Way) -> &Ledger {
        match way {
            Way::Arriving => &self.arriving,
            Way::Leaving => &self.leaving,
        }
    }

    /// Drops the oldest resumable answer of any client. False if there is none.
    fn forget_oldest(&self) -> bool {
        let mut accounts: Vec<_> = self.accounts().iter().filter_map(Weak::upgrade).collect();
        accounts.sort_by_cached_key(|account| account.oldest().unwrap_or(usize::MAX));
        accounts.iter().any(|account| account.forget_oldest())
    }

    /// Gives memory back to the system some time after there was a peak.
    fn settle(self: &Arc<Self>) {
        let high = |ledger: &Ledger| {
            let peak = ledger.peak.load(Ordering::Relaxed);
            peak >= PEAK && ledger.used() <= peak / 4
        };
        if !high(&self.leaving) && !high(&self.arriving) {
            return;
        }
        for ledger in [&self.leaving, &self.arriving] {
            ledger.peak.store(ledger.used(), Ordering::Relaxed);
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async {
                tokio::time::sleep(CALM).await;
                let _ = aside(give_memory_back).await;
            });
        }
    }
}

/// The room one request takes: its own bytes until it is answered, and room for the answer from before it is
/// built until the transport counts it. It travels to the handler in the request's extensions.
#[derive(Debug, Clone)]
pub struct Taken(Arc<TakenRoom>);

#[derive(Debug)]
struct TakenRoom {
    account: Arc<Account>,
    _request: Option<Arc<Held>>,
    answer: Mutex<Option<Held>>,
}

impl Taken {
    pub fn new(account: Arc<Account>, request: Option<Arc<Held>>) -> Self {
        Self(Arc::new(TakenRoom { account, _request: request, answer: Mutex::default() }))
    }

    /// Waits until there is room for an answer of about this size, or nobody waits for it any more.
    pub async fn wait_for_room(&self, bytes: usize, cancelled: &CancellationToken) {
        // Release first: calls that each hold some room while waiting for more would deadlock.
        self.answered();
        let room = self.0.account.wait_for(Way::Leaving, bytes);
        let held = cancelled.run_until_cancelled(room).await;
        *self.0.answer.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// The answer is made, and counted otherwise from now on.
    pub fn answered(&self) {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("leaving", &self.leaving).finish_non_exhaustive()
    }
}

impl Account {
    fn ledger(&self, way: Way) -> &Ledger {
        match way {
            Way::Arriving => &self.arriving,
            Way::Leaving => &self.leaving,
        }
    }

    fn has_room(&self, way: Way, bytes: usize) -> bool {
        self.ledger(way).has_room(bytes) && self.memory.ledger(way).has_room(bytes)
    }

    /// Counts bytes that are there already.
    pub fn hold(self: &Arc<Self>, way: Way, bytes: usize) -> Held {
        self.ledger(way).add(bytes);
        self.memory.ledger(way).add(bytes);
        Held { account: self.clone(), way, bytes }
    }

    /// The same, if there is room for them.
    pub fn try_hold(self: &Arc<Self>, way: Way, bytes: usize) -> Option<Held> {
        self.make_room(way, bytes);
        self.has_room(way, bytes).then(|| self.hold(way, bytes))
    }

    /// Whether there is room for the answer to one more request.
    pub fn takes_more(&self) -> bool {
        self.make_room(Way::Leaving, 1);
        self.has_room(Way::Leaving, 1)
    }

    /// Waits until there is room, and takes it. Nothing is taken if it is dropped before.
    pub async fn wait_for(self: &Arc<Self>, way: Way, bytes: usize) -> Held {
        let _first = self.ledger(way).line.lock().await;
        loop {
            let own = self.ledger(way).freed.notified();
            let all = self.memory.ledger(way).freed.notified();
            if let Some(held) = self.try_hold(way, bytes) {
                return held;
            }
            let freed = async {
                tokio::select! {
                    () = own => {}
                    () = all => {}
                }
            };
            let _ = timeout(LOOK_AGAIN, freed).await;
        }
    }

    /// Waits until there is room both for what may come and for what is said to it.
    pub async fn wait_for_any(self: &Arc<Self>) {
        drop(self.wait_for(Way::Leaving, 1).await);
        drop(self.wait_for(Way::Arriving, 1).await);
    }

    /// A message on its way to the client.
    pub fn outgoing(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        let held = self.hold(Way::Leaving, bytes.len());
        Bytes::from_owner(Counted { bytes, _held: held })
    }

    /// The same, if there is room for it.
    pub fn try_outgoing(self: &Arc<Self>, bytes: Vec<u8>) -> Option<Bytes> {
        let held = self.try_hold(Way::Leaving, bytes.len())?;
        Some(Bytes::from_owner(Counted { bytes, _held: held }))
    }

    /// Registers something that may be dropped to make room, for as long as the returned guard lives.
    pub fn keep(self: &Arc<Self>, resumable: Resumable) -> Kept {
        let age = self.memory.kept.fetch_add(1, Ordering::Relaxed);
        self.resumable().insert(age, resumable);
        Kept { account: self.clone(), age }
    }

    /// Drops resumable answers, the oldest first, until so much fits.
    fn make_room(&self, way: Way, bytes: usize) {
        if way == Way::Arriving {
            return;
        }
        while !self.leaving.has_room(bytes) && self.forget_oldest() {}
        while !self.memory.leaving.has_room(bytes) && self.memory.forget_oldest() {}
    }

    fn oldest(&self) -> Option<usize> {
        self.resumable().keys().next().copied()
    }

    /// False if there is nothing to let go of.
    fn forget_oldest(&self) -> bool {
        let ages: Vec<_> = self.resumable().keys().copied().collect();
        ages.into_iter().any(|age| {
            // A dropped answer takes itself off the list.
            let Some(forget) = self.resumable().remove(&age) else { return false };
            let forgotten = forget();
            match forgotten {
                Forgotten::Now => tracing::warn!("an answer that could be resumed made room"),
                Forgotten::Before => {}
                Forgotten::NotYet => drop(self.resumable().insert(age, forget)),
            }
            forgotten == Forgotten::Now
        })
    }

    fn resumable(&self) -> MutexGuard<'_, BTreeMap<usize, Resumable>> {
        self.resumable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let forget = self.account.resumable().remove(&self.age);
        // Not under the lock.
        drop(forget);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.ledger(self.way).take_off(self.bytes);
        self.account.memory.ledger(self.way).take_off(self.bytes);
        self.account.memory.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MemoryLimits = MemoryLimits { total: 2_000, per_client: 1_000 };

    fn within<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap().block_on(work)
    }

    /// Something that can be asked for again, and whether it still can.
    fn resumable(account: &Arc<Account>, bytes: usize) -> (Kept, Arc<Mutex<Option<Held>>>) {
        let there = Arc::new(Mutex::new(Some(account.hold(Way::Leaving, bytes))));
        let taken = there.clone();
        let kept = account.keep(Box::new(move || match taken.lock().unwrap().take() {
            Some(_) => Forgotten::Now,
            None => Forgotten::Before,
        }));
        (kept, there)
    }

    fn is_there(there: &Mutex<Option<Held>>) -> bool {
        there.lock().unwrap().is_some()
    }

    #[test]
    fn each_client_and_all_together_have_a_limit() {
        let memory = Memory::new(LIMITS);
        let accounts = [memory.account(), memory.account(), memory.account()];
        let held: Vec<_> =
            accounts.iter().map(|it| it.try_hold(Way::Leaving, 400).is_some()).collect();
        assert_eq!(held, [true, true, true], "what is dropped makes room");
        let [one, two, three] = &accounts;
        let _first = one.try_hold(Way::Leaving, 400).unwrap();
        assert!(one.try_hold(Way::Leaving, 200).is_none(), "its own limit");
        let _second = two.try_hold(Way::Leaving, 400).unwrap();
        let _third = three.try_hold(Way::Leaving, 200).unwrap();
        assert!(three.try_hold(Way::Leaving, 200).is_none(), "that of all");
        assert!(one.try_hold(Way::Arriving, 400).is_some(), "what arrives has its own half");
    }

    #[test]
    fn one_message_has_room_however_long_it_is() {
        let account = Memory::new(LIMITS).account();
        let long = account.try_hold(Way::Leaving, 10_000);
        assert!(long.is_some() && account.try_hold(Way::Leaving, 1).is_none());
    }

    #[test]
    fn the_oldest_answer_nobody_came_back_for_goes_first() {
        let memory = Memory::new(LIMITS);
        let (one, two) = (memory.account(), memory.account());
        let (_a, oldest) = resumable(&one, 300);
        let (_b, strangers) = resumable(&two, 400);
        let (_c, newer) = resumable(&one, 200);
        assert!(one.try_hold(Way::Leaving, 200).is_some());
        assert!(!is_there(&oldest) && is_there(&newer) && is_there(&strangers));
        // All together have too much now; the oldest of all is somebody else's.
        let third = memory.account();
        let _held = third.try_hold(Way::Leaving, 450).unwrap();
        assert!(!is_there(&strangers) && is_there(&newer));
    }

    #[test]
    fn what_is_gone_by_itself_is_not_on_the_list() {
        let account = Memory::new(LIMITS).account();
        let (kept, there) = resumable(&account, 100);
        drop((kept, there));
        assert_eq!((account.oldest(), account.leaving.used()), (None, 0));
    }

    #[test]
    fn who_waits_first_gets_room_first() {
        within(async {
            let account = Memory::new(LIMITS).account();
            let held = account.hold(Way::Leaving, 450);
            let order = Arc::new(Mutex::new(Vec::new()));
            let waiting = [300, 10].map(|bytes| {
                let (account, order) = (account.clone(), order.clone());
                tokio::spawn(async move {
                    let held = account.wait_for(Way::Leaving, bytes).await;
                    order.lock().unwrap().push(bytes);
                    held
                })
            });
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert_eq!(*order.lock().unwrap(), [0; 0]);
            drop(held);
            for waiting in waiting {
                waiting.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), [300, 10]);
        });
    }
}
