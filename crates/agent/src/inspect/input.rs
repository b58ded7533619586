//! Whether a process waits for input: from its terminal, or from a pipe.
//!
//! The kernel tells which system call each thread is in. A thread that reads the input waits for it. A thread that
//! waits for any of several descriptors may wait for something else, so it only counts if the program has nothing else
//! to wait for: no pipes and no sockets or, if the kernel tells what it waits for (`epoll`), no sockets there, no time
//! to wake up, and no thread that works. Some systems hide system calls (`kernel.yama.ptrace_scope` of 2 or more) and
//! only tell where in the kernel a thread sleeps. That says less, so fewer prompts are noticed there.

mod epoll;

use std::fs;
use std::path::PathBuf;

/// The name by which every process can open its own terminal.
const OWN_TERMINAL: &str = "/dev/tty";

/// Whether a thread of the process waits to read from `terminal`, such as `/dev/pts/3`.
pub fn waits_to_read(pid: i32, terminal: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some(job) = job(&stat) else { return false };
    // The terminal has stopped it in the background, where it may not read.
    !job.stopped && waits(pid).iter().any(|wait| wait.is_for(pid, &job, terminal))
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Bytes of one descriptor.
    Read(u64),
    /// Any of several descriptors; the list is in the program's memory.
    Several,
    /// Any of those that this descriptor stands for, for however long.
    Epoll(u64),
}

impl Wait {
    fn is_for(self, pid: i32, job: &JobControl, terminal: &str) -> bool {
        match self {
            Self::Read(descriptor) => is_terminal(pid, descriptor, terminal),
            Self::Several => job.foreground && is_terminal(pid, 0, terminal) && !has_channels(pid),
            Self::Epoll(descriptor) => {
                (job.foreground || !terminal.starts_with("/dev/"))
                    && epoll::is_only_for(pid, descriptor, terminal)
            }
        }
    }
}

fn waits(pid: i32) -> Vec<Wait> {
    let told = |thread: PathBuf| match fs::read_to_string(thread.join("syscall")) {
        Ok(call) => wait(&call),
        Err(_) => sleeps(&fs::read_to_string(thread.join("wchan")).ok()?),
    };
    threads(pid).filter_map(told).collect()
}

fn threads(pid: i32) -> impl Iterator<Item = PathBuf> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    threads.flatten().map(|thread| thread.path())
}

/// What a thread may wait for, judged by where it sleeps: these functions read terminals, among others.
fn sleeps(place: &str) -> Option<Wait> {
    matches!(place, "wait_woken" | "n_tty_read").then_some(Wait::Several)
}

/// What a thread waits for, judged by its `syscall` file: the call's number in decimal, six arguments in hexadecimal,
/// and two addresses. A running thread is in no call, and one that waits elsewhere is in call -1.
fn wait(call: &str) -> Option<Wait> {
    let (number, rest) = call.trim_end().split_once(' ')?;
    let number: libc::c_long = number.parse().ok()?;
    let arguments: Vec<_> = rest.split(' ').map_while(argument).collect();
    let (first, second) = (*arguments.first()?, *arguments.get(1)?);
    match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_preadv => {
            Some(Wait::Read(first))
        }
        // Some programs sleep by waiting for no descriptor at all.
        _ if is_select(number) => (first > 0 && second > 0).then_some(Wait::Several),
        _ if is_poll(number) => (second > 0).then_some(Wait::Several),
        _ if epoll::is_call(number) => {
            epoll::is_endless(number, *arguments.get(3)?).then_some(Wait::Epoll(first))
        }
        _ => None,
    }
}

fn argument(field: &str) -> Option<u64> {
    u64::from_str_radix(field.strip_prefix("0x")?, 16).ok()
}

/// Calls whose first argument is the number of descriptors, and whose second points to those to read.
fn is_select(number: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_select {
        return true;
    }
    number == libc::SYS_pselect6
}

/// Calls whose second argument is the number of descriptors.
fn is_poll(number: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_poll {
        return true;
    }
    number == libc::SYS_ppoll
}

/// The job control state of a process.
#[derive(Debug, PartialEq, Eq)]
struct JobControl {
    stopped: bool,
    /// Whether it is in the terminal's foreground group.
    foreground: bool,
}

/// Parses a process's `stat`: id, name in parentheses, state, parent, group, session, terminal, and the terminal's
/// foreground group.
fn job(stat: &str) -> Option<JobControl> {
    // A name may contain any characters, even parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let stopped = matches!(fields.next()?, "T" | "t");
    let group: i32 = fields.nth(1)?.parse().ok()?;
    let in_front: i32 = fields.nth(2)?.parse().ok()?;
    Some(JobControl { stopped, foreground: group == in_front })
}

fn is_terminal(pid: i32, descriptor: u64, terminal: &str) -> bool {
    link(pid, descriptor)
        .is_some_and(|link| link.as_os_str() == terminal || link.as_os_str() == OWN_TERMINAL)
}

fn link(pid: i32, descriptor: u64) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()
}

/// Whether the process has sockets or pipes besides its stdio.
fn has_channels(pid: i32) -> bool {
    // If its descriptors are not visible, it may.
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    open.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .filter_map(|descriptor| link(pid, descriptor))
        .any(|link| link.to_str().is_some_and(is_channel))
}

fn is_channel(link: &str) -> bool {
    link.starts_with("socket:[") || link.starts_with("pipe:[")
}

#[cfg(test)]
mod tests;
