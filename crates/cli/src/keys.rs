//! Where the keys of an authorization server come from: a file, or an address.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use mcpz_server::Source;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The most bytes keys may have.
const MAX_KEYS: usize = 1 << 20;

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
#[error("the keys are at `{0}`, but must be in a file, or at an address with https")]
pub struct NoPlace(String);

/// Reads keys from where they are, each time they are asked for.
pub fn source(place: &str) -> Result<Source, NoPlace> {
    let uri = place.parse::<Uri>().ok().filter(|uri| uri.scheme().is_some());
    let Some(uri) = uri else {
        let path = std::path::PathBuf::from(place);
        return Ok(Box::new(move || {
            let path = path.clone();
            Box::pin(async move {
                let read = tokio::task::spawn_blocking(move || std::fs::read(path));
                read.await.map_err(io::Error::other)?
            })
        }));
    };
    let host = uri.host().unwrap_or_default();
    let nearby = host == "localhost" || host == "127.0.0.1";
    match uri.scheme_str() {
        Some("https") => {}
        // Keys that come over the network as they are could be anybody's.
        Some("http") if nearby => {}
        _ => return Err(NoPlace(place.to_owned())),
    }
    Ok(Box::new(move || {
        let uri = uri.clone();
        Box::pin(async move {
            let late = |_| io::Error::from(io::ErrorKind::TimedOut);
            tokio::time::timeout(PATIENCE, fetch(uri)).await.map_err(late)?
        })
    }))
}

async fn fetch(uri: Uri) -> io::Result<Vec<u8>> {
    let host = uri.host().unwrap_or_default().to_owned();
    let safe = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if safe { 443 } else { 80 });
    let socket = TcpStream::connect((host.as_str(), port)).await?;
    if !safe {
        return get(socket, uri).await;
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    get(stream, uri).await
}

async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: Uri,
) -> io::Result<Vec<u8>> {
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let request = Request::get(path).header(HOST, host).body(Empty::<Bytes>::new());
    let response = sender.send_request(request.map_err(io::Error::other)?).await;
    let response = response.map_err(io::Error::other)?;
    if !response.status().is_success() {
        return Err(io::Error::other(format!("the answer was {}", response.status())));
    }
    let body = Limited::new(response.into_body(), MAX_KEYS).collect().await;
    Ok(body.map_err(io::Error::other)?.to_bytes().into())
}
