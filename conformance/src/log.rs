//! What the server tells clients that want to know.

#![expect(deprecated, reason = "the suite still asks for logging")]

use std::sync::{Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use serde_json::json;

/// What a session wants to know; nothing until it says so.
#[derive(Debug, Default)]
pub struct Log(Mutex<Option<LoggingLevel>>);

impl Log {
    pub fn set(&self, level: LoggingLevel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Tells something that is merely informative. A request that stands alone says itself what it
    /// wants to know.
    pub async fn inform(&self, context: &RequestContext<RoleServer>, text: &str) {
        let own = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = context.meta.log_level().or(own);
        if matches!(wanted, Some(LoggingLevel::Debug | LoggingLevel::Info)) {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
            // A client that cannot be told has left.
            let _ = context.peer.notify_logging_message(message).await;
        }
    }
}
