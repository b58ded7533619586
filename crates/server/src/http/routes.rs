//! Brings messages to a session's service loop, and what it says to where it belongs.
//!
//!     messages ─▶ inbox ─▶ service loop ─▶ say ─┬▶ stream of the request
//!                                               └▶ common stream

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

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

use super::stream::{Kind, Reading, Stream};
use crate::memory::{Account, Forgotten, Held, Kept, Taken};
use crate::message::Message;

/// How many messages may wait for a session's service loop: as many as it may be asked, and what is said
/// besides.
const INBOX: usize = 2 * MAX_PENDING;

/// How long a service loop that has nothing to do waits for something before it goes.
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
pub const COMMON: u64 = 0;

/// What a session's service loop is connected to.
pub struct Line {
    router: Arc<Router>,
    /// Whether the loop was told that there is nothing to do.
    over: bool,
}

/// Why a session does not take a message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouterError {
    #[error("the request {0} has no answer yet")]
    IdInUse(RequestId),
    #[error("an id is too long")]
    IdTooLong,
    #[error("too much waits for the session or its client")]
    Busy,
    #[error("the session has ended")]
    Ended,
}

/// A place to read a stream of a session from.
pub struct Seat {
    pub number: u64,
    pub reading: Reading,
}

/// Brings what the service loop says to where it belongs.
pub struct Router {
    account: Arc<Account>,
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

/// What a service loop does next.
enum Next {
    Take(Box<Message>),
    /// Until something arrives, or the last request was answered.
    Wait,
    /// Nothing is under way.
    WaitAMoment,
    Go,
}

/// A request without an answer.
struct Route {
    stream: u64,
    /// It was cancelled, so no answer comes.
    given_up: bool,
    /// What it takes.
    taken: Option<Taken>,
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

    /// What to do next. The service loop can go when it has waited with nothing to do.
    fn next(&mut self, waited: bool) -> Next {
        if let Some(message) = self.inbox.pop_front() {
            return Next::Take(Box::new(message));
        }
        if self.lasting || self.is_working() {
            return Next::Wait;
        }
        if !waited {
            return Next::WaitAMoment;
        }
        self.awake = false;
        // The next loop does not know of them.
        self.requests.clear();
        self.tokens.clear();
        Next::Go
    }

    /// A stream for the answers to requests; none if nothing is asked.
    fn open(
        &mut self,
        messages: &mut [Message],
        take: impl Fn() -> Taken,
    ) -> Result<Option<Seat>, RouterError> {
        let mut requests = HashMap::new();
        let number = self.next + 1;
        for message in messages.iter() {
            let JsonRpcMessage::Request(request) = message else { continue };
            let token = request.request.get_meta().get_progress_token();
            if is_too_long(&request.id) || token.as_ref().is_some_and(|token| is_too_long(&token.0))
            {
                return Err(RouterError::IdTooLong);
            }
            let used = self.requests.contains_key(&request.id);
            if used || requests.insert(request.id.clone(), token).is_some() {
                return Err(RouterError::IdInUse(request.id.clone()));
            }
        }
        if requests.is_empty() {
            return Ok(None);
        }
        self.prune();
        let unread: usize = self.streams.values().map(|stream| stream.size()).sum();
        if self.requests.len() + requests.len() > MAX_PENDING || unread > MAX_UNREAD {
            return Err(RouterError::Busy);
        }
        self.next = number;
        for message in messages {
            let JsonRpcMessage::Request(request) = message else { continue };
            let taken = take();
            request.request.extensions_mut().insert(taken.clone());
            let route = Route { stream: number, given_up: false, taken: Some(taken) };
            self.requests.insert(request.id.clone(), route);
        }
        self.tokens.extend(requests.into_values().flatten().map(|token| (token, number)));
        let stream = Arc::new(Stream::default());
        self.streams.insert(number, stream.clone());
        Ok(Some(Seat { number, reading: stream.read(0) }))
    }

    /// A request that was cancelled gets no answer. The stream it would have come on ends when no
    /// other is waited for there.
    fn give_up(&mut self, id: &RequestId) {
        let Some(route) = self.requests.get_mut(id) else { return };
        (route.given_up, route.taken) = (true, None);
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
    pub fn new(account: Arc<Account>) -> Arc<Self> {
        let (version, routes, arrived) = (OnceLock::new(), Mutex::default(), Notify::new());
        Arc::new(Self { account, version, routes, arrived })
    }

    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that was agreed on.
    pub fn version(&self) -> Option<&ProtocolVersion> {
        self.version.get()
    }

    /// What the client said of itself, with what was agreed on.
    pub fn client(&self) -> Option<InitializeRequestParams> {
        let version = self.version.get()?.clone();
        let mut client = self.lock().client.clone()?;
        client.protocol_version = version;
        Some(client)
    }

    /// Takes messages in, all or none, and returns where their answers can be read.
    pub fn put(
        &self,
        mut messages: Vec<Message>,
        held: Option<Held>,
    ) -> Result<Option<Seat>, RouterError> {
        // Before taking the lock: making room may lock other routers, or this one.
        let asks = messages.iter().any(|message| matches!(message, JsonRpcMessage::Request(_)));
        if asks && !self.account.takes_more() {
            return Err(RouterError::Busy);
        }
        let mut routes = self.lock();
        if routes.inbox.len() + messages.len() > INBOX {
            return Err(RouterError::Busy);
        }
        let held = held.map(Arc::new);
        let take = || Taken::new(self.account.clone(), held.clone());
        let seat = routes.open(&mut messages, take)?;
        messages.iter().for_each(|message| routes.note(message));
        routes.inbox.extend(messages);
        Ok(seat)
    }

    /// Tells the service loop that there is something to do; if there is none, a line for a new one.
    pub fn wake(self: &Arc<Self>) -> Option<Line> {
        let awake = std::mem::replace(&mut self.lock().awake, true);
        if awake {
            self.arrived.notify_one();
            return None;
        }
        Some(Line { router: self.clone(), over: false })
    }

    pub fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        self.lock().streams.get(&number).cloned()
    }

    pub fn read(&self, number: u64, after: u64) -> Option<Seat> {
        Some(Seat { number, reading: self.stream(number)?.read(after) })
    }

    pub fn common(&self) -> Seat {
        Seat { number: COMMON, reading: self.lock().common().read_on() }
    }

    pub fn forget(&self, number: u64) {
        self.lock().streams.remove(&number);
    }

    /// Has all requests of a stream cancelled.
    pub fn cancel(&self, number: u64) {
        let mut routes = self.lock();
        let of_stream = routes.requests.iter().filter(|(_, route)| route.stream == number);
        let requests: Vec<_> = of_stream.map(|(id, _)| id.clone()).collect();
        for id in requests {
            routes.give_up(&id);
            let params = CancelledNotificationParam::new(Some(id), Some("nobody reads".into()));
            let cancelled = CancelledNotification::new(params);
            routes.inbox.push_back(JsonRpcMessage::notification(cancelled.into()));
        }
    }

    /// Lets go of streams nobody needs.
    pub fn prune(&self) {
        self.lock().prune();
    }

    /// Whether something is asked for, or read.
    pub fn is_busy(&self) -> bool {
        self.lock().is_busy()
    }

    pub fn end_streams(&self) {
        self.lock().streams.values().for_each(|stream| stream.end());
    }

    /// Registers an ended stream to be dropped when memory is short and nobody reads it.
    fn resumable(self: &Arc<Self>, number: u64) -> Kept {
        let router = Arc::downgrade(self);
        self.account.keep(Box::new(move || {
            let Some(router) = router.upgrade() else { return Forgotten::Before };
            let mut routes = router.lock();
            let forgotten = match routes.streams.get(&number) {
                None => return Forgotten::Before,
                Some(stream) if stream.is_attached() || !stream.is_ended() => {
                    return Forgotten::NotYet;
                }
                Some(_) => routes.streams.remove(&number),
            };
            drop((routes, forgotten));
            Forgotten::Now
        }))
    }

    fn say(self: &Arc<Self>, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let data = serde_json::to_vec(message)?;
        // Before taking the lock: making room may lock other routers, or this one.
        let data = match message {
            JsonRpcMessage::Notification(_) => match self.account.try_outgoing(data) {
                Some(data) => data,
                None => return Ok(()),
            },
            _ => self.account.outgoing(data),
        };
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
        route.taken.iter().for_each(Taken::answered);
        if let Some(stream) = routes.streams.get(&route.stream) {
            stream.say(data, Kind::Answer(StatusCode::OK));
            stream.keep(self.resumable(route.stream));
        }
        routes.end_answered(route.stream);
        if !routes.is_working() {
            // Nothing else tells the service loop that it can go.
            self.arrived.notify_one();
        }
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
            let arrived = self.router.arrived.notified();
            match next {
                Next::Take(message) => return Some(*message),
                Next::Wait => {
                    arrived.await;
                    waited = false;
                }
                Next::WaitAMoment => waited = timeout(AWAKE, arrived).await.is_err(),
                Next::Go => {
                    self.over = true;
                    return None;
                }
            }
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
