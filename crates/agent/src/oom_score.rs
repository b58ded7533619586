//! How likely the kernel is to kill a process when the machine runs out of memory.
//!
//! Commands must go before the keepers that supervise them. They inherit their score: the keeper has it while it starts
//! them. An ordinary user's keeper may not change its own score, so it raises that of the first process, if the run
//! lasts longer than a millisecond.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The score of commands, of 1000.
const COMMANDS: &str = "500";

/// The score of a process that is never killed.
const EXEMPT: &str = "-1000";

/// The score of this process, which its children inherit.
pub struct OomScore {
    file: File,
    own: String,
}

impl OomScore {
    /// Returns nothing for an ordinary user: our process is not dumpable, so the kernel refuses the write.
    /// Otherwise this also exempts the keeper from the OOM killer, if it may. In cgroup v1 the keeper shares
    /// its run's memory limit and could be the last process left to kill.
    pub fn open() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let own = fs::read_to_string(path).ok()?;
        let file = File::options().write(true).open(path).ok()?;
        let own = match file.write_at(EXEMPT.as_bytes(), 0) {
            Ok(_) => EXEMPT.to_owned(),
            Err(_) => own,
        };
        Some(Self { file, own })
    }

    /// Sets the score of commands, for a child to inherit.
    pub fn raise(&self) {
        let _ = self.file.write_at(COMMANDS.as_bytes(), 0);
    }

    /// Sets this process's own score again.
    pub fn restore(&self) {
        let _ = self.file.write_at(self.own.as_bytes(), 0);
    }
}

/// Raises the score of a process and of everything it will start. An ordinary user may do so only once the process
/// has executed its program. The kernel takes a little longer to reap a process that was opened in `/proc`.
pub fn raise_score_of(pid: i32) -> bool {
    fs::write(format!("/proc/{pid}/oom_score_adj"), COMMANDS).is_ok()
}
