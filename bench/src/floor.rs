//! What cannot be beaten: starting the process, reading its output and waiting for it.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs a command with as little as possible around it. The standard library uses `posix_spawn`.
pub fn run(command: &str) {
    let output = Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::null()).output();
    assert!(output.expect("a shell starts").status.success());
}

/// How many a second can be run by so many at a time.
pub fn rate(command: &str, at_a_time: usize, time: Duration) -> f64 {
    let count = AtomicUsize::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while began.elapsed() < time {
                    run(command);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    count.into_inner() as f64 / began.elapsed().as_secs_f64()
}
