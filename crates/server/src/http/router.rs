//! Passes messages to a session's service loop, and what the loop sends to the stream it belongs to.
//!
//!     messages ─▶ inbox ─▶ service loop ─▶ send ─┬▶ stream of the request
//!                                                └▶ common stream

mod routes;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use http::StatusCode;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, GetExtensions, InitializeRequestParams,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::event_stream::{EventReader, EventStream, Kind};
use crate::memory::{Evictable, Eviction, MemoryAccount, RequestMemory, Reservation};
use crate::message::Message;
use routes::{MAX_PENDING, Next, Routes};

/// How many messages may wait for the service loop: every request it may be asked, and as many notifications.
const INBOX: usize = 2 * MAX_PENDING;

/// How long a service loop with nothing to do waits before it ends.
const AWAKE: Duration = Duration::from_millis(20);

/// The number of the stream for messages that belong to no request.
pub const COMMON: u64 = 0;

/// Why a session does not take a message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouterError {
    #[error("the request {0} has no answer yet")]
    IdInUse(RequestId),
    #[error("a request id is too long")]
    IdTooLong,
    #[error("too many messages are waiting for the session or its client")]
    Busy,
    #[error("the session has ended")]
    Ended,
}

/// A stream of a session, and a reader of it.
pub struct OpenStream {
    pub number: u64,
    pub reader: EventReader,
}

pub struct Router {
    account: Arc<MemoryAccount>,
    version: OnceLock<ProtocolVersion>,
    routes: Mutex<Routes>,
    arrived: Notify,
}

impl Router {
    pub fn new(account: Arc<MemoryAccount>) -> Arc<Self> {
        let (version, routes, arrived) = (OnceLock::new(), Mutex::default(), Notify::new());
        Arc::new(Self { account, version, routes, arrived })
    }

    fn lock(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision of the protocol that client and server agreed on.
    pub fn version(&self) -> Option<&ProtocolVersion> {
        self.version.get()
    }

    /// What the client said of itself, with the revision that was agreed on.
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
        reservation: Option<Reservation>,
    ) -> Result<Option<OpenStream>, RouterError> {
        // Before taking the lock: making room may lock other routers, or this one.
        let asks = messages.iter().any(|message| matches!(message, JsonRpcMessage::Request(_)));
        if asks && !self.account.has_room_for_answer() {
            return Err(RouterError::Busy);
        }
        let mut routes = self.lock();
        if routes.inbox.len() + messages.len() > INBOX {
            return Err(RouterError::Busy);
        }
        let reservation = reservation.map(Arc::new);
        let request_memory = || RequestMemory::new(self.account.clone(), reservation.clone());
        let stream = routes.open(&mut messages, request_memory)?;
        messages.iter().for_each(|message| routes.note(message));
        routes.inbox.extend(messages);
        Ok(stream)
    }

    /// Wakes the service loop. If there is none, returns the transport for a new one.
    pub fn wake(self: &Arc<Self>) -> Option<SessionTransport> {
        let awake = std::mem::replace(&mut self.lock().awake, true);
        if awake {
            self.arrived.notify_one();
            return None;
        }
        Some(SessionTransport { router: self.clone(), ended: false })
    }

    pub fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        self.lock().streams.get(&number).cloned()
    }

    pub fn read(&self, number: u64, after: u64) -> Option<OpenStream> {
        Some(OpenStream { number, reader: self.stream(number)?.read(after) })
    }

    pub fn common(&self) -> OpenStream {
        OpenStream { number: COMMON, reader: self.lock().common().read_on() }
    }

    pub fn forget(&self, number: u64) {
        self.lock().streams.remove(&number);
    }

    /// Cancels every request of a stream.
    pub fn cancel(&self, number: u64) {
        let mut routes = self.lock();
        let of_stream = routes.requests.iter().filter(|(_, route)| route.stream == number);
        let requests: Vec<_> = of_stream.map(|(id, _)| id.clone()).collect();
        for id in requests {
            routes.cancel(&id);
            let params = CancelledNotificationParam::new(
                Some(id),
                Some("the client stopped reading".into()),
            );
            let cancelled = CancelledNotification::new(params);
            routes.inbox.push_back(JsonRpcMessage::notification(cancelled.into()));
        }
    }

    /// Drops streams nobody needs.
    pub fn prune(&self) {
        self.lock().prune();
    }

    /// Whether a request is waiting for its answer, or a client is reading.
    pub fn is_busy(&self) -> bool {
        self.lock().is_busy()
    }

    pub fn end_streams(&self) {
        self.lock().streams.values().for_each(|stream| stream.end());
    }

    /// Registers an ended stream to be dropped when memory is short and nobody reads it.
    fn resumable(self: &Arc<Self>, number: u64) -> Evictable {
        let router = Arc::downgrade(self);
        self.account.register(Box::new(move || {
            let Some(router) = router.upgrade() else { return Eviction::AlreadyGone };
            let mut routes = router.lock();
            let forgotten = match routes.streams.get(&number) {
                None => return Eviction::AlreadyGone,
                Some(stream) if stream.is_attached() || !stream.is_ended() => {
                    return Eviction::InUse;
                }
                Some(_) => routes.streams.remove(&number),
            };
            drop((routes, forgotten));
            Eviction::Done
        }))
    }

    fn send(self: &Arc<Self>, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
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
                routes.stream_of(&notification.notification).push(data, Kind::Notification);
                return Ok(());
            }
            JsonRpcMessage::Request(request) => {
                // Only the loop that counts the ids of its requests knows which are used.
                routes.lasting = true;
                let stream = routes.origin(request.request.extensions());
                stream.unwrap_or_else(|| routes.common()).push(data, Kind::Request);
                return Ok(());
            }
        };
        let Some(route) = answered.and_then(|id| routes.requests.remove(&id)) else {
            routes.common().push(data, Kind::Notification);
            return Ok(());
        };
        route.memory.iter().for_each(RequestMemory::release_answer);
        if let Some(stream) = routes.streams.get(&route.stream) {
            stream.push(data, Kind::Answer(StatusCode::OK));
            stream.keep(self.resumable(route.stream));
        }
        routes.end_answered(route.stream);
        if !routes.is_working() {
            // Nothing else tells the service loop that it can end.
            self.arrived.notify_one();
        }
        Ok(())
    }
}

/// The transport of a session's service loop.
pub struct SessionTransport {
    router: Arc<Router>,
    /// Whether the loop was told that there is nothing to do.
    ended: bool,
}

impl Transport<RoleServer> for SessionTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        std::future::ready(self.router.send(&message))
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
                Next::End => {
                    self.ended = true;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SessionTransport {
    fn drop(&mut self) {
        // A loop that failed makes room for another.
        if !self.ended {
            self.router.lock().awake = false;
        }
    }
}
