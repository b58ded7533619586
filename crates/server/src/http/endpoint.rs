//! Answers HTTP requests: finds out who asks, reads the message and passes it on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::HeaderValue;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use mcpz_runtime::{random_name, spawn_blocking};
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, ProtocolVersion,
};
use rmcp::service::serve_directly;
use rmcp::{ServerHandler, serve_server};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::auth::{Principal, Principals};
use super::body::{EventBody, ResponseBody};
use super::connections::InFlight;
use super::event_stream::EventReader;
use super::headers::{self, Era, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use super::metrics::Metrics;
use super::oauth::OAuth;
use super::refusal::Refusal;
use super::response::{accepted, document, events, json, last};
use super::router::OpenStream;
use super::session::{HttpSession, HttpSessions};
use super::{Backend, HttpSettings, stateless};
use crate::lines::Line;
use crate::memory::{Direction, Memory, MemoryAccount, RequestMemory, Reservation};
use crate::message::{self, Fault, Message};
use crate::trace::HttpOrigin;

/// An answer that takes longer, or has notifications before it, is sent as events: these can be resumed, and keep the
/// connection alive.
const AT_ONCE: Duration = Duration::from_millis(100);

/// How long a client that lost its stream should wait before it resumes.
const RETRY: Duration = Duration::from_secs(1);

pub struct Endpoint<R: Backend> {
    backend: R,
    settings: HttpSettings,
    principals: Principals,
    sessions: Arc<HttpSessions>,
    metrics: Metrics,
}

type Answered = Result<Response<ResponseBody>, Refusal>;

impl<R: Backend> Endpoint<R> {
    pub fn new(backend: R, settings: HttpSettings) -> Self {
        let (sessions, metrics) = (Arc::default(), Metrics::default());
        let principals = Principals::new(Memory::new(settings.limits.memory));
        Self { backend, settings, principals, sessions, metrics }
    }

    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    pub fn backend(&self) -> &R {
        &self.backend
    }

    pub fn sessions(&self) -> &Arc<HttpSessions> {
        &self.sessions
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Answers one request.
    pub async fn answer<B>(
        &self,
        request: Request<B>,
        local: SocketAddr,
        in_flight: &InFlight,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let answered = self.route(&head, body, local, in_flight).await;
        let response = answered.unwrap_or_else(Refusal::into_response);
        self.metrics.note_response(response.status());
        response
    }

    /// Checks everything the head tells before the body is read.
    async fn route<B>(
        &self,
        head: &Parts,
        body: B,
        local: SocketAddr,
        in_flight: &InFlight,
    ) -> Answered
    where
        B: Body<Data = Bytes> + Unpin,
    {
        self.settings.allowed.check(head, local)?;
        let path = head.uri.path();
        if path == "/healthz" {
            return match head.method {
                Method::GET | Method::HEAD => Ok(last(document("text/plain", "ok\n"))),
                _ => Err(Refusal::NotAllowed { allow: "GET" }),
            };
        }
        let metadata = path.strip_prefix(OAuth::METADATA);
        if let (Some(rest), Some(oauth)) = (metadata, self.settings.auth.oauth())
            && (rest.is_empty() || rest == self.settings.path)
        {
            return Ok(document("application/json", oauth.metadata().to_string()));
        }
        let name = self.settings.auth.identify(&head.headers).await?;
        let has_room = in_flight.admit(self.settings.auth.tells_apart().then(|| name.clone()));
        let principal = self.principals.get(name);
        if path == "/metrics" {
            let mut text = self.backend.metrics();
            self.metrics.write(&mut text, self.sessions.count());
            return Ok(document("text/plain; version=0.0.4", text));
        }
        if path != self.settings.path {
            return Err(Refusal::Elsewhere { path: self.settings.path.clone() });
        }
        if !has_room {
            return Err(Refusal::NoShare);
        }
        match (&head.method, Era::of_head(&head.headers)) {
            (&Method::POST, _) => self.post(head, body, &principal).await,
            (&Method::GET, Era::Sessions) => self.get(&head.headers, &principal),
            (&Method::DELETE, Era::Sessions) => self.delete(&head.headers, &principal),
            (_, Era::Sessions) => Err(Refusal::NotAllowed { allow: "GET, POST, DELETE" }),
            (_, Era::Stateless) => Err(Refusal::NotAllowed { allow: "POST" }),
        }
    }

    async fn post<B>(&self, head: &Parts, body: B, principal: &Arc<Principal>) -> Answered
    where
        B: Body<Data = Bytes> + Unpin,
    {
        headers::check_media_types(&head.headers)?;
        let (bytes, reservation) = self.read(body, &principal.account).await?;
        let read = move |bytes| message::read(Line::Whole(bytes));
        let messages = match bytes.len() > message::LARGE {
            true => spawn_blocking(move || read(bytes)).await.map_err(|_| Refusal::Busy)?,
            false => read(bytes),
        };
        let mut messages = messages.into_iter().collect::<Result<Vec<_>, Fault>>()?;
        let Some(first) = messages.first() else {
            return Err(Refusal::NoMessage);
        };
        let era = Era::of(&head.headers, first);
        if self.backend.is_traced() {
            let session = headers::text(&head.headers, &SESSION_ID);
            let origin = HttpOrigin::read(&head.headers, session.filter(|_| era == Era::Sessions));
            for message in &mut messages {
                if let JsonRpcMessage::Request(request) = message {
                    request.request.extensions_mut().insert(origin.clone());
                }
            }
        }
        match era {
            Era::Stateless => match <[_; 1]>::try_from(messages) {
                Ok([message]) => {
                    self.stateless(&head.headers, (message, reservation), principal).await
                }
                Err(_) => Err(no_batches()),
            },
            Era::Sessions => {
                self.in_session(&head.headers, (messages, reservation), principal).await
            }
        }
    }

    /// Reads a body within the limits of size and time, and counts the memory it takes.
    async fn read<B: Body<Data = Bytes> + Unpin>(
        &self,
        mut body: B,
        account: &Arc<MemoryAccount>,
    ) -> Result<(Vec<u8>, Reservation), Refusal> {
        let limits = &self.settings.limits;
        if body.size_hint().lower() > limits.body as u64 {
            return Err(Refusal::TooLarge);
        }
        let all = async {
            let expected = body.size_hint().exact().map_or(limits.body, |length| length as usize);
            let reservation = account.wait_to_reserve(Direction::Incoming, expected).await;
            let mut bytes = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.map_err(|_| Refusal::BrokenBody)?.into_data() else {
                    continue;
                };
                if bytes.len() + data.len() > limits.body {
                    return Err(Refusal::TooLarge);
                }
                bytes.extend_from_slice(&data);
            }
            // A body without a length has reserved the most it may have; only what came counts.
            drop(reservation);
            let reservation = account.reserve(Direction::Incoming, bytes.len());
            Ok((bytes.into(), reservation))
        };
        timeout(limits.body_time, all).await.map_err(|_| Refusal::LateBody)?
    }

    async fn stateless(
        &self,
        headers: &HeaderMap,
        (message, reservation): (Message, Reservation),
        principal: &Arc<Principal>,
    ) -> Answered {
        let handler = self.backend.handler(principal);
        headers::check_stateless(headers, &message, |name| {
            handler.get_tool(name).map(|tool| tool.input_schema)
        })?;
        let JsonRpcMessage::Request(request) = &message else { return Ok(accepted()) };
        let method = request.request.method();
        if ONLY_IN_SESSIONS.contains(&method) {
            let text = format!("Method not found: {method}");
            let (code, id) = (ErrorCode::METHOD_NOT_FOUND, Some(request.id.clone()));
            return Err(Refusal::protocol(StatusCode::NOT_FOUND, code, text, id));
        }
        let version = request.request.get_meta().protocol_version();
        let version = version.unwrap_or(ProtocolVersion::V_2026_07_28);
        if !principal.account.has_room_for_answer() {
            return Err(Refusal::Busy);
        }
        let account = principal.account.clone();
        let memory = RequestMemory::new(account.clone(), Some(Arc::new(reservation)));
        let (reader, guard) = stateless::serve(handler, message, version, (account, memory));
        let _ = timeout(AT_ONCE, reader.ready()).await;
        if let Some((answer, status)) = reader.only_answer() {
            guard.disarm();
            return Ok(json(status, answer));
        }
        Ok(events(EventBody::new(reader, None, None, Box::new(guard))))
    }

    async fn in_session(
        &self,
        headers: &HeaderMap,
        (messages, reservation): (Vec<Message>, Reservation),
        principal: &Arc<Principal>,
    ) -> Answered {
        if let [JsonRpcMessage::Request(request)] = messages.as_slice()
            && let ClientRequest::InitializeRequest(initialize) = &request.request
        {
            let said = initialize.params.protocol_version.as_str();
            let header = headers::text(headers, &PROTOCOL_VERSION);
            if header.is_some_and(|header| header != said) {
                let text =
                    "Invalid Request: the MCP-Protocol-Version header and the message differ";
                let (code, id) = (ErrorCode::INVALID_REQUEST, Some(request.id.clone()));
                return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, id));
            }
            return self.initialize(messages, principal).await;
        }
        let session = self.session(headers, principal)?;
        headers::check_session_version(headers)?;
        let batched = messages.len() > 1;
        let stream = session.take(messages, Some(reservation))?;
        let Some(OpenStream { number, reader }) = stream else { return Ok(accepted()) };
        let guard = self.guard(&session, number, &reader);
        let _ = timeout(AT_ONCE, reader.ready()).await;
        if let Some((answer, status)) = reader.only_answer()
            && !batched
        {
            session.forget(number);
            return Ok(json(status, answer));
        }
        Ok(session_events(&session, number, reader, guard))
    }

    /// Begins a session and answers with its id.
    async fn initialize(&self, messages: Vec<Message>, principal: &Arc<Principal>) -> Answered {
        if !self.sessions.make_room(principal, self.settings.limits.sessions) {
            return Err(Refusal::Busy);
        }
        let id = random_name().map_err(|_| Refusal::Busy)?;
        let handler = self.backend.handler(principal);
        let starter = move |transport, client, ended: CancellationToken| {
            let handler = handler.clone();
            tokio::spawn(ended.run_until_cancelled_owned(async move {
                let running = match client {
                    None => serve_server(handler, transport).await.ok(),
                    client => Some(serve_directly(handler, transport, client)),
                };
                if let Some(running) = running {
                    let _ = running.waiting().await;
                }
            }));
        };
        let session = HttpSession::new(id.clone(), principal.clone(), Box::new(starter));
        let stream = session.take(messages, None)?;
        let Some(OpenStream { reader, number }) = stream else { return Err(Refusal::Busy) };
        let _ = timeout(self.settings.limits.body_time, reader.ready()).await;
        let Some((answer, status)) = reader.only_answer() else { return Err(Refusal::Busy) };
        session.forget(number);
        let mut response = json(status, answer);
        if session.version().is_some()
            && let Ok(value) = HeaderValue::from_str(&id)
        {
            response.headers_mut().insert(SESSION_ID, value);
            self.sessions.insert(session, self.settings.limits.sessions);
        } else {
            session.end();
        }
        Ok(response)
    }

    fn get(&self, headers: &HeaderMap, principal: &Arc<Principal>) -> Answered {
        if !headers::accepts(headers, "text/event-stream") {
            return Err(Refusal::NotAcceptable("text/event-stream"));
        }
        let session = self.session(headers, principal)?;
        headers::check_session_version(headers)?;
        let Some(event) = headers.get(LAST_EVENT_ID) else {
            let OpenStream { number, reader } = session.common();
            let guard = self.guard(&session, number, &reader);
            return Ok(session_events(&session, number, reader, guard));
        };
        let stream = event.to_str().ok().and_then(|event| session.resume(event));
        let Some(OpenStream { number, reader }) = stream else {
            let text = "Bad Request: there is nothing to resume after this event: it was never sent, \
                        was read to its end, or was dropped to make room for newer answers";
            let code = ErrorCode::INVALID_REQUEST;
            return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, None));
        };
        let guard = self.guard(&session, number, &reader);
        Ok(session_events(&session, number, reader, guard))
    }

    fn delete(&self, headers: &HeaderMap, principal: &Arc<Principal>) -> Answered {
        let session = self.session(headers, principal)?;
        self.sessions.end(&session.id);
        Ok(document("text/plain", ""))
    }

    fn session(
        &self,
        headers: &HeaderMap,
        principal: &Arc<Principal>,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let Some(id) = headers.get(SESSION_ID) else {
            let text = "Bad Request: the Mcp-Session-Id header is missing";
            let code = ErrorCode::INVALID_REQUEST;
            return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, None));
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id, principal));
        found.ok_or_else(Refusal::no_session)
    }

    /// Tells the session when a response on a stream is dropped.
    fn guard(&self, session: &Arc<HttpSession>, number: u64, reader: &EventReader) -> StreamGuard {
        let grace = self.settings.limits.grace;
        StreamGuard { session: session.clone(), number, turn: reader.turn(), grace }
    }
}

struct StreamGuard {
    session: Arc<HttpSession>,
    number: u64,
    turn: u64,
    grace: Duration,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.session.detach(self.number, self.turn, self.grace);
    }
}

/// Methods that exist only in sessions.
const ONLY_IN_SESSIONS: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

fn no_batches() -> Refusal {
    let text = "Invalid Request: this protocol version does not support batches";
    Fault::new(ErrorData::invalid_request(text, None), None).into()
}

/// Events that can be resumed. From revision 2025-11-25 on, the first event only says where the stream begins, so
/// that a client can resume it before any message came.
fn session_events(
    session: &HttpSession,
    number: u64,
    reader: EventReader,
    guard: StreamGuard,
) -> Response<ResponseBody> {
    let primed = session.version().is_some_and(|v| *v >= ProtocolVersion::V_2025_11_25);
    let opening = primed
        .then(|| format!("id: {number}-{}\nretry: {}\ndata: \n\n", reader.at(), RETRY.as_millis()));
    events(EventBody::new(reader, Some(number.to_string()), opening, Box::new(guard)))
}
