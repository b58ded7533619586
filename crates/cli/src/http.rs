//! `mcpz server shell --http`: checks the settings of HTTP, listens, and says how to connect.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::Closing;
use mcpz_runtime::{Later, random_name};
use mcpz_server::{
    Allowed, Auth, HttpLimits, HttpSettings, Keys, MemoryLimits, OAuth, OAuthSettings, Tenants,
    serve_http,
};
use tokio::net::TcpListener;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::log::Format;
use crate::process::{runtime, shutdown};
use crate::settings::{self, AuthKind, Settings, TOKEN_VARIABLE};
use crate::setup::Setup;
use crate::{jwks, open_files};

#[derive(Debug)]
pub struct Http {
    bind: SocketAddr,
    settings: HttpSettings,
    tls: Option<Arc<ServerConfig>>,
    /// Made because the settings have nothing that lets anybody in.
    pub generated_token: Option<String>,
    /// Whether everybody gets in.
    open: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("`{0}` is not an address to listen on; use one such as 127.0.0.1:8000")]
    Bind(String),
    #[error("`{0}` is not a valid host; use one such as mcp.example.org")]
    Host(String),
    #[error("the path is `{0}`, but must begin with a slash")]
    Path(String),
    #[error(
        "the token {name} has {length} characters; a token must have at least 16 characters, all of them \
         visible ASCII"
    )]
    Token { name: String, length: usize },
    #[error("`{0}` is reserved and cannot name a token; choose another name")]
    TokenName(String),
    #[error(
        "--auth none lets everyone in, but tokens or OAuth are configured; keep only one of the two"
    )]
    OpenWithTokens,
    #[error("TLS needs both a certificate and a key; add {missing}")]
    HalfTls { missing: &'static str },
    #[error("cannot use the {what} {}, which must be a PEM file", path.display())]
    Pem { what: &'static str, path: PathBuf, source: pem::Error },
    #[error("cannot use the certificate {} with the key {}", cert.display(), key.display())]
    Tls { cert: PathBuf, key: PathBuf, source: tokio_rustls::rustls::Error },
    #[error("cannot listen on {address}; choose another address with --bind")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("{name} is 0, but must be at least 1")]
    Zero { name: &'static str },
}

impl Http {
    pub fn new(settings: &Settings) -> Result<Self, Box<dyn Error>> {
        let http = &settings.http;
        let (bind, path) = (http.bind(), http.path());
        if !path.starts_with('/') {
            return Err(HttpError::Path(path).into());
        }
        let (auth, generated_token) = auth(http, settings.startup.token())?;
        let allowed = Allowed { hosts: http.allowed_hosts(), origins: http.allowed_origins() };
        let odd = |host: &&String| host.is_empty() || host.contains(['/', ' ', '@']);
        if let Some(host) = allowed.hosts.iter().find(odd) {
            return Err(HttpError::Host(host.clone()).into());
        }
        let tls = match (http.tls_cert(), http.tls_key()) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(tls(&cert, &key)?),
            (cert, _) => {
                let missing = if cert.is_some() { "--tls-key" } else { "--tls-cert" };
                return Err(HttpError::HalfTls { missing }.into());
            }
        };
        let open = matches!(auth, Auth::Open);
        let settings = HttpSettings { path, allowed, auth, limits: limits(http)? };
        let bind = address(&bind).ok_or(HttpError::Bind(bind))?;
        Ok(Self { bind, settings, tls, generated_token, open })
    }
}

/// An address of this machine, or the one that a name such as `localhost` stands for.
fn address(bind: &str) -> Option<SocketAddr> {
    let found: Vec<_> = bind.to_socket_addrs().ok()?.collect();
    // Clients are more often configured with an IPv4 address.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
}

/// Who gets in, and the token that was generated if the settings have nothing that lets anybody in.
fn auth(
    http: &settings::Http,
    token: Option<String>,
) -> Result<(Auth, Option<String>), Box<dyn Error>> {
    let (named, oauth) = (http.tokens(), http.oauth());
    let nobody = token.is_none() && named.is_empty() && oauth.is_none();
    if http.auth() == AuthKind::None {
        return match nobody {
            true => Ok((Auth::Open, None)),
            false => Err(HttpError::OpenWithTokens.into()),
        };
    }
    let generate = || Ok::<_, io::Error>(random_name()? + &random_name()?);
    let generated = nobody.then(generate).transpose()?;
    // A name that no token of the file may have.
    let own = format!("${TOKEN_VARIABLE}");
    if let Some(name) = named.keys().find(|name| **name == own) {
        return Err(HttpError::TokenName(name.clone()).into());
    }
    let unnamed = token.or(generated.clone()).map(|token| (own, token));
    let mut keys = Keys::default();
    for (name, token) in named.into_iter().chain(unnamed) {
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let length = token.chars().count();
            return Err(HttpError::Token { name, length }.into());
        }
        keys = keys.with_token(&name, &token);
    }
    if let Some(oauth) = oauth {
        let source = jwks::source(&oauth.jwks)?;
        let settings = OAuthSettings {
            issuer: oauth.issuer,
            audience: oauth.audience,
            scopes: oauth.scopes.unwrap_or_default(),
        };
        keys = keys.with_oauth(OAuth::new(settings, source));
    }
    Ok((Auth::Closed(keys), generated))
}

fn limits(http: &settings::Http) -> Result<HttpLimits, HttpError> {
    let count = |name, wanted: usize| match wanted {
        0 => Err(HttpError::Zero { name }),
        wanted => Ok(wanted),
    };
    let time = |name, wanted: u64| match wanted {
        0 => Err(HttpError::Zero { name }),
        wanted => Ok(Duration::from_secs(wanted)),
    };
    Ok(HttpLimits {
        body: http.max_body().in_memory(),
        // hyper refuses a smaller buffer.
        header_bytes: http.max_header().in_memory().max(8 << 10),
        header_time: time("header_time", http.header_time())?,
        body_time: time("body_time", http.body_time())?,
        write_time: time("write_time", http.write_time())?,
        connections: count("connections", http.connections())?,
        sessions: count("sessions_per_client", http.sessions_per_client())?,
        session_time: time("session_time", http.session_time())?,
        grace: Duration::from_secs(http.grace()),
        memory: MemoryLimits::default(),
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

pub fn run(mut setup: Setup, mut http: Http) -> Result<(), Box<dyn Error>> {
    let connections = &mut http.settings.limits.connections;
    *connections = open_files::raise_limit(&mut setup.engine, *connections);
    http.settings.limits.memory = setup.memory;
    let later = Later::default();
    let runtime = runtime(&later)?;
    let served: Result<(), Box<dyn Error>> = runtime.block_on(async {
        let address = http.bind;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| HttpError::Listen { address, source })?;
        // Before anybody learns that we are here, and may ask us to end.
        let ended = shutdown()?;
        announce(&http, listener.local_addr()?, setup.log);
        let shell = setup.shell(later);
        let engine = shell.engine().clone();
        engine.warm_up();
        serve_http(listener, http.tls, Tenants::new(shell), http.settings, ended).await?;
        engine.close(Closing::Told).await;
        Ok(())
    });
    runtime.shutdown_background();
    served
}

/// Says where the server is and, if there is a generated token, how to get in.
fn announce(http: &Http, bound: SocketAddr, log: Format) {
    let shown = match bound.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port()),
        false => bound,
    };
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{shown}{}", http.settings.path);
    log.say(&format!("listening on {bound}, at {url}"));
    if http.open {
        log.say("--auth none: anyone who can reach this address can run commands");
    }
    if let Some(token) = &http.generated_token {
        let client = serde_json::json!({
            "mcpServers": {"mcpz": {
                "type": "http",
                "url": url,
                "headers": {"Authorization": format!("Bearer {token}")},
            }},
        });
        let token =
            format!("token, until the server ends: {token} (set {TOKEN_VARIABLE} to choose one)");
        let client = format!("client configuration:\n{client:#}");
        match log {
            Format::Text => [token, client].iter().for_each(|text| log.say(text)),
            // Logs are kept and passed on, so the token is only shown to a person at a terminal.
            Format::Json if io::stdout().is_terminal() => {
                let _ = write!(io::stdout(), "mcpz: {token}\nmcpz: {client}\n");
            }
            Format::Json => log.warn(&format!(
                "no client can connect: no token is set, and the generated one is not logged; set \
                 {TOKEN_VARIABLE}"
            )),
        }
    }
}
