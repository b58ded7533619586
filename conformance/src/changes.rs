//! Changes of the lists, which clients hear of while they listen. The lists stay as they are: the suite
//! also wants them to.

use rmcp::model::ErrorData;
use rmcp::service::SubscriptionContext;
use tokio::sync::broadcast;

/// How far a listener may fall behind before it misses changes.
const WAITING: usize = 16;

#[derive(Debug, Clone, Copy)]
pub enum Change {
    Tools,
    Prompts,
}

#[derive(Debug, Clone)]
pub struct Changes(broadcast::Sender<Change>);

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING))
    }
}

impl Changes {
    pub fn tell(&self, change: Change) {
        // It fails if nobody listens, which is no fault.
        let _ = self.0.send(change);
    }

    /// Passes on what the client wants to hear of, until it leaves.
    pub async fn pass_on(&self, listener: &SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = listener.cancelled() => return Ok(()),
            };
            // It fails if the client did not ask to hear of this.
            let _ = match change {
                Ok(Change::Tools) => listener.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => listener.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(()),
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
        }
    }
}
