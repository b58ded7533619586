//! `mcpz server shell --http`

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::Closing;
use mcpz_runtime::Later;
use mcpz_server::{
    Allowed, Auth, Guests, HttpLimits, HttpSettings, Keys, OAuth, OAuthSettings, random_name,
    serve_http,
};
use tokio::net::TcpListener;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::args::{AuthKind, HttpFlags};
use crate::config;
use crate::descriptors::make_room;
use crate::environment;
use crate::keys;
use crate::log::Format;
use crate::server::{runtime, shutdown};
use crate::settings::Settings;

/// The variable the token is given in. No command gets to see it.
pub const TOKEN_VARIABLE: &str = "MCP_HTTP_TOKEN";

/// Where a server listens unless it is told otherwise.
pub const DEFAULT_BIND: &str = "0.0.0.0:8000";
pub const DEFAULT_PATH: &str = "/mcp";

#[derive(Debug)]
pub struct Http {
    bind: SocketAddr,
    settings: HttpSettings,
    tls: Option<Arc<ServerConfig>>,
    /// A token that was made because there was none.
    pub made: Option<String>,
    open: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("`{0}` is not an address of this machine to listen on, such as 127.0.0.1:8000")]
    Bind(String),
    #[error("`{0}` is no host that a request can name: allow one such as mcp.example.org")]
    Host(String),
    #[error("the path is `{0}`, but must begin with a slash")]
    Path(String),
    #[error(
        "the token {name} has {length} characters; a token must have at least 16 characters, all of them \
         visible ASCII"
    )]
    Token { name: String, length: usize },
    #[error("`{0}` cannot be the name of a token in the file: choose another")]
    TokenName(String),
    #[error("there are tokens, but --auth none lets everybody in: keep one of them")]
    OpenWithTokens,
    #[error("TLS needs both a certificate and a key: add {missing}")]
    HalfTls { missing: &'static str },
    #[error("cannot use the {what} {}, which must be a file in PEM", path.display())]
    Pem { what: &'static str, path: PathBuf, source: pem::Error },
    #[error("cannot use the certificate {} with the key {}", cert.display(), key.display())]
    Tls { cert: PathBuf, key: PathBuf, source: tokio_rustls::rustls::Error },
    #[error("cannot listen on {address}; --bind names another address")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("{name} is 0, but must be at least 1")]
    Nothing { name: &'static str },
}

impl Http {
    pub fn load(flags: &HttpFlags, file: config::Http) -> Result<Self, Box<dyn Error>> {
        let bind =
            flags.bind.clone().or_else(|| environment::text("MCP_HTTP_BIND")).or(file.bind.clone());
        let bind = bind.unwrap_or_else(|| DEFAULT_BIND.into());
        let path =
            flags.path.clone().or_else(|| environment::text("MCP_HTTP_PATH")).or(file.path.clone());
        let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
        if !path.starts_with('/') {
            return Err(HttpError::Path(path).into());
        }
        let token = environment::text(TOKEN_VARIABLE);
        let kind = flags.auth.or(file.auth).unwrap_or(AuthKind::Token);
        let (auth, made) = auth(kind, token, &file)?;
        let allowed = Allowed {
            hosts: list(&flags.allowed_host, file.allowed_hosts.clone()),
            origins: list(&flags.allowed_origin, file.allowed_origins.clone()),
        };
        let odd = |host: &&String| host.is_empty() || host.contains(['/', ' ', '@']);
        if let Some(host) = allowed.hosts.iter().find(odd) {
            return Err(HttpError::Host(host.clone()).into());
        }
        let cert = flags.tls_cert.clone().or(file.tls_cert.clone());
        let key = flags.tls_key.clone().or(file.tls_key.clone());
        let tls = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(tls(&cert, &key)?),
            (cert, _) => {
                let missing = if cert.is_some() { "--tls-key" } else { "--tls-cert" };
                return Err(HttpError::HalfTls { missing }.into());
            }
        };
        let open = matches!(auth, Auth::Open);
        let settings = HttpSettings { path, allowed, auth, limits: limits(&file)? };
        let bind = address(&bind).ok_or(HttpError::Bind(bind))?;
        Ok(Self { bind, settings, tls, made, open })
    }
}

/// The address that is meant: itself, or what a name such as `localhost` stands for.
fn address(bind: &str) -> Option<SocketAddr> {
    let found: Vec<_> = bind.to_socket_addrs().ok()?.collect();
    // Where both are there, clients that are given a number are given this one.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
}

/// Names on the command line take the place of those in the file.
fn list(flags: &[String], file: Option<Vec<String>>) -> Vec<String> {
    match flags {
        [] => file.unwrap_or_default(),
        flags => flags.to_vec(),
    }
}

fn auth(
    kind: AuthKind,
    token: Option<String>,
    file: &config::Http,
) -> Result<(Auth, Option<String>), Box<dyn Error>> {
    let named = file.tokens.clone().unwrap_or_default();
    if kind == AuthKind::None {
        return match token.is_none() && named.is_empty() && file.oauth.is_none() {
            true => Ok((Auth::Open, None)),
            false => Err(HttpError::OpenWithTokens.into()),
        };
    }
    let needs_one = token.is_none() && named.is_empty() && file.oauth.is_none();
    let made =
        needs_one.then(|| Ok::<_, io::Error>(random_name()? + &random_name()?)).transpose()?;
    // A name that nobody can have in the file.
    let own = format!("${TOKEN_VARIABLE}");
    if let Some(name) = named.keys().find(|name| **name == own) {
        return Err(HttpError::TokenName(name.clone()).into());
    }
    let unnamed = token.or(made.clone()).map(|token| (own, token));
    let mut keys = Keys::default();
    for (name, token) in named.into_iter().chain(unnamed) {
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let length = token.chars().count();
            return Err(HttpError::Token { name, length }.into());
        }
        keys = keys.with_token(&name, &token);
    }
    if let Some(oauth) = &file.oauth {
        let settings = OAuthSettings {
            issuer: oauth.issuer.clone(),
            audience: oauth.audience.clone(),
            scopes: oauth.scopes.clone().unwrap_or_default(),
        };
        keys = keys.with_oauth(OAuth::new(settings, keys::source(&oauth.jwks)?));
    }
    Ok((Auth::Closed(keys), made))
}

fn limits(file: &config::Http) -> Result<HttpLimits, HttpError> {
    let default = HttpLimits::default();
    let count = |name, wanted: Option<usize>, otherwise| match wanted {
        Some(0) => Err(HttpError::Nothing { name }),
        wanted => Ok(wanted.unwrap_or(otherwise)),
    };
    let time = |name, wanted: Option<u64>, otherwise| match wanted {
        Some(0) => Err(HttpError::Nothing { name }),
        wanted => Ok(wanted.map_or(otherwise, Duration::from_secs)),
    };
    let size = |wanted: Option<crate::size::Size>, otherwise: usize| {
        wanted.map_or(otherwise, |size| usize::try_from(size.0).unwrap_or(usize::MAX))
    };
    Ok(HttpLimits {
        body: size(file.max_body, default.body),
        // The library needs a little to work with.
        header_bytes: size(file.max_header, default.header_bytes).max(8 << 10),
        header_time: time("header_time", file.header_time, default.header_time)?,
        body_time: time("body_time", file.body_time, default.body_time)?,
        write_time: time("write_time", file.write_time, default.write_time)?,
        connections: count("connections", file.connections, default.connections)?,
        sessions: count("sessions_per_client", file.sessions_per_client, default.sessions)?,
        session_time: time("session_time", file.session_time, default.session_time)?,
        grace: file.grace.map_or(default.grace, Duration::from_secs),
        memory: default.memory,
    })
}

fn tls(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, HttpError> {
    let unread = |what, path: &Path| {
        let path = path.to_owned();
        move |source| HttpError::Pem { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.and_then(|chain: Vec<_>| match chain.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(chain),
    });
    let chain = chain.map_err(unread("certificate", cert))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(unread("key", key))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, secret);
    let (cert, key) = (cert.to_owned(), key.to_owned());
    config.map(Arc::new).map_err(|source| HttpError::Tls { cert, key, source })
}

pub fn run(mut settings: Settings, mut http: Http) -> Result<(), Box<dyn Error>> {
    let connections = &mut http.settings.limits.connections;
    *connections = make_room(&mut settings.engine, *connections);
    http.settings.limits.memory = settings.memory;
    let later = Later::default();
    let runtime = runtime(&later)?;
    let served: Result<(), Box<dyn Error>> = runtime.block_on(async {
        let address = http.bind;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| HttpError::Listen { address, source })?;
        // Before anybody can know that we are here, and ask us to end.
        let ended = shutdown()?;
        announce(&http, listener.local_addr()?, settings.log);
        let shell = settings.shell(later);
        let engine = shell.engine().clone();
        engine.warm_up();
        serve_http(listener, http.tls, Guests::new(shell), http.settings, ended).await?;
        engine.close(Closing::Told).await;
        Ok(())
    });
    runtime.shutdown_background();
    served
}

/// Says where the server is and, this once, how to get in.
fn announce(http: &Http, bound: SocketAddr, log: Format) {
    let shown = match bound.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port()),
        false => bound,
    };
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{shown}{}", http.settings.path);
    log.say(&format!("listening on {bound}, at {url}"));
    if http.open {
        log.say("--auth none: everybody who can reach this address can run commands");
    }
    if let Some(token) = &http.made {
        let client = serde_json::json!({
            "mcpServers": {"mcpz": {
                "type": "http",
                "url": url,
                "headers": {"Authorization": format!("Bearer {token}")},
            }},
        });
        let token =
            format!("the token is {token}, until the server ends; {TOKEN_VARIABLE} sets one");
        let client = format!("for a client's configuration:\n{client:#}");
        match log {
            Format::Text => [token, client].iter().for_each(|text| log.say(text)),
            // Logs are kept and passed on; what lets people in is for the person who is here.
            Format::Json if io::stdout().is_terminal() => {
                let _ = write!(io::stdout(), "mcpz: {token}\nmcpz: {client}\n");
            }
            Format::Json => log.warn(&format!(
                "nobody can get in: there was no token, and the one that was made is not logged; set \
                 {TOKEN_VARIABLE}"
            )),
        }
    }
}
