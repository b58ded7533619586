//! The machine's network as the proxy uses it: names are looked up, addresses connected to.
//!
//! A trait, so that tests have a world of their own. It is not public, and nothing in it can weaken
//! the checks: what is connected to is a [`Public`], in tests as well.

mod internet;

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpStream;

pub use self::internet::Internet;
use crate::address::{Kind, special};
use crate::host::Name;
use crate::report::Reason;

pub trait Network: Send + Sync + 'static {
    fn resolve(&self, name: &Name) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
    fn is_own(&self, address: IpAddr) -> bool;
    fn connect(&self, address: Public) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// An address that was found to be public. Only [`Public::check`] makes one, and nothing else is
/// connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Public(SocketAddr);

impl Public {
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
