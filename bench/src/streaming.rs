//! How long a line is under way: from being written to being heard of as progress.

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::client::Client;
use crate::statistics::percentile;
use crate::table::{Panel, Row};
use crate::{Bench, bare};

/// Time between lines. Progress is told ten times a second at most.
const PAUSE: Duration = Duration::from_millis(110);

/// A command through the server and one without it, at the same time.
pub fn measure(bench: &Bench) -> Vec<Row> {
    let command = format!("exec '{}' tick {}", bench.own.display(), bench.effort.ticks);
    let (ours, bare) = std::thread::scope(|scope| {
        let bare = scope.spawn(|| without_server(&command));
        (through_server(bench, &command), bare.join().expect("it does not panic"))
    });
    let row = |name: &str, percent| {
        Row::new(format!("line to progress, µs at {name}"), percentile(&ours, percent))
            .bare(percentile(&bare, percent))
    };
    vec![row("p50", 50.0).drawn(Panel::Time), row("p99", 99.0)]
}

/// What the command does: says what time it is, again and again.
pub fn tick(count: usize) {
    let mut stdout = std::io::stdout();
    for _ in 0..count {
        let written = writeln!(stdout, "{}", now());
        written.expect("somebody reads");
        std::thread::sleep(PAUSE);
    }
}

fn through_server(bench: &Bench, command: &str) -> Vec<f64> {
    let mut client = Client::start(bench.server());
    let params = json!({
        "name": "execute_command",
        "arguments": {"command": command, "timeout": 300},
        "_meta": {"progressToken": 1},
    });
    client.ask("tools/call", &params);
    let mut delays = Vec::new();
    loop {
        let line = client.line();
        let heard = now();
        let message: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        let Some(said) = message["params"]["message"].as_str() else {
            assert_eq!(message["result"]["structuredContent"]["return_code"], 0, "{message}");
            return delays;
        };
        delays.extend(said.lines().last().map(|written| delay(written, heard)));
    }
}

fn without_server(command: &str) -> Vec<f64> {
    let (mut child, pipe) = bare::spawn(command);
    let lines = BufReader::new(pipe).lines().map_while(Result::ok);
    let delays = lines
        .map(|written| (now(), written))
        .map(|(heard, written)| delay(&written, heard))
        .collect();
    assert!(child.wait().expect("it is our child").success());
    delays
}

/// Microseconds since the line was written.
fn delay(written: &str, heard: i64) -> f64 {
    (heard - written.parse::<i64>().expect("a line is a time")) as f64 / 1e3
}

/// Nanoseconds on a clock that all processes share.
fn now() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
