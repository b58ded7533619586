//! Sessions: conversations that go on over many requests, up to revision 2025-11-25.
//!
//! Each has a service loop of its own, as a client on stdio has, while there is something to do: a
//! loop takes tens of kilobytes, a session that sleeps hardly any. What the loop says is noted in
//! streams, one for each request and one for what belongs to none; responses read from those. So a
//! connection that is lost takes nothing with it: the client reads on where it was, from another.
//!
//!     request ─▶ Router (inbox) ─▶ service loop ─▶ Router ─┬▶ stream of the request
//!                                                          └▶ common stream (GET)

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::StatusCode;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    Extensions, GetExtensions, GetMeta, InitializeRequestParams, JsonRpcMessage, ProgressToken,
    ProtocolVersion, RequestId, ServerNotification, ServerResult,
};
use rmcp::service::{OriginatingRequestId, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::auth::Principal;
use super::stream::{Kind, Reading, Stream};
use crate::message::Message;

/// How many messages may wait for a session's service loop.
const INBOX: usize = 256;

/// How long a service loop waits for something to do before it goes.
const AWAKE: Duration = Duration::from_millis(20);

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
    router: Arc<Router>,
    used: Mutex<Instant>,
    /// Starts a service loop for a client whose handshake is known, or is still to come.
    starter: Starter,
}

pub type Starter =
    Box<dyn Fn(Line, Option<InitializeRequestParams>, CancellationToken) + Send + Sync>;

/// What a session's service loop is connected to.
pub struct Line {
    router: Arc<Router>,
    /// Whether the loop was told that there is nothing to do.
    over: bool,
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
    pub fn new(id: String, principal: Arc<Principal>, starter: Starter) -> Arc<Self> {
        let (ended, used) = (CancellationToken::new(), Mutex::new(Instant::now()));
        Arc::new(Self { id, principal, ended, router: Arc::default(), used, starter })
    }

    /// The revision that was agreed on.
    pub fn version(&self) -> Option<&ProtocolVersion> {
        self.router.version.get()
    }

    /// Gives the service loop something to do, and starts one if there is none.
    fn put(&self, message: Message) -> Result<(), NotTaken> {
        if self.ended.is_cancelled() {
            return Err(NotTaken::Ended);
        }
        let asleep = {
            let mut routes = self.router.lock();
            if routes.inbox.len() >= INBOX {
                return Err(NotTaken::TooMany);
            }
            routes.note(&message);
            routes.inbox.push_back(message);
            !std::mem::replace(&mut routes.awake, true)
        };
        match asleep {
            true => {
                let client = self.router.client();
                (self.starter)(
                    Line { router: self.router.clone(), over: false },
                    client,
                    self.ended.clone(),
                );
            }
            false => self.router.arrived.notify_one(),
        }
        Ok(())
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
            self.put(message)?;
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
            let _ = self.put(JsonRpcMessage::notification(cancelled.into()));
        }
    }

    /// Ends it with all it runs; whoever reads is told.
    pub fn end(&self) {
        self.ended.cancel();
        self.router.lock().streams.values().for_each(|stream| stream.end());
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
    arrived: Notify,
}

#[derive(Default)]
struct Routes {
    inbox: VecDeque<Message>,
    /// Whether there is a service loop.
    awake: bool,
    /// What the client said of itself.
    client: Option<InitializeRequestParams>,
    /// Whether something was begun that needs a service loop for as long as the session lives.
    lasting: bool,
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

    fn is_working(&self) -> bool {
        let waiting = |number: &u64| self.streams.get(number).is_some_and(|s| !s.is_ended());
        self.requests.values().any(waiting)
    }

    fn is_busy(&self) -> bool {
        self.is_working() || self.streams.values().any(|stream| stream.is_attached())
    }

    /// Notes what a later service loop has to know.
    fn note(&mut self, message: &Message) {
        let JsonRpcMessage::Request(request) = message else { return };
        match &request.request {
            ClientRequest::InitializeRequest(request) => self.client = Some(request.params.clone()),
            ClientRequest::SubscribeRequest(_) => self.lasting = true,
            _ => {}
        }
    }

    /// What to do next; nothing if the service loop can go.
    fn next(&mut self, waited: bool) -> Option<Option<Message>> {
        if let Some(message) = self.inbox.pop_front() {
            return Some(Some(message));
        }
        if waited && !self.lasting && !self.is_working() {
            self.awake = false;
            return None;
        }
        Some(None)
    }

    /// The stream of the request a message belongs to, if it says so.
    fn origin(&self, extensions: &Extensions) -> Option<Arc<Stream>> {
        let number = self.requests.get(&extensions.get::<OriginatingRequestId>()?.0)?;
        self.streams.get(number).cloned()
    }

    fn stream_of(&mut self, notification: &ServerNotification) -> Arc<Stream> {
        let by_token = match notification {
            ServerNotification::ProgressNotification(progress) => {
                let number = self.tokens.get(&progress.params.progress_token);
                number.and_then(|number| self.streams.get(number).cloned())
            }
            other => self.origin(other.extensions()),
        };
        by_token.unwrap_or_else(|| self.common())
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

    /// What the client said of itself, with what was agreed on.
    fn client(&self) -> Option<InitializeRequestParams> {
        let version = self.version.get()?.clone();
        let mut client = self.lock().client.clone()?;
        client.protocol_version = version;
        Some(client)
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
                routes.stream_of(&notification.notification).say(data, Kind::Notice);
                return Ok(());
            }
            JsonRpcMessage::Request(request) => {
                // Its id is not used again as long as the same loop counts them.
                routes.lasting = true;
                let stream = routes.origin(request.request.extensions());
                stream.unwrap_or_else(|| routes.common()).say(data, Kind::Question);
                return Ok(());
            }
        };
        let Some(number) = answered.and_then(|id| routes.requests.remove(&id)) else {
            routes.common().say(data, Kind::Notice);
            return Ok(());
        };
        let more = routes.requests.values().any(|other| *other == number);
        if !more {
            routes.tokens.retain(|_, other| *other != number);
        }
        if let Some(stream) = routes.streams.get(&number) {
            stream.say(data, Kind::Answer(StatusCode::OK));
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
        let mut waited = false;
        loop {
            let next = self.router.lock().next(waited);
            match next {
                Some(Some(message)) => return Some(message),
                Some(None) => {}
                None => {
                    self.over = true;
                    return None;
                }
            }
            waited = timeout(AWAKE, self.router.arrived.notified()).await.is_err();
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A loop that failed makes room for another.
        if !self.over {
            self.router.lock().awake = false;
        }
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
            session.end();
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
