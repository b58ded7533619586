//! What a call takes beside others: processes of strangers, and calls that wait.

use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::Bench;
use crate::client::Client;
use crate::runner::{NOTHING, Runner};
use crate::statistics::{median, timed};
use crate::table::{Row, Target};

/// Calls that wait for a port nobody listens on.
const WAITING: usize = 5;

/// A process that has nothing to do with the server, for as long as this is there.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn measure(bench: &Bench) -> Vec<Row> {
    vec![beside_strangers(bench), beside_waiting_calls(bench)]
}

/// A session's `true`, which looks at what its shell has started before.
fn beside_strangers(bench: &Bench) -> Row {
    let mut client = Client::start(bench.server());
    let arguments = json!({"command": NOTHING, "session": "bench"});
    let mut call = || {
        timed(|| {
            let answer = client.call("execute_command", &arguments);
            assert_eq!(answer["result"]["structuredContent"]["return_code"], 0, "{answer}");
        })
    };
    let count = bench.effort.strangers;
    let ratio = compare(bench, &mut call, || (0..count).map(|_| stranger()).collect::<Vec<_>>());
    let what = format!("a session's `true` beside {count} processes, ×");
    Row::new(what, ratio).target(Target::AtMost(1.3))
}

fn beside_waiting_calls(bench: &Bench) -> Row {
    let (mut client, mut other) = (Client::start(bench.server()), Client::start(bench.server()));
    for _ in 0..WAITING {
        let job = json!({"command": "sleep 1000", "background": true});
        let job = client.call("execute_command", &job)["result"]["structuredContent"].clone();
        let wait = json!({"job_id": job["job_id"], "wait_for": "port", "port": 1, "timeout": 1000});
        client.ask("tools/call", &json!({"name": "read_job", "arguments": wait}));
    }
    let (mut waiting, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..bench.effort.calls {
        waiting.push(client.run(NOTHING));
        alone.push(other.run(NOTHING));
    }
    let what = format!("`true` beside {WAITING} calls that wait for a port, ×");
    Row::new(what, median(&waiting) / median(&alone)).target(Target::AtMost(1.2))
}

/// How many times longer calls take while something is there. They are measured without it before and after.
fn compare<T>(bench: &Bench, call: &mut dyn FnMut() -> f64, make: impl FnOnce() -> T) -> f64 {
    let mut calls = || (0..bench.effort.calls).map(|_| call()).collect::<Vec<_>>();
    let mut without = calls();
    let made = make();
    let with = calls();
    drop(made);
    without.extend(calls());
    median(&with) / median(&without)
}

fn stranger() -> Stranger {
    let mut sleep = Command::new("sleep");
    sleep.arg("1000").stdin(Stdio::null()).stdout(Stdio::null());
    Stranger(sleep.spawn().expect("sleep starts"))
}
