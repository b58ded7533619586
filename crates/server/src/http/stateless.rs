//! Requests without a session, from revision 2026-07-28 on: each has a service loop of its own, for as long as its
//! client waits for the answer.

use std::io;
use std::sync::Arc;

use http::StatusCode;
use rmcp::model::{
    GetExtensions, Implementation, InitializeRequestParams, JsonRpcMessage, ProtocolVersion,
};
use rmcp::service::{TxJsonRpcMessage, serve_directly_with_ct};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::event_stream::{EventReader, EventStream, Kind};
use super::headers::status_of;
use crate::memory::{MemoryAccount, RequestMemory};
use crate::message::Message;

/// Serves a request and returns where to read its answer. Dropping the guard cancels it.
pub fn serve<H: ServerHandler>(
    handler: H,
    request: Message,
    version: ProtocolVersion,
    (account, memory): (Arc<MemoryAccount>, RequestMemory),
) -> (EventReader, DropGuard) {
    let stream = Arc::new(EventStream::default());
    let reader = stream.read(0);
    let cancelled = CancellationToken::new();
    let answered = CancellationToken::new();
    let mut request = request;
    if let JsonRpcMessage::Request(request) = &mut request {
        request.request.extensions_mut().insert(memory.clone());
    }
    let transport = SingleRequest { request: Some(request), stream, answered, account, memory };
    // The request itself says who the client is.
    let nobody = Implementation::new("", "");
    let mut peer = InitializeRequestParams::new(Default::default(), nobody);
    peer.protocol_version = version;
    let service = serve_directly_with_ct(handler, transport, Some(peer), cancelled.clone());
    tokio::spawn(async move {
        let _ = service.waiting().await;
    });
    (reader, cancelled.drop_guard())
}

/// A transport that delivers one request and takes its answer.
struct SingleRequest {
    request: Option<Message>,
    stream: Arc<EventStream>,
    answered: CancellationToken,
    account: Arc<MemoryAccount>,
    memory: RequestMemory,
}

impl Transport<RoleServer> for SingleRequest {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let kind = match &message {
            JsonRpcMessage::Response(_) => Kind::Answer(StatusCode::OK),
            JsonRpcMessage::Error(error) => Kind::Answer(status_of(&error.error)),
            JsonRpcMessage::Request(_) => Kind::Request,
            JsonRpcMessage::Notification(_) => Kind::Notification,
        };
        let sent = serde_json::to_vec(&message).map(|data| {
            let data = match kind {
                Kind::Notification => self.account.try_outgoing(data),
                Kind::Request | Kind::Answer(_) => Some(self.account.outgoing(data)),
            };
            if matches!(kind, Kind::Answer(_)) {
                self.memory.release_answer();
            }
            data.into_iter().for_each(|data| self.stream.push(data, kind));
        });
        if matches!(kind, Kind::Answer(_)) {
            self.stream.end();
            self.answered.cancel();
        }
        std::future::ready(sent.map_err(io::Error::from))
    }

    async fn receive(&mut self) -> Option<Message> {
        match self.request.take() {
            Some(request) => Some(request),
            None => {
                self.answered.cancelled().await;
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stream.end();
        Ok(())
    }
}
