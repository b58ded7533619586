//! How fast mcpz is.
//!
//! Everything is measured against the floor, in the same run and turn by turn: starting the same
//! process without a server, reading its output and waiting for it. Only the ratios mean anything;
//! the machine's other work moves both.
//!
//!     cargo run --release -p mcpz-bench [PATH OF MCPZ]

mod client;
mod floor;
mod judging;
mod memory;
mod volume;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::Client;

/// What is run again and again: a shell that does nothing.
const NOTHING: &str = "true";

fn main() {
    let program = std::env::args_os().nth(1).map_or_else(built, PathBuf::from);
    report("what", "mcpz", "floor", "ratio");
    report("---", "---:", "---:", "---:");
    judging::measure();
    cold_start(&program);
    idle_memory(&program);
    latency(&program);
    sandboxed(&program);
    for in_flight in [1, 8, 64] {
        throughput(&program, in_flight);
    }
    flood(&program);
    kill_tree(&program);
    volume::measure(&program);
}

/// The release build beside this program.
fn built() -> PathBuf {
    let mut program = std::env::current_exe().expect("a program has a path");
    program.set_file_name("mcpz");
    assert!(program.exists(), "build it first: cargo build --release");
    program
}

/// From the server's exec to its answer to `initialize`.
fn cold_start(program: &Path) {
    let mut ours = Vec::new();
    let mut floor = Vec::new();
    for _ in 0..40 {
        floor.push(timed(|| floor::run(NOTHING)));
        let began = Instant::now();
        let client = Client::start(program);
        ours.push(began.elapsed().as_secs_f64());
        drop(client);
    }
    compare("cold start, ms", median(ours) * 1e3, median(floor) * 1e3);
}

/// The whole tree at rest, shared pages counted once.
fn idle_memory(program: &Path) {
    let mut client = Client::start(program);
    client.run(NOTHING, 30.0);
    std::thread::sleep(Duration::from_millis(300));
    let bytes = memory::of_tree(client.pid());
    report("idle memory (PSS), MB", &format!("{:.1}", bytes as f64 / 1e6), "", "");
}

/// The same inside a sandbox, against the same outside, if there is one on this machine.
fn sandboxed(program: &Path) {
    let folder = std::env::temp_dir().join(format!("mcpz-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder to work in");
    let mode = ["--sandbox", "workspace", "-w", folder.to_str().expect("a plain name")];
    let tried = Command::new(program)
        .args(["call", "execute_command", "command=true"])
        .args(mode)
        .env("XDG_STATE_HOME", &folder)
        .status();
    if tried.is_ok_and(|status| status.success()) {
        let mut inside = Client::start_with(program, &mode);
        let mut outside = Client::start(program);
        outside.run(NOTHING, 30.0);
        inside.run(NOTHING, 30.0);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..500 {
            plain.push(timed(|| drop(outside.run(NOTHING, 30.0))));
            ours.push(timed(|| drop(inside.run(NOTHING, 30.0))));
        }
        compare("`true` in a sandbox, against outside", median(ours) * 1e6, median(plain) * 1e6);
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn latency(program: &Path) {
    let mut client = Client::start(program);
    client.run(NOTHING, 30.0);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        floor.push(timed(|| floor::run(NOTHING)));
        ours.push(timed(|| drop(client.run(NOTHING, 30.0))));
    }
    compare("`true`, µs at p50", median(ours) * 1e6, median(floor) * 1e6);
}

fn throughput(program: &Path, in_flight: usize) {
    let time = Duration::from_secs(3);
    let mut client = Client::start(program);
    client.run(NOTHING, 30.0);
    let floor = floor::rate(NOTHING, in_flight, time);
    let ours = client.rate(NOTHING, in_flight, time);
    compare(&format!("`true`, {in_flight} in flight, a second"), ours, floor);
}

/// `yes` until its timeout: how late the answer is, and the most memory the tree had.
fn flood(program: &Path) {
    let timeout = 5.0;
    let mut client = Client::start(program);
    let pid = client.pid();
    let done = AtomicBool::new(false);
    let (late, peak) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(memory::of_tree(pid));
                std::thread::sleep(Duration::from_millis(50));
            }
            peak
        });
        let took = timed(|| drop(client.run("yes", timeout)));
        done.store(true, Ordering::Relaxed);
        (took - timeout, watcher.join().expect("the watcher does not panic"))
    });
    report("`yes` for 5 s, answer late by ms", &format!("{:.0}", late * 1e3), "", "");
    report("`yes` for 5 s, peak memory, MB", &format!("{:.1}", peak as f64 / 1e6), "", "");
}

/// A tree of processes that are deaf, stopped and on their own: how long after the timeout the
/// answer comes. The grace they are given is part of it.
fn kill_tree(program: &Path) {
    let command =
        "trap '' TERM; setsid sleep 60 & (sleep 60 &); sleep 60 & kill -STOP $!; sleep 60";
    let mut client = Client::start(program);
    let took = timed(|| drop(client.run(command, 1.0)));
    report("kill tree, answer late by ms", &format!("{:.0}", (took - 1.0) * 1e3), "", "");
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(what: &str, ours: f64, floor: f64) {
    let number = |value: f64| match value < 10.0 {
        true => format!("{value:.2}"),
        false => format!("{value:.0}"),
    };
    report(what, &number(ours), &number(floor), &format!("{:.2}", ours / floor));
}

#[expect(clippy::print_stdout, reason = "a table is what this program is for")]
fn report(what: &str, ours: &str, floor: &str, ratio: &str) {
    println!("| {what:36} | {ours:>8} | {floor:>8} | {ratio:>6} |");
}
