//! Streamable HTTP: many clients at once, in both eras of the protocol, on one address.
//!
//!     connection ─▶ guard ─▶ auth ─▶ endpoint ─┬▶ session ─▶ service loop   up to 2025-11-25
//!      (listen)    (head)                      └▶ alone ──▶ service loop   from 2026-07-28 on
//!                                    body ◀── stream ◀──────────┘
//!
//! Nothing of a request is read before it is known who sent it. Who stops reading harms nobody else.

mod alone;
mod auth;
mod body;
mod crowd;
mod endpoint;
mod guard;
mod listen;
mod metrics;
mod oauth;
mod refusal;
mod routes;
mod rules;
mod session;
mod stream;

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use auth::{Auth, Keys, Principal};
pub use guard::Allowed;
pub(crate) use metrics::{one, write_engine};
pub use oauth::{Fetching, OAuth, OAuthSettings, Source};

use crate::memory::MemoryLimits;
use endpoint::Endpoint;

/// Greets whoever comes, with a handler of their own.
pub trait Reception: Send + Sync + 'static {
    type Handler: ServerHandler + Clone;

    fn handler(&self, principal: &Arc<Principal>) -> Self::Handler;

    /// Lets go of what belongs to principals who were not heard of for so long.
    fn tend(&self, _limit: Duration) {}

    /// Whether messages are to say where they come from.
    fn is_traced(&self) -> bool {
        false
    }

    /// What is told about what is behind the handlers, in the text form of Prometheus.
    fn metrics(&self) -> String {
        String::new()
    }
}

#[derive(Debug)]
pub struct HttpSettings {
    /// Where the protocol is spoken.
    pub path: String,
    pub allowed: Allowed,
    pub auth: Auth,
    pub limits: HttpLimits,
}

/// What one client can take away from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// The longest message.
    pub body: usize,
    /// The longest head of a request.
    pub header_bytes: usize,
    /// How long a head may take, and how long a connection may wait for its next.
    pub header_time: Duration,
    pub body_time: Duration,
    /// How long a client may not take what is sent to it.
    pub write_time: Duration,
    pub connections: usize,
    /// Sessions of one principal.
    pub sessions: usize,
    /// How long a session lives that nobody uses.
    pub session_time: Duration,
    /// How long a command runs on whose client has lost its connection.
    pub grace: Duration,
    /// What messages may take.
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

/// Serves everybody who connects until `shutdown` is done.
pub async fn serve_http<R: Reception>(
    listener: TcpListener,
    tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
    reception: R,
    settings: HttpSettings,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let endpoint = Arc::new(Endpoint::new(reception, settings));
    let idle = endpoint.settings().limits.session_time;
    tokio::spawn(session::end_idle(Arc::downgrade(endpoint.sessions()), idle));
    tokio::spawn(tend(Arc::downgrade(&endpoint), idle));
    tokio::select! {
        _ = listen::accept(listener, tls.map(TlsAcceptor::from), endpoint) => {}
        () = shutdown => {}
    }
    Ok(())
}

/// Looks from time to time what nobody comes back for.
async fn tend<R: Reception>(endpoint: Weak<Endpoint<R>>, limit: Duration) {
    while let Some(endpoint) = endpoint.upgrade() {
        endpoint.reception().tend(limit);
        drop(endpoint);
        tokio::time::sleep((limit / 4).clamp(session::SHORT_LOOK, session::LONG_LOOK)).await;
    }
}
