//! `[http]`: how a server is reached over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcpz_server::HttpLimits;

use super::choice::AuthKind;
use super::flag::Flag;
use super::section::{inner_table, section};
use super::size::Size;

section! {
    /// How clients reach a server over HTTP.
    pub struct Http {
        /// The address to listen on.
        bind: String = "0.0.0.0:8000".to_owned(),
            variable: "MCP_HTTP_BIND",
            flag: Flag {
                value: Some("ADDRESS"),
                ..Flag::http("bind", 2, "Address to listen on")
            };

        /// The path of the endpoint.
        path: String = "/mcp".to_owned(),
            variable: "MCP_HTTP_PATH",
            flag: Flag {
                value: Some("PATH"),
                ..Flag::http("path", 3, "Path of the endpoint")
            };

        /// How clients authenticate.
        auth: AuthKind = AuthKind::Token,
            flag: Flag {
                value: Some("KIND"),
                ..Flag::http("auth", 4, "Authentication: token ($MCP_HTTP_TOKEN) or none")
            };

        /// Tokens, each under the name of its owner.
        tokens: BTreeMap<String, String> = BTreeMap::new();

        /// An authorization server whose tokens are accepted.
        oauth: Option<OAuth> = None;

        /// Host names that requests may use.
        allowed_hosts: Vec<String> = Vec::new(),
            flag: Flag {
                value: Some("NAME"),
                ..Flag::http("allowed-host", 5, "Host name that requests may use; repeatable")
            };

        /// Origins of web pages that may use the server.
        allowed_origins: Vec<String> = Vec::new(),
            flag: Flag {
                value: Some("ORIGIN"),
                ..Flag::http(
                    "allowed-origin",
                    6,
                    "Origin of web pages that may use the server; repeatable",
                )
            };

        /// The certificate chain for TLS, in PEM.
        tls_cert: Option<PathBuf> = None,
            flag: Flag {
                value: Some("FILE"),
                ..Flag::http("tls-cert", 7, "Certificate chain for TLS, in PEM")
            };

        /// The key of the certificate, in PEM.
        tls_key: Option<PathBuf> = None,
            flag: Flag {
                value: Some("FILE"),
                ..Flag::http("tls-key", 8, "Key of the certificate, in PEM")
            };

        /// The largest request body.
        max_body: Size = Size(HttpLimits::default().body as u64);

        /// The largest headers of a request.
        max_header: Size = Size(HttpLimits::default().header_bytes as u64);

        /// Seconds to receive the headers of a request, and between requests.
        header_time: u64 = HttpLimits::default().header_time.as_secs();

        /// Seconds to receive the body of a request.
        body_time: u64 = HttpLimits::default().body_time.as_secs();

        /// Seconds until a client that stops reading its answer is disconnected.
        write_time: u64 = HttpLimits::default().write_time.as_secs();

        /// Connections that are open at once.
        connections: usize = HttpLimits::default().connections;

        /// HTTP sessions of one client; a new one evicts the least recently used.
        sessions_per_client: usize = HttpLimits::default().sessions;

        /// Seconds until an unused HTTP session ends, and until the jobs of a client that is gone are stopped.
        session_time: u64 = HttpLimits::default().session_time.as_secs();

        /// Seconds that a command keeps running after its client loses the connection.
        grace: u64 = HttpLimits::default().grace.as_secs();
    }
}

inner_table! {
    pub struct OAuth {
        /// The issuer of the tokens, exactly as they name it.
        pub issuer: String,
        /// The audience that the tokens must name: the URL of this server.
        pub audience: String,
        /// The keys of the issuer (JWKS): a file or a URL.
        pub jwks: String,
        /// The scopes that a token must have.
        pub scopes: Option<Vec<String>>,
    }
}
