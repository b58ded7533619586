//! Requests that stand alone, from revision 2026-07-28 on: a service loop each, for as long as
//! somebody waits for the answer.

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

use super::rules::status_of;
use super::stream::{Kind, Reading, Stream};
use crate::memory::{Account, Taken};
use crate::message::Message;

/// Serves a request and returns where its answer is read. It is cancelled when the guard is dropped.
pub fn serve<H: ServerHandler>(
    handler: H,
    request: Message,
    version: ProtocolVersion,
    (account, taken): (Arc<Account>, Taken),
) -> (Reading, DropGuard) {
    let stream = Arc::new(Stream::default());
    let reading = stream.read(0);
    let cancelled = CancellationToken::new();
    let answered = CancellationToken::new();
    let mut request = request;
    if let JsonRpcMessage::Request(request) = &mut request {
        request.request.extensions_mut().insert(taken.clone());
    }
    let transport = Once { request: Some(request), stream, answered, account, taken };
    // Who it is, the request says itself.
    let nobody = Implementation::new("", "");
    let mut peer = InitializeRequestParams::new(Default::default(), nobody);
    peer.protocol_version = version;
    let service = serve_directly_with_ct(handler, transport, Some(peer), cancelled.clone());
    tokio::spawn(async move {
        let _ = service.waiting().await;
    });
    (reading, cancelled.drop_guard())
}

/// Brings one request and takes its answer.
struct Once {
    request: Option<Message>,
    stream: Arc<Stream>,
    answered: CancellationToken,
    account: Arc<Account>,
    taken: Taken,
}

impl Transport<RoleServer> for Once {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let kind = match &message {
            JsonRpcMessage::Response(_) => Kind::Answer(StatusCode::OK),
            JsonRpcMessage::Error(error) => Kind::Answer(status_of(&error.error)),
            JsonRpcMessage::Request(_) => Kind::Question,
            JsonRpcMessage::Notification(_) => Kind::Notice,
        };
        let said = serde_json::to_vec(&message).map(|data| {
            let data = match kind {
                Kind::Notice => self.account.try_outgoing(data),
                Kind::Question | Kind::Answer(_) => Some(self.account.outgoing(data)),
            };
            if matches!(kind, Kind::Answer(_)) {
                self.taken.answered();
            }
            data.into_iter().for_each(|data| self.stream.say(data, kind));
        });
        if matches!(kind, Kind::Answer(_)) {
            self.stream.end();
            self.answered.cancel();
        }
        std::future::ready(said.map_err(io::Error::from))
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
