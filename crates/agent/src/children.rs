//! The children of a server: those it started, and those the kernel gave it.
//!
//!     started    an agent, or the process that a recorder forks away from   reaped by the code that started it
//!     inherited  a recorder, or a keeper whose agent was killed             reaped here when it exits
//!                a command whose keeper and agent were killed               killed and reaped here
//!
//! The kernel gives orphans to the nearest subreaper above them. An agent is one for its keepers. The server is one for
//! its agents: without it, what an agent and its keepers ran would be left to init if they were all killed at once.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::mem::MaybeUninit;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpz_runtime::spawn_blocking;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::agent::become_subreaper;
use crate::marker::has_marker;
use crate::tree;

/// How long to kill commands that do not end.
const KILL_TIME: Duration = Duration::from_secs(3);

static CHILDREN: Mutex<Children> =
    Mutex::new(Children { inherits: false, started: BTreeSet::new() });

/// Notified when a started child has been reaped: inherited ones may have ended after it.
static REAPED: Notify = Notify::const_new();

struct Children {
    inherits: bool,
    /// Not reaped yet.
    started: BTreeSet<i32>,
}

/// Starts a child. The caller must reap it, and then call [`forget`].
pub fn start(command: &mut Command) -> io::Result<Child> {
    // Locked all the time: the child may end before its id is known, and counts as inherited until then.
    let mut children = lock();
    let child = command.spawn()?;
    children.started.insert(child.id() as i32);
    Ok(child)
}

/// Waits until a started child ends.
pub fn wait(mut child: Child) {
    let _ = child.wait();
    forget(child.id() as i32);
}

/// Notes that a started child has been reaped.
pub fn forget(child: i32) {
    lock().started.remove(&child);
    REAPED.notify_one();
}

/// From now on, this process inherits what its agents and recorders leave behind, and ends it. It also reaps children
/// that were not started here, so nobody else can wait for them. Must be called within a tokio runtime.
pub fn inherit_orphans() -> io::Result<()> {
    let mut changes = signal(SignalKind::child())?;
    lock().inherits = true;
    become_subreaper();
    tokio::spawn(async move {
        loop {
            if reap_inherited() {
                let _ = spawn_blocking(end_orphans).await;
            }
            tokio::select! {
                _ = changes.recv() => {}
                () = REAPED.notified() => {}
            }
        }
    });
    Ok(())
}

/// Wakes a child whenever it is stopped, and never completes. While it is stopped, it looks after nothing.
pub async fn keep_awake(child: i32) {
    let (Some(child), Ok(mut changes)) = (Pid::from_raw(child), signal(SignalKind::child())) else {
        return pending().await;
    };
    loop {
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if let Ok(Some(_)) = waitid(WaitId::Pid(child), stopped) {
            let _ = kill_process(child, Signal::CONT);
        }
        changes.recv().await;
    }
}

/// Kills and reaps commands that nobody looks after. Blocks.
pub fn end_orphans() {
    if lock().inherits {
        tree::end_children(KILL_TIME, |pid| is_inherited(pid) && has_marker(pid) == Some(true));
    }
}

/// Reaps inherited children that have ended. True if one was killed and so may have left commands behind.
fn reap_inherited() -> bool {
    let mut was_killed = false;
    while let Some(ended) = first_ended().filter(|pid| is_inherited(pid.as_raw_nonzero().get())) {
        match waitpid(Some(ended), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => was_killed |= status.exit_status() != Some(0),
            _ => break,
        }
    }
    was_killed
}

fn is_inherited(child: i32) -> bool {
    !lock().started.contains(&child)
}

/// A child that has ended and is not reaped yet.
fn first_ended() -> Option<Pid> {
    let mut told = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel writes to `told`, which is valid as all zeros too: then no child has ended.
    let pid = unsafe {
        match libc::waitid(libc::P_ALL, 0, told.as_mut_ptr(), options) {
            0 => told.assume_init().si_pid(),
            _ => 0,
        }
    };
    Pid::from_raw(pid)
}

fn lock() -> MutexGuard<'static, Children> {
    // No code panics while it holds the lock, so the state is consistent.
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}
