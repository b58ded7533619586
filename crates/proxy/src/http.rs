//! A connection that speaks HTTP: a series of requests, or one tunnel.
//!
//! Each request gets its own decision and its own connection to the server, so no request can profit from
//! what an earlier one was allowed.
//!
//! `httparse` parses the heads; the stricter checks and the bodies are handled here. `hyper` does not fit
//! because it hides what this proxy has to see or say:
//!
//! - It accepts lines that end in a lone LF, a `Content-Length` beside a `Transfer-Encoding`, and repeated
//!   `Content-Length` fields, and removes the evidence, so the proxy could not refuse them.
//! - Its `Uri` rejects odd hosts (`site%2eorg`, `site.org\@evil.org`), so the proxy could not report them as
//!   refused. It also rejects paths that servers accept (`/<a>`), drops fragments, and cannot tell
//!   `OPTIONS *` from `OPTIONS /`.
//! - Its own 400 and 431 responses carry no text, a slow head gets no 408, and after either the socket closes
//!   at once, so a client that is still sending never sees the explanation.
//! - Its server sends no interim response except its own `100 Continue`. Its client needs to own the
//!   request's body, changes the case of field names, and would replace less code than it takes to use.

mod body;
mod error;
mod fields;
pub mod request;
mod response;

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use self::body::{BodyError, relay};
use self::error::HttpError;
use self::request::{Form, Request};
use self::response::ResponseRelay;
use crate::connector::Connector;
use crate::host::{Host, HostError};
use crate::network::Network;
use crate::peer::Peer;
use crate::target::Target;
use crate::traffic::Traffic;

/// Serves requests until one side closes the connection.
pub async fn serve<N: Network>(connector: &Connector<N>, mut client: Peer) -> io::Result<()> {
    let limits = &connector.limits;
    // An idle client has as long to start its next request as it has to finish the head.
    while timeout(limits.head_time, client.reader.wait()).await?? {
        let head = timeout(limits.head_time, client.reader.read_head(limits.head_bytes)).await;
        let served = match head.map_err(io::Error::from).flatten() {
            Ok(head) => serve_request(connector, &head, &mut client).await,
            Err(error) => match error.kind() {
                ErrorKind::TimedOut => Err(HttpError::HeadTimeout),
                ErrorKind::FileTooLarge => Err(HttpError::HeadTooLong),
                _ => return Err(error),
            },
        };
        match served {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => client.writer.write_all(error.response().as_bytes()).await?,
        }
        return client.close().await;
    }
    Ok(())
}

/// Serves one request and returns whether another may follow.
async fn serve_request<N: Network>(
    connector: &Connector<N>,
    head: &[u8],
    client: &mut Peer,
) -> Result<bool, HttpError> {
    let request = Request::parse(head, connector.limits.fields)?;
    let target = parse_target(connector, &request)?;
    match &request.form {
        Form::Connect => tunnel(connector, target, client).await.map(|()| false),
        Form::Url { path } => {
            let host = match target.port {
                80 => target.host.to_string(),
                port => format!("{}:{port}", target.host),
            };
            let head = request.forwarded_head(&host, path);
            forward(connector, target, (&request, &head), client).await
        }
    }
}

fn parse_target<N: Network>(
    connector: &Connector<N>,
    request: &Request,
) -> Result<Target, HttpError> {
    let text = request.authority.as_bytes();
    let label = request.label.clone();
    let parsed = Host::parse_with_port(text).and_then(|(host, port)| match request.form {
        Form::Connect => Ok((host, port.ok_or(HostError::Port)?)),
        Form::Url { .. } => Ok((host, port.unwrap_or(80))),
    });
    match parsed {
        Ok((host, port)) => Ok(Target { host, port, label }),
        Err(error) => Err(connector.refuse_invalid_host(text, error, label).into()),
    }
}

async fn tunnel<N: Network>(
    connector: &Connector<N>,
    target: Target,
    client: &mut Peer,
) -> Result<(), HttpError> {
    let (mut server, traffic) = connector.connect(target).await?;
    let tunnel = async {
        client.writer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        traffic.tunnel(client, &mut server, connector.limits.idle).await
    };
    if let Err(error) = tunnel.await {
        tracing::debug!("a tunnel ended: {error}");
    }
    Ok(())
}

/// Forwards a request under a new head and returns whether another may follow.
async fn forward<N: Network>(
    connector: &Connector<N>,
    target: Target,
    (request, head): (&Request, &[u8]),
    client: &mut Peer,
) -> Result<bool, HttpError> {
    let (mut server, traffic) = connector.connect(target).await?;
    let exchange = async {
        server.writer.write_all(head).await.map_err(server_failure)?;
        traffic.sent.add(head.len());
        exchange(connector, request, (client, &mut server), &traffic).await
    };
    let outcome = tokio::select! {
        outcome = exchange => outcome,
        () = traffic.wait_until_idle(connector.limits.idle) => Err(HttpError::ResponseTimeout),
    };
    match outcome {
        // The client already has a part of the response, and would read an error as its continuation.
        Err(_) if traffic.received.bytes() > 0 => Ok(false),
        outcome => outcome,
    }
}

fn server_failure(error: io::Error) -> HttpError {
    match error.kind() {
        ErrorKind::TimedOut => HttpError::ResponseTimeout,
        _ => HttpError::Response,
    }
}

/// Passes on the request's body and the response at the same time: a server may respond before it has the
/// whole body, and has to when it sends `100 Continue`.
async fn exchange<N: Network>(
    connector: &Connector<N>,
    request: &Request,
    (client, server): (&mut Peer, &mut Peer),
    traffic: &Traffic,
) -> Result<bool, HttpError> {
    let body_sent = AtomicBool::new(false);
    let upload = async {
        let (body, framing) = (&mut client.reader, request.framing);
        relay((body, framing), (&mut server.writer, framing), &traffic.sent).await?;
        body_sent.store(true, Ordering::Relaxed);
        Ok(())
    };
    let (limits, counter) = (&connector.limits, &traffic.received);
    let response = ResponseRelay { request, body_sent: &body_sent, limits, counter };
    let mut upload = pin!(upload);
    let mut download = pin!(response.run(&mut server.reader, &mut client.writer));
    tokio::select! {
        biased;
        uploaded = &mut upload => match uploaded {
            Err(BodyError::Read(_)) => Err(HttpError::RequestBody),
            // A server that stops reading the body may still respond.
            Ok(()) | Err(BodyError::Write(_)) => download.await.map_err(server_failure),
        },
        // No further request: the rest of this one's body would be read as its head.
        responded = &mut download => responded.map(|_| false).map_err(server_failure),
    }
}
