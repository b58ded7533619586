//! The network as the proxy uses it: it looks up names and connects to addresses.
//!
//! [`Network`] is a trait so that tests can replace the internet, but never the address check: a network only
//! gets a [`PublicAddress`] to connect to, and only [`PublicAddress::check`] makes one.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;

use crate::address::{Kind, special};
use crate::host::Name;
use crate::report::Reason;

pub trait Network: Send + Sync + 'static {
    fn resolve(&self, name: &Name) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
    /// Whether the address belongs to this machine.
    fn is_own(&self, address: IpAddr) -> bool;
    fn connect(&self, address: PublicAddress)
    -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// The proof that an address is public and not one of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicAddress(SocketAddr);

impl PublicAddress {
    pub fn check(network: &impl Network, address: IpAddr, port: u16) -> Result<Self, Reason> {
        let address = address.to_canonical();
        let own = || network.is_own(address).then_some(Kind::Own);
        match special(address).or_else(own) {
            Some(kind) => Err(Reason::Address(address, kind)),
            None => Ok(Self(SocketAddr::new(address, port))),
        }
    }

    pub fn get(self) -> SocketAddr {
        self.0
    }
}
