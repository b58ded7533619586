//! Connections: taken, bounded in number and time, and served.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::body::Reply;
use super::crowd::{Busy, Crowd, Place};
use super::endpoint::Endpoint;
use super::{HttpLimits, Reception};

/// How long to wait when the system has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);

/// Takes connections for ever.
pub async fn accept<R: Reception>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    endpoint: Arc<Endpoint<R>>,
) -> Infallible {
    let crowd = Crowd::new(endpoint.settings().limits.connections);
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!("cannot take a connection: {error}");
                crowd.close_one();
                sleep(BREATH).await;
                continue;
            }
        };
        endpoint.metrics().note_connection();
        let place = crowd.enter(peer.ip()).await;
        let (tls, endpoint) = (tls.clone(), endpoint.clone());
        tokio::spawn(async move {
            let closed = place.closed.clone();
            let served = closed.run_until_cancelled(serve(socket, tls, endpoint, &place)).await;
            match served {
                Some(Err(error)) => tracing::debug!("a connection ended: {error}"),
                Some(Ok(())) => {}
                None => tracing::debug!("a silent connection made room for another"),
            }
        });
    }
}

async fn serve<R: Reception>(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    endpoint: Arc<Endpoint<R>>,
    place: &Place,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let local = socket.local_addr()?;
    let limits = endpoint.settings().limits;
    // A client that is gone without a word is noticed when it does not confirm what it is sent.
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, limits.write_time)?;
    let patience = u32::try_from(limits.write_time.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(&socket, patience)?;
    let socket = Patient::new(socket, limits.write_time);
    match tls {
        None => converse(socket, local, endpoint, place).await,
        Some(tls) => {
            let shaken = timeout(limits.header_time, tls.accept(socket)).await;
            converse(shaken.map_err(|_| io::ErrorKind::TimedOut)??, local, endpoint, place).await
        }
    }
}

/// Answers the requests of one connection until it ends.
async fn converse<R: Reception>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    local: SocketAddr,
    endpoint: Arc<Endpoint<R>>,
    place: &Place,
) -> io::Result<()> {
    let HttpLimits { header_time, header_bytes, .. } = endpoint.settings().limits;
    let service = service_fn(|request| {
        let (endpoint, busy) = (endpoint.clone(), place.begin());
        // Boxed: a connection that waits keeps room for it otherwise.
        Box::pin(async move {
            let response = endpoint.answer(request, local, &busy).await;
            Ok::<_, Infallible>(response.map(|reply| Sent { reply, _busy: busy }))
        })
    });
    // A connection that waits for its next request is one that waits for a header.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_buf_size(header_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    served.map_err(io::Error::other)
}

/// What a response carries, on its way: until it has arrived, its connection is not silent.
struct Sent {
    reply: Reply,
    _busy: Busy,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.reply).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.reply.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.reply.size_hint()
    }
}

/// A socket whose other end must take what is written to it, in time.
struct Patient<S> {
    socket: S,
    patience: Duration,
    /// Runs while something waits to be written.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(socket: S, patience: Duration) -> Self {
        Self { socket, patience, waiting: None }
    }

    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let until = Instant::now() + self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, bytes);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
