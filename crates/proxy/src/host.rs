//! The host a command asks for: a name or an address, with nothing in between.
//!
//! Rules compare names byte by byte, so each name has one form: lower case, without a dot at the end. Resolvers
//! also accept disguised addresses (`0177.0.0.1`, `127.1`, `2130706433`). Text that ends in a number is
//! therefore a plain address or an error, and never a [`Name`].

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// A name or an address. An IPv4 address mapped into IPv6 becomes the IPv4 address, and `localhost` becomes
/// 127.0.0.1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    Name(Name),
    Address(IpAddr),
}

/// A domain name in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HostError {
    #[error("the name or a part of it is empty")]
    Empty,
    #[error("the name or a part of it is too long")]
    Long,
    #[error("the name contains a character that host names cannot have")]
    Character,
    #[error("the name is not ASCII; use its xn-- form")]
    NotAscii,
    #[error("the address is not in its canonical form")]
    Disguised,
    #[error("the address has a zone")]
    Zone,
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

impl Host {
    /// Parses a host without a port. An IPv6 address may have brackets.
    pub fn parse(text: &[u8]) -> Result<Self, HostError> {
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        let text = str::from_utf8(text).map_err(|_| HostError::NotAscii)?;
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if bare.is_some() || text.contains(':') {
            return parse_v6(bare.unwrap_or(text)).map(|address| Self::address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::address(address.into()));
        }
        let name = Name::parse(text)?;
        let local = Name("localhost".to_owned());
        // Always loopback, whatever a resolver says: RFC 6761.
        match name == local || name.is_below(&local) {
            true => Ok(Self::address(Ipv4Addr::LOCALHOST.into())),
            false => Ok(Self::Name(name)),
        }
    }

    pub fn address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }

    /// Parses `host` or `host:port`.
    pub fn parse_with_port(text: &[u8]) -> Result<(Self, Option<u16>), HostError> {
        let past_brackets = text.iter().rposition(|&byte| byte == b']').map_or(0, |at| at + 1);
        let colon = text[past_brackets..].iter().position(|&byte| byte == b':');
        let (host, port) = match colon {
            None => (text, None),
            Some(at) => {
                let (host, port) = text.split_at(past_brackets + at);
                (host, Some(parse_port(&port[1..])?))
            }
        };
        Ok((Self::parse(host)?, port))
    }
}

/// Only digits: `u16::from_str` would accept a sign.
fn parse_port(digits: &[u8]) -> Result<u16, HostError> {
    let digits = str::from_utf8(digits).map_err(|_| HostError::Port)?;
    let port = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().ok(),
        false => None,
    };
    port.filter(|&port| port != 0).ok_or(HostError::Port)
}

fn parse_v6(text: &str) -> Result<Ipv6Addr, HostError> {
    if text.contains('%') {
        return Err(HostError::Zone);
    }
    text.parse().map_err(|_| HostError::Character)
}

impl Name {
    fn parse(text: &str) -> Result<Self, HostError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.len() > 253 {
            return Err(HostError::Long);
        }
        for label in text.split('.') {
            match label.len() {
                0 => return Err(HostError::Empty),
                1..=63 => {}
                _ => return Err(HostError::Long),
            }
            if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
                return Err(HostError::Character);
            }
        }
        let name = Self(text.to_ascii_lowercase());
        match name.ends_in_number() {
            true => Err(HostError::Disguised),
            false => Ok(name),
        }
    }

    /// Whether a resolver may read it as an address. No top-level domain is a number.
    fn ends_in_number(&self) -> bool {
        let last = self.0.rsplit('.').next().unwrap_or_default();
        match last.strip_prefix("0x") {
            Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => last.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a subdomain of `domain`. A domain is not below itself.
    pub fn is_below(&self, domain: &Self) -> bool {
        self.0.strip_suffix(&domain.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// In the form that can precede a port: an IPv6 address has brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
