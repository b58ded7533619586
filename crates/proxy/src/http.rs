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

mod answer;
mod body;
mod fields;
pub mod head;
mod response;

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use self::answer::Answer;
use self::body::{Broken, relay};
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
        let answer = match timeout(limits.head_time, client.intake.head(limits.head_bytes)).await {
            Err(_) => Answer::new(408, "the request takes too long to arrive"),
            Ok(Err(error)) if error.kind() == ErrorKind::FileTooLarge => {
                Answer::new(431, "the head of the request is too long")
            }
            Ok(Err(error)) => return Err(error),
            Ok(Ok(head)) => match serve(door, &head, &mut client).await {
                Ok(true) => continue,
                Ok(false) => return client.leave().await,
                Err(answer) => answer,
            },
        };
        client.writer.write_all(answer.message().as_bytes()).await?;
        return client.leave().await;
    }
    Ok(())
}

/// Serves one request; whether another may follow.
async fn serve<N: Network>(door: &Door<N>, head: &[u8], client: &mut End) -> Result<bool, Answer> {
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

fn read_target<N: Network>(door: &Door<N>, request: &Request) -> Result<Target, Answer> {
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
) -> Result<(), Answer> {
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
) -> Result<bool, Answer> {
    let (stream, passage) = door.open(target).await?;
    let mut server = End::new(stream);
    let exchange = async {
        server.writer.write_all(head).await?;
        passage.sent.add(head.len());
        exchange(door, request, (client, &mut server), &passage).await
    };
    match passage.unless_idle(door.limits.idle, exchange).await.flatten() {
        Ok(keep) => Ok(keep),
        // Half an answer cannot be followed by another one.
        Err(_) if passage.received.bytes() > 0 => Ok(false),
        Err(error) => Err(match error.kind() {
            ErrorKind::TimedOut => Answer::new(504, "the server does not answer"),
            ErrorKind::InvalidInput => Answer::new(400, "the body of the request is broken"),
            _ => Answer::new(502, "the server's answer is broken"),
        }),
    }
}

/// Passes a request's body one way and the answer the other way, at the same time: an answer may come
/// before all of the body, and `100 Continue` has to.
async fn exchange<N: Network>(
    door: &Door<N>,
    request: &Request,
    (client, server): (&mut End, &mut End),
    passage: &Passage,
) -> io::Result<bool> {
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
            Ok(()) => download.await,
            Err(Broken::Source(_)) => Err(ErrorKind::InvalidInput.into()),
            // A server that has heard enough may still answer.
            Err(Broken::Sink(_)) => download.await,
        },
        // What is left of the body would be taken for the next request.
        answered = &mut download => answered.map(|_| false),
    }
}
