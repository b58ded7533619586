//! The agent as a child of the server: signalled, waited for and reaped.
//!
//! None of this blocks the calling thread. A pidfd tells the runtime that the process has ended, and refers to the same
//! process even after it was reaped, when another process may have its id.

use std::future::pending;
use std::os::fd::OwnedFd;
use std::process::Child;

use mcpz_runtime::spawn_blocking;
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::children;

/// A child of this process that nobody else waits for.
pub struct AgentProcess {
    id: Pid,
    /// Missing before Linux 5.3, or if this process has too many open files.
    pidfd: Option<AsyncFd<OwnedFd>>,
}

impl AgentProcess {
    /// Must be called within a tokio runtime.
    pub fn new(child: Child) -> Self {
        let id = Pid::from_child(&child);
        let pidfd = pidfd_open(id, PidfdFlags::empty()).ok();
        // SAFETY: the descriptor is ours, and stays open and the same for as long as it is registered.
        let register = |fd| unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Self { id, pidfd: pidfd.and_then(|pidfd| register(pidfd).ok()) }
    }

    /// Its process id, which is also the id of its process group.
    pub fn id(&self) -> Pid {
        self.id
    }

    pub fn signal(&self, signal: Signal) {
        let _ = match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd.get_ref(), signal),
            None => kill_process(self.id, signal),
        };
    }

    /// Completes when the process has ended; never without a pidfd.
    pub async fn ended(&self) {
        match &self.pidfd {
            Some(pidfd) => drop(pidfd.readable().await),
            None => pending().await,
        }
    }

    /// Waits until the process has ended, and reaps it. True if it exited by itself, after all it had to do.
    pub async fn reap(&self) -> bool {
        if self.pidfd.is_some() {
            self.ended().await;
        }
        let id = self.id;
        let reaped = match waitpid(Some(id), WaitOptions::NOHANG) {
            // Without a pidfd it may be alive, and a traced process must be reaped by its tracer first.
            Ok(None) => {
                let wait = move || retry_on_intr(|| waitpid(Some(id), WaitOptions::empty()));
                spawn_blocking(wait).await.ok().and_then(Result::ok).flatten()
            }
            reaped => reaped.ok().flatten(),
        };
        children::forget(id.as_raw_nonzero().get());
        reaped.is_some_and(|(_, status)| status.exit_status() == Some(0))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::tree;

    const TOO_LONG: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn other_tasks_go_on_while_a_process_is_waited_for() {
        for has_pidfd in [true, false] {
            // It ends when its input does, and would end by itself only much later.
            let limit = TOO_LONG.as_secs().to_string();
            let mut command = Command::new("timeout");
            let mut child = command.args([&limit, "cat"]).stdin(Stdio::piped()).spawn().unwrap();
            let (stdin, began) = (child.stdin.take(), Instant::now());
            let mut process = AgentProcess::new(child);
            process.pidfd.take_if(|_| !has_pidfd);
            tokio::join!(process.reap(), async { drop(stdin) });
            assert!(began.elapsed() < TOO_LONG / 2, "the runtime's thread was blocked");
            assert!(
                tree::read_stat(process.id().as_raw_nonzero().get()).is_none(),
                "it was not reaped"
            );
        }
    }
}
