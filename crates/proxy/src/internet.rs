//! The real network: the system's resolver, and connections from this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::host::Name;
use crate::network::{Network, PublicAddress};

/// How many lookups run at once. Each occupies a thread until the name server answers.
const MAX_LOOKUPS: usize = 16;

#[derive(Debug)]
pub struct Internet {
    lookups: Arc<Semaphore>,
}

impl Default for Internet {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Internet {
    async fn look_up(&self, name: String) -> io::Result<Vec<IpAddr>> {
        let permit = self.lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
        let lookup = tokio::task::spawn_blocking(move || {
            // Held by the thread: the request may give up on a slow lookup, but the thread stays busy.
            let _permit = permit;
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

    /// The system binds sockets only to its own addresses, so binding asks it which these are now. A list
    /// would go stale.
    fn is_own(&self, address: IpAddr) -> bool {
        let unassigned: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        match can_bind(unassigned) {
            false => can_bind(address),
            // `ip_nonlocal_bind` is set: any address can be bound, so ask the routing instead.
            true => routes_to_itself(address),
        }
    }

    async fn connect(&self, address: PublicAddress) -> io::Result<TcpStream> {
        TcpStream::connect(address.get()).await
    }
}

/// False only if the system says that the address is not its own. Any other failure, such as too many open
/// sockets, proves nothing.
fn can_bind(address: IpAddr) -> bool {
    let bound = UdpSocket::bind((address, 0));
    !bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Whether packets to an address would also come from it. Connecting a UDP socket only chooses the route; it
/// sends nothing.
fn routes_to_itself(address: IpAddr) -> bool {
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
    fn an_own_address_routes_to_itself() {
        assert!(routes_to_itself(Ipv4Addr::LOCALHOST.into()));
        assert!(!routes_to_itself(Ipv4Addr::new(1, 1, 1, 1).into()));
    }

    #[tokio::test]
    async fn names_are_looked_up_as_the_machine_does() {
        let found = Internet::default().look_up("localhost".to_owned()).await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
