//! One request to an address, over HTTP or HTTPS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
#[error("the response was {0}")]
struct UnexpectedStatus(StatusCode);

/// The body of the response at an address. An error if it takes longer than [`TIMEOUT`] or exceeds `limit` bytes.
pub async fn fetch(uri: Uri, limit: usize) -> io::Result<Vec<u8>> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let mut request = Request::new(Full::default());
    *request.uri_mut() = uri;
    let client = Client::default();
    let response = tokio::time::timeout(TIMEOUT, client.send(request, limit)).await;
    let response = response.map_err(late)??;
    match response.status().is_success() {
        true => Ok(response.into_body().into()),
        false => Err(io::Error::other(UnexpectedStatus(response.status()))),
    }
}

/// A request that posts a body to an address.
pub fn post(uri: Uri, body: Vec<u8>) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    request
}

/// Sends requests, each over a connection of its own.
#[derive(Default)]
pub struct Client {
    /// The certificates it trusts, which are read once.
    tls: OnceCell<TlsConnector>,
}

impl Client {
    /// The response to a request. An error if its body exceeds `limit` bytes.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> io::Result<Response<Bytes>> {
        let uri = request.uri();
        // A URI has brackets around an IPv6 address.
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let encrypted = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let socket = TcpStream::connect((host.as_str(), port)).await?;
        if !encrypted {
            return exchange(socket, request, limit).await;
        }
        let connector = self.tls.get_or_init(async || trust()).await;
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        exchange(connector.connect(name, socket).await?, request, limit).await
    }
}

/// Trusts what the system trusts.
fn trust() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut request: Request<Full<Bytes>>,
    limit: usize,
) -> io::Result<Response<Bytes>> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let uri = std::mem::take(request.uri_mut());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    // The header has no user name.
    let host = authority.rsplit('@').next().unwrap_or_default();
    request.headers_mut().insert(HOST, host.parse().map_err(io::Error::other)?);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, limit).collect().await.map_err(io::Error::other)?;
    Ok(Response::from_parts(head, body.to_bytes()))
}
