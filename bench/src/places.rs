//! What it takes to run commands in a place: beside the same commands on this machine, and beside what the way to the
//! place carries by itself.
//!
//! A list has a line for each place, with tabs: its name, the most that `true` may take in times of what it takes here,
//! the configuration of a server whose commands run there, a shell command that prints `$BYTES` bytes from there, and
//! for how many clients at once places are made, if for more than one.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::Bench;
use crate::client::Client;
use crate::runner::{NOTHING, Runner};
use crate::statistics::{median, timed};

/// How much is printed.
const BYTES: u64 = 300_000_000;

/// In seconds; what takes less cannot be told from its start.
const SHORTEST: f64 = 1e-3;

/// The share of what the way carries that output should have.
const SHARE: f64 = 0.6;

pub const HEAD: &str = "\
| place           | first call, ms | `true`, µs | here, µs |    × | target | met | output, MB/s | bare, MB/s | share | target | met |
| ---             |           ---: |       ---: |     ---: | ---: | ---    | --- |         ---: |       ---: |  ---: | ---    | --- |";

/// One line of the table.
pub struct Line {
    name: String,
    most: f64,
    first: f64,
    there: f64,
    here: f64,
    output: f64,
    bare: f64,
}

/// Measures the places of a list, and passes each line on as soon as it is known.
pub fn measure(bench: &Bench, list: &Path, mut show: impl FnMut(&Line)) -> Vec<Line> {
    let list = fs::read_to_string(list).expect("there is a list of places");
    let mut here = Client::start(bench.server());
    let mut lines = Vec::new();
    for entry in list.lines() {
        let line = measure_place(bench, &mut here, &Entry::read(entry));
        show(&line);
        lines.push(line);
    }
    lines
}

/// A line of the list.
pub struct Entry<'a> {
    pub name: &'a str,
    most: f64,
    pub config: &'a str,
    bare: &'a str,
    pub owners: Option<usize>,
}

impl<'a> Entry<'a> {
    pub fn read(line: &'a str) -> Self {
        let columns: Vec<_> = line.split('\t').collect();
        let [name, most, config, bare, owners @ ..] = &*columns else {
            panic!("`{line}` has four columns");
        };
        let most = most.parse().expect("the most that `true` may take is a number");
        let owners = owners.first().map(|owners| owners.parse().expect("the owners are a number"));
        Self { name, most, config, bare, owners }
    }
}

fn measure_place(bench: &Bench, here: &mut Client, entry: &Entry<'_>) -> Line {
    let mut server = bench.server();
    server.args(["--timeout", "600", "--config", entry.config]);
    let mut there = None;
    let first = timed(|| {
        let client = there.insert(Client::start(server));
        client.run(NOTHING);
    });
    let mut there = there.expect("it was started");
    let (mut took_there, mut took_here) = (Vec::new(), Vec::new());
    for _ in 0..2 * bench.effort.calls {
        took_there.push(there.run(NOTHING));
        took_here.push(here.run(NOTHING));
    }
    let bytes = BYTES.min(bench.effort.volume);
    let (mut output, mut carried) = (Vec::new(), Vec::new());
    for _ in 0..bench.effort.takes {
        // What it takes to start, which the server did long before, does not count.
        let start = timed(|| carry(entry.bare, 1));
        carried.push((timed(|| carry(entry.bare, bytes)) - start).max(SHORTEST));
        output.push(timed(|| print(&mut there, bytes)));
    }
    let rate = |took: &[f64]| bytes as f64 / 1e6 / median(took);
    Line {
        name: entry.name.to_owned(),
        most: entry.most,
        first: first * 1e3,
        there: median(&took_there) * 1e6,
        here: median(&took_here) * 1e6,
        output: rate(&output),
        bare: rate(&carried),
    }
}

fn print(there: &mut Client, bytes: u64) {
    let command = format!("head -c {bytes} /dev/zero");
    let answer = there.call("execute_command", &json!({"command": command}));
    let reply = &answer["result"]["structuredContent"];
    assert_eq!(reply["return_code"], 0, "{answer}");
}

/// Reads what the way carries, and forgets it.
fn carry(command: &str, bytes: u64) {
    let mut shell = Command::new("sh")
        .args(["-c", command])
        .env("BYTES", bytes.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut pipe = shell.stdout.take().expect("it was asked for");
    let (mut buffer, mut read) = (vec![0; 64 << 10], 0);
    loop {
        match pipe.read(&mut buffer).expect("the pipe is open") {
            0 => break,
            length => read += length as u64,
        }
    }
    shell.wait().expect("it ends");
    assert_eq!(read, bytes, "`{command}` prints as much as it is told to");
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, share) = (self.there / self.here, self.output / self.bare);
        let met = |met| if met { "yes" } else { "no" };
        write!(
            formatter,
            "| {:15} | {:>14.0} | {:>10.0} | {:>8.0} | {times:>4.2} | ≤ {:<4} | {:3} | {:>12.0} | {:>10.0} | \
             {share:>5.2} | ≥ {SHARE:<4} | {:3} |",
            self.name,
            self.first,
            self.there,
            self.here,
            self.most,
            met(times <= self.most),
            self.output,
            self.bare,
            met(share >= SHARE),
        )
    }
}
