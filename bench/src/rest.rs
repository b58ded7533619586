//! A server that has just been started: how soon it answers, and what it is at rest.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::Bench;
use crate::bare::Bare;
use crate::client::Client;
use crate::processes::memory_of_tree;
use crate::runner::{NOTHING, Runner};
use crate::statistics::{median, timed};
use crate::table::{Panel, Row, Target};

pub fn measure(bench: &Bench) -> Vec<Row> {
    vec![cold_start(bench), idle_memory(bench), tools(bench)]
}

/// From the server's exec to its answer to `initialize`.
fn cold_start(bench: &Bench) -> Row {
    let (mut ours, mut bare, mut minimal) = (Vec::new(), Vec::new(), Vec::new());
    let start = |server: Command| {
        let mut client = None;
        timed(|| client = Some(Client::start(server)))
    };
    for _ in 0..bench.effort.starts {
        bare.push(Bare.run(NOTHING) * 1e3);
        ours.push(start(bench.server()) * 1e3);
        minimal.push(start(bench.minimal()) * 1e3);
    }
    Row::new("cold start, ms", median(&ours))
        .bare(median(&bare))
        .minimal(median(&minimal))
        .target(Target::AtMost(4.0))
        .drawn(Panel::Time)
}

/// The whole tree, after a first command.
fn idle_memory(bench: &Bench) -> Row {
    let idle = |server: Command| {
        let mut client = Client::start(server);
        client.run(NOTHING);
        std::thread::sleep(Duration::from_millis(300));
        memory_of_tree(client.pid()) as f64 / 1e6
    };
    Row::new("idle memory (PSS), MB", idle(bench.server()))
        .minimal(idle(bench.minimal()))
        .target(Target::AtMost(8.0))
}

/// What a model has to read before it can do anything.
fn tools(bench: &Bench) -> Row {
    let mut client = Client::start(bench.server());
    client.ask("tools/list", &json!({}));
    let answer = client.answer();
    let length = answer["result"].to_string().len();
    Row::new("`tools/list`, bytes", length as f64).target(Target::AtMost(6000.0))
}
