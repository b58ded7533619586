//! What a thread waits for that has a list of descriptors in the kernel, as Node.js has.

use std::fs;
use std::path::Path;

use super::{OWN_TERMINAL, link, threads};

pub fn is_call(number: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return true;
    }
    number == libc::SYS_epoll_pwait || number == libc::SYS_epoll_pwait2
}

/// Whether a call with this time to wait, its fourth argument, does not end by itself.
pub fn is_endless(number: libc::c_long, time: u64) -> bool {
    match number {
        // No address of a time.
        libc::SYS_epoll_pwait2 => time == 0,
        // A number of 32 bits, and less than 0.
        _ => time & (1 << 31) != 0,
    }
}

/// Whether the process has nothing to wait for but its input, here called `terminal`.
pub fn is_only_for(pid: i32, descriptor: u64, terminal: &str) -> bool {
    let list = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    let watched: Vec<_> = readable(&list).filter_map(|it| link(pid, it)).collect();
    let is_input = |link: &Path| link == Path::new(terminal) || link == Path::new(OWN_TERMINAL);
    // Children talk over sockets, too. Pipes are how signals arrive.
    let is_socket = |link: &Path| link.to_string_lossy().starts_with("socket:[");
    watched.iter().any(|link| is_input(link))
        && !watched.iter().any(|link| is_socket(link))
        && threads(pid).all(|thread| is_idle(&thread))
}

/// The descriptors in such a list that are watched for input: `tfd: 0 events: 19 …`, in hexadecimal.
fn readable(list: &str) -> impl Iterator<Item = u64> {
    list.lines().filter_map(|line| {
        let mut fields = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let descriptor = fields.next()?.parse().ok()?;
        let events = u32::from_str_radix(fields.nth(1)?, 16).ok()?;
        (events & libc::EPOLLIN as u32 != 0).then_some(descriptor)
    })
}

/// Whether a thread waits for others, or for descriptors.
fn is_idle(thread: &Path) -> bool {
    let call = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
    let number = call.split(' ').next().and_then(|number| number.parse().ok());
    number.is_some_and(|number| is_call(number) || number == libc::SYS_futex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_watched_for_input_is_read_from_the_list() {
        let list = "pos:\t0\nflags:\t02000002\nmnt_id:\t17\n\
                    tfd:       17 events:       19 data:               11  pos:0 ino:40e sdev:10\n\
                    tfd:        1 events:        4 data:                1  pos:0 ino:2 sdev:f\n\
                    tfd:        0 events: 40000001 data:                0  pos:0 ino:1 sdev:f\n\
                    tfd: x events: y\ntfd:\n";
        assert_eq!(readable(list).collect::<Vec<_>>(), [17, 0]);
    }

    #[test]
    fn a_time_to_wake_up_is_none_to_wait_for_input() {
        assert!(is_endless(libc::SYS_epoll_pwait, 0xffff_ffff));
        assert!(!is_endless(libc::SYS_epoll_pwait, 500));
        assert!(is_endless(libc::SYS_epoll_pwait2, 0));
        assert!(!is_endless(libc::SYS_epoll_pwait2, 0x7ffe_0000));
    }
}
