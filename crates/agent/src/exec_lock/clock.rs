//! The clock that file systems read, and whether somebody has set it.

use std::cell::Cell;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// Notices when the clock is set, from the moment that it was made.
pub struct ClockWatch {
    timer: Option<OwnedFd>,
    /// The kernel tells only once.
    was_set: Cell<bool>,
}

impl ClockWatch {
    pub fn new() -> Self {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags);
        let timer = timer.and_then(|timer| arm(&timer).map(|()| timer)).ok();
        Self { timer, was_set: Cell::new(false) }
    }

    /// Whether the clock has gone on evenly. Where the kernel cannot tell, it has.
    pub fn is_even(&self) -> bool {
        let told = |timer: &OwnedFd| rustix::io::read(timer, &mut [0; 8]) == Err(Errno::CANCELED);
        if self.timer.as_ref().is_some_and(told) {
            self.was_set.set(true);
        }
        !self.was_set.get()
    }
}

/// Lets the timer wait for a moment that never comes, unless the clock is set.
fn arm(timer: &OwnedFd) -> Result<(), Errno> {
    const YEARS: i64 = 100 * 365 * 24 * 3600;
    let never = clock_gettime(ClockId::Realtime).tv_sec.saturating_add(YEARS);
    let once = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: never, tv_nsec: 0 },
    };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(timer, flags, &once).map(drop)
}
