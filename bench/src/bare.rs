//! The bare baseline, without a server: starting the process, reading its output and waiting for it.

use std::io::{PipeReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::runner::Runner;
use crate::statistics::timed;

/// Runs commands with nothing in between.
pub struct Bare;

impl Runner for Bare {
    fn server(&self) -> Option<u32> {
        None
    }

    fn run(&mut self, command: &str) -> f64 {
        timed(|| run(command))
    }

    fn rate(&mut self, command: &str, in_flight: usize, time: Duration) -> f64 {
        let count = AtomicUsize::new(0);
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..in_flight {
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
}

/// Starts a shell, with both its streams on one pipe. The standard library uses `posix_spawn`.
pub fn spawn(command: &str) -> (Child, PipeReader) {
    let (pipe, end) = std::io::pipe().expect("a descriptor is free");
    let child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(end.try_clone().expect("a descriptor is free"))
        .stderr(end)
        .spawn()
        .expect("a shell starts");
    (child, pipe)
}

fn run(command: &str) {
    let (mut child, mut pipe) = spawn(command);
    pipe.read_to_end(&mut Vec::new()).expect("the pipe is open");
    assert!(child.wait().expect("it is our child").success());
}
