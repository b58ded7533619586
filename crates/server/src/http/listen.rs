//! Accepts connections, limits their number and their time, and serves them.

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

use super::body::ResponseBody;
use super::connections::{Connections, InFlight, Slot};
use super::endpoint::Endpoint;
use super::{Backend, HttpLimits};

/// The pause after the system had no room for another connection.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Accepts connections for ever.
pub async fn accept<R: Backend>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    endpoint: Arc<Endpoint<R>>,
) -> Infallible {
    let connections = Connections::new(endpoint.settings().limits.connections);
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                connections.close_one();
                sleep(RETRY_AFTER).await;
                continue;
            }
        };
        endpoint.metrics().note_connection();
        let slot = connections.open(peer.ip()).await;
        let (tls, endpoint) = (tls.clone(), endpoint.clone());
        tokio::spawn(async move {
            let closed = slot.closed.clone();
            let served = closed.run_until_cancelled(serve(socket, tls, endpoint, &slot)).await;
            match served {
                Some(Err(error)) => tracing::debug!("a connection ended: {error}"),
                Some(Ok(())) => {}
                None => tracing::debug!("closed an idle connection to make room for another"),
            }
        });
    }
}

async fn serve<R: Backend>(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    endpoint: Arc<Endpoint<R>>,
    slot: &Slot,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let local = socket.local_addr()?;
    let limits = endpoint.settings().limits;
    // A client that vanished is noticed when it does not acknowledge what it is sent.
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, limits.write_time)?;
    let write_time = u32::try_from(limits.write_time.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(&socket, write_time)?;
    let socket = WriteTimeout::new(socket, limits.write_time);
    match tls {
        None => answer_requests(socket, local, endpoint, slot).await,
        Some(tls) => {
            let accepted = timeout(limits.header_time, tls.accept(socket)).await;
            let stream = accepted.map_err(|_| io::ErrorKind::TimedOut)??;
            answer_requests(stream, local, endpoint, slot).await
        }
    }
}

/// Answers the requests of one connection until it ends.
async fn answer_requests<R: Backend>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    local: SocketAddr,
    endpoint: Arc<Endpoint<R>>,
    slot: &Slot,
) -> io::Result<()> {
    let HttpLimits { header_time, header_bytes, .. } = endpoint.settings().limits;
    let service = service_fn(|request| {
        let (endpoint, in_flight) = (endpoint.clone(), slot.begin());
        // Boxed, because an idle connection would keep room for it otherwise.
        Box::pin(async move {
            let response = endpoint.answer(request, local, &in_flight).await;
            Ok::<_, Infallible>(response.map(|body| TrackedBody { body, _in_flight: in_flight }))
        })
    });
    // The timeout for headers also limits how long a connection waits for its next request.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_buf_size(header_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    served.map_err(io::Error::other)
}

/// The body of a response. Its connection is not idle until all of it has been sent.
struct TrackedBody {
    body: ResponseBody,
    _in_flight: InFlight,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that fails when its other end takes too long to take what is written.
struct WriteTimeout<S> {
    socket: S,
    limit: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    fn new(socket: S, limit: Duration) -> Self {
        Self { socket, limit, waiting: None }
    }

    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let until = Instant::now() + self.limit;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.check(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, bytes);
        self.check(context, written)
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
