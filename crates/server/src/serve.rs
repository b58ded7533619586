//! Serves clients: one on standard input and output, or one on any other transport.

use std::io;
use std::time::Duration;

use mcpz_engine::Closing;
use rmcp::RoleServer;
use rmcp::service::{RunningService, ServerInitializeError, ServiceExt};
use rmcp::transport::IntoTransport;

use crate::handler::ShellServer;
use crate::memory::{Memory, MemoryLimits};
use crate::stdio::Stdio;

/// How long answers may take to be written once all commands have ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves standard input and output until the client closes them or `shutdown` is done. Requests may take `finish_time`
/// longer than the input. No process is left when this returns.
pub async fn serve_stdio(
    shell: ShellServer,
    finish_time: Duration,
    memory: MemoryLimits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let stdio = Stdio::open(finish_time, Memory::new(memory).account())?;
    let closed = stdio.closed();
    let engine = shell.engine().clone();
    let mut session = tokio::spawn(async move {
        // A conversation that never began has no answers to wait for.
        if let Ok(running) = serve(shell, stdio).await {
            let _ = running.waiting().await;
        }
    });
    tokio::select! {
        () = closed.cancelled() => {
            engine.close(Closing::ClientLeft).await;
            // The commands are gone, so their answers are ready at once.
            let _ = tokio::time::timeout(LAST_WORDS, session).await;
        }
        _ = &mut session => engine.close(Closing::ClientLeft).await,
        () = shutdown => engine.close(Closing::Told).await,
    }
    Ok(())
}

/// Serves one client on any transport.
pub async fn serve<T, E, A>(
    shell: ShellServer,
    transport: T,
) -> Result<RunningService<RoleServer, ShellServer>, ServerInitializeError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    shell.serve(transport).await
}
