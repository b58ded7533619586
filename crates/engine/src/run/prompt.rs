//! Notices that a program asks for input.

use std::time::Duration;

use mcpz_output::Output;
use tokio::time::timeout;

use super::Inspector;

/// How long a program must be silent before its keeper is asked whether it waits for input.
const SILENCE: Duration = Duration::from_millis(250);

/// How long to wait before asking again about one that stays silent.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Completes when a run is silent and waits for input.
pub async fn wait_for_prompt(output: &Output, inspector: &Inspector) {
    let mut arrived = output.watch();
    loop {
        while timeout(SILENCE, arrived.changed()).await.is_ok_and(|changed| changed.is_ok()) {}
        if inspector.waits_for_input().await {
            return;
        }
        let _ = timeout(RETRY_INTERVAL, arrived.changed()).await;
    }
}
