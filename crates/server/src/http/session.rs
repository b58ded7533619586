//! Sessions: conversations that go on over many requests, up to revision 2025-11-25.
//!
//! Each has a service loop of its own, as a client on stdio has, while there is something to do: a
//! loop takes tens of kilobytes, a session that sleeps hardly any. What the loop says is noted in
//! streams, one for each request and one for what belongs to none; responses read from those. So a
//! connection that is lost takes nothing with it: the client reads on where it was, from another.
//!
//!     request ─▶ Router (inbox) ─▶ service loop ─▶ Router ─┬▶ stream of the request
//!                                                          └▶ common stream (GET)

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{InitializeRequestParams, ProtocolVersion};
use tokio_util::sync::CancellationToken;

use super::auth::Principal;
use super::routes::{COMMON, Line, Router, RouterError, Seat};
use crate::memory::Held;
use crate::message::Message;

/// The least and the most time between two looks at what nobody uses.
pub const SHORT_LOOK: Duration = Duration::from_millis(100);
pub const LONG_LOOK: Duration = Duration::from_secs(60);

pub struct Session {
    pub id: String,
    pub principal: Arc<Principal>,
    /// Ends the service loop and all it runs.
    pub ended: CancellationToken,
    router: Arc<Router>,
    used: Mutex<Instant>,
    /// Starts a service loop for a client whose handshake is known, or is still to come.
    starter: Starter,
}

pub type Starter =
    Box<dyn Fn(Line, Option<InitializeRequestParams>, CancellationToken) + Send + Sync>;

impl Session {
    pub fn new(id: String, principal: Arc<Principal>, starter: Starter) -> Arc<Self> {
        let (ended, used) = (CancellationToken::new(), Mutex::new(Instant::now()));
        let router = Router::new(principal.account.clone());
        Arc::new(Self { id, principal, ended, router, used, starter })
    }

    /// The revision that was agreed on.
    pub fn version(&self) -> Option<&ProtocolVersion> {
        self.router.version()
    }

    /// Passes messages on, all or none, and returns the stream their answers come on, if any is
    /// expected. What they take is held until they are answered.
    pub fn take(
        &self,
        messages: Vec<Message>,
        held: Option<Held>,
    ) -> Result<Option<Seat>, RouterError> {
        self.touch();
        if self.ended.is_cancelled() {
            return Err(RouterError::Ended);
        }
        let seat = self.router.put(messages, held)?;
        self.wake();
        Ok(seat)
    }

    /// Has the service loop look what there is to do, and starts one if there is none.
    fn wake(&self) {
        if let Some(line) = self.router.wake() {
            (self.starter)(line, self.router.client(), self.ended.clone());
        }
    }

    /// The stream for what belongs to no request.
    pub fn common(&self) -> Seat {
        self.touch();
        self.router.common()
    }

    /// Goes on reading a stream after an event that was read.
    pub fn resume(&self, event: &str) -> Option<Seat> {
        self.touch();
        let (number, after) = event.split_once('-')?;
        self.router.read(number.parse().ok()?, after.parse().ok()?)
    }

    /// What to do when a response on a stream is done with, sent or lost: unless somebody reads on
    /// within the grace, the request is cancelled, or what was said is forgotten.
    pub fn left(self: &Arc<Self>, number: u64, turn: u64, grace: Duration) {
        let stream = self.router.stream(number).filter(|_| number != COMMON);
        let Some(stream) = stream else { return };
        // What it holds may be needed by others before that.
        let (session, stream) = (Arc::downgrade(self), Arc::downgrade(&stream));
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            let Some(stream) = stream.upgrade().filter(|stream| stream.turn() == turn) else {
                return;
            };
            let Some(session) = session.upgrade() else { return };
            match stream.is_ended() {
                true => session.forget(number),
                false => {
                    session.router.cancel(number);
                    session.wake();
                }
            }
        });
    }

    /// Lets go of a stream that was read to its end in one go.
    pub fn forget(&self, number: u64) {
        self.router.forget(number);
    }

    /// Ends it with all it runs; whoever reads is told.
    pub fn end(&self) {
        self.ended.cancel();
        self.router.end_streams();
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nobody has used it; nothing while somebody does.
    pub fn idle(&self) -> Duration {
        if self.router.is_busy() {
            self.touch();
        }
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// All sessions there are.
#[derive(Default)]
pub struct Sessions {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<String, Arc<Session>>,
    /// The ids of each principal's own.
    own: HashMap<Arc<str>, HashSet<String>>,
}

impl Table {
    fn insert(&mut self, session: Arc<Session>) {
        let own = self.own.entry(session.principal.name.clone()).or_default();
        own.insert(session.id.clone());
        self.by_id.insert(session.id.clone(), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?;
        let name = &session.principal.name;
        if let Some(own) = self.own.get_mut(name) {
            own.remove(id);
            if own.is_empty() {
                self.own.remove(name);
            }
        }
        Some(session)
    }

    fn count_own(&self, principal: &Principal) -> usize {
        self.own.get(&principal.name).map_or(0, HashSet::len)
    }

    fn own(&self, principal: &Principal) -> Vec<Arc<Session>> {
        let ids = self.own.get(&principal.name).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id)).cloned().collect()
    }
}

impl Sessions {
    /// The session of this id, if it is the principal's own.
    pub fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.lock().by_id.get(id).cloned()?;
        (session.principal.name == principal.name && !session.ended.is_cancelled())
            .then_some(session)
    }

    /// Makes room for one more of a principal's: at the limit, one that was not used longest and is
    /// not in use now goes. False if there is none.
    pub fn make_room(&self, principal: &Principal, limit: usize) -> bool {
        let own = {
            let table = self.lock();
            if table.count_own(principal) < limit {
                return true;
            }
            table.own(principal)
        };
        let idle = own.into_iter().map(|session| (session.idle(), session));
        let longest = idle.max_by_key(|(idle, _)| *idle);
        match longest.filter(|(idle, _)| *idle > Duration::from_millis(1)) {
            Some((_, session)) => {
                self.end(&session.id);
                true
            }
            None => false,
        }
    }

    /// Adds one. If others were added meanwhile, the limit holds all the same.
    pub fn insert(&self, session: Arc<Session>, limit: usize) {
        let principal = session.principal.clone();
        self.lock().insert(session);
        let too_many = || self.lock().count_own(&principal) > limit;
        while too_many() && self.make_room(&principal, limit) {}
    }

    /// Ends a session with all it runs.
    pub fn end(&self, id: &str) {
        let session = self.lock().remove(id);
        if let Some(session) = session {
            session.end();
        }
    }

    pub fn count(&self) -> usize {
        self.lock().by_id.len()
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.lock().by_id.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends sessions nobody uses, for as long as there are any to end.
pub async fn end_idle(sessions: Weak<Sessions>, limit: Duration) {
    loop {
        tokio::time::sleep((limit / 4).clamp(SHORT_LOOK, LONG_LOOK)).await;
        let Some(sessions) = sessions.upgrade() else { return };
        for session in sessions.all() {
            session.router.prune();
            if session.idle() > limit {
                sessions.end(&session.id);
            }
        }
    }
}
