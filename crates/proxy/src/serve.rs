//! Connections to the proxy: taken, bounded in number and time, and served by what they speak.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::door::Door;
use crate::limits::Limits;
use crate::network::{Internet, Network};
use crate::report::Report;
use crate::rules::Rules;
use crate::traffic::End;
use crate::{http, socks};

/// How long to wait when the system has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);

/// A proxy that serves a listener. When it is dropped, it and all its connections end.
#[derive(Debug)]
pub struct Proxy {
    task: JoinHandle<Infallible>,
}

impl Proxy {
    /// Serves what arrives at a listener, which may be in another network namespace; connections are
    /// made from this one. Must be called within a runtime.
    ///
    /// The reporter is called for every refusal and every connection that ends. A command can cause
    /// as many as it likes; it must not wait, and not keep them all.
    pub fn serve(
        listener: std::net::TcpListener,
        rules: Rules,
        limits: Limits,
        reporter: impl Fn(Report) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let reporter = Arc::new(reporter);
        Self::start(listener, Door { network: Internet::default(), rules, limits, reporter })
    }

    pub(crate) fn start<N: Network>(
        listener: std::net::TcpListener,
        door: Door<N>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { task: tokio::spawn(accept(listener, Arc::new(door))) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes connections for ever. They are in a set, which ends them when it is dropped.
async fn accept<N: Network>(listener: TcpListener, door: Arc<Door<N>>) -> Infallible {
    let mut connections = JoinSet::new();
    let room = door.limits.connections.max(1);
    loop {
        let socket = tokio::select! {
            Some(_) = connections.join_next() => continue,
            taken = listener.accept(), if connections.len() < room => taken,
        };
        match socket {
            Ok((socket, _)) => {
                let door = door.clone();
                connections.spawn(async move {
                    if let Err(error) = serve(&door, socket).await {
                        tracing::debug!("a connection ended: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::warn!("cannot take a connection: {error}");
                sleep(BREATH).await;
            }
        }
    }
}

async fn serve<N: Network>(door: &Door<N>, socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut client = End::new(socket);
    match timeout(door.limits.head_time, client.intake.first_byte()).await?? {
        None => Ok(()),
        Some(socks::VERSION) => socks::converse(door, client).await,
        Some(_) => http::converse(door, client).await,
    }
}
