//! Checks a target and connects to it. Every connection that leaves the proxy is made here.
//!
//! A name is looked up once for each connection, and only the addresses that passed the check are tried,
//! in order. A DNS answer that changes a moment later changes nothing.

use std::io;

use thiserror::Error;
use tokio::time::timeout;

use crate::host::{Host, HostError};
use crate::limits::Limits;
use crate::network::{Network, PublicAddress};
use crate::peer::Peer;
use crate::report::{Reason, Refusal, Report, Reporter};
use crate::rules::Rules;
use crate::target::Target;
use crate::traffic::Traffic;

/// How many addresses of a name are tried.
const MAX_ADDRESSES: usize = 8;

/// How much of an invalid host a report shows.
const SHOWN_BYTES: usize = 255;

pub struct Connector<N> {
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
    #[error("the host {0} was not found")]
    NotFound(String),
    #[error("cannot reach {0}: {1}")]
    Unreachable(String, io::Error),
}

impl<N: Network> Connector<N> {
    pub async fn connect(&self, target: Target) -> Result<(Peer, Traffic), ConnectError> {
        let mut last_error = io::ErrorKind::NotFound.into();
        for address in self.permitted_addresses(&target).await? {
            let connect = timeout(self.limits.connect_time, self.network.connect(address));
            match connect.await.map_err(io::Error::from).flatten() {
                Ok(stream) => {
                    stream.set_nodelay(true).ok();
                    let address = address.get().ip();
                    let traffic = Traffic::new(target, address, self.reporter.clone());
                    return Ok((Peer::new(stream), traffic));
                }
                Err(error) => last_error = error,
            }
        }
        Err(ConnectError::Unreachable(target.host.to_string(), last_error))
    }

    /// The addresses a connection to the target may be made to.
    async fn permitted_addresses(
        &self,
        target: &Target,
    ) -> Result<Vec<PublicAddress>, ConnectError> {
        let Target { host, port, label } = target;
        let refuse = |reason| {
            let (host, label) = (host.to_string(), label.clone());
            self.refuse(Refusal { host, port: *port, reason, label })
        };
        // Before the rules, so that the refusal does not suggest a rule: none opens a private address.
        if let Host::Address(address) = host {
            PublicAddress::check(&self.network, *address, *port).map_err(refuse)?;
        }
        self.rules.check(host, *port).map_err(refuse)?;
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let lookup = timeout(self.limits.lookup_time, self.network.resolve(name)).await;
                lookup.map_err(io::Error::from).flatten().unwrap_or_default()
            }
        };
        let mut permitted = Vec::new();
        let mut first_reason = None;
        for address in found {
            match PublicAddress::check(&self.network, address, *port) {
                Ok(address) => permitted.push(address),
                Err(reason) => first_reason = first_reason.or(Some(reason)),
            }
        }
        permitted.truncate(MAX_ADDRESSES);
        match first_reason {
            _ if !permitted.is_empty() => Ok(permitted),
            Some(reason) => Err(refuse(reason)),
            None => Err(ConnectError::NotFound(host.to_string())),
        }
    }

    /// Refuses text that was sent as a host and is not one.
    pub fn refuse_invalid_host(
        &self,
        text: &[u8],
        error: HostError,
        label: Option<String>,
    ) -> ConnectError {
        let mut host = text.escape_ascii().to_string();
        host.truncate(SHOWN_BYTES);
        self.refuse(Refusal { host, port: 0, reason: Reason::Host(error), label })
    }

    fn refuse(&self, refusal: Refusal) -> ConnectError {
        tracing::debug!("{refusal}");
        (self.reporter)(Report::Refused(refusal.clone()));
        ConnectError::Refused(refusal)
    }
}
