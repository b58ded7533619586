//! Work that may wait for the disk or take long, away from the thread that serves everybody.

use mcpz_output::Stop;
use mcpz_runtime::spawn_blocking;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Why blocking work has no result.
#[derive(Debug, thiserror::Error)]
pub enum BlockingError {
    #[error("cancelled")]
    Cancelled,
    #[error("{}", .0.chain())]
    Output(mcpz_output::Error),
    #[error("{0}")]
    Thread(JoinError),
}

/// Runs `work` on another thread until it is done, or nobody wants its result any more. `work` should look at
/// [`Stop`] now and then: nothing else ends it early.
pub async fn run_blocking<T: Send + 'static>(
    cancelled: &CancellationToken,
    work: impl FnOnce(Stop) -> Result<T, mcpz_output::Error> + Send + 'static,
) -> Result<T, BlockingError> {
    let stop = Stop::default();
    let work = spawn_blocking({
        let stop = stop.clone();
        move || work(stop)
    });
    tokio::select! {
        result = work => result.map_err(BlockingError::Thread)?.map_err(BlockingError::Output),
        () = cancelled.cancelled() => {
            stop.stop();
            Err(BlockingError::Cancelled)
        }
    }
}
