//! What `/proc` says about processes.

use std::fs;
use std::io::Read;

/// Longer than any `stat` file: 50 numbers, and a name of 64 bytes at most.
const MAX_STAT: usize = 2048;

/// One process, as its `stat` file describes it.
pub struct ProcessStat {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// Whether it can open a terminal as `/dev/tty`.
    pub has_terminal: bool,
    pub state: State,
    pub threads: u64,
    /// CPU time in clock ticks, including that of its reaped children.
    pub ticks: u64,
    /// When it was started, in clock ticks since boot.
    pub started: u64,
    /// `None` if we may not know it.
    pub layout: Option<Layout>,
}

/// Where the parts of a process's memory begin: its code, heap, stack and arguments. The kernel chooses them at random
/// when a program is executed, and a fork keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout([u64; 4]);

#[derive(Debug, PartialEq, Eq)]
pub enum State {
    Alive,
    /// In uninterruptible sleep: it handles no signal now.
    Uninterruptible,
    /// Has ended and waits to be reaped.
    Zombie,
}

/// All processes, but no more than exist when this is called: new ones can start faster than they are read, and
/// the scan would never end.
pub fn processes() -> impl Iterator<Item = ProcessStat> {
    let most = machine_threads().unwrap_or(u64::MAX);
    let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut line = [0; MAX_STAT];
    pids.take(most.try_into().unwrap_or(usize::MAX)).filter_map(move |pid: i32| {
        let length = read_line(pid, &mut line)?;
        parse(pid, &line[..length])
    })
}

/// One process and its name.
pub fn read_stat(pid: i32) -> Option<(ProcessStat, String)> {
    let mut line = [0; MAX_STAT];
    let length = read_line(pid, &mut line)?;
    let stat = &line[..length];
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    Some((parse(pid, stat)?, name))
}

/// The children of all threads of a process, if the kernel lists them, which not every kernel does. The list can miss a
/// child while others are reaped.
pub fn listed_children(parent: i32) -> Option<Vec<i32>> {
    let mut children = None;
    for thread in fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten() {
        // A thread that has ended meanwhile has no children.
        let Ok(listed) = fs::read_to_string(thread.path().join("children")) else { continue };
        let listed = listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
        children.get_or_insert_with(Vec::new).extend(listed);
    }
    children
}

/// The peak memory of a living process.
pub fn peak_rss_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// How many threads the machine has, without reading each process.
pub fn machine_threads() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// The lower 16 bits of that number, by a much faster system call.
pub fn machine_threads_low_bits() -> u16 {
    rustix::system::sysinfo().procs
}

/// Reads the `stat` line of a process, which one read returns completely.
fn read_line(pid: i32, line: &mut [u8; MAX_STAT]) -> Option<usize> {
    let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    file.read(line).ok()
}

/// Parses a `stat` line. The name in parentheses may contain anything, even parentheses and newlines, so the fields
/// behind it are found from the end.
fn parse(pid: i32, stat: &[u8]) -> Option<ProcessStat> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let letter = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let has_terminal = fields.next()? != "0";
    let mut number = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
    let ticks = number(6)? + number(0)? + number(0)? + number(0)?;
    let threads = number(2)?;
    let started = number(1)?;
    let state = match letter {
        // A process whose first thread has ended lives on while it has other threads.
        "Z" | "X" if threads <= 1 => State::Zombie,
        "D" => State::Uninterruptible,
        _ => State::Alive,
    };
    let layout = layout(number);
    Some(ProcessStat {
        pid,
        parent,
        group,
        session,
        has_terminal,
        state,
        threads,
        ticks,
        started,
        layout,
    })
}

/// The layout in the fields after the start time.
fn layout(mut number: impl FnMut(usize) -> Option<u64>) -> Option<Layout> {
    let (code, stack) = (number(3)?, number(1)?);
    let (heap, arguments) = (number(18)?, number(0)?);
    // Where we may not know them, all are 0 or 1.
    (stack > 1).then_some(Layout([code, stack, heap, arguments]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields from the process group to the start time; one thread.
    const REST: &str = "7 7 0 -1 4194560 90 0 0 0 0 0 0 0 20 0 1 0 9876";

    #[test]
    fn a_name_full_of_parentheses_does_not_hide_the_parent() {
        let entry = parse(7, format!("7 (a) Z 1 (b\n) S 42 {REST}").as_bytes()).unwrap();
        assert_eq!((entry.pid, entry.parent, entry.state), (7, 42, State::Alive));
    }

    #[test]
    fn a_process_that_waits_to_be_reaped_has_ended() {
        let line = format!("7 (sh) Z 42 {REST}");
        assert_eq!(parse(7, line.as_bytes()).unwrap().state, State::Zombie);
    }

    #[test]
    fn a_process_whose_first_thread_has_left_lives_on_in_the_others() {
        let line = format!("7 (sh) Z 42 {REST}").replace("20 0 1 0", "20 0 2 0");
        assert_eq!(parse(7, line.as_bytes()).unwrap().state, State::Alive);
    }

    #[test]
    fn the_time_of_children_that_have_ended_counts_as_well() {
        let line = format!("7 (sh) S 42 {REST}").replace("0 0 0 0 20", "1 20 300 4000 20");
        let entry = parse(7, line.as_bytes()).unwrap();
        assert_eq!((entry.ticks, entry.threads, entry.started), (4321, 1, 9876));
    }

    #[test]
    fn a_process_has_had_some_memory_and_one_that_is_gone_none() {
        assert!(peak_rss_bytes(std::process::id() as i32) > 0);
        assert_eq!(peak_rss_bytes(i32::MAX), 0);
    }
}
