//! How much memory messages may take: for all clients together, and for each, on stdio as over HTTP.
//!
//! A request counts until it is answered; an answer counts until it is sent and can no longer be resumed. Each
//! direction has half of the budget, so waiting requests never block answers. At the limit the client's input is not
//! read, no further answer is built, and the oldest resumable answers are evicted, the client's own before others'.
//! After a peak, free memory is returned to the system.
//!
//!     request ─▶ incoming ─▶ handler ─▶ build (waits for room) ─▶ outgoing ─▶ client
//!                                                                    └──▶ resumable, the oldest evicted first

mod ledger;
mod request;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcpz_agent::give_memory_back;
use mcpz_runtime::spawn_blocking;
use tokio::time::timeout;

pub use request::RequestMemory;

use crate::lines::MAX_LINE;
use ledger::Ledger;

/// The pause between two attempts to evict something while the budget is used up.
const RETRY: Duration = Duration::from_millis(100);

/// How long after a peak free memory is returned to the system.
const CALM: Duration = Duration::from_millis(500);

/// Roughly the size of an answer to a command, and of one with the longest page a client may ask for.
pub const ANSWER: usize = 64 << 10;
pub const PAGE: usize = 512 << 10;

/// The most memory for messages, in bytes.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Incoming,
    Outgoing,
}

/// The memory of all messages.
#[derive(Debug)]
pub struct Memory {
    limits: MemoryLimits,
    incoming: Ledger,
    outgoing: Ledger,
    accounts: Mutex<Vec<Weak<MemoryAccount>>>,
    /// Counts what can be evicted, so that its age is known.
    registered: AtomicUsize,
}

/// The memory of one client's messages.
pub struct MemoryAccount {
    memory: Arc<Memory>,
    incoming: Ledger,
    outgoing: Ledger,
    /// What can be evicted, by age.
    evictable: Mutex<BTreeMap<usize, Evict>>,
}

/// Drops an answer that could be resumed, unless a client is reading it again.
pub type Evict = Box<dyn Fn() -> Eviction + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    Done,
    AlreadyGone,
    InUse,
}

/// An answer that is kept only in case a client resumes it. It may be evicted for as long as this lives.
#[derive(Debug)]
pub struct Evictable {
    account: Arc<MemoryAccount>,
    age: usize,
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    account: Arc<MemoryAccount>,
    direction: Direction,
    bytes: usize,
}

/// A message that counts for as long as somebody has it.
struct CountedBytes {
    bytes: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Memory {
    pub fn new(limits: MemoryLimits) -> Arc<Self> {
        let half = limits.total / 2;
        Arc::new(Self {
            limits,
            incoming: Ledger::new(half.max(2 * MAX_LINE)),
            outgoing: Ledger::new(half),
            accounts: Mutex::default(),
            registered: AtomicUsize::new(0),
        })
    }

    /// An account for one more client.
    pub fn account(self: &Arc<Self>) -> Arc<MemoryAccount> {
        let half = self.limits.per_client.min(self.limits.total) / 2;
        let account = Arc::new(MemoryAccount {
            memory: self.clone(),
            // Two of the longest messages: a cancellation must fit beside the request it is for.
            incoming: Ledger::new(half.max(2 * MAX_LINE)),
            outgoing: Ledger::new(half),
            evictable: Mutex::default(),
        });
        let mut accounts = self.accounts();
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Weak<MemoryAccount>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self, direction: Direction) -> &Ledger {
        match direction {
            Direction::Incoming => &self.incoming,
            Direction::Outgoing => &self.outgoing,
        }
    }

    /// Evicts the oldest answer of any client. False if there is none.
    fn evict_oldest(&self) -> bool {
        let mut accounts: Vec<_> = self.accounts().iter().filter_map(Weak::upgrade).collect();
        accounts.sort_by_cached_key(|account| account.oldest().unwrap_or(usize::MAX));
        accounts.iter().any(|account| account.evict_oldest())
    }

    /// Returns free memory to the system some time after a peak.
    fn trim_after_peak(self: &Arc<Self>) {
        if !self.outgoing.is_past_peak() && !self.incoming.is_past_peak() {
            return;
        }
        self.outgoing.reset_peak();
        self.incoming.reset_peak();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async {
                tokio::time::sleep(CALM).await;
                let _ = spawn_blocking(give_memory_back).await;
            });
        }
    }
}

impl std::fmt::Debug for MemoryAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryAccount").field("outgoing", &self.outgoing).finish_non_exhaustive()
    }
}

impl MemoryAccount {
    fn ledger(&self, direction: Direction) -> &Ledger {
        match direction {
            Direction::Incoming => &self.incoming,
            Direction::Outgoing => &self.outgoing,
        }
    }

    fn has_room(&self, direction: Direction, bytes: usize) -> bool {
        self.ledger(direction).has_room(bytes) && self.memory.ledger(direction).has_room(bytes)
    }

    /// Counts bytes that already exist, whether or not there is room for them.
    pub fn reserve(self: &Arc<Self>, direction: Direction, bytes: usize) -> Reservation {
        self.ledger(direction).add(bytes);
        self.memory.ledger(direction).add(bytes);
        Reservation { account: self.clone(), direction, bytes }
    }

    /// The same, if there is room for them.
    pub fn try_reserve(
        self: &Arc<Self>,
        direction: Direction,
        bytes: usize,
    ) -> Option<Reservation> {
        self.make_room(direction, bytes);
        self.has_room(direction, bytes).then(|| self.reserve(direction, bytes))
    }

    /// Whether there is room for the answer to one more request.
    pub fn has_room_for_answer(&self) -> bool {
        self.make_room(Direction::Outgoing, 1);
        self.has_room(Direction::Outgoing, 1)
    }

    /// Waits until there is room, and reserves it. A dropped future has reserved nothing.
    pub async fn wait_to_reserve(
        self: &Arc<Self>,
        direction: Direction,
        bytes: usize,
    ) -> Reservation {
        let _first = self.ledger(direction).queue.lock().await;
        loop {
            let own = self.ledger(direction).freed.notified();
            let all = self.memory.ledger(direction).freed.notified();
            if let Some(reservation) = self.try_reserve(direction, bytes) {
                return reservation;
            }
            let freed = async {
                tokio::select! {
                    () = own => {}
                    () = all => {}
                }
            };
            let _ = timeout(RETRY, freed).await;
        }
    }

    /// Waits until there is room for a message, and for an answer to it.
    pub async fn wait_until_readable(self: &Arc<Self>) {
        drop(self.wait_to_reserve(Direction::Outgoing, 1).await);
        drop(self.wait_to_reserve(Direction::Incoming, 1).await);
    }

    /// A message on its way to the client.
    pub fn outgoing(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        let reservation = self.reserve(Direction::Outgoing, bytes.len());
        Bytes::from_owner(CountedBytes { bytes, _reservation: reservation })
    }

    /// The same, if there is room for it.
    pub fn try_outgoing(self: &Arc<Self>, bytes: Vec<u8>) -> Option<Bytes> {
        let reservation = self.try_reserve(Direction::Outgoing, bytes.len())?;
        Some(Bytes::from_owner(CountedBytes { bytes, _reservation: reservation }))
    }

    /// Registers something that may be evicted to make room.
    pub fn register(self: &Arc<Self>, evict: Evict) -> Evictable {
        let age = self.memory.registered.fetch_add(1, Ordering::Relaxed);
        self.evictable().insert(age, evict);
        Evictable { account: self.clone(), age }
    }

    /// Evicts answers, the oldest first, until so many bytes fit.
    fn make_room(&self, direction: Direction, bytes: usize) {
        if direction == Direction::Incoming {
            return;
        }
        while !self.outgoing.has_room(bytes) && self.evict_oldest() {}
        while !self.memory.outgoing.has_room(bytes) && self.memory.evict_oldest() {}
    }

    fn oldest(&self) -> Option<usize> {
        self.evictable().keys().next().copied()
    }

    /// False if there is nothing to evict.
    fn evict_oldest(&self) -> bool {
        let ages: Vec<_> = self.evictable().keys().copied().collect();
        ages.into_iter().any(|age| {
            // A dropped answer takes itself off the list.
            let Some(evict) = self.evictable().remove(&age) else { return false };
            let eviction = evict();
            match eviction {
                Eviction::Done => tracing::warn!("dropped a resumable answer to make room"),
                Eviction::AlreadyGone => {}
                Eviction::InUse => drop(self.evictable().insert(age, evict)),
            }
            eviction == Eviction::Done
        })
    }

    fn evictable(&self) -> MutexGuard<'_, BTreeMap<usize, Evict>> {
        self.evictable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Evictable {
    fn drop(&mut self) {
        let evict = self.account.evictable().remove(&self.age);
        // Not under the lock: it may hold the last reference to something that locks it, too.
        drop(evict);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.ledger(self.direction).subtract(self.bytes);
        self.account.memory.ledger(self.direction).subtract(self.bytes);
        self.account.memory.trim_after_peak();
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
    fn resumable(
        account: &Arc<MemoryAccount>,
        bytes: usize,
    ) -> (Evictable, Arc<Mutex<Option<Reservation>>>) {
        let there = Arc::new(Mutex::new(Some(account.reserve(Direction::Outgoing, bytes))));
        let taken = there.clone();
        let kept = account.register(Box::new(move || match taken.lock().unwrap().take() {
            Some(_) => Eviction::Done,
            None => Eviction::AlreadyGone,
        }));
        (kept, there)
    }

    fn is_there(there: &Mutex<Option<Reservation>>) -> bool {
        there.lock().unwrap().is_some()
    }

    #[test]
    fn each_client_and_all_together_have_a_limit() {
        let memory = Memory::new(LIMITS);
        let accounts = [memory.account(), memory.account(), memory.account()];
        let held: Vec<_> =
            accounts.iter().map(|it| it.try_reserve(Direction::Outgoing, 400).is_some()).collect();
        assert_eq!(held, [true, true, true], "what is dropped makes room");
        let [one, two, three] = &accounts;
        let _first = one.try_reserve(Direction::Outgoing, 400).unwrap();
        assert!(one.try_reserve(Direction::Outgoing, 200).is_none(), "its own limit");
        let _second = two.try_reserve(Direction::Outgoing, 400).unwrap();
        let _third = three.try_reserve(Direction::Outgoing, 200).unwrap();
        assert!(three.try_reserve(Direction::Outgoing, 200).is_none(), "that of all");
        assert!(
            one.try_reserve(Direction::Incoming, 400).is_some(),
            "what arrives has its own half"
        );
    }

    #[test]
    fn one_message_has_room_however_long_it_is() {
        let account = Memory::new(LIMITS).account();
        let long = account.try_reserve(Direction::Outgoing, 10_000);
        assert!(long.is_some() && account.try_reserve(Direction::Outgoing, 1).is_none());
    }

    #[test]
    fn the_oldest_answer_nobody_came_back_for_goes_first() {
        let memory = Memory::new(LIMITS);
        let (one, two) = (memory.account(), memory.account());
        let (_a, oldest) = resumable(&one, 300);
        let (_b, strangers) = resumable(&two, 400);
        let (_c, newer) = resumable(&one, 200);
        assert!(one.try_reserve(Direction::Outgoing, 200).is_some());
        assert!(!is_there(&oldest) && is_there(&newer) && is_there(&strangers));
        // All together have too much now; the oldest of all is somebody else's.
        let third = memory.account();
        let _held = third.try_reserve(Direction::Outgoing, 450).unwrap();
        assert!(!is_there(&strangers) && is_there(&newer));
    }

    #[test]
    fn what_is_gone_by_itself_is_not_on_the_list() {
        let account = Memory::new(LIMITS).account();
        let (kept, there) = resumable(&account, 100);
        drop((kept, there));
        assert_eq!((account.oldest(), account.outgoing.used()), (None, 0));
    }

    #[test]
    fn who_waits_first_gets_room_first() {
        within(async {
            let account = Memory::new(LIMITS).account();
            let held = account.reserve(Direction::Outgoing, 450);
            let order = Arc::new(Mutex::new(Vec::new()));
            let waiting = [300, 10].map(|bytes| {
                let (account, order) = (account.clone(), order.clone());
                tokio::spawn(async move {
                    let held = account.wait_to_reserve(Direction::Outgoing, bytes).await;
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
