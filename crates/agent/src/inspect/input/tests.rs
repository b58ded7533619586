use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio, id};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::*;

/// What a thread waits for in a call with these arguments.
fn waiting(number: libc::c_long, arguments: &str) -> Option<Wait> {
    wait(&format!("{number} {arguments} 0x0 0x0 0x0 0x7ffcaf216bf8 0x7f27d17792ad\n"))
}

#[test]
fn a_thread_that_reads_waits_for_one_descriptor() {
    assert_eq!(waiting(libc::SYS_read, "0x0 0x55f9a7b91f40 0x1000"), Some(Wait::Read(0)));
    assert_eq!(waiting(libc::SYS_readv, "0xff 0x55f9a7b91f40 0x1"), Some(Wait::Read(255)));
    assert_eq!(waiting(libc::SYS_write, "0x1 0x55f9a7b91f40 0x1000"), None);
}

#[test]
fn a_thread_may_wait_for_several_descriptors_or_for_none() {
    assert_eq!(waiting(libc::SYS_pselect6, "0x1 0x7ffe0000 0x0"), Some(Wait::Several));
    assert_eq!(waiting(libc::SYS_pselect6, "0x0 0x0 0x0"), None, "it sleeps");
    assert_eq!(waiting(libc::SYS_pselect6, "0x5 0x0 0x7ffe0000"), None, "it writes");
    assert_eq!(waiting(libc::SYS_ppoll, "0x7ffe073c34e0 0x3 0x0"), Some(Wait::Several));
    assert_eq!(waiting(libc::SYS_ppoll, "0x0 0x0 0x7ffe0000"), None);
    assert_eq!(waiting(libc::SYS_epoll_pwait, "0x3 0x7ffe0000 0x400 0x1f4"), None, "it wakes up");
    let endless = waiting(libc::SYS_epoll_pwait, "0x3 0x7ffe0000 0x400 0xffffffff");
    assert_eq!(endless, Some(Wait::Epoll(3)));
}

#[test]
fn what_is_no_call_is_no_wait() {
    for text in ["", "running\n", "-1 0x7ffe0000 0x7f27d17792ad\n", "0", "0 0x0", "0 x y z"] {
        assert_eq!(wait(text), None, "{text}");
    }
}

#[test]
fn the_foreground_is_known_by_the_group_that_has_the_terminal() {
    let job = |stat| job(stat).map(|job| (job.stopped, job.foreground));
    assert_eq!(job("12 (sh) S 1 12 12 34816 12 4194304"), Some((false, true)));
    assert_eq!(job("13 (cat) T 12 13 12 34816 12 4194304"), Some((true, false)));
    assert_eq!(job("14 (a) b (c) R 12 14 12 34816 14 0"), Some((false, true)));
    assert_eq!(job("15 (x) S 1 15 15 0 -1 0"), Some((false, false)), "it has no terminal");
    assert_eq!(job("garbage"), None);
    assert_eq!(job("1 (x) S 1"), None);
}

#[test]
fn sockets_and_pipes_are_channels() {
    assert!(is_channel("socket:[1]") && is_channel("pipe:[1]"));
    assert!(!is_channel("/dev/pts/3") && !is_channel("anon_inode:[eventpoll]"));
}

#[test]
fn a_process_that_is_not_there_reads_nothing() {
    assert!(!waits_to_read(i32::MAX, "/dev/pts/0"));
    assert!(!waits_to_read(id().cast_signed(), "/dev/pts/nowhere"));
}

/// A shell's command on a terminal of its own.
struct OnTerminal {
    script: Child,
    pid: i32,
    terminal: String,
}

impl OnTerminal {
    /// The input must not arrive before the test has checked.
    fn start(command: &str) -> Self {
        let mut script = Command::new("script")
            .args(["-qfc", &format!("echo $$ $(tty); {command}"), "/dev/null"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux is installed");
        let mut told = String::new();
        BufReader::new(script.stdout.as_mut().unwrap()).read_line(&mut told).unwrap();
        let (pid, terminal) = told.trim().split_once(' ').unwrap();
        Self { pid: pid.parse().unwrap(), terminal: terminal.to_owned(), script }
    }

    fn reads(&self) -> bool {
        waits_to_read(self.pid, &self.terminal)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        self.script.kill().unwrap();
        self.script.wait().unwrap();
    }
}

fn comes_true(condition: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while !condition() && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    condition()
}

#[test]
fn a_shell_that_reads_a_line_reads_its_terminal() {
    let shell = OnTerminal::start("read x");
    assert!(comes_true(|| shell.reads()));
    assert!(!waits_to_read(shell.pid, "/dev/pts/nowhere"));
}

#[test]
fn a_command_that_works_does_not_read_its_terminal() {
    let command = OnTerminal::start("exec sleep 100");
    let call = format!("/proc/{}/syscall", command.pid);
    let sleeps = format!("{} ", libc::SYS_clock_nanosleep);
    assert!(comes_true(|| fs::read_to_string(&call).unwrap().starts_with(&sleeps)));
    assert!(!command.reads());
}

/// A program that waits for its terminal. It may have inherited pipes of these tests.
fn waiting_program(meanwhile: &str) -> OnTerminal {
    let program = format!(
        "import os, select; os.closerange(3, 4096); {meanwhile}; select.select([0], [], [])"
    );
    OnTerminal::start(&format!("exec python3 -c '{program}'"))
}

#[test]
fn a_program_that_waits_for_its_terminal_only_reads_it() {
    let program = waiting_program("pass");
    assert!(comes_true(|| program.reads()));
}

#[test]
fn a_program_that_has_pipes_may_wait_for_something_else() {
    let program = waiting_program("os.pipe()");
    assert!(comes_true(|| waits(program.pid).contains(&Wait::Several)));
    assert!(!program.reads());
}

/// A program that waits for its terminal by a list in the kernel.
fn listing_program(also: &str) -> OnTerminal {
    let program = format!(
        "import os, select, signal, socket, threading, time; watched = select.epoll(); \
         watched.register(os.open(\"/dev/tty\", os.O_RDWR), select.EPOLLIN); \
         signals = os.pipe(); watched.register(signals[0], select.EPOLLIN); {also}; watched.poll()"
    );
    OnTerminal::start(&format!("exec python3 -c '{program}'"))
}

#[test]
fn a_program_whose_list_has_its_terminal_and_no_socket_reads_it() {
    let program = listing_program("pass");
    assert!(comes_true(|| program.reads()));
}

#[test]
fn a_program_whose_list_has_a_socket_may_wait_for_that() {
    let program =
        listing_program("a, b = socket.socketpair(); watched.register(a, select.EPOLLIN)");
    assert!(comes_true(|| waits(program.pid).iter().any(|wait| matches!(wait, Wait::Epoll(_)))));
    assert!(!program.reads());
}

#[test]
fn a_program_with_a_thread_that_works_may_not_need_its_input() {
    let program = listing_program("threading.Thread(target=time.sleep, args=[300]).start()");
    assert!(comes_true(|| waits(program.pid).iter().any(|wait| matches!(wait, Wait::Epoll(_)))));
    assert!(!program.reads());
}

#[test]
fn every_thread_of_a_program_counts() {
    let read = "import threading; threading.Thread(target=input).start()";
    let program = OnTerminal::start(&format!("exec python3 -c '{read}'"));
    assert!(comes_true(|| program.reads()));
}

#[test]
fn where_a_thread_sleeps_tells_less_than_its_call() {
    for (place, expected) in [
        ("wait_woken", Some(Wait::Several)),
        ("poll_schedule_timeout.constprop.0", None),
        ("hrtimer_nanosleep", None),
        ("do_wait", None),
        ("0", None),
        ("", None),
    ] {
        assert_eq!(sleeps(place), expected, "{place}");
    }
}
