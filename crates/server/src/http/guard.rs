//! Checks by the head of a request whether it may come from where it comes from.
//!
//! A web page can make a browser send requests to this machine: from an origin that is not ours, or to a host name that
//! its owner made point here (DNS rebinding). Both show in the head. So do headers that we and a proxy before us could
//! read differently.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    TRANSFER_ENCODING,
};
use http::request::Parts;
use http::uri::Authority;
use http::{Uri, Version};

use super::headers::{LAST_EVENT_ID, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, SESSION_ID};
use super::refusal::Refusal;

/// The host names and origins that are allowed besides our own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Host names, without port; `*` for any.
    pub hosts: Vec<String>,
    /// Origins such as `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Headers that must not come twice: we would read one, and a proxy before us the other.
static SINGLE: [HeaderName; 10] = [
    HOST,
    ORIGIN,
    AUTHORIZATION,
    CONTENT_TYPE,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    SESSION_ID,
    PROTOCOL_VERSION,
    LAST_EVENT_ID,
    MCP_METHOD,
];

impl Allowed {
    /// Checks the head of a request that came in on a local address.
    pub fn check(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        let twice = |name: &HeaderName| head.headers.get_all(name).iter().nth(1).is_some();
        if SINGLE.iter().any(twice) || twice(&MCP_NAME) {
            return Err(Refusal::RepeatedHeader);
        }
        let encoding = head.headers.get(TRANSFER_ENCODING);
        let chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
        let lengths = head.headers.contains_key(CONTENT_LENGTH);
        if encoding.is_some_and(|value| lengths || !chunked(value)) {
            return Err(Refusal::UnclearLength);
        }
        self.check_host(head, local)?;
        let Some(origin) = head.headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().ok();
        match origin.is_some_and(|origin| self.allows_origin(origin, local)) {
            true => Ok(()),
            false => Err(Refusal::ForeignOrigin),
        }
    }

    fn check_host(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        let host = head.headers.get(HOST);
        if host.is_none() && head.version >= Version::HTTP_11 {
            return Err(Refusal::NoHost);
        }
        let host: Option<Authority> = match host.map(|host| host.as_bytes().try_into()) {
            None => None,
            Some(Ok(host)) => Some(host),
            Some(Err(_)) => return Err(Refusal::InvalidHost),
        };
        // A request line with a full URI names the host a second time.
        let names = host.iter().chain(head.uri.authority());
        for name in names {
            if !is_host(name) {
                return Err(Refusal::InvalidHost);
            }
            if !self.allows_host(name.host(), local) {
                return Err(Refusal::ForeignHost);
            }
        }
        Ok(())
    }

    fn allows_host(&self, host: &str, local: SocketAddr) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = host.strip_suffix('.').unwrap_or(host);
        if let Ok(address) = host.parse::<IpAddr>() {
            // Nobody can make an address point elsewhere, but it must be one of ours.
            return address.is_loopback()
                || address.to_canonical() == local.ip().to_canonical()
                || self.names(host);
        }
        host.eq_ignore_ascii_case("localhost") || self.names(host)
    }

    fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(host))
    }

    fn allows_origin(&self, origin: &str, local: SocketAddr) -> bool {
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        let web = matches!(uri.scheme_str(), Some("http" | "https"));
        // If every host name is allowed, the name in an origin proves nothing.
        let ours =
            |host: &str| Self { hosts: self.named(), ..Self::default() }.allows_host(host, local);
        let bare = uri.path() == "/" && uri.query().is_none() && !origin.ends_with('/');
        web && bare && uri.authority().is_some_and(is_host) && uri.host().is_some_and(ours)
    }

    fn named(&self) -> Vec<String> {
        self.hosts.iter().filter(|host| *host != "*").cloned().collect()
    }
}

/// Whether an authority is just a name or an address, with or without a port.
fn is_host(authority: &Authority) -> bool {
    let host = authority.host();
    let named = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|rest| rest.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains([':', ']']),
    };
    let rest = authority.as_str().strip_prefix(host);
    named && rest.is_some_and(|rest| rest.is_empty() || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(allowed: &Allowed, headers: &[(&str, &str)], uri: &str) -> Option<u16> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        match allowed.check(&head, "192.0.2.7:8000".parse().unwrap()) {
            Ok(()) => None,
            Err(refusal) => Some(refusal.into_response().status().as_u16()),
        }
    }

    #[test]
    fn a_host_is_ours_by_address_by_loopback_name_or_by_setting() {
        let allowed = Allowed { hosts: vec!["mcp.example.org".into()], origins: Vec::new() };
        for host in [
            "localhost",
            "LOCALHOST:8000",
            "127.0.0.1:1",
            "[::1]:8000",
            "192.0.2.7",
            "mcp.example.org",
            "mcp.example.org.",
        ] {
            assert_eq!(check(&allowed, &[("host", host)], "/mcp"), None, "{host}");
        }
        for host in ["evil.example", "192.0.2.8", "localhost.evil.example", "mcp.example.org.evil"]
        {
            assert_eq!(check(&allowed, &[("host", host)], "/mcp"), Some(403), "{host}");
        }
        for host in [
            "",
            "a b",
            "user@localhost",
            "[::1]evil.example",
            "localhost:abc",
            "localhost:99999",
            "[127.0.0.1]",
        ] {
            assert_eq!(check(&allowed, &[("host", host)], "/mcp"), Some(400), "{host}");
        }
        assert_eq!(check(&allowed, &[], "/mcp"), Some(400));
    }

    #[test]
    fn the_address_in_the_request_line_is_checked_too() {
        let host = [("host", "localhost")];
        assert_eq!(check(&Allowed::default(), &host, "http://localhost/mcp"), None);
        assert_eq!(check(&Allowed::default(), &host, "http://evil.example/mcp"), Some(403));
    }

    #[test]
    fn an_origin_is_ours_or_named() {
        let allowed =
            Allowed { hosts: vec!["*".into()], origins: vec!["https://app.example".into()] };
        let from = |origin| check(&allowed, &[("host", "any.example"), ("origin", origin)], "/mcp");
        for origin in ["http://localhost:3000", "https://127.0.0.1", "https://app.example"] {
            assert_eq!(from(origin), None, "{origin}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "file://localhost",
            "",
            "https://any.example",
            "http://evil.example@localhost",
            "http://localhost/x",
            "http://[::1]evil.example",
        ] {
            assert_eq!(from(origin), Some(403), "{origin}");
        }
    }

    #[test]
    fn a_header_that_comes_twice_is_refused() {
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(check(&Allowed::default(), &twice, "/mcp"), Some(400));
        let twice = [("host", "localhost"), ("mcp-name", "a"), ("mcp-name", "a")];
        assert_eq!(check(&Allowed::default(), &twice, "/mcp"), Some(400));
    }
}
