//! Which hosts a command may reach: none, those on a list, or every public one.
//!
//! An entry is a host (`github.com`) or all subdomains of a domain (`*.example.org`), with a port unless the
//! ports of the web are meant (`github.com:22`). The list alone decides nothing: no entry allows a connection
//! to an address that is not public.

use std::fmt;

use thiserror::Error;

use crate::address::{Kind, special};
use crate::host::{Host, HostError, Name};
use crate::report::Reason;

/// The ports that an entry without a port allows.
const WEB_PORTS: [u16; 2] = [80, 443];

/// The hosts a command may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(Scope);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Nothing,
    Listed(Vec<Entry>),
    Everything,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    One(Host),
    Subdomains(Name),
}

/// An entry that is not valid, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{entry}`: {mistake}")]
pub struct RulesError {
    entry: String,
    mistake: Mistake,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum Mistake {
    #[error("an entry is empty; `off` allows nothing")]
    Empty,
    #[error("use it alone, not in a list")]
    Alone,
    #[error("use a host without scheme, user or path")]
    Url,
    #[error("use `*` only for all subdomains, as in `*.example.org`; `on` allows every host")]
    Star,
    #[error("it is {0}, which no command can reach")]
    Address(Kind),
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Rules {
    pub fn nothing() -> Self {
        Self(Scope::Nothing)
    }

    /// Every public address, at any port.
    pub fn everything() -> Self {
        Self(Scope::Everything)
    }

    /// Parses `off`, `on`, or a list separated by commas.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        match text.trim() {
            "off" => Ok(Self::nothing()),
            "on" => Ok(Self::everything()),
            list => Self::list(list.split(',')),
        }
    }

    /// Parses each text as one entry.
    pub fn list<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, RulesError> {
        let parse = |text: T| {
            let text = text.as_ref().trim();
            Entry::parse(text).map_err(|mistake| RulesError { entry: text.to_owned(), mistake })
        };
        Ok(Self(Scope::Listed(entries.into_iter().map(parse).collect::<Result<_, _>>()?)))
    }

    /// Whether the rules allow a host and port. The addresses of a name are checked later.
    pub fn check(&self, host: &Host, port: u16) -> Result<(), Reason> {
        let entries = match &self.0 {
            Scope::Nothing => return Err(Reason::Off),
            Scope::Everything => return Ok(()),
            Scope::Listed(entries) => entries,
        };
        let mut matching = entries.iter().filter(|entry| entry.hosts.contains(host)).peekable();
        if matching.peek().is_none() {
            return Err(Reason::NotListed);
        }
        match matching.any(|entry| entry.allows_port(port)) {
            true => Ok(()),
            false => Err(Reason::Port),
        }
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, Mistake> {
        match text {
            "" => return Err(Mistake::Empty),
            "on" | "off" => return Err(Mistake::Alone),
            _ if text.contains(['/', '@']) => return Err(Mistake::Url),
            _ => {}
        }
        let domain = text.strip_prefix("*.");
        let rest = domain.unwrap_or(text);
        if rest.contains('*') {
            return Err(Mistake::Star);
        }
        let (host, port) = Host::parse_with_port(rest.as_bytes())?;
        let hosts = match (domain, host) {
            (None, Host::Address(address)) if let Some(kind) = special(address) => {
                return Err(Mistake::Address(kind));
            }
            (None, host) => Hosts::One(host),
            (Some(_), Host::Name(name)) => Hosts::Subdomains(name),
            (Some(_), Host::Address(_)) => return Err(Mistake::Star),
        };
        Ok(Self { hosts, port })
    }

    fn allows_port(&self, port: u16) -> bool {
        self.port.map_or(WEB_PORTS.contains(&port), |own| own == port)
    }
}

impl Hosts {
    fn contains(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::One(own), host) => own == host,
            (Self::Subdomains(domain), Host::Name(name)) => name.is_below(domain),
            (Self::Subdomains(_), Host::Address(_)) => false,
        }
    }
}

/// In the form that [`Rules::parse`] reads.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = match &self.0 {
            Scope::Nothing => return f.write_str("off"),
            Scope::Everything => return f.write_str("on"),
            Scope::Listed(entries) => entries,
        };
        for (count, Entry { hosts, port }) in entries.iter().enumerate() {
            f.write_str(if count == 0 { "" } else { "," })?;
            match hosts {
                Hosts::One(host) => write!(f, "{host}")?,
                Hosts::Subdomains(name) => write!(f, "*.{name}")?,
            }
            port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        }
        Ok(())
    }
}
