//! The real network: the system's resolver, and connections from this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::{Network, Public};
use crate::host::Name;

/// How many names are looked up at once. Each takes a thread for as long as a name server likes.
const LOOKUPS: usize = 16;

/// The real one.
#[derive(Debug)]
pub struct Internet {
    lookups: Arc<Semaphore>,
}

impl Default for Internet {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

impl Internet {
    async fn look_up(&self, name: String) -> io::Result<Vec<IpAddr>> {
        let turn = self.lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
        let lookup = tokio::task::spawn_blocking(move || {
            // The thread's, not the request's: nobody waits for a lookup that takes too long.
            let _turn = turn;
            let found = (name, 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}

impl Network for Internet {
    async fn resolve(&self, name: &Name) -> io::Result<Vec<IpAddr>> {
        self.look_up(name.as_str().to_owned()).await
    }

    /// The system lends a socket only addresses that are its own, and knows better than any list
    /// which these are now.
    fn is_own(&self, address: IpAddr) -> bool {
        let nobodys: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        match is_lent(nobodys) {
            false => is_lent(address),
            // `ip_nonlocal_bind`: it lends any. But from where would we speak with it?
            true => speaks_to_itself(address),
        }
    }

    async fn connect(&self, address: Public) -> io::Result<TcpStream> {
        TcpStream::connect(address.get()).await
    }
}

/// Only a clear no is one: a system that is out of sockets has not said whose it is.
fn is_lent(address: IpAddr) -> bool {
    let lent = UdpSocket::bind((address, 0));
    !lent.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Nothing is sent: connecting such a socket only chooses the way.
fn speaks_to_itself(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return true };
    let chosen = socket.connect(SocketAddr::new(address, 9)).and_then(|()| socket.local_addr());
    chosen.is_ok_and(|chosen| chosen.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_its_own_addresses() {
        let internet = Internet::default();
        assert!(internet.is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(internet.is_own(Ipv4Addr::new(127, 9, 9, 9).into()));
        assert!(!internet.is_own(Ipv4Addr::new(1, 1, 1, 1).into()));
        assert!(!internet.is_own("2606:4700:4700::1111".parse().unwrap()));
    }

    #[test]
    fn an_own_address_is_what_speaks_to_itself() {
        assert!(speaks_to_itself(Ipv4Addr::LOCALHOST.into()));
        assert!(!speaks_to_itself(Ipv4Addr::new(1, 1, 1, 1).into()));
    }

    #[tokio::test]
    async fn names_are_looked_up_as_the_machine_does() {
        let found = Internet::default().look_up("localhost".to_owned()).await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
