//! This process while it serves: its runtime, the signals that end it, what others can see of it.

use std::io;

use mcpz_runtime::Later;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// A runtime with one thread. That is enough for a client, and the fastest: no call waits for another thread
/// to wake up. Deferred work is done when there is nothing else to do. Orphans of killed agents are ended.
pub fn runtime(later: &Later) -> io::Result<Runtime> {
    let later = later.clone();
    let parked = move || later.catch_up();
    let runtime = Builder::new_current_thread().enable_all().on_thread_park(parked).build()?;
    runtime.block_on(async { mcpz_agent::inherit_orphans() })?;
    Ok(runtime)
}

/// Hides our memory and environment from the commands we run. Agents, keepers and recorders do the same.
pub fn hide() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Completes when a signal asks us to end.
pub fn shutdown() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
