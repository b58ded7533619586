//! One document from an address, over HTTP or HTTPS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const PATIENCE: Duration = Duration::from_secs(10);

/// Whatever is at an address, if it comes soon and is not longer than it may be.
pub async fn fetch(uri: Uri, limit: usize) -> io::Result<Vec<u8>> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    tokio::time::timeout(PATIENCE, connect(uri, limit)).await.map_err(late)?
}

async fn connect(uri: Uri, limit: usize) -> io::Result<Vec<u8>> {
    // An address of IPv6 stands in brackets, which are not part of it.
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let safe = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if safe { 443 } else { 80 });
    let socket = TcpStream::connect((host.as_str(), port)).await?;
    if !safe {
        return get(socket, uri, limit).await;
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    get(stream, uri, limit).await
}

async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: Uri,
    limit: usize,
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
    let body = Limited::new(response.into_body(), limit).collect().await;
    Ok(body.map_err(io::Error::other)?.to_bytes().into())
}
