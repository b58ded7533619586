//! Streamable HTTP: many clients at once, with and without sessions, on one address.
//!
//!     connection ─▶ guard ─▶ auth ─▶ endpoint ─┬▶ session ───▶ service loop   up to 2025-11-25
//!      (listen)    (head)                      └▶ stateless ─▶ service loop   from 2026-07-28 on
//!                                    body ◀── event stream ◀───────┘
//!
//! No byte of a body is read before its sender is known. A client that stops reading harms nobody else.
//!
//! The transport is our own, on hyper, with rmcp's service loop behind it as on stdio. rmcp's own transport has no
//! principals, sends no head of a stateless response before the call says something, lets a slow reader hold up its
//! session, and takes tens of kilobytes for a session that sleeps.

mod auth;
mod body;
mod connections;
mod endpoint;
mod event_stream;
mod guard;
mod headers;
mod listen;
mod metrics;
mod oauth;
mod refusal;
mod response;
mod router;
mod session;
mod stateless;

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use auth::{Auth, Keys, Principal};
pub use guard::Allowed;
pub(crate) use metrics::{write_engine_metrics, write_metric};
pub use oauth::{Fetching, OAuth, OAuthSettings, Source};

use crate::memory::MemoryLimits;
use endpoint::Endpoint;

/// What is behind the transport: a handler for each principal.
pub trait Backend: Send + Sync + 'static {
    type Handler: ServerHandler + Clone;

    fn handler(&self, principal: &Arc<Principal>) -> Self::Handler;

    /// Ends the jobs, tasks and sandboxes of principals that were not connected for `limit`.
    fn evict_idle(&self, _limit: Duration) {}

    /// Whether requests carry the ids that traces need.
    fn is_traced(&self) -> bool {
        false
    }

    /// Metrics of what is behind the handlers, in the text format of Prometheus.
    fn metrics(&self) -> String {
        String::new()
    }
}

#[derive(Debug)]
pub struct HttpSettings {
    /// The path of the endpoint.
    pub path: String,
    pub allowed: Allowed,
    pub auth: Auth,
    pub limits: HttpLimits,
}

/// Limits that keep one client from harming others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// The longest message, in bytes.
    pub body: usize,
    /// The longest head of a request, in bytes.
    pub header_bytes: usize,
    /// How long a head may take, and how long a connection may wait for its next request.
    pub header_time: Duration,
    pub body_time: Duration,
    /// How long a write may wait for the client.
    pub write_time: Duration,
    pub connections: usize,
    /// The most sessions of one principal.
    pub sessions: usize,
    /// How long an unused session is kept.
    pub session_time: Duration,
    /// How long a command continues after its client lost the connection.
    pub grace: Duration,
    /// The memory messages may take.
    pub memory: MemoryLimits,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body: crate::lines::MAX_LINE,
            header_bytes: 16 << 10,
            header_time: Duration::from_secs(30),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            connections: 4096,
            sessions: 1000,
            session_time: Duration::from_secs(3600),
            grace: Duration::from_secs(60),
            memory: MemoryLimits::default(),
        }
    }
}

/// Serves HTTP until `shutdown` is done.
pub async fn serve_http<R: Backend>(
    listener: TcpListener,
    tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
    backend: R,
    settings: HttpSettings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let endpoint = Arc::new(Endpoint::new(backend, settings));
    let idle = endpoint.settings().limits.session_time;
    tokio::spawn(session::end_idle(Arc::downgrade(endpoint.sessions()), idle));
    tokio::spawn(evict_idle(Arc::downgrade(&endpoint), idle));
    tokio::select! {
        _ = listen::accept(listener, tls.map(TlsAcceptor::from), endpoint) => {}
        () = shutdown => {}
    }
    Ok(())
}

/// Evicts idle principals from time to time.
async fn evict_idle<R: Backend>(endpoint: Weak<Endpoint<R>>, limit: Duration) {
    while let Some(endpoint) = endpoint.upgrade() {
        endpoint.backend().evict_idle(limit);
        drop(endpoint);
        tokio::time::sleep(session::sweep_interval(limit)).await;
    }
}
