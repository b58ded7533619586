//! The shortest command there is: how long one takes, and how many a second there can be.

use std::path::Path;
use std::process::Command;

use crate::Bench;
use crate::client::Client;
use crate::floor::Bare;
use crate::runner::{NOTHING, Runner};
use crate::statistics::{median, percentile};
use crate::table::{Panel, Row, Target};

/// One call after the other. All take turns, and another is the first each time: what one of them
/// has yet to do when it has answered must not be always the same one's burden.
pub fn latency(bench: &Bench) -> Vec<Row> {
    let folder = bench.folder("workspace");
    let mut runners = everybody(bench);
    let sandboxed = sandbox(bench, &folder);
    let is_sandboxed = sandboxed.is_some();
    runners.extend(sandboxed);
    let mut took = vec![Vec::new(); runners.len()];
    for round in 0..bench.effort.calls {
        for turn in 0..runners.len() {
            let number = (round + turn) % runners.len();
            let seconds = runners[number].run(NOTHING);
            took[number].push(seconds * 1e6);
        }
    }
    let at = |percent| took.iter().map(|took| percentile(took, percent)).collect::<Vec<_>>();
    let (p50, p99) = (at(50.0), at(99.0));
    let row = |what: &str, values: &[f64], ours: usize| {
        Row::new(what, values[ours]).bare(values[0]).minimal(values[ours + 1])
    };
    let mut rows = vec![
        row("`true` over stdio, µs at p50", &p50, 1)
            .target(Target::TimesBare(1.15))
            .drawn(Panel::Time),
        row("`true` over stdio, µs at p99", &p99, 1),
        row("`true` over HTTP, µs at p50", &p50, 3)
            .target(Target::TimesBare(1.3))
            .drawn(Panel::Time),
        row("`true` over HTTP, µs at p99", &p99, 3),
    ];
    if is_sandboxed {
        let row = Row::new("`true` in a sandbox, µs at p50", p50[5]).bare(p50[0]).minimal(p50[2]);
        rows.push(row.drawn(Panel::Time));
    }
    rows
}

/// As many as there can be. All take turns, a block of time each.
pub fn throughput(bench: &Bench) -> Vec<Row> {
    let mut runners = everybody(bench);
    let mut rows = Vec::new();
    for (transport, ours, target) in [("stdio", 1, 0.9), ("HTTP", 3, 0.75)] {
        for in_flight in [1, 8, 64] {
            let mut rates = [const { Vec::new() }; 3];
            for round in 0..bench.effort.blocks {
                for turn in 0..3 {
                    let number = (round + turn) % 3;
                    let runner = &mut runners[[0, ours, ours + 1][number]];
                    rates[number].push(runner.rate(NOTHING, in_flight, bench.effort.block));
                }
            }
            let [bare, mcpz, minimal] = rates.map(|rates| median(&rates));
            let row =
                Row::new(format!("`true` over {transport}, {in_flight} in flight, a second"), mcpz);
            let row = row.bare(bare).minimal(minimal).drawn(Panel::Rate);
            rows.push(match in_flight {
                64 => row.target(Target::ShareOfMinimal(target)),
                _ => row,
            });
        }
    }
    rows
}

/// The floor, then us and the minimal server, over stdio and over HTTP; all warm.
fn everybody(bench: &Bench) -> Vec<Box<dyn Runner>> {
    let mut runners: Vec<Box<dyn Runner>> = vec![
        Box::new(Bare),
        Box::new(Client::start(bench.server())),
        Box::new(Client::start(bench.minimal())),
        Box::new(bench.over_http(bench.http_server())),
        Box::new(bench.over_http(bench.minimal_http())),
    ];
    for runner in &mut runners {
        for _ in 0..10 {
            runner.run(NOTHING);
        }
    }
    runners
}

/// The same inside a sandbox, if this machine has what it takes.
fn sandbox(bench: &Bench, folder: &Path) -> Option<Box<dyn Runner>> {
    let confine = |command: &mut Command| {
        command.args(["--sandbox", "workspace", "--working-dir"]).arg(folder);
    };
    let mut trial = bench.mcpz();
    trial.args(["call", "execute_command", "command=true"]);
    confine(&mut trial);
    let tried = trial.output().ok()?;
    if !tried.status.success() {
        return None;
    }
    let mut server = bench.server();
    confine(&mut server);
    let mut client = Client::start(server);
    client.run(NOTHING);
    Some(Box::new(client))
}
