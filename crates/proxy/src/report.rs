//! What the proxy reports to its caller: every refusal, and every connection when it ends.
//!
//! A [`Refusal`] reads the same for the command, in the result and in the audit trail.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::address::Kind;
use crate::host::HostError;

pub type Reporter = Arc<dyn Fn(Report) + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    Refused(Refusal),
    Reached(Reached),
}

/// A connection that a command asked for and that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// As the command wrote it, with escapes if it is not a valid host.
    pub host: String,
    /// 0 if the request has no valid port.
    pub port: u16,
    pub reason: Reason,
    /// The label from the command's environment, if the command sent it.
    pub label: Option<String>,
}

/// A connection that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    pub host: String,
    pub port: u16,
    pub address: IpAddr,
    /// Bytes from the command to the server.
    pub sent: u64,
    /// Bytes from the server to the command.
    pub received: u64,
    pub label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    Off,
    NotListed,
    /// The list has the host, but with other ports.
    Port,
    Host(HostError),
    Address(IpAddr, Kind),
}

impl Refusal {
    /// The entry for `--net` that would allow the connection, if any would.
    pub fn remedy(&self) -> Option<String> {
        match self.reason {
            Reason::Off | Reason::NotListed | Reason::Port => match self.port {
                80 | 443 => Some(self.host.clone()),
                port => Some(format!("{}:{port}", self.host)),
            },
            Reason::Host(_) | Reason::Address(..) => None,
        }
    }
}

/// One line of text.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection to {}", self.host)?;
        if self.port != 0 {
            write!(f, " port {}", self.port)?;
        }
        write!(f, ": {}", self.reason)?;
        match self.remedy() {
            Some(entry) => write!(f, "; `--net {entry}` would allow it"),
            None => f.write_str("; no `--net` allows it"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("the network is off"),
            Self::NotListed => f.write_str("the host is not in the list"),
            Self::Port => f.write_str("the host is in the list, but not with this port"),
            Self::Host(error) => error.fmt(f),
            Self::Address(address, kind) => write!(f, "{address} is {kind}"),
        }
    }
}
