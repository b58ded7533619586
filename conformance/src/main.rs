//! A server with nothing but the fixtures that the official conformance suite of the Model Context
//! Protocol asks for, on the same HTTP transport as the shell server.
//!
//!     mcpz-conformance 8000
//!     npx @modelcontextprotocol/conformance server --url http://127.0.0.1:8000/mcp \
//!         --requirements 2026-07-28
//!
//! The suite knows all fixtures by name: names, keys and URIs here are the suite's, not ours.

mod arguments;
mod asking;
mod changes;
mod content;
mod fixtures;
mod input;
mod log;
mod prompts;
mod requests;
mod resources;
mod seal;
mod tools;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mcpz_server::{Allowed, Auth, Backend, HttpLimits, HttpSettings, Principal, serve_http};
use tokio::net::TcpListener;

use crate::changes::Changes;
use crate::fixtures::Fixtures;
use crate::seal::Seal;

/// Gives each session fixtures of its own; what one changes, all hear of.
struct Stage {
    changes: Changes,
    seal: Arc<Seal>,
}

impl Backend for Stage {
    type Handler = Fixtures;

    fn handler(&self, _: &Arc<Principal>) -> Fixtures {
        Fixtures::new(self.changes.clone(), self.seal.clone())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("usage: mcpz-conformance PORT")?.parse()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    announce(listener.local_addr()?);
    let settings = HttpSettings {
        path: "/mcp".into(),
        allowed: Allowed::default(),
        auth: Auth::Open,
        limits: HttpLimits::default(),
    };
    let stage = Stage { changes: Changes::default(), seal: Arc::new(Seal::new()?) };
    Ok(serve_http(listener, None, stage, settings, std::future::pending()).await?)
}

#[expect(clippy::print_stderr, reason = "whoever runs the suite waits for this line")]
fn announce(address: SocketAddr) {
    eprintln!("listening on {address}");
}
