//! Ports of the sandboxes that programs on this machine can connect to.
//!
//!     browser ─▶ 127.0.0.1:5173 ─▶ server ─ connection from inside ─▶ dev server in the sandbox
//!
//! The agent of a sandbox makes the connection, because only it is in that network, and hands it to the server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::{Engine, Shared};

/// How many connections there may be at the same time.
const MAX_CONNECTIONS: usize = 256;

impl Engine {
    /// Listens on all ports that the settings publish.
    pub(super) fn publish(&self) {
        let settings = self.settings().sandbox.iter();
        let ports: Vec<_> = settings.flat_map(|it| it.publish.iter().cloned()).flatten().collect();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        for port in ports {
            let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
            for address in addresses {
                let (engine, room) = (Arc::downgrade(&self.shared), room.clone());
                tokio::spawn(async move {
                    // Not every machine has IPv6, and ports that are taken were told at the start.
                    if let Ok(listener) = TcpListener::bind((address, port)).await {
                        serve(listener, port, engine, room).await;
                    }
                });
            }
        }
    }

    /// Connects to a port of the newest sandbox in which something listens there.
    async fn connect_inside(&self, port: u16) -> Option<TcpStream> {
        for sandbox in self.sandboxes().into_iter().rev() {
            if let Some(stream) = sandbox.link().connect_inside(port).await {
                return TcpStream::from_std(stream).ok();
            }
        }
        None
    }
}

async fn serve(listener: TcpListener, port: u16, engine: Weak<Shared>, room: Arc<Semaphore>) {
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let accepted = listener.accept().await;
        let Some(engine) = engine.upgrade().map(|shared| Engine { shared }) else { return };
        match accepted {
            Ok((outside, _)) => {
                tokio::spawn(async move {
                    let _ = forward(outside, &engine, port).await;
                    drop(permit);
                });
            }
            // Too many open files, which may pass.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

async fn forward(mut outside: TcpStream, engine: &Engine, port: u16) -> io::Result<()> {
    let inside = engine.connect_inside(port).await;
    let mut inside = inside.ok_or(io::ErrorKind::ConnectionRefused)?;
    copy_bidirectional(&mut outside, &mut inside).await.map(|_| ())
}
