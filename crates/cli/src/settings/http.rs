//! `[http]`: how a server is reached over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcpz_server::HttpLimits;

use super::choice::AuthKind;
use super::flag::Flag;
use super::section::{inner_table, section};
use super::size::Size;

section! {
    /// How a server is reached over HTTP.
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

        /// What is asked for.
        auth: AuthKind = AuthKind::Token,
            flag: Flag {
                value: Some("KIND"),
                ..Flag::http("auth", 4, "What is asked for: token ($MCP_HTTP_TOKEN) or none")
            };

        /// Tokens, by the name of who has them.
        tokens: BTreeMap<String, String> = BTreeMap::new();

        /// An authorization server that vouches for clients.
        oauth: Option<OAuth> = None;

        /// Names the server is known by.
        allowed_hosts: Vec<String> = Vec::new(),
            flag: Flag {
                value: Some("NAME"),
                ..Flag::http("allowed-host", 5, "Host name the server is known by; can be given again")
            };

        /// Origins of web pages that may use the server.
        allowed_origins: Vec<String> = Vec::new(),
            flag: Flag {
                value: Some("ORIGIN"),
                ..Flag::http(
                    "allowed-origin",
                    6,
                    "Origin of web pages that may use the server; can be given again",
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

        /// The longest message.
        max_body: Size = Size(HttpLimits::default().body as u64);

        /// The longest head of a request.
        max_header: Size = Size(HttpLimits::default().header_bytes as u64);

        /// Seconds for the head of a request, and between requests.
        header_time: u64 = HttpLimits::default().header_time.as_secs();

        /// Seconds for the body of a request.
        body_time: u64 = HttpLimits::default().body_time.as_secs();

        /// Seconds until a client must have read something of its answer.
        write_time: u64 = HttpLimits::default().write_time.as_secs();

        /// Connections that are open at once.
        connections: usize = HttpLimits::default().connections;

        /// Sessions of one client; the one that was not used longest makes room.
        sessions_per_client: usize = HttpLimits::default().sessions;

        /// Seconds until a session ends that nobody uses.
        session_time: u64 = HttpLimits::default().session_time.as_secs();

        /// Seconds a command runs on without its client.
        grace: u64 = HttpLimits::default().grace.as_secs();
    }
}

inner_table! {
    pub struct OAuth {
        /// Who vouches for clients, as their tokens say it.
        pub issuer: String,
        /// For whom the tokens must be: the address of this server.
        pub audience: String,
        /// The keys of the issuer: a file, or an address.
        pub jwks: String,
        /// What a token must allow.
        pub scopes: Option<Vec<String>>,
    }
}
