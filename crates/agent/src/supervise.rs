//! A program that leads to a place, such as `ssh` or `srun`, and the process that ends it when the server is gone.
//!
//!     server ══ supervisor             the program has the stream as its standard input and output, the supervisor
//!        ╚══════════╧═ program         only looks whether the server's end is closed
//!
//! Most of the time such a program ends by itself when its input does. But `srun` does not read while it waits for an
//! allocation, nor does `ssh` while it waits for a network that is gone. If the server was killed, nobody else would
//! end them.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::{
    Signal, getpgrp, getpid, getppid, kill_process_group, set_parent_process_death_signal, setpgid,
};

use crate::memory::release_code_pages;
use crate::signals::{self, Waited};

/// How long the program may take to end by itself: the place at its other end ends everything first.
const END_TIME: Duration = Duration::from_secs(5);

/// How long it may take after SIGTERM.
const TERM_TIME: Duration = Duration::from_secs(2);

/// Runs a program until it ends, and ends it when the other end of standard input is closed. Returns its exit code.
pub fn supervise(program: OsString, arguments: impl Iterator<Item = OsString>) -> io::Result<u8> {
    // The group is what is signalled, here and by the server. We are deaf to all but SIGKILL.
    let _ = setpgid(None, None);
    signals::block_all();
    let mut command = Command::new(program);
    command.args(arguments);
    let own = getpid();
    let prepare = move || {
        signals::unblock_all();
        // For the case that we are killed. We have one thread, so that cannot end before us.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        match getppid() == Some(own) {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    };
    // SAFETY: between fork and exec it makes system calls and touches nothing else.
    unsafe { command.pre_exec(prepare) };
    let mut child = command.spawn()?;
    release_code_pages();
    let stdin = io::stdin();
    let closed = Some((stdin.as_fd(), PollFlags::RDHUP));
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        let waited = Waited { alarms: [closed, None], ..Waited::default() };
        if signals::wait(&waited).alarm {
            break end(&mut child)?;
        }
    };
    Ok(code(ended))
}

/// Ends the program, unless it does so itself.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    for (patience, signal) in [(END_TIME, Signal::TERM), (TERM_TIME, Signal::KILL)] {
        let until = Instant::now() + patience;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if let Some(ended) = child.try_wait()? {
                return Ok(ended);
            }
            signals::wait(&Waited { timer: Some(left), ..Waited::default() });
        }
        let _ = kill_process_group(getpgrp(), signal);
    }
    child.wait()
}

/// As a shell has it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
