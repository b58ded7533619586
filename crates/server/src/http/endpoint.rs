//! What is answered to each request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use mcpz_runtime::aside;
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, ProtocolVersion,
};
use rmcp::service::serve_directly;
use rmcp::{ServerHandler, serve_server};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::auth::{Principal, Principals};
use super::body::{Events, Reply};
use super::crowd::Busy;
use super::metrics::Metrics;
use super::oauth::OAuth;
use super::refusal::Refusal;
use super::routes::Seat;
use super::rules::{self, Era, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use super::session::{Session, Sessions};
use super::stream::Reading;
use super::{HttpSettings, Reception, alone};
use crate::lines::Line;
use crate::memory::{Account, Held, Memory, Taken, Way};
use crate::message::{self, Fault, Message};
use crate::trace::Carried;

/// How long an answer may take to be sent as a document. Later, or with something to say before,
/// it comes as events, which can be resumed and keep the connection alive.
const AT_ONCE: Duration = Duration::from_millis(100);

/// When a client that lost its stream should come back.
const RETRY: Duration = Duration::from_secs(1);

pub struct Endpoint<R: Reception> {
    reception: R,
    settings: HttpSettings,
    principals: Principals,
    sessions: Arc<Sessions>,
    metrics: Metrics,
}

type Answered = Result<Response<Reply>, Refusal>;

impl<R: Reception> Endpoint<R> {
    pub fn new(reception: R, settings: HttpSettings) -> Self {
        let (sessions, metrics) = (Arc::default(), Metrics::default());
        let principals = Principals::new(Memory::new(settings.limits.memory));
        Self { reception, settings, principals, sessions, metrics }
    }

    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    pub fn reception(&self) -> &R {
        &self.reception
    }

    pub fn sessions(&self) -> &Arc<Sessions> {
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
        busy: &Busy,
    ) -> Response<Reply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let answered = self.route(&head, body, local, busy).await;
        let response = answered.unwrap_or_else(Refusal::into_response);
        self.metrics.note_response(response.status());
        response
    }

    /// Everything that can be told from the head is told before the body is read.
    async fn route<B>(&self, head: &Parts, body: B, local: SocketAddr, busy: &Busy) -> Answered
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
        let about_us = path.strip_prefix(OAuth::METADATA);
        if let (Some(rest), Some(oauth)) = (about_us, self.settings.auth.oauth())
            && (rest.is_empty() || rest == self.settings.path)
        {
            return Ok(document("application/json", oauth.metadata().to_string()));
        }
        let name = self.settings.auth.identify(&head.headers).await?;
        busy.note_known();
        let principal = self.principals.get(name);
        if path == "/metrics" {
            let mut text = self.reception.metrics();
            self.metrics.write(&mut text, self.sessions.count());
            return Ok(document("text/plain; version=0.0.4", text));
        }
        if path != self.settings.path {
            return Err(Refusal::Elsewhere { path: self.settings.path.clone() });
        }
        match (&head.method, Era::of_head(&head.headers)) {
            (&Method::POST, _) => self.post(head, body, &principal).await,
            (&Method::GET, Era::Sessions) => self.get(&head.headers, &principal),
            (&Method::DELETE, Era::Sessions) => self.delete(&head.headers, &principal),
            (_, Era::Sessions) => Err(Refusal::NotAllowed { allow: "GET, POST, DELETE" }),
            (_, Era::Alone) => Err(Refusal::NotAllowed { allow: "POST" }),
        }
    }

    async fn post<B>(&self, head: &Parts, body: B, principal: &Arc<Principal>) -> Answered
    where
        B: Body<Data = Bytes> + Unpin,
    {
        check_kinds(&head.headers)?;
        let (bytes, held) = self.read(body, &principal.account).await?;
        let read = move |bytes| message::read(Line::Whole(bytes));
        let messages = match bytes.len() > message::LARGE {
            true => aside(move || read(bytes)).await.map_err(|_| Refusal::Busy)?,
            false => read(bytes),
        };
        let mut messages = messages.into_iter().collect::<Result<Vec<_>, Fault>>()?;
        let Some(first) = messages.first() else {
            return Err(Refusal::NoMessage);
        };
        let era = Era::of(&head.headers, first);
        if self.reception.is_traced() {
            let session = rules::text(&head.headers, &SESSION_ID);
            let carried = Carried::read(&head.headers, session.filter(|_| era == Era::Sessions));
            for message in &mut messages {
                if let JsonRpcMessage::Request(request) = message {
                    request.request.extensions_mut().insert(carried.clone());
                }
            }
        }
        match era {
            Era::Alone => match <[_; 1]>::try_from(messages) {
                Ok([message]) => self.alone(&head.headers, (message, held), principal).await,
                Err(_) => Err(no_batches()),
            },
            Era::Sessions => self.in_session(&head.headers, (messages, held), principal).await,
        }
    }

    /// The whole body, if it is not too long and does not take too long, and the room it takes.
    async fn read<B: Body<Data = Bytes> + Unpin>(
        &self,
        mut body: B,
        account: &Arc<Account>,
    ) -> Result<(Vec<u8>, Held), Refusal> {
        let limits = &self.settings.limits;
        if body.size_hint().lower() > limits.body as u64 {
            return Err(Refusal::TooLarge);
        }
        let all = async {
            let expected = body.size_hint().exact().map_or(limits.body, |length| length as usize);
            let held = account.wait_for(Way::Arriving, expected).await;
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
            // A body without a length has reserved the most there may be; what came is what counts.
            drop(held);
            let held = account.hold(Way::Arriving, bytes.len());
            Ok((bytes.into(), held))
        };
        timeout(limits.body_time, all).await.map_err(|_| Refusal::LateBody)?
    }

    async fn alone(
        &self,
        headers: &HeaderMap,
        (message, held): (Message, Held),
        principal: &Arc<Principal>,
    ) -> Answered {
        let handler = self.reception.handler(principal);
        rules::check_alone(headers, &message, |name| {
            handler.get_tool(name).map(|tool| tool.input_schema)
        })?;
        let JsonRpcMessage::Request(request) = &message else { return Ok(accepted()) };
        let method = request.request.method();
        if OF_SESSIONS.contains(&method) {
            let text = format!("Method not found: {method}");
            let (code, id) = (ErrorCode::METHOD_NOT_FOUND, Some(request.id.clone()));
            return Err(Refusal::protocol(StatusCode::NOT_FOUND, code, text, id));
        }
        let version = request.request.get_meta().protocol_version();
        let version = version.unwrap_or(ProtocolVersion::V_2026_07_28);
        if !principal.account.takes_more() {
            return Err(Refusal::Busy);
        }
        let account = principal.account.clone();
        let taken = Taken::new(account.clone(), Some(Arc::new(held)));
        let (reading, guard) = alone::serve(handler, message, version, (account, taken));
        let _ = timeout(AT_ONCE, reading.ready()).await;
        if let Some((answer, status)) = reading.only_answer() {
            guard.disarm();
            return Ok(json(status, answer));
        }
        Ok(events(Events::new(reading, None, None, Box::new(guard))))
    }

    async fn in_session(
        &self,
        headers: &HeaderMap,
        (messages, held): (Vec<Message>, Held),
        principal: &Arc<Principal>,
    ) -> Answered {
        if let [JsonRpcMessage::Request(request)] = messages.as_slice()
            && let ClientRequest::InitializeRequest(initialize) = &request.request
        {
            let said = initialize.params.protocol_version.as_str();
            let header = rules::text(headers, &PROTOCOL_VERSION);
            if header.is_some_and(|header| header != said) {
                let text =
                    "Invalid Request: the MCP-Protocol-Version header and the message differ";
                let (code, id) = (ErrorCode::INVALID_REQUEST, Some(request.id.clone()));
                return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, id));
            }
            return self.initialize(messages, principal).await;
        }
        let session = self.session(headers, principal)?;
        rules::check_session_version(headers)?;
        let batched = messages.len() > 1;
        let seat = session.take(messages, Some(held))?;
        let Some(Seat { number, reading }) = seat else { return Ok(accepted()) };
        let guard = self.left(&session, number, &reading);
        let _ = timeout(AT_ONCE, reading.ready()).await;
        if let Some((answer, status)) = reading.only_answer()
            && !batched
        {
            session.forget(number);
            return Ok(json(status, answer));
        }
        Ok(session_events(&session, number, reading, guard))
    }

    /// Begins a session and answers with its id.
    async fn initialize(&self, messages: Vec<Message>, principal: &Arc<Principal>) -> Answered {
        if !self.sessions.make_room(principal, self.settings.limits.sessions) {
            return Err(Refusal::Busy);
        }
        let id = crate::random_name().map_err(|_| Refusal::Busy)?;
        let handler = self.reception.handler(principal);
        let starter = move |line, client, ended: CancellationToken| {
            let handler = handler.clone();
            tokio::spawn(ended.run_until_cancelled_owned(async move {
                let running = match client {
                    None => serve_server(handler, line).await.ok(),
                    client => Some(serve_directly(handler, line, client)),
                };
                if let Some(running) = running {
                    let _ = running.waiting().await;
                }
            }));
        };
        let session = Session::new(id.clone(), principal.clone(), Box::new(starter));
        let seat = session.take(messages, None)?;
        let Some(Seat { reading, number }) = seat else { return Err(Refusal::Busy) };
        let _ = timeout(self.settings.limits.body_time, reading.ready()).await;
        let Some((answer, status)) = reading.only_answer() else { return Err(Refusal::Busy) };
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
        if !accepts(headers, "text/event-stream") {
            return Err(Refusal::NotAcceptable("text/event-stream"));
        }
        let session = self.session(headers, principal)?;
        rules::check_session_version(headers)?;
        let Some(event) = headers.get(LAST_EVENT_ID) else {
            let Seat { number, reading } = session.common();
            let guard = self.left(&session, number, &reading);
            return Ok(session_events(&session, number, reading, guard));
        };
        let seat = event.to_str().ok().and_then(|event| session.resume(event));
        let Some(Seat { number, reading }) = seat else {
            let text = "Bad Request: there is nothing to resume after this event: it was never sent, \
                        all of it was read, or it was let go of to make room for newer answers";
            let code = ErrorCode::INVALID_REQUEST;
            return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, None));
        };
        let guard = self.left(&session, number, &reading);
        Ok(session_events(&session, number, reading, guard))
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
    ) -> Result<Arc<Session>, Refusal> {
        let Some(id) = headers.get(SESSION_ID) else {
            let text = "Bad Request: the Mcp-Session-Id header is missing";
            let code = ErrorCode::INVALID_REQUEST;
            return Err(Refusal::protocol(StatusCode::BAD_REQUEST, code, text, None));
        };
        let found = id.to_str().ok().and_then(|id| self.sessions.find(id, principal));
        found.ok_or_else(Refusal::no_session)
    }

    /// Told when a response on a stream is dropped.
    fn left(&self, session: &Arc<Session>, number: u64, reading: &Reading) -> Left {
        let grace = self.settings.limits.grace;
        Left { session: session.clone(), number, turn: reading.turn(), grace }
    }
}

struct Left {
    session: Arc<Session>,
    number: u64,
    turn: u64,
    grace: Duration,
}

impl Drop for Left {
    fn drop(&mut self) {
        self.session.left(self.number, self.turn, self.grace);
    }
}

/// Methods that exist in sessions alone.
const OF_SESSIONS: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

fn no_batches() -> Refusal {
    let text = "Invalid Request: this revision of the protocol has no batches";
    Fault::new(ErrorData::invalid_request(text, None), None).into()
}

fn check_kinds(headers: &HeaderMap) -> Result<(), Refusal> {
    if !(accepts(headers, "application/json") && accepts(headers, "text/event-stream")) {
        return Err(Refusal::NotAcceptable("application/json and text/event-stream"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json") {
        true => Ok(()),
        false => Err(Refusal::UnsupportedMediaType),
    }
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let group = kind.split('/').next().unwrap_or_default();
    headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|accepted| {
            let accepted = accepted.split(';').next().unwrap_or_default().trim();
            accepted == kind || accepted == "*/*" || accepted == format!("{group}/*")
        })
    })
}

fn document(kind: &'static str, bytes: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::document(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The last response of its connection: whoever did not say who they are keeps no place.
fn last(mut response: Response<Reply>) -> Response<Reply> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn json(status: StatusCode, bytes: Bytes) -> Response<Reply> {
    let mut response = document("application/json", bytes);
    *response.status_mut() = status;
    response
}

fn accepted() -> Response<Reply> {
    let mut response = Response::new(Reply::document(Bytes::new()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn events(events: Events) -> Response<Reply> {
    let mut response = Response::new(Reply::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Events that can be resumed. Where clients expect it, the first only says where the stream begins,
/// so that it can be resumed before anything came.
fn session_events(
    session: &Session,
    number: u64,
    reading: Reading,
    guard: Left,
) -> Response<Reply> {
    let primed = session.version().is_some_and(|v| *v >= ProtocolVersion::V_2025_11_25);
    let opening = primed.then(|| {
        format!("id: {number}-{}\nretry: {}\ndata: \n\n", reading.at(), RETRY.as_millis())
    });
    events(Events::new(reading, Some(number.to_string()), opening, Box::new(guard)))
}
