//! Sessions: conversations over many requests, up to revision 2025-11-25.
//!
//! A session has a service loop of its own, as a client on stdio has, but only while there is something to do: a loop
//! takes tens of kilobytes, an idle session hardly any. What the loop sends goes to streams, one for each request and
//! one for messages that belong to none; responses read from those. So a lost connection loses nothing: the client
//! continues from another where it was.
//!
//!     request ─▶ Router (inbox) ─▶ service loop ─▶ Router ─┬▶ stream of the request
//!                                                          └▶ common stream (GET)

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rmcp::model::{InitializeRequestParams, ProtocolVersion};
use tokio_util::sync::CancellationToken;

use super::auth::Principal;
use super::router::{COMMON, OpenStream, Router, RouterError, SessionTransport};
use crate::memory::Reservation;
use crate::message::Message;

/// How often to look for sessions and tenants that nobody uses: at least a few times within their limit.
pub fn sweep_interval(limit: Duration) -> Duration {
    (limit / 4).clamp(Duration::from_millis(100), Duration::from_secs(60))
}

pub struct HttpSession {
    pub id: String,
    pub principal: Arc<Principal>,
    /// Ends the service loop and everything it runs.
    pub ended: CancellationToken,
    router: Arc<Router>,
    used: Mutex<Instant>,
    /// Starts a service loop, with what the client said of itself if its handshake is over.
    starter: Starter,
}

pub type Starter =
    Box<dyn Fn(SessionTransport, Option<InitializeRequestParams>, CancellationToken) + Send + Sync>;

impl HttpSession {
    pub fn new(id: String, principal: Arc<Principal>, starter: Starter) -> Arc<Self> {
        let (ended, used) = (CancellationToken::new(), Mutex::new(Instant::now()));
        let router = Router::new(principal.account.clone());
        Arc::new(Self { id, principal, ended, router, used, starter })
    }

    /// The revision of the protocol that client and server agreed on.
    pub fn version(&self) -> Option<&ProtocolVersion> {
        self.router.version()
    }

    /// Passes messages on, all or none, and returns the stream for their answers, if there will be any. The
    /// reservation for their memory is held until they are answered.
    pub fn take(
        &self,
        messages: Vec<Message>,
        reservation: Option<Reservation>,
    ) -> Result<Option<OpenStream>, RouterError> {
        self.touch();
        if self.ended.is_cancelled() {
            return Err(RouterError::Ended);
        }
        let stream = self.router.put(messages, reservation)?;
        self.wake();
        Ok(stream)
    }

    /// Wakes the service loop, or starts one.
    fn wake(&self) {
        if let Some(transport) = self.router.wake() {
            (self.starter)(transport, self.router.client(), self.ended.clone());
        }
    }

    /// The stream for messages that belong to no request.
    pub fn common(&self) -> OpenStream {
        self.touch();
        self.router.common()
    }

    /// Continues a stream after an event that the client has read.
    pub fn resume(&self, event: &str) -> Option<OpenStream> {
        self.touch();
        let (number, after) = event.split_once('-')?;
        self.router.read(number.parse().ok()?, after.parse().ok()?)
    }

    /// Called when a response on a stream was sent, or lost. Unless the client continues reading within `grace`, an
    /// open request is cancelled, and an ended stream forgotten.
    pub fn detach(self: &Arc<Self>, number: u64, turn: u64, grace: Duration) {
        let stream = self.router.stream(number).filter(|_| number != COMMON);
        let Some(stream) = stream else { return };
        // Weak, because others may need their memory before that.
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

    /// Drops a stream that was read to its end.
    pub fn forget(&self, number: u64) {
        self.router.forget(number);
    }

    /// Ends it with everything it runs. Its readers see the end of their streams.
    pub fn end(&self) {
        self.ended.cancel();
        self.router.end_streams();
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nobody has used it; zero while somebody does.
    pub fn idle(&self) -> Duration {
        if self.router.is_busy() {
            self.touch();
        }
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// All sessions.
#[derive(Default)]
pub struct HttpSessions {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<String, Arc<HttpSession>>,
    /// The ids of each principal's sessions.
    own: HashMap<Arc<str>, HashSet<String>>,
}

impl Table {
    fn insert(&mut self, session: Arc<HttpSession>) {
        let own = self.own.entry(session.principal.name.clone()).or_default();
        own.insert(session.id.clone());
        self.by_id.insert(session.id.clone(), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<HttpSession>> {
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

    fn own(&self, principal: &Principal) -> Vec<Arc<HttpSession>> {
        let ids = self.own.get(&principal.name).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id)).cloned().collect()
    }
}

impl HttpSessions {
    /// The session of this id, if it belongs to the principal.
    pub fn find(&self, id: &str, principal: &Principal) -> Option<Arc<HttpSession>> {
        let session = self.lock().by_id.get(id).cloned()?;
        (session.principal.name == principal.name && !session.ended.is_cancelled())
            .then_some(session)
    }

    /// Makes room for one more session of a principal: at the limit, ends the one that has been unused the longest.
    /// False if all are in use.
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

    /// Adds a session. The limit holds even if others were added meanwhile.
    pub fn insert(&self, session: Arc<HttpSession>, limit: usize) {
        let principal = session.principal.clone();
        self.lock().insert(session);
        let too_many = || self.lock().count_own(&principal) > limit;
        while too_many() && self.make_room(&principal, limit) {}
    }

    /// Ends a session with everything it runs.
    pub fn end(&self, id: &str) {
        let session = self.lock().remove(id);
        if let Some(session) = session {
            session.end();
        }
    }

    pub fn count(&self) -> usize {
        self.lock().by_id.len()
    }

    fn all(&self) -> Vec<Arc<HttpSession>> {
        self.lock().by_id.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends sessions that nobody uses, for as long as the server runs.
pub async fn end_idle(sessions: Weak<HttpSessions>, limit: Duration) {
    loop {
        tokio::time::sleep(sweep_interval(limit)).await;
        let Some(sessions) = sessions.upgrade() else { return };
        for session in sessions.all() {
            session.router.prune();
            if session.idle() > limit {
                sessions.end(&session.id);
            }
        }
    }
}
