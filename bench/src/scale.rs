//! How much more a call costs beside many others: what one client does should cost another nothing.
//!
//! One client brings a crowd, ten and then more and more; another one calls. What the server and all below it
//! use of a processor is counted for each call, as time says more about the machine.
//!
//!     crowd ─▶ server ◀─ calls of somebody else: µs of CPU, beside 10, 100, 1000 …

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::Bench;
use crate::guest::Guest;
use crate::http::{HttpClient, TOKEN};
use crate::processes::{Times, marked, memory_of_tree};
use crate::runner::NOTHING;
use crate::statistics::{median, timed};

/// What lets the crowd in. A single client may keep only half of the connections busy.
const CROWD: [&str; 2] = ["a-token-of-the-crowd-of-the-benchmark", "the-other-token-of-the-crowd"];

/// The most that a call may cost beside the largest crowd, in times of what it costs beside the smallest.
const GROWTH: f64 = 1.5;

/// The most that it may take, likewise.
const SLOWDOWN: f64 = 2.0;

/// The most of a processor that a server may use when nobody calls, in percent.
const IDLE: f64 = 1.0;

/// How many requests a session may have without an answer, and some.
const PER_SESSION: usize = 1000;

/// In blocks of so many, calls are counted.
const BLOCK: usize = 40;

/// Between two rounds of them, as slow moments last for a while.
const BREATH: Duration = Duration::from_millis(200);

/// What a crowd is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crowd {
    Sessions,
    Running,
    Jobs,
    Shells,
    Places,
}

impl Crowd {
    const ALL: [Self; 5] = [Self::Sessions, Self::Running, Self::Jobs, Self::Shells, Self::Places];

    fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sleeping sessions",
            Self::Running => "running commands",
            Self::Jobs => "jobs",
            Self::Shells => "shells",
            Self::Places => "places",
        }
    }

    /// A call of somebody else.
    fn call(self, command: &str) -> Value {
        match self {
            Self::Places => json!({"command": command, "place": "box"}),
            _ => json!({"command": command}),
        }
    }

    fn sizes(self, bench: &Bench) -> &'static [usize] {
        match self {
            Self::Sessions => bench.effort.sessions,
            Self::Running => bench.effort.running,
            Self::Jobs | Self::Shells | Self::Places => bench.effort.jobs,
        }
    }
}

/// One line of the table: the same beside crowds of several sizes.
pub struct Line {
    what: String,
    values: Vec<f64>,
    sizes: &'static [usize],
    met: Option<bool>,
}

/// What was measured beside a crowd of some size.
#[derive(Default)]
struct Measured {
    run: f64,
    took: f64,
    initialize: f64,
    read_job: f64,
    list_jobs: f64,
    idle: f64,
    memory: f64,
    ended_in: f64,
    left: f64,
}

/// Measures everything, and passes each line on as soon as it is known.
pub fn measure(bench: &Bench, mut show: impl FnMut(&Line)) -> Vec<Line> {
    // A connection each.
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    let mut lines = Vec::new();
    for crowd in Crowd::ALL {
        let sizes = crowd.sizes(bench);
        let measured: Vec<_> = sizes.iter().map(|size| beside(bench, crowd, *size)).collect();
        let new = rows(crowd, sizes, &measured);
        new.iter().for_each(&mut show);
        lines.extend(new);
    }
    lines
}

fn rows(crowd: Crowd, sizes: &'static [usize], measured: &[Measured]) -> Vec<Line> {
    let name = crowd.name();
    let line = |what: &str, value: fn(&Measured) -> f64| {
        let values: Vec<_> = measured.iter().map(value).collect();
        Line { what: format!("{what}, beside {name}"), values, sizes, met: None }
    };
    let grows = |what, most: f64, value| {
        let line = line(what, value);
        let growth = line.growth();
        Line { met: Some((growth * 100.0).round() / 100.0 <= most), ..line }
    };
    let flat = |what, value| grows(what, GROWTH, value);
    let at_most = |what, most: f64, value| {
        let line = line(what, value);
        Line { met: Some(line.values.iter().all(|value| *value <= most)), ..line }
    };
    let mut rows = vec![
        grows("`true`, µs at p50", SLOWDOWN, |it| it.took),
        flat("`true`, µs of CPU", |it| it.run),
        flat("`initialize`, µs of CPU", |it| it.initialize),
        flat("`read_job`, µs of CPU", |it| it.read_job),
        flat("`list_jobs`, µs of CPU", |it| it.list_jobs),
        at_most("idle, % of a processor", IDLE, |it| it.idle),
        line("memory (PSS), MB", |it| it.memory),
    ];
    if crowd != Crowd::Sessions {
        rows.push(line("all ended, ms", |it| it.ended_in));
        rows.push(at_most("left when the server was gone", 0.0, |it| it.left));
    }
    rows
}

fn beside(bench: &Bench, crowd: Crowd, size: usize) -> Measured {
    let config = bench.scratch.join("scale.toml");
    let many = 2 * size + 100;
    // Each of three clients may keep a quarter of them busy.
    let connections = 2 * many;
    let text = format!(
        "[limits]\nruns = {many}\nruns_per_client = {many}\njobs = {many}\nsessions = {many}\n\
         processes_per_client = 0\nmemory_per_client = 0\n\
         [http]\nconnections = {connections}\nsessions_per_client = {many}\n\
         [http.tokens]\ncrowd-1 = {:?}\ncrowd-2 = {:?}\n\
         [places.box]\nkind = \"process\"\nper = \"session\"\nmax = {many}\n",
        CROWD[0], CROWD[1]
    );
    fs::write(&config, text).expect("there is room for files");
    let mark = format!("MCPZ_BENCH_CROWD={}-{}-{size}", std::process::id(), crowd as u8);
    let (name, value) = mark.split_once('=').expect("it has a value");
    let mut command = bench.http_server();
    command.arg("--config").arg(config).env(name, value);
    let mut server = bench.over_http(command);
    let gathered = gather(&server, crowd, size);
    // That may have taken longer than a connection may be silent.
    server.reconnect();
    let job = begin_job(&mut server);
    let pid = server.pid();
    let idle = idle(bench, pid);
    let mut guest = Guest::new(server.address(), TOKEN);
    let mut took = Vec::new();
    let mut run = |server: &mut HttpClient| {
        took.push(timed(|| drop(server.tool("execute_command", &crowd.call(NOTHING)))));
    };
    let calls: [&mut dyn FnMut(&mut HttpClient); 4] = [
        &mut run,
        &mut |_| guest.open_session(),
        &mut |server| drop(server.tool("read_job", &json!({"job_id": job}))),
        &mut |server| drop(server.tool("list_jobs", &json!({}))),
    ];
    let [run, initialize, read_job, list_jobs] = costs(bench, &mut server, idle, calls);
    let mut measured = Measured {
        run,
        took: median(&took) * 1e6,
        initialize,
        read_job,
        list_jobs,
        idle: idle * 100.0,
        memory: memory_of_tree(pid) as f64 / 1e6,
        ..Measured::default()
    };
    let began = Instant::now();
    server.end();
    measured.ended_in = began.elapsed().as_secs_f64() * 1e3;
    measured.left = marked(&mark) as f64;
    drop(gathered);
    measured
}

/// Brings a crowd of some size. It goes when what is returned is dropped.
fn gather(server: &HttpClient, crowd: Crowd, size: usize) -> Vec<Guest> {
    if crowd == Crowd::Running {
        return run_all(server, size);
    }
    let mut first = Guest::new(server.address(), CROWD[0]);
    first.open_session();
    for number in 0..size {
        let call = match crowd {
            Crowd::Jobs => json!({"command": "exec sleep 3600", "background": true}),
            Crowd::Shells => json!({"command": "true", "session": format!("shell-{number}")}),
            Crowd::Places => {
                json!({"command": "true", "session": format!("shell-{number}"), "place": "box"})
            }
            Crowd::Sessions | Crowd::Running => {
                first.open_session();
                continue;
            }
        };
        first.tool("execute_command", &call);
    }
    vec![first]
}

/// Begins as many commands, each on a connection of its own, and waits until all of them run.
fn run_all(server: &HttpClient, size: usize) -> Vec<Guest> {
    let mut firsts = CROWD.map(|token| Guest::new(server.address(), token));
    let mut guests = Vec::new();
    for number in 0..size {
        let first = &mut firsts[number % CROWD.len()];
        if number % (CROWD.len() * PER_SESSION) < CROWD.len() {
            first.open_session();
        }
        let mut runner = first.beside();
        // Bringing the whole crowd takes longer than a command may run by default.
        let sleep = json!({"command": "exec sleep 3600", "timeout": 3600});
        runner.ask("execute_command", &sleep);
        guests.push(runner);
    }
    let mut asking = Guest::new(server.address(), CROWD[0]);
    while asking.metric("mcpz_runs_running") < size as f64 {
        std::thread::sleep(Duration::from_millis(20));
    }
    guests.extend(firsts);
    guests
}

/// A job of the one who calls, to be asked for.
fn begin_job(server: &mut HttpClient) -> Value {
    let job = json!({"command": "echo one; exec sleep 3600", "background": true});
    server.tool("execute_command", &job)["job_id"].clone()
}

/// What calls cost: µs of CPU of all that belongs to a server, but for what it uses when idle. They take turns,
/// and the least counts: a machine has slow moments, and no call is cheaper than it is.
fn costs<const N: usize>(
    bench: &Bench,
    server: &mut HttpClient,
    idle: f64,
    mut calls: [&mut dyn FnMut(&mut HttpClient); N],
) -> [f64; N] {
    let mut least = [f64::INFINITY; N];
    for _ in 0..bench.effort.scaled {
        std::thread::sleep(BREATH);
        for (call, least) in calls.iter_mut().zip(&mut least) {
            call(server);
            let (before, began) = (Times::of_tree(server.pid()), Instant::now());
            (0..BLOCK).for_each(|_| call(server));
            let used = Times::of_tree(server.pid()).since(&before);
            let own = used - idle * began.elapsed().as_secs_f64();
            *least = least.min(own * 1e6 / BLOCK as f64);
        }
    }
    least
}

/// What it uses when nobody calls, as a share of a processor.
fn idle(bench: &Bench, server: u32) -> f64 {
    // What was begun before is done with.
    std::thread::sleep(bench.effort.rest);
    let (before, began) = (Times::of_tree(server), Instant::now());
    std::thread::sleep(bench.effort.rest);
    let used = Times::of_tree(server).since(&before);
    used / began.elapsed().as_secs_f64()
}

pub const HEAD: &str = "\
| what                                                   |       10 |      100 |    1,000 |          more | growth | met |
| ---                                                    |     ---: |     ---: |     ---: |          ---: |   ---: | --- |";

impl Line {
    /// The last in times of the first.
    fn growth(&self) -> f64 {
        match (self.values.first(), self.values.last()) {
            (Some(first), Some(last)) if *first > 0.0 => last / first,
            _ => 1.0,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |at: usize| match (self.values.get(at), self.sizes.get(at)) {
            (Some(value), Some(size)) if at == 3 => format!("{} at {size}", short(*value)),
            (Some(value), _) => short(*value),
            _ => String::new(),
        };
        write!(
            formatter,
            "| {:54} | {:>8} | {:>8} | {:>8} | {:>13} | {:>6.2} | {:3} |",
            self.what,
            value(0),
            value(1),
            value(2),
            value(3),
            self.growth(),
            self.met.map_or("", |met| if met { "yes" } else { "no" }),
        )
    }
}

fn short(value: f64) -> String {
    match value {
        small if small < 10.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_each_size_and_how_much_it_grew() {
        let (what, values) = ("`true`".to_owned(), vec![200.0, 210.0, 240.0, 300.0]);
        let line = Line { what, values, sizes: &[10, 100, 1000, 5000], met: Some(true) };
        let shown = line.to_string();
        assert!(
            shown.contains("|      200 |      210 |      240 |   300 at 5000 |   1.50 | yes |")
        );
    }
}
