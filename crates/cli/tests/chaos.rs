//! Everything that can go wrong does, at random and at once: processes of ours are killed and stopped, calls
//! are cancelled, clients leave, the disk is full. Whatever happens, nothing of a command survives its server,
//! every call is answered that somebody waits for, and every run is on record with its end.
//!
//! It takes two minutes. `MCPZ_CHAOS_SECONDS` makes it longer, and `MCPZ_CHAOS_SEED` roughly repeats a run that
//! failed: what it does also depends on the processes that are alive.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::disk::Disk;
use support::{MCPZ, Server, audit, children, mark, name, survivors, wait_until};
use tempfile::TempDir;

const SECONDS: u64 = 120;

/// The calls of a round.
const CALLS: u64 = 12;

/// Numbers that look random, and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Where records and outputs are: a disk that can be filled, if one can be mounted.
struct Place {
    disk: Option<Disk>,
    folder: TempDir,
}

impl Place {
    /// With room for the records of so much time, which nobody removes, and a few outputs.
    fn new(time: Duration) -> Self {
        let (folder, size) = (support::state(), format!("{}m", 8 + time.as_secs() / 20));
        Self { disk: Disk::mount(folder.path(), &size), folder }
    }

    fn fill(&self) {
        self.disk.iter().for_each(Disk::fill);
    }

    fn clear(&self) {
        self.disk.iter().for_each(Disk::clear);
    }
}

/// One server, what it was asked, and what was done to it.
struct Round<'a> {
    dice: &'a mut Dice,
    place: &'a Place,
    server: Server,
    asked: Vec<i64>,
    cancelled: HashSet<i64>,
    killed: bool,
    killed_recorder: bool,
    left: bool,
    done: Vec<String>,
}

impl<'a> Round<'a> {
    fn begin(dice: &'a mut Dice, place: &'a Place, mark: &str) -> Self {
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell"]).env("CHAOS", mark).env("TMPDIR", place.folder.path());
        command.env("XDG_STATE_HOME", place.folder.path());
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        let (asked, cancelled, done) = (Vec::new(), HashSet::new(), Vec::new());
        Self {
            dice,
            place,
            server,
            asked,
            cancelled,
            killed: false,
            killed_recorder: false,
            left: false,
            done,
        }
    }

    fn is_over(&self) -> bool {
        self.killed || self.left
    }

    /// Asks for something that ends by itself, by a timeout or with the server.
    fn ask(&mut self) {
        let arguments = match self.dice.roll(10) {
            0 => json!({"command": "echo hello"}),
            1 => json!({"command": "sleep 300", "timeout": 1}),
            2 => json!({"command": "seq 300000; sleep 0.1"}),
            3 => json!({"command": "setsid sleep 300 & (sleep 300 &) & sleep 0.2"}),
            4 => json!({"command": "seq 100000; sleep 300", "background": true}),
            5 => json!({"command": "printf '? '; read answer", "tty": true}),
            6 => json!({"command": "trap '' TERM HUP; sleep 300", "timeout": 1}),
            7 => json!({"command": "cd /; sleep 0.1; pwd", "session": "one"}),
            8 => json!({"command": "echo begun; sleep 300", "detach": true}),
            _ => json!({"command": "kill -STOP $$; sleep 300", "timeout": 1}),
        };
        self.done.push(arguments.to_string());
        let params = json!({"name": "execute_command", "arguments": arguments});
        let id = self.server.ask("tools/call", params);
        self.asked.push(id);
    }

    /// Does something to somebody.
    fn disturb(&mut self) {
        let pause = Duration::from_millis(self.dice.roll(120));
        std::thread::sleep(pause);
        let below = children(self.server.child.id());
        let agent = below.into_iter().find(|pid| name(*pid) == "mcpz-agent");
        let keepers = agent.map(children).unwrap_or_default();
        let some_keeper = match keepers.len() as u64 {
            0 => None,
            count => keepers.get(self.dice.roll(count) as usize).copied(),
        };
        let what = self.dice.roll(15);
        self.done.push(format!("disturbance {what}"));
        match what {
            0 => signal("KILL", agent),
            1 => signal("STOP", agent),
            2 | 3 => signal("KILL", some_keeper),
            4 => signal("STOP", some_keeper),
            5 => {
                signal("STOP", Some(self.server.child.id()));
                std::thread::sleep(pause);
                signal("CONT", Some(self.server.child.id()));
            }
            6 | 7 => self.cancel(),
            8 => self.place.fill(),
            9 => self.place.clear(),
            10 => {
                let recorder = self.recorder();
                signal("STOP", recorder);
                std::thread::sleep(pause);
                signal("CONT", recorder);
            }
            11 => {
                signal("KILL", self.recorder());
                self.killed_recorder = true;
            }
            14 => signal("STOP", self.recorder().and_then(|it| children(it).first().copied())),
            12 if self.dice.roll(3) == 0 => {
                self.server.signal("KILL");
                self.killed = true;
            }
            13 if self.dice.roll(3) == 0 => {
                self.server.close_stdin();
                self.left = true;
            }
            _ => {}
        }
    }

    /// Some process that keeps a detached job.
    fn recorder(&mut self) -> Option<u32> {
        let jobs = std::fs::read_dir(self.place.folder.path().join("mcpz/jobs")).ok()?.flatten();
        let cards = jobs.filter_map(|job| std::fs::read(job.path().join("job.json")).ok());
        let cards = cards.filter_map(|card| serde_json::from_slice::<Value>(&card).ok());
        // Its number may be that of another process by now, or of a thread.
        let living = |pid: &u32| name(*pid) == "mcpz-record";
        let pids = cards.filter_map(|card| u32::try_from(card["recorder"].as_u64()?).ok());
        let pids: Vec<_> = pids.filter(living).collect();
        match pids.len() as u64 {
            0 => None,
            count => pids.get(self.dice.roll(count) as usize).copied(),
        }
    }

    fn cancel(&mut self) {
        let Some(id) = self.asked.last().copied() else { return };
        self.cancelled.insert(id);
        self.server.notify("notifications/cancelled", json!({"requestId": id}));
    }

    /// Every call is answered that somebody waits for, and the server ends. Whether some ends may be left
    /// for the next server to record.
    fn end(mut self, seed: u64) -> (bool, Vec<String>) {
        let done = std::mem::take(&mut self.done);
        if !self.is_over() {
            for id in self.asked.iter().filter(|id| !self.cancelled.contains(id)) {
                let answer = self.server.answer(*id);
                let result = &answer["result"];
                assert!(result["content"][0]["text"].is_string(), "{seed}: {answer} to {done:?}");
            }
        }
        self.place.clear();
        if !self.is_over() {
            // What a full disk refused can be written now.
            self.server.run("true");
            self.server.close_stdin();
        }
        self.server.wait();
        (self.is_over() || self.killed_recorder, done)
    }
}

/// Ends detached jobs, which outlive their servers.
fn stop_detached(place: &Place) {
    let mut command = Command::new(MCPZ);
    let mut server = Server::from_command(
        command.args(["server", "shell"]).env("XDG_STATE_HOME", place.folder.path()),
    );
    server.initialize("2025-11-25");
    let listed = server.tool("list_jobs", json!({}))["structuredContent"]["jobs"].clone();
    for job in listed.as_array().unwrap().iter().filter(|job| job["state"] == "running") {
        server.tool("stop_job", json!({"job_id": job["job_id"]}));
    }
}

/// Sends a signal to somebody who may be gone by now.
fn signal(name: &str, pid: Option<u32>) {
    let Some(pid) = pid else { return };
    let _ = Command::new("sh").args(["-c", &format!("kill -{name} {pid} 2>/dev/null")]).status();
}

/// The runs on record that have no end.
fn endless(records: &[Value]) -> HashSet<String> {
    let of = |event: &str| -> HashSet<String> {
        let named = records.iter().filter(|record| record["event"] == event);
        named.map(|record| record["id"].as_str().unwrap().to_owned()).collect()
    };
    &of("start") - &of("end")
}

#[test]
fn nothing_survives_and_everything_is_answered_and_on_record_whatever_happens() {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let time = Duration::from_secs(number("MCPZ_CHAOS_SECONDS").unwrap_or(SECONDS));
    let seed = number("MCPZ_CHAOS_SEED").unwrap_or(u64::from(std::process::id()) * 7919 + 1);
    eprintln!("MCPZ_CHAOS_SEED={seed}");
    let (mut dice, place, until) = (Dice(seed), Place::new(time), Instant::now() + time);
    let mut rounds = 0;
    while Instant::now() < until {
        let mark = mark();
        let mut round = Round::begin(&mut dice, &place, &mark);
        for _ in 0..CALLS {
            match round.dice.roll(2) {
                0 => round.ask(),
                _ => round.disturb(),
            }
            if round.is_over() {
                break;
            }
        }
        let (unrecorded, done) = round.end(seed);
        wait_until(&format!("nothing is left of round {rounds}, {seed}: {done:?}"), || {
            if survivors(&mark).is_empty() {
                return Some(());
            }
            // A job that a killed server asked for may begin only now.
            stop_detached(&place);
            None
        });
        wait_until(&format!("all ends are on record, {seed}: {done:?}"), || {
            if endless(&audit::records(&place.folder)).is_empty() {
                return Some(());
            }
            if unrecorded {
                stop_detached(&place);
            }
            None
        });
        rounds += 1;
    }
    assert!(rounds > 0);
    let (said, code) = audit::verify(&place.folder);
    assert!(said.contains("none missing") && code == 0, "{seed}: {said}");
    assert!(!said.contains("no end"), "{seed}: {said}");
    eprintln!("{rounds} rounds, {said}");
}
