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

/// The longest id of a request, and the longest name for its progress: both are kept.
const MAX_ID: usize = 1024;

/// How much may wait to be read before a session takes more requests.
const MAX_UNREAD: usize = 8 << 20;

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
    IdTooLong,
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

    /// Has the service loop look what there is to do, and starts one if there is none.
    fn wake(&self) {
        let asleep = !std::mem::replace(&mut self.router.lock().awake, true);
        match asleep {
            true => {
                let line = Line { router: self.router.clone(), over: false };
                (self.starter)(line, self.router.client(), self.ended.clone());
            }
            false => self.router.arrived.notify_one(),
        }
    }

    /// Passes messages on, all or none, and returns the stream their answers come on, if any is
    /// expected.
    pub fn take(&self, messages: Vec<Message>) -> Result<Option<Seat>, NotTaken> {
        self.touch();
        if self.ended.is_cancelled() {
            return Err(NotTaken::Ended);
        }
        let seat = {
            let mut routes = self.router.lock();
            if routes.inbox.len() + messages.len() > INBOX {
                return Err(NotTaken::TooMany);
            }
            let seat = routes.open(&messages)?;
            messages.iter().for_each(|message| routes.note(message));
            routes.inbox.extend(messages);
            seat
        };
        self.wake();
        Ok(seat)
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
    /// within the grace, the request is cancelled, or what was said is forgotten.
    pub fn left(self: &Arc<Self>, number: u64, turn: u64, grace: Duration) {
        let stream = self.router.lock().streams.get(&number).cloned();
        let Some(stream) = stream.filter(|_| number != COMMON) else { return };
        let session = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            let Some(session) = session.upgrade().filter(|_| stream.turn() == turn) else { return };
            match stream.is_ended() {
                true => session.forget(number),
                false => session.cancel(number),
            }
        });
    }

    /// Lets go of a stream that was read to its end in one go.
    pub fn forget(&self, number: u64) {
        self.router.lock().streams.remove(&number);
    }

    fn cancel(&self, number: u64) {
        {
            let mut routes = self.router.lock();
            let of_stream = routes.requests.iter().filter(|(_, route)| route.stream == number);
            let requests: Vec<_> = of_stream.map(|(id, _)| id.clone()).collect();
            for id in requests {
                routes.give_up(&id);
                let params = CancelledNotificationParam::new(Some(id), Some("nobody reads".into()));
                let cancelled = CancelledNotification::new(params);
                routes.inbox.push_back(JsonRpcMessage::notification(cancelled.into()));
            }
        }
        self.wake();
    }

    /// Lets go of what nobody came back for in time.
    fn prune(&self) {
        self.router.lock().prune();
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
    /// Requests without an answer. The id of one that was cancelled stays taken as long as the same
    /// service loop runs, which could take an old answer for a new one.
    requests: HashMap<RequestId, Route>,
    tokens: HashMap<ProgressToken, u64>,
}

/// A request without an answer.
struct Route {
    stream: u64,
    /// It was cancelled, so no answer comes.
    given_up: bool,
}

impl Routes {
    fn common(&mut self) -> Arc<Stream> {
        self.streams.entry(COMMON).or_default().clone()
    }

    fn is_working(&self) -> bool {
        self.requests.values().any(|route| !route.given_up)
    }

    fn is_busy(&self) -> bool {
        self.is_working() || self.streams.values().any(|stream| stream.is_attached())
    }

    /// Notes what a later service loop has to know, and what will not be answered.
    fn note(&mut self, message: &Message) {
        let request = match message {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.give_up(id);
                }
                return;
            }
            _ => return,
        };
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
            // The next loop does not know of them.
            self.requests.clear();
            self.tokens.clear();
            return None;
        }
        Some(None)
    }

    /// A stream for the answers to requests; none if nothing is asked.
    fn open(&mut self, messages: &[Message]) -> Result<Option<Seat>, NotTaken> {
        let mut requests = HashMap::new();
        let number = self.next + 1;
        for message in messages {
            let JsonRpcMessage::Request(request) = message else { continue };
            let token = request.request.get_meta().get_progress_token();
            if is_too_long(&request.id) || token.as_ref().is_some_and(|token| is_too_long(&token.0))
            {
                return Err(NotTaken::IdTooLong);
            }
            let used = self.requests.contains_key(&request.id);
            if used || requests.insert(request.id.clone(), token).is_some() {
                return Err(NotTaken::IdInUse(request.id.clone()));
            }
        }
        if requests.is_empty() {
            return Ok(None);
        }
        self.prune();
        let unread: usize = self.streams.values().map(|stream| stream.size()).sum();
        if self.requests.len() + requests.len() > MAX_PENDING || unread > MAX_UNREAD {
            return Err(NotTaken::TooMany);
        }
        self.next = number;
        for (id, token) in requests {
            self.requests.insert(id, Route { stream: number, given_up: false });
            self.tokens.extend(token.map(|token| (token, number)));
        }
        let stream = Arc::new(Stream::default());
        self.streams.insert(number, stream.clone());
        Ok(Some(Seat { number, reading: stream.read(0) }))
    }

    /// A request that was cancelled gets no answer. The stream it would have come on ends when no
    /// other is waited for there.
    fn give_up(&mut self, id: &RequestId) {
        let Some(route) = self.requests.get_mut(id) else { return };
        route.given_up = true;
        let number = route.stream;
        self.end_answered(number);
    }

    /// Ends a stream on which no answer is waited for any more.
    fn end_answered(&mut self, number: u64) {
        if self.requests.values().any(|route| route.stream == number && !route.given_up) {
            return;
        }
        self.tokens.retain(|_, other| *other != number);
        if let Some(stream) = self.streams.get(&number) {
            stream.end();
        }
        self.prune();
    }

    /// The stream of the request a message belongs to, if it says so.
    fn origin(&self, extensions: &Extensions) -> Option<Arc<Stream>> {
        let route = self.requests.get(&extensions.get::<OriginatingRequestId>()?.0)?;
        self.streams.get(&route.stream).cloned()
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
        let Some(route) = answered.and_then(|id| routes.requests.remove(&id)) else {
            routes.common().say(data, Kind::Notice);
            return Ok(());
        };
        if let Some(stream) = routes.streams.get(&route.stream) {
            stream.say(data, Kind::Answer(StatusCode::OK));
        }
        routes.end_answered(route.stream);
        Ok(())
    }
}

fn is_too_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > MAX_ID)
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

    /// Adds one. If others were added meanwhile, the limit holds all the same.
    pub fn insert(&self, session: Arc<Session>, limit: usize) {
        let principal = session.principal.clone();
        self.lock().insert(session.id.clone(), session);
        let own = |all: &HashMap<String, Arc<Session>>| {
            all.values().filter(|other| other.principal.name == principal.name).count()
        };
        while own(&self.lock()) > limit && self.make_room(&principal, limit) {}
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
        for session in all {
            session.prune();
            if session.idle() > limit {
                sessions.end(&session.id);
            }
        }
    }
}
