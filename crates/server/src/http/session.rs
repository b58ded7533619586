//! Sessions: conversations that go on over many requests, up to revision 2025-11-25.
//!
//! Each has a service loop of its own, as a client on stdio has. What the loop says is noted in
//! streams, one for each request and one for what belongs to none; responses read from those. So a
//! connection that is lost takes nothing with it: the client reads on where it was, from another.
//!
//!     request ─▶ inbox ─▶ service loop ─▶ Router ─┬▶ stream of the request
//!                                                 └▶ common stream (GET)

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::StatusCode;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, GetMeta, JsonRpcMessage,
    ProgressToken, ProtocolVersion, RequestId, ServerNotification, ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::auth::Principal;
use super::stream::{Reading, Stream};
use crate::message::Message;

/// How many messages may wait for a session's service loop.
const INBOX: usize = 256;

/// The most requests of a session that may be without an answer.
const MAX_PENDING: usize = 1024;

/// The most streams that have ended and can be read again.
const MAX_ENDED: usize = 16;

/// The most memory those may take.
const MAX_ENDED_SIZE: usize = 4 << 20;

/// The number of the stream for what belongs to no request.
const COMMON: u64 = 0;

pub struct Session {
    pub id: String,
    pub principal: Arc<Principal>,
    /// Ends the service loop and all it runs.
    pub ended: CancellationToken,
    inbox: mpsc::Sender<Message>,
    router: Arc<Router>,
    used: Mutex<Instant>,
}

/// What a session's service loop is connected to.
pub struct Line {
    inbox: mpsc::Receiver<Message>,
    router: Arc<Router>,
}

/// Why a message is not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// A request with this id has no answer yet.
    IdInUse(RequestId),
    TooMany,
    Ended,
}

impl Session {
    pub fn new(id: String, principal: Arc<Principal>) -> (Arc<Self>, Line) {
        let (inbox, incoming) = mpsc::channel(INBOX);
        let router = Arc::new(Router::default());
        let line = Line { inbox: incoming, router: router.clone() };
        let (ended, used) = (CancellationToken::new(), Mutex::new(Instant::now()));
        (Arc::new(Self { id, principal, ended, inbox, router, used }), line)
    }

    /// The revision that was agreed on.
    pub fn version(&self) -> Option<&ProtocolVersion> {
        self.router.version.get()
    }

    /// Passes messages on, and returns the stream their answers come on, if any is expected.
    pub fn take(&self, messages: Vec<Message>) -> Result<Option<Seat>, NotTaken> {
        self.touch();
        let stream = self.router.open(&messages)?;
        for message in messages {
            if let JsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                && let Some(id) = &cancelled.params.request_id
            {
                self.router.give_up(id);
            }
            self.inbox.try_send(message).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => NotTaken::TooMany,
                mpsc::error::TrySendError::Closed(_) => NotTaken::Ended,
            })?;
        }
        Ok(stream)
    }

    /// The stream for what belongs to no request.
    pub fn common(&self) -> Seat {
        self.touch();
        Seat { number: COMMON, reading: self.router.lock().common().read_on() }
    }

    /// Goes on reading a stream after an event that was read.
    pub fn resume(&self, event: &str) -> Option<Seat> {
        self.touch();
        let (number, after) = event.split_once('-')?;
        let (number, after) = (number.parse().ok()?, after.parse().ok()?);
        let stream = self.router.lock().streams.get(&number)?.clone();
        Some(Seat { number, reading: stream.read(after) })
    }

    /// What to do when a response on a stream is done with, sent or lost: unless somebody reads on
    /// within the grace, the request is cancelled.
    pub fn left(self: &Arc<Self>, number: u64, turn: u64, grace: Duration) {
        let stream = self.router.lock().streams.get(&number).cloned();
        let Some(stream) = stream.filter(|stream| !stream.is_ended() && number != COMMON) else {
            return;
        };
        let session = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            if stream.turn() == turn
                && !stream.is_ended()
                && let Some(session) = session.upgrade()
            {
                session.cancel(number);
            }
        });
    }

    /// Lets go of a stream that was read to its end in one go.
    pub fn forget(&self, number: u64) {
        self.router.lock().streams.remove(&number);
    }

    fn cancel(&self, number: u64) {
        let requests: Vec<_> = {
            let routes = self.router.lock();
            let of_stream = routes.requests.iter().filter(|(_, route)| **route == number);
            of_stream.map(|(id, _)| id.clone()).collect()
        };
        for id in requests {
            self.router.give_up(&id);
            let params = CancelledNotificationParam::new(Some(id), Some("nobody reads".into()));
            let cancelled = CancelledNotification::new(params);
            let message = JsonRpcMessage::notification(cancelled.into());
            let _ = self.inbox.try_send(message);
        }
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long nobody has used it; nothing while somebody does.
    pub fn idle(&self) -> Duration {
        if self.router.lock().is_busy() {
            self.touch();
        }
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// A place to read a stream of a session from.
pub struct Seat {
    pub number: u64,
    pub reading: Reading,
}

/// Brings what the service loop says to where it belongs.
#[derive(Default)]
struct Router {
    version: OnceLock<ProtocolVersion>,
    routes: Mutex<Routes>,
}

#[derive(Default)]
struct Routes {
    next: u64,
    streams: BTreeMap<u64, Arc<Stream>>,
    /// Requests without an answer, and their streams. One that was cancelled never gets one, and
    /// its id stays taken: the service loop could take an old answer for a new one.
    requests: HashMap<RequestId, u64>,
    tokens: HashMap<ProgressToken, u64>,
}

impl Routes {
    fn common(&mut self) -> Arc<Stream> {
        self.streams.entry(COMMON).or_default().clone()
    }

    fn is_busy(&self) -> bool {
        let waiting = |number: &u64| self.streams.get(number).is_some_and(|s| !s.is_ended());
        self.requests.values().any(waiting) || self.streams.values().any(|s| s.is_attached())
    }

    /// Lets go of streams that have ended, the oldest first, when there are too many.
    fn prune(&mut self) {
        let ended = |stream: &Arc<Stream>| stream.is_ended() && !stream.is_attached();
        loop {
            let over: Vec<_> = self.streams.iter().filter(|(_, stream)| ended(stream)).collect();
            let size: usize = over.iter().map(|(_, stream)| stream.size()).sum();
            if over.len() <= MAX_ENDED && size <= MAX_ENDED_SIZE {
                return;
            }
            let Some(oldest) = over.first().map(|(number, _)| **number) else { return };
            self.streams.remove(&oldest);
        }
    }
}

impl Router {
    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream for the answers to requests; none if nothing is asked.
    fn open(&self, messages: &[Message]) -> Result<Option<Seat>, NotTaken> {
        let mut routes = self.lock();
        let requests: Vec<_> = messages
            .iter()
            .filter_map(|message| match message {
                JsonRpcMessage::Request(request) => Some(request),
                _ => None,
            })
            .collect();
        if requests.is_empty() {
            return Ok(None);
        }
        if routes.requests.len() + requests.len() > MAX_PENDING {
            return Err(NotTaken::TooMany);
        }
        if let Some(used) = requests.iter().find(|r| routes.requests.contains_key(&r.id)) {
            return Err(NotTaken::IdInUse(used.id.clone()));
        }
        routes.prune();
        routes.next += 1;
        let number = routes.next;
        for request in requests {
            routes.requests.insert(request.id.clone(), number);
            if let Some(token) = request.request.get_meta().get_progress_token() {
                routes.tokens.insert(token, number);
            }
        }
        let stream = Arc::new(Stream::default());
        routes.streams.insert(number, stream.clone());
        Ok(Some(Seat { number, reading: stream.read(0) }))
    }

    /// A request that was cancelled gets no answer; the stream it would have come on ends.
    fn give_up(&self, id: &RequestId) {
        let routes = self.lock();
        let number = routes.requests.get(id);
        if let Some(stream) = number.and_then(|number| routes.streams.get(number)) {
            stream.end();
        }
    }

    fn say(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let data = serde_json::to_vec(message)?.into();
        let mut routes = self.lock();
        let answered = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    let _ = self.version.set(result.protocol_version.clone());
                }
                Some(response.id.clone())
            }
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Notification(notification) => {
                let number = match &notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        routes.tokens.get(&progress.params.progress_token).copied()
                    }
                    _ => None,
                };
                let stream = number.and_then(|number| routes.streams.get(&number).cloned());
                stream.unwrap_or_else(|| routes.common()).say(data, None);
                return Ok(());
            }
            JsonRpcMessage::Request(_) => None,
        };
        let Some(number) = answered.and_then(|id| routes.requests.remove(&id)) else {
            routes.common().say(data, None);
            return Ok(());
        };
        let more = routes.requests.values().any(|other| *other == number);
        if !more {
            routes.tokens.retain(|_, other| *other != number);
        }
        if let Some(stream) = routes.streams.get(&number) {
            stream.say(data, Some(StatusCode::OK));
            if !more {
                stream.end();
            }
        }
        Ok(())
    }
}

impl Transport<RoleServer> for Line {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        std::future::ready(self.router.say(&message))
    }

    async fn receive(&mut self) -> Option<Message> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        let routes = self.router.lock();
        routes.streams.values().for_each(|stream| stream.end());
        Ok(())
    }
}

/// All sessions there are.
#[derive(Default)]
pub struct Sessions {
    by_id: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    /// The session of this id, if it is the principal's own.
    pub fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        (session.principal.name == principal.name && !session.ended.is_cancelled())
            .then_some(session)
    }

    /// Makes room for one more of a principal's: at the limit, one that was not used longest and is
    /// not in use now goes. False if there is none.
    pub fn make_room(&self, principal: &Principal, limit: usize) -> bool {
        let own: Vec<_> = {
            let all = self.lock();
            all.values().filter(|s| s.principal.name == principal.name).cloned().collect()
        };
        if own.len() < limit {
            return true;
        }
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

    pub fn insert(&self, session: Arc<Session>) {
        self.lock().insert(session.id.clone(), session);
    }

    /// Ends a session with all it runs.
    pub fn end(&self, id: &str) {
        let session = self.lock().remove(id);
        if let Some(session) = session {
            session.ended.cancel();
        }
    }

    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends sessions nobody uses, for as long as there are any to end.
pub async fn end_idle(sessions: Weak<Sessions>, limit: Duration) {
    loop {
        tokio::time::sleep((limit / 4).clamp(Duration::from_millis(100), Duration::from_secs(60)))
            .await;
        let Some(sessions) = sessions.upgrade() else { return };
        let all: Vec<_> = sessions.lock().values().cloned().collect();
        for session in all.iter().filter(|session| session.idle() > limit) {
            sessions.end(&session.id);
        }
    }
}
