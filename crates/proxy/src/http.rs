//! A connection that speaks HTTP: requests one after the other, or one tunnel.
//!
//! Every request is decided for itself and has a connection of its own to the server, so no request
//! can ride on what another was allowed.
//!
//! `httparse` reads the heads; the strict checks and the bodies are ours. `hyper` is not used here
//! because it hides what this proxy has to see or say:
//!
//! - It accepts lines that end in LF alone, a `Content-Length` next to a `Transfer-Encoding`, and repeated
//!   `Content-Length` fields, and drops the evidence before we could refuse them.
//! - Its `Uri` rejects odd hosts (`site%2eorg`, `site.org\@evil.org`) before they could be reported as
//!   refused, rejects paths that servers accept (`/<a>`), drops fragments, and makes `OPTIONS *` a
//!   request for `/`.
//! - Its own 400 and 431 have no text, a head that takes too long gets no 408, and the socket closes at
//!   once, so a client that is still sending loses the explanation.
//! - Its server sends no interim response except its own `100 Continue`. Its client wants to own the request's
//!   body, writes field names in its own case, and replaces less code than it needs around it.

mod body;
mod error;
mod fields;
pub mod head;
mod response;

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use self::body::{BodyError, relay};
use self::error::HttpError;
use self::head::{Kind, Request};
use self::response::Answering;
use crate::door::Door;
use crate::host::{Host, HostError};
use crate::network::Network;
use crate::target::Target;
use crate::traffic::{End, Passage};

/// Serves requests until the client leaves or is told to.
pub async fn converse<N: Network>(door: &Door<N>, mut client: End) -> io::Result<()> {
    let limits = &door.limits;
    // Waiting for the next request is waiting for its head.
    while timeout(limits.head_time, client.intake.arrives()).await?? {
        let head = timeout(limits.head_time, client.intake.head(limits.head_bytes)).await;
        let served = match head.map_err(io::Error::from).flatten() {
            Ok(head) => serve(door, &head, &mut client).await,
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
        return client.leave().await;
    }
    Ok(())
}

/// Serves one request; whether another may follow.
async fn serve<N: Network>(
    door: &Door<N>,
    head: &[u8],
    client: &mut End,
) -> Result<bool, HttpError> {
    let request = Request::parse(head, door.limits.fields)?;
    let target = read_target(door, &request)?;
    match &request.kind {
        Kind::Connect => tunnel(door, target, client).await.map(|()| false),
        Kind::Plain { path } => {
            let host = match target.port {
                80 => target.host.to_string(),
                port => format!("{}:{port}", target.host),
            };
            let head = request.head_for(&host, path);
            forward(door, target, (&request, &head), client).await
        }
    }
}

fn read_target<N: Network>(door: &Door<N>, request: &Request) -> Result<Target, HttpError> {
    let text = request.authority.as_bytes();
    let label = request.label.clone();
    let read = Host::parse_with_port(text).and_then(|(host, port)| match request.kind {
        Kind::Connect => Ok((host, port.ok_or(HostError::Port)?)),
        Kind::Plain { .. } => Ok((host, port.unwrap_or(80))),
    });
    match read {
        Ok((host, port)) => Ok(Target { host, port, label }),
        Err(error) => Err(door.refuse_text(text, error, label).into()),
    }
}

async fn tunnel<N: Network>(
    door: &Door<N>,
    target: Target,
    client: &mut End,
) -> Result<(), HttpError> {
    let (stream, passage) = door.open(target).await?;
    let mut server = End::new(stream);
    let tunnelled = async {
        client.writer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        passage.tunnel(client, &mut server, door.limits.idle).await
    };
    if let Err(error) = tunnelled.await {
        tracing::debug!("a tunnel ended: {error}");
    }
    Ok(())
}

async fn forward<N: Network>(
    door: &Door<N>,
    target: Target,
    (request, head): (&Request, &[u8]),
    client: &mut End,
) -> Result<bool, HttpError> {
    let (stream, passage) = door.open(target).await?;
    let mut server = End::new(stream);
    let exchange = async {
        server.writer.write_all(head).await.map_err(failure)?;
        passage.sent.add(head.len());
        exchange(door, request, (client, &mut server), &passage).await
    };
    let exchanged = tokio::select! {
        exchanged = exchange => exchanged,
        () = passage.idle(door.limits.idle) => Err(HttpError::ResponseTimeout),
    };
    match exchanged {
        // Half an answer cannot be followed by another one.
        Err(_) if passage.received.bytes() > 0 => Ok(false),
        exchanged => exchanged,
    }
}

/// What a failed connection to the server means.
fn failure(error: io::Error) -> HttpError {
    match error.kind() {
        ErrorKind::TimedOut => HttpError::ResponseTimeout,
        _ => HttpError::Response,
    }
}

/// Passes a request's body one way and the answer the other way, at the same time: an answer may come
/// before all of the body, and `100 Continue` has to.
async fn exchange<N: Network>(
    door: &Door<N>,
    request: &Request,
    (client, server): (&mut End, &mut End),
    passage: &Passage,
) -> Result<bool, HttpError> {
    let heard = AtomicBool::new(false);
    let upload = async {
        let (body, framing) = (&mut client.intake, request.framing);
        relay((body, framing), (&mut server.writer, framing), &passage.sent).await?;
        heard.store(true, Ordering::Relaxed);
        Ok(())
    };
    let answering =
        Answering { request, heard: &heard, limits: &door.limits, count: &passage.received };
    let mut upload = pin!(upload);
    let mut download = pin!(answering.pass(&mut server.intake, &mut client.writer));
    tokio::select! {
        biased;
        sent = &mut upload => match sent {
            Err(BodyError::Read(_)) => Err(HttpError::RequestBody),
            // A server that has heard enough may still answer.
            Ok(()) | Err(BodyError::Write(_)) => download.await.map_err(failure),
        },
        // What is left of the body would be taken for the next request.
        answered = &mut download => answered.map(|_| false).map_err(failure),
    }
}
