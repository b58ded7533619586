//! The state of a session: messages for its service loop, requests without an answer, and streams.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use rmcp::model::{
    ClientNotification, ClientRequest, Extensions, GetExtensions, GetMeta, InitializeRequestParams,
    JsonRpcMessage, ProgressToken, RequestId, ServerNotification,
};
use rmcp::service::OriginatingRequestId;

use super::super::event_stream::EventStream;
use super::{COMMON, OpenStream, RouterError};
use crate::memory::RequestMemory;
use crate::message::Message;

/// The most requests of a session without an answer.
pub const MAX_PENDING: usize = 1024;

/// The longest request id and the longest progress token: both are kept.
const MAX_ID: usize = 1024;

/// How many bytes may wait to be read before a session refuses more requests.
const MAX_UNREAD: usize = 8 << 20;

/// The most streams that have ended and can be read again.
const MAX_ENDED: usize = 16;

/// The most bytes those may have.
const MAX_ENDED_SIZE: usize = 4 << 20;

#[derive(Default)]
pub struct Routes {
    pub inbox: VecDeque<Message>,
    /// Whether there is a service loop.
    pub awake: bool,
    /// What the client said of itself.
    pub client: Option<InitializeRequestParams>,
    /// Whether the session needs a service loop for as long as it lives.
    pub lasting: bool,
    next: u64,
    pub streams: BTreeMap<u64, Arc<EventStream>>,
    /// Requests without an answer. The id of a cancelled one stays in use while the same service loop runs: the loop
    /// could mistake an old answer for a new one.
    pub requests: HashMap<RequestId, Route>,
    tokens: HashMap<ProgressToken, u64>,
}

/// A request without an answer.
pub struct Route {
    pub stream: u64,
    /// It was cancelled, so no answer follows.
    cancelled: bool,
    /// The memory it takes.
    pub memory: Option<RequestMemory>,
}

/// What a service loop does next.
pub enum Next {
    Take(Box<Message>),
    /// Until a message arrives, or the last request is answered.
    Wait,
    /// Nothing is under way: wait for a moment, then end.
    WaitAMoment,
    End,
}

impl Routes {
    pub fn common(&mut self) -> Arc<EventStream> {
        self.streams.entry(COMMON).or_default().clone()
    }

    /// Whether a request is waiting for its answer.
    pub fn is_working(&self) -> bool {
        self.requests.values().any(|route| !route.cancelled)
    }

    /// Whether a request is waiting for its answer, or a client is reading.
    pub fn is_busy(&self) -> bool {
        self.is_working() || self.streams.values().any(|stream| stream.is_attached())
    }

    /// Notes what a later service loop has to know, and which requests get no answer.
    pub fn note(&mut self, message: &Message) {
        let request = match message {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.cancel(id);
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

    /// What to do next. The service loop can end when it has `waited` for a moment with nothing to do.
    pub fn next(&mut self, waited: bool) -> Next {
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
        Next::End
    }

    /// Opens a stream for the answers to requests; nothing if there are no requests.
    pub fn open(
        &mut self,
        messages: &mut [Message],
        request_memory: impl Fn() -> RequestMemory,
    ) -> Result<Option<OpenStream>, RouterError> {
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
            let memory = request_memory();
            request.request.extensions_mut().insert(memory.clone());
            let route = Route { stream: number, cancelled: false, memory: Some(memory) };
            self.requests.insert(request.id.clone(), route);
        }
        self.tokens.extend(requests.into_values().flatten().map(|token| (token, number)));
        let stream = Arc::new(EventStream::default());
        self.streams.insert(number, stream.clone());
        Ok(Some(OpenStream { number, reader: stream.read(0) }))
    }

    /// A cancelled request gets no answer. Its stream ends when no other request waits on it.
    pub fn cancel(&mut self, id: &RequestId) {
        let Some(route) = self.requests.get_mut(id) else { return };
        (route.cancelled, route.memory) = (true, None);
        let number = route.stream;
        self.end_answered(number);
    }

    /// Ends a stream on which no request waits for its answer any more.
    pub fn end_answered(&mut self, number: u64) {
        if self.requests.values().any(|route| route.stream == number && !route.cancelled) {
            return;
        }
        self.tokens.retain(|_, other| *other != number);
        if let Some(stream) = self.streams.get(&number) {
            stream.end();
        }
        self.prune();
    }

    /// The stream of the request a message belongs to, if it says so.
    pub fn origin(&self, extensions: &Extensions) -> Option<Arc<EventStream>> {
        let route = self.requests.get(&extensions.get::<OriginatingRequestId>()?.0)?;
        self.streams.get(&route.stream).cloned()
    }

    pub fn stream_of(&mut self, notification: &ServerNotification) -> Arc<EventStream> {
        let of_request = match notification {
            ServerNotification::ProgressNotification(progress) => {
                let number = self.tokens.get(&progress.params.progress_token);
                number.and_then(|number| self.streams.get(number).cloned())
            }
            other => self.origin(other.extensions()),
        };
        of_request.unwrap_or_else(|| self.common())
    }

    /// Drops streams that have ended, the oldest first, while there are too many.
    pub fn prune(&mut self) {
        let ended = |stream: &Arc<EventStream>| stream.is_ended() && !stream.is_attached();
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

fn is_too_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > MAX_ID)
}
