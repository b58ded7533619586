//! The one way out: what is asked for is decided, looked up, checked and connected.
//!
//! A name is looked up once for each connection, and the addresses that were checked are the ones that
//! are tried, in order: an answer that changes a moment later changes nothing.

use std::io;

use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::host::{Host, HostError};
use crate::limits::Limits;
use crate::network::{Network, Public};
use crate::report::{Reason, Refusal, Report, Reporter};
use crate::rules::Rules;
use crate::target::Target;
use crate::traffic::Passage;

/// How many addresses of a name are tried.
const TRIES: usize = 8;

/// How much is shown of what is not a host.
const SHOWN: usize = 255;

pub struct Door<N> {
    pub network: N,
    pub rules: Rules,
    pub limits: Limits,
    pub reporter: Reporter,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("{0}")]
    Refused(Refusal),
    #[error("the name {0} is not found")]
    NotFound(String),
    #[error("{0} cannot be reached: {1}")]
    Unreachable(String, io::Error),
}

impl<N: Network> Door<N> {
    pub async fn open(&self, target: Target) -> Result<(TcpStream, Passage), ConnectError> {
        let mut last = io::ErrorKind::NotFound.into();
        for address in self.checked(&target).await? {
            let connect = timeout(self.limits.connect_time, self.network.connect(address));
            match connect.await.map_err(io::Error::from).flatten() {
                Ok(stream) => {
                    stream.set_nodelay(true).ok();
                    let address = address.get().ip();
                    return Ok((stream, Passage::new(target, address, self.reporter.clone())));
                }
                Err(error) => last = error,
            }
        }
        Err(ConnectError::Unreachable(target.host.to_string(), last))
    }

    /// The addresses a target may be reached at.
    async fn checked(&self, target: &Target) -> Result<Vec<Public>, ConnectError> {
        let Target { host, port, label } = target;
        let refuse = |reason| {
            let (host, label) = (host.to_string(), label.clone());
            self.refuse(Refusal { host, port: *port, reason, label })
        };
        // First, as no rule helps with an address that is not public.
        if let Host::Address(address) = host {
            Public::check(&self.network, *address, *port).map_err(refuse)?;
        }
        self.rules.check(host, *port).map_err(refuse)?;
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let lookup = timeout(self.limits.lookup_time, self.network.resolve(name)).await;
                lookup.map_err(io::Error::from).flatten().unwrap_or_default()
            }
        };
        let mut public = Vec::new();
        let mut refused = None;
        for address in found {
            match Public::check(&self.network, address, *port) {
                Ok(address) => public.push(address),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
        public.truncate(TRIES);
        match refused {
            _ if !public.is_empty() => Ok(public),
            Some(reason) => Err(refuse(reason)),
            None => Err(ConnectError::NotFound(host.to_string())),
        }
    }

    /// Refuses what is not even a host.
    pub fn refuse_text(
        &self,
        text: &[u8],
        error: HostError,
        label: Option<String>,
    ) -> ConnectError {
        let mut host = text.escape_ascii().to_string();
        host.truncate(SHOWN);
        self.refuse(Refusal { host, port: 0, reason: Reason::Host(error), label })
    }

    fn refuse(&self, refusal: Refusal) -> ConnectError {
        tracing::debug!("{refusal}");
        (self.reporter)(Report::Refused(refusal.clone()));
        ConnectError::Refused(refusal)
    }
}
