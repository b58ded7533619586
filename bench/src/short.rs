//! The shortest command there is: how long one takes, and how many a second there can be.

use std::process::Command;

use crate::Bench;
use crate::bare::Bare;
use crate::client::Client;
use crate::processes::Times;
use crate::runner::{NOTHING, Runner};
use crate::statistics::{median, percentile};
use crate::table::{Panel, Row, Target};

/// Bare, mcpz and the minimal server.
struct Contest {
    name: &'static str,
    runners: [Box<dyn Runner>; 3],
}

/// Calls that follow each other. The first of them finds the caches as another one left them, and
/// is not counted.
const BLOCK: usize = 10;

/// One call after the other.
pub fn latency(bench: &Bench) -> Vec<Row> {
    let mut rows = Vec::new();
    for (mut contest, most) in [(over_stdio(bench), 1.15), (over_http(bench), 1.3)] {
        let used = contest.processor_time();
        let took = contest.in_turn(bench.effort.calls, block);
        let row = |name: &str, percent| {
            let [bare, ours, minimal] = [0, 1, 2].map(|who| percentile(&took[who], percent));
            let what = format!("`true` {}, µs at {name}", contest.name);
            Row::new(what, ours).bare(bare).minimal(minimal)
        };
        rows.push(row("p50", 50.0).target(Target::TimesBare(most)).drawn(Panel::Time));
        rows.extend([row("p10", 10.0), row("p99", 99.0)]);
        let all = contest.processor_time();
        let calls = (bench.effort.calls * BLOCK) as f64;
        let [ours, minimal] = [1, 2].map(|who| all[who].since(&used[who]) * 1e6 / calls);
        let what = format!("`true` {}, the server's µs of CPU", contest.name);
        rows.push(Row::new(what, ours).minimal(minimal));
    }
    if let Some(mut contest) = in_a_sandbox(bench) {
        let took = contest.in_turn(bench.effort.calls, block);
        let [bare, ours, minimal] = took.map(|took| median(&took));
        let row = Row::new(format!("`true` {}, µs at p50", contest.name), ours);
        rows.push(row.bare(bare).minimal(minimal).drawn(Panel::Time));
    }
    rows
}

/// As many as there can be, a block of time each.
pub fn throughput(bench: &Bench) -> Vec<Row> {
    let mut rows = Vec::new();
    for (mut contest, least) in [(over_stdio(bench), 0.9), (over_http(bench), 0.75)] {
        for in_flight in [1, 8, 64] {
            let rates = contest.in_turn(bench.effort.blocks, |runner, rates| {
                rates.push(runner.rate(NOTHING, in_flight, bench.effort.block));
            });
            let [bare, ours, minimal] = rates.map(|rates| median(&rates));
            let what = format!("`true` {}, {in_flight} in flight, a second", contest.name);
            let row = Row::new(what, ours).bare(bare).minimal(minimal).drawn(Panel::Rate);
            rows.push(match in_flight {
                64 => row.target(Target::ShareOfMinimal(least)),
                _ => row,
            });
        }
    }
    rows
}

impl Contest {
    /// Everybody is warm when it begins.
    fn new(
        name: &'static str,
        ours: impl Runner + 'static,
        minimal: impl Runner + 'static,
    ) -> Self {
        let mut runners: [Box<dyn Runner>; 3] = [Box::new(Bare), Box::new(ours), Box::new(minimal)];
        for runner in &mut runners {
            for _ in 0..10 {
                runner.run(NOTHING);
            }
        }
        Self { name, runners }
    }

    /// Measures all of them in turn, and another first each time: what one of them has yet to do
    /// when it has answered must not be always the same one's burden.
    fn in_turn(
        &mut self,
        rounds: usize,
        mut measure: impl FnMut(&mut dyn Runner, &mut Vec<f64>),
    ) -> [Vec<f64>; 3] {
        let mut values = [const { Vec::new() }; 3];
        for round in 0..rounds {
            for turn in 0..3 {
                let who = (round + turn) % 3;
                measure(self.runners[who].as_mut(), &mut values[who]);
            }
        }
        values
    }

    /// What each server has had of it so far, with all below it.
    fn processor_time(&self) -> [Times; 3] {
        let servers = self.runners.each_ref().map(|runner| runner.server());
        servers.map(|server| server.map_or_else(Times::default, Times::of_tree))
    }
}

/// Some calls one after the other, in microseconds.
fn block(runner: &mut dyn Runner, took: &mut Vec<f64>) {
    runner.run(NOTHING);
    took.extend((1..BLOCK).map(|_| runner.run(NOTHING) * 1e6));
}

fn over_stdio(bench: &Bench) -> Contest {
    let ours = Client::start(bench.server());
    Contest::new("over stdio", ours, Client::start(bench.minimal()))
}

fn over_http(bench: &Bench) -> Contest {
    let ours = bench.over_http(bench.http_server());
    Contest::new("over HTTP", ours, bench.over_http(bench.minimal_http()))
}

/// If this machine has what it takes.
fn in_a_sandbox(bench: &Bench) -> Option<Contest> {
    let folder = bench.folder("workspace");
    let confine = |mut command: Command| {
        command.args(["--sandbox", "workspace", "--working-dir"]).arg(&folder);
        command
    };
    let mut trial = bench.mcpz();
    trial.args(["call", "execute_command", "command=true"]);
    let tried = confine(trial).output().expect("mcpz starts");
    let ours = tried.status.success().then(|| Client::start(confine(bench.server())))?;
    Some(Contest::new("in a sandbox", ours, Client::start(bench.minimal())))
}
