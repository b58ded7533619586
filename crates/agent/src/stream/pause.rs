//! Pauses that are shorter than the runtime's own timers know.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// While output comes as fast as it can, so much comes in this time that it is worth waiting for, and short commands
/// beside it hardly notice.
const LENGTH: Timespec = Timespec { tv_sec: 0, tv_nsec: 150_000 };

pub struct Pause {
    timer: AsyncFd<OwnedFd>,
    is_on: bool,
}

impl Pause {
    /// Must be called within a runtime.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the descriptor is ours, and stays open and the same for as long as it is registered.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) };
        Ok(Self { timer: timer.map_err(io::Error::from)?, is_on: false })
    }

    pub fn begin(&mut self) -> io::Result<()> {
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval, it_value: LENGTH };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.is_on = true;
        Ok(())
    }

    /// Ready when there is no pause.
    pub fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.is_on {
            let mut ready = ready!(self.timer.poll_read_ready(context))?;
            // It may have been ready from before.
            if let Ok(read) = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?)) {
                read?;
                self.is_on = false;
            }
        }
        Poll::Ready(Ok(()))
    }
}
