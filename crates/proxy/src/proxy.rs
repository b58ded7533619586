//! Accepts a command's connections and serves each by the protocol its first byte reveals.
//!
//! The proxy owns its connections: they are tasks of one set, and all end when [`Proxy`] is dropped.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::connector::Connector;
use crate::internet::Internet;
use crate::limits::Limits;
use crate::network::Network;
use crate::peer::Peer;
use crate::report::Report;
use crate::rules::Rules;
use crate::{http, socks};

/// The pause after the system could not accept a connection, for example because no descriptor was free.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A proxy that serves a listener. Dropping it ends all its connections.
#[derive(Debug)]
pub struct Proxy {
    task: JoinHandle<Infallible>,
}

impl Proxy {
    /// Serves a listener, which may be in another network namespace. Outgoing connections are made from
    /// the namespace of this process. Must be called within a runtime.
    ///
    /// The reporter is called for every refusal and for every connection that ends. A command can cause as
    /// many of these as it likes, so the reporter must neither block nor keep them all.
    pub fn serve(
        listener: std::net::TcpListener,
        rules: Rules,
        limits: Limits,
        reporter: impl Fn(Report) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (network, reporter) = (Internet::default(), Arc::new(reporter));
        Self::start(listener, Connector { network, rules, limits, reporter })
    }

    pub(crate) fn start<N: Network>(
        listener: std::net::TcpListener,
        connector: Connector<N>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self { task: tokio::spawn(accept(listener, Arc::new(connector))) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept<N: Network>(listener: TcpListener, connector: Arc<Connector<N>>) -> Infallible {
    let mut connections = JoinSet::new();
    let limit = connector.limits.connections.max(1);
    loop {
        let accepted = tokio::select! {
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < limit => accepted,
        };
        match accepted {
            Ok((socket, _)) => {
                let connector = connector.clone();
                connections.spawn(async move {
                    if let Err(error) = serve(&connector, socket).await {
                        tracing::debug!("a connection ended: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn serve<N: Network>(connector: &Connector<N>, socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut client = Peer::new(socket);
    match timeout(connector.limits.head_time, client.reader.peek()).await?? {
        None => Ok(()),
        Some(socks::VERSION) => socks::serve(connector, client).await,
        Some(_) => http::serve(connector, client).await,
    }
}
