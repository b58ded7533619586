//! The clock that file systems read, and whether somebody has set it.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// Notices when the clock is set, from the moment that it was made.
pub struct ClockWatch(Option<OwnedFd>);

impl ClockWatch {
    pub fn new() -> Self {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags);
        Self(timer.and_then(|timer| arm(&timer).map(|()| timer)).ok())
    }

    /// Whether the clock has gone on evenly. Where the kernel cannot tell, it has.
    pub fn is_even(&self) -> bool {
        let Some(timer) = &self.0 else { return true };
        rustix::io::read(timer, &mut [0; 8]) != Err(Errno::CANCELED)
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
