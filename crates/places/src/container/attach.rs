//! A request that turns into a byte stream: what a process in a container reads and prints.
//!
//! The engine sends what it prints in pieces, each with a header: which of the two outputs, and how long. Headers are
//! taken out in place, in the reader's own buffer, so nothing is kept here but a header of which a part is missing.
//!
//!     1 0 0 0 length ‖ output │ 2 0 0 0 length ‖ errors │ …

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::address::Socket;
use super::engine::Engine;
use crate::container_error::ContainerError;
use crate::said::Said;

/// The longest message of an engine that refuses.
const MAX_MESSAGE: usize = 64 << 10;

const HEADER: usize = 8;

/// The input and output of a process. What it prints on stderr is what the place says.
pub struct Attached {
    socket: Socket,
    /// What arrived together with the answer to the request.
    early: Bytes,
    pieces: Pieces,
}

/// Sends a request, and takes over its connection. An engine may take a body that it does not need for input.
pub async fn attach(
    engine: &Engine,
    path: &str,
    body: Option<&serde_json::Value>,
    said: Said,
) -> Result<Attached, ContainerError> {
    let failed =
        |said: String| ContainerError::Refused { action: "connect to the agent in it", said };
    let mut request = Request::post(path)
        .body(Full::new(Bytes::from(body.map(ToString::to_string).unwrap_or_default())))
        .map_err(|error| failed(error.to_string()))?;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("tcp"));
    let answer = engine.send(request).await.map_err(|error| failed(error.to_string()))?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let body = Limited::new(answer.into_body(), MAX_MESSAGE).collect().await;
        let text = body.map(|body| body.to_bytes()).unwrap_or_default();
        let message: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let message = message["message"].as_str().map(str::to_owned);
        return Err(failed(message.unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned())));
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(|error| failed(error.to_string()))?;
    let parts = upgraded.downcast::<TokioIo<Socket>>();
    let parts = parts.map_err(|_| failed("the connection is not ours".to_owned()))?;
    Ok(Attached { socket: parts.io.into_inner(), early: parts.read_buf, pieces: Pieces::new(said) })
}

impl AsyncRead for Attached {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        while into.remaining() > 0 {
            if this.early.has_remaining() {
                let length = this.early.len().min(into.remaining());
                into.put_slice(&this.early.split_to(length));
            } else {
                ready!(this.socket.as_mut().poll_read(context, into))?;
            }
            let arrived = &mut into.filled_mut()[before..];
            if arrived.is_empty() {
                break;
            }
            let printed = this.pieces.unpack(arrived);
            into.set_filled(before + printed);
            if printed > 0 {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Attached {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match ready!(self.socket.as_mut().poll_write(context, bytes)) {
            // The reader sees the end as well, and before it why: what a process says that cannot start.
            Err(error) if is_closed(&error) => Poll::Ready(Ok(bytes.len())),
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.as_mut().poll_shutdown(context)
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Tells output from errors and headers, however they arrive.
struct Pieces {
    /// The header that is arriving, and how much of it has.
    header: [u8; HEADER],
    arrived: usize,
    /// Which output the current piece is of, and how much of it is to come.
    of: Output,
    left: usize,
    said: Said,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Stdout,
    Stderr,
    /// There are no pieces anymore: the engine itself says something, to the end of the stream.
    Engine,
}

impl Pieces {
    fn new(said: Said) -> Self {
        Self { header: [0; HEADER], arrived: 0, of: Output::Stdout, left: 0, said }
    }

    /// Moves all output in these bytes to their beginning, and returns how much it is.
    fn unpack(&mut self, bytes: &mut [u8]) -> usize {
        let (mut next, mut printed) = (0, 0);
        while next < bytes.len() {
            let rest = bytes.len() - next;
            match self.of {
                Output::Engine => {
                    self.said.add(&bytes[next..]);
                    break;
                }
                _ if self.left == 0 => {
                    let length = rest.min(HEADER - self.arrived);
                    let arriving = &mut self.header[self.arrived..][..length];
                    arriving.copy_from_slice(&bytes[next..][..length]);
                    self.arrived += length;
                    next += length;
                    if self.arrived == HEADER {
                        self.begin();
                    }
                }
                of => {
                    let piece = next..next + rest.min(self.left);
                    self.left -= piece.len();
                    next = piece.end;
                    if of == Output::Stderr {
                        self.said.add(&bytes[piece]);
                    } else {
                        bytes.copy_within(piece.clone(), printed);
                        printed += piece.len();
                    }
                }
            }
        }
        printed
    }

    /// Begins the piece whose header has arrived.
    fn begin(&mut self) {
        self.arrived = 0;
        let [of, zeros @ .., a, b, c, d] = self.header;
        self.of = match (of, zeros) {
            (0 | 1, [0, 0, 0]) => Output::Stdout,
            (2, [0, 0, 0]) => Output::Stderr,
            _ => Output::Engine,
        };
        match self.of {
            Output::Engine => self.said.add(&self.header),
            _ => self.left = u32::from_be_bytes([a, b, c, d]) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Unpacks bytes that arrive in parts of these lengths, then one by one.
    fn unpacked(bytes: &[u8], parts: &[usize]) -> (Vec<u8>, String) {
        let said = Said::default();
        let mut pieces = Pieces::new(said.clone());
        let (mut rest, mut printed) = (bytes.to_vec(), Vec::new());
        let mut parts = parts.iter().copied().chain(std::iter::repeat(1));
        while !rest.is_empty() {
            let later = rest.split_off(parts.next().unwrap_or(1).clamp(1, rest.len()));
            let length = pieces.unpack(&mut rest);
            printed.extend_from_slice(&rest[..length]);
            rest = later;
        }
        (printed, said.text())
    }

    fn piece(of: u8, content: &[u8]) -> Vec<u8> {
        let mut piece = vec![of, 0, 0, 0];
        piece.extend_from_slice(&(content.len() as u32).to_be_bytes());
        piece.extend_from_slice(content);
        piece
    }

    proptest! {
        #[test]
        fn output_comes_out_whole_however_it_is_cut(
            sent in prop::collection::vec((1..3u8, prop::collection::vec(any::<u8>(), 0..60)), 0..12),
            parts in prop::collection::vec(1..80usize, 0..20),
        ) {
            let bytes: Vec<_> = sent.iter().flat_map(|(of, content)| piece(*of, content)).collect();
            let stdout = sent.iter().filter(|(of, _)| *of == 1).flat_map(|(_, content)| content);
            let (printed, _) = unpacked(&bytes, &parts);
            prop_assert_eq!(printed, stdout.copied().collect::<Vec<_>>());
        }

        #[test]
        fn garbage_is_never_longer_than_it_arrived(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            parts in prop::collection::vec(1..80usize, 0..20),
        ) {
            let (printed, _) = unpacked(&bytes, &parts);
            prop_assert!(printed.len() <= bytes.len());
        }
    }

    #[test]
    fn errors_are_what_the_place_says_and_so_is_what_the_engine_adds() {
        let sent = [piece(1, b"out"), piece(2, b"oh no\n"), piece(1, b"put")].concat();
        assert_eq!(unpacked(&sent, &[]), (b"output".to_vec(), "oh no".to_owned()));
        let added = [sent, b"OCI runtime exec failed".to_vec()].concat();
        let said = "oh no; OCI runtime exec failed".to_owned();
        assert_eq!(unpacked(&added, &[9, 30]), (b"output".to_vec(), said));
    }
}
