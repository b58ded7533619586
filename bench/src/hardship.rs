//! Commands that do not want to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::Bench;
use crate::client::Client;
use crate::processes::{marked, memory_of_tree};
use crate::statistics::timed;
use crate::table::{Row, Target};

/// `yes` until its timeout: how late the answer is, and the most memory the tree had.
pub fn flood(bench: &Bench) -> Vec<Row> {
    let timeout = bench.effort.flood;
    let mut client = Client::start(bench.server());
    let pid = client.pid();
    let done = AtomicBool::new(false);
    let (late, peak) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| most(&done, || memory_of_tree(pid)));
        let late = lateness(&mut client, "yes", timeout);
        done.store(true, Ordering::Relaxed);
        (late, watcher.join().expect("the watcher does not panic"))
    });
    vec![
        Row::new(format!("`yes` for {timeout} s, answer late by ms"), late),
        Row::new(format!("`yes` for {timeout} s, peak memory (PSS), MB"), peak as f64 / 1e6),
    ]
}

/// A tree of processes that are deaf, stopped, detached and on their own. The grace they are given
/// is part of what the answer is late by.
pub fn kill_tree(bench: &Bench) -> Vec<Row> {
    let mark = format!("MCPZ_BENCH={}", std::process::id());
    let command = format!(
        "export {mark}; trap '' TERM; setsid sleep 60 & (sleep 60 &); \
         nohup sleep 60 >/dev/null 2>&1 & sleep 60 & kill -STOP $!; sleep 60"
    );
    let mut client = Client::start(bench.server());
    let done = AtomicBool::new(false);
    let (late, left, standing) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| most(&done, || marked(&mark)));
        let late = lateness(&mut client, &command, 2.0);
        let left = marked(&mark);
        done.store(true, Ordering::Relaxed);
        (late, left, watcher.join().expect("the watcher does not panic"))
    });
    vec![
        Row::new(format!("kill tree, left of {standing}"), left as f64).target(Target::AtMost(0.0)),
        Row::new("kill tree, answer late by ms", late),
    ]
}

/// The most there is of something, looked at now and then until it is over.
fn most<T: Default + Ord>(over: &AtomicBool, count: impl Fn() -> T) -> T {
    let mut most = T::default();
    while !over.load(Ordering::Relaxed) {
        most = most.max(count());
        std::thread::sleep(Duration::from_millis(50));
    }
    most
}

/// Milliseconds from the timeout to the answer that says so.
fn lateness(client: &mut Client, command: &str, timeout: f64) -> f64 {
    let arguments = json!({"command": command, "timeout": timeout});
    let took = timed(|| {
        let answer = client.call("execute_command", &arguments);
        assert_eq!(answer["result"]["structuredContent"]["timed_out"], true, "{answer}");
    });
    (took - timeout) * 1e3
}
