//! Many clients of one server, each with a place of its own: how soon all of them have one, and what a call costs one
//! of them while the others have something running in theirs.

use std::fmt;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::Bench;
use crate::guest::Guest;
use crate::http::HttpClient;
use crate::places::Entry;
use crate::processes::memory_of_tree;
use crate::runner::NOTHING;
use crate::statistics::{median, timed};

/// The most that `true` may take beside the others, in times of what it takes alone.
const MOST: f64 = 2.0;

pub const HEAD: &str = "\
| place           | owners | first place, ms | all others, ms | `true` alone, µs | beside all, µs |    × | target | met | a place, MB | all ended, ms |
| ---             |   ---: |            ---: |           ---: |             ---: |           ---: | ---: | ---    | --- |        ---: |          ---: |";

/// One line of the table.
pub struct Line {
    name: String,
    owners: usize,
    first: f64,
    others: f64,
    alone: f64,
    beside: f64,
    memory: f64,
    ended: f64,
}

/// Measures the places of a list (see [`crate::places`]) that are made for many, and passes each line on as soon as it
/// is known.
pub fn measure_all(bench: &Bench, list: &Path, mut show: impl FnMut(&Line)) -> Vec<Line> {
    let list = fs::read_to_string(list).expect("there is a list of places");
    let mut lines = Vec::new();
    for entry in list.lines().map(Entry::read) {
        let Some(owners) = entry.owners else { continue };
        let line = measure(bench, entry.name, entry.config, owners);
        show(&line);
        lines.push(line);
    }
    lines
}

/// Measures a place. `config` is that of a server whose commands run there, and ends with the table of the place.
fn measure(bench: &Bench, name: &str, config: &str, owners: usize) -> Line {
    let mut server = start(bench, config, owners);
    let mut guests: Vec<_> = (0..owners)
        .map(|number| {
            let mut guest = Guest::new(server.address(), &token(number));
            guest.open_session();
            guest
        })
        .collect();
    let [honest, others @ ..] = &mut *guests else { panic!("there is an owner") };
    let first = call(honest);
    let alone = calls(bench, honest);
    let before = memory_of_tree(server.pid());
    let job = json!({"command": "exec sleep 3600", "background": true});
    let took = timed(|| {
        others.iter_mut().for_each(|other| other.ask("execute_command", &job));
        others.iter_mut().for_each(|other| drop(other.answer()));
    });
    let beside = calls(bench, honest);
    let memory = memory_of_tree(server.pid()).saturating_sub(before);
    let ended = timed(|| server.end());
    Line {
        name: name.to_owned(),
        owners,
        first: first * 1e3,
        others: took * 1e3,
        alone: median(&alone) * 1e6,
        beside: median(&beside) * 1e6,
        memory: memory as f64 / 1e6 / others.len().max(1) as f64,
        ended: ended * 1e3,
    }
}

fn calls(bench: &Bench, guest: &mut Guest) -> Vec<f64> {
    (0..2 * bench.effort.calls).map(|_| call(guest)).collect()
}

fn call(guest: &mut Guest) -> f64 {
    let command = json!({"command": NOTHING});
    timed(|| drop(guest.tool("execute_command", &command)))
}

fn start(bench: &Bench, config: &str, owners: usize) -> HttpClient {
    let path = bench.scratch.join("owners.toml");
    let place = fs::read_to_string(config).expect("there is a configuration");
    let tokens: String =
        (0..owners).map(|number| format!("owner-{number} = {:?}\n", token(number))).collect();
    let text = format!(
        "{place}per = \"owner\"\nmax = {owners}\n[http]\nconnections = {}\n[http.tokens]\n{tokens}",
        2 * owners + 10
    );
    fs::write(&path, text).expect("there is room for files");
    let mut server = bench.http_server();
    server.arg("--config").arg(path);
    bench.over_http(server)
}

fn token(number: usize) -> String {
    format!("a-token-of-owner-{number}-of-the-benchmark")
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.beside / self.alone;
        write!(
            formatter,
            "| {:15} | {:>6} | {:>15.0} | {:>14.0} | {:>16.0} | {:>14.0} | {times:>4.2} | ≤ {MOST:<4} | {:3} | \
             {:>11.2} | {:>13.0} |",
            self.name,
            self.owners,
            self.first,
            self.others,
            self.alone,
            self.beside,
            if times <= MOST { "yes" } else { "no" },
            self.memory,
            self.ended,
        )
    }
}
