//! Thousands of calls of all kinds: what is left of them when they are over.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Bench;
use crate::client::Client;
use crate::processes::Census;
use crate::table::{Row, Target};

const IN_FLIGHT: usize = 4;

/// What is called, and what its answer must be.
#[derive(Clone, Debug)]
enum Call {
    Nothing,
    Failure,
    Output,
    LargeOutput,
    Timeout,
    Background,
    Stop(String),
    Session,
}

/// In this order, again and again. A job is stopped by the call after it.
const MIX: [Call; 20] = [
    Call::Nothing,
    Call::Output,
    Call::Failure,
    Call::Nothing,
    Call::Session,
    Call::Nothing,
    Call::LargeOutput,
    Call::Nothing,
    Call::Background,
    Call::Nothing,
    Call::Output,
    Call::Nothing,
    Call::Failure,
    Call::Session,
    Call::Nothing,
    Call::Timeout,
    Call::Nothing,
    Call::Output,
    Call::Nothing,
    Call::Nothing,
];

pub fn measure(bench: &Bench) -> Vec<Row> {
    let mut client = Client::start(bench.server());
    let calls = bench.effort.soak;
    soak(&mut client, bench.effort.kept, &[Call::LargeOutput]);
    soak(&mut client, (calls / 5).max(MIX.len() * IN_FLIGHT), &MIX);
    let before = settled(&client, None, bench.effort.patience);
    soak(&mut client, calls, &MIX);
    let after = settled(&client, Some(before), bench.effort.patience);
    let more = |count: fn(Census) -> usize| count(after).saturating_sub(count(before)) as f64;
    let growth = (after.memory as f64 - before.memory as f64) / 1e6;
    vec![
        Row::new(format!("soak of {calls} calls, memory growth, MB"), growth)
            .target(Target::AtMost(1.0)),
        Row::new("soak, memory (PSS) after it, MB", after.memory as f64 / 1e6),
        Row::new("soak, descriptors left", more(|census| census.descriptors))
            .target(Target::AtMost(0.0)),
        Row::new("soak, threads left", more(|census| census.threads)).target(Target::AtMost(0.0)),
        Row::new("soak, processes left", more(|census| census.processes))
            .target(Target::AtMost(0.0)),
        Row::new("soak, zombies", after.zombies as f64).target(Target::AtMost(0.0)),
    ]
}

/// Makes so many calls, some at a time, and stops every job it has begun.
fn soak(client: &mut Client, calls: usize, mix: &[Call]) {
    let mut slots: Vec<_> = (0..IN_FLIGHT).map(|number| Slot::start(client, number, mix)).collect();
    let mut asked = slots.len();
    let mut under_way = slots.len();
    while under_way > 0 {
        let answer = client.answer();
        let slot = slots.iter_mut().find(|slot| answer["id"] == slot.id);
        let slot = slot.expect("somebody asked for it");
        match slot.call.check(&answer) {
            Some(job) => slot.ask(client, Call::Stop(job)),
            None if asked < calls => {
                slot.place += 1;
                slot.ask(client, mix[slot.place % mix.len()].clone());
            }
            None => {
                under_way -= 1;
                continue;
            }
        }
        asked += 1;
    }
}

/// One of those that are under way.
struct Slot {
    number: usize,
    place: usize,
    id: u64,
    call: Call,
}

impl Slot {
    /// Each begins elsewhere in the mix.
    fn start(client: &mut Client, number: usize, mix: &[Call]) -> Self {
        let place = number * mix.len() / IN_FLIGHT;
        let mut slot = Self { number, place, id: 0, call: Call::Nothing };
        slot.ask(client, mix[place].clone());
        slot
    }

    fn ask(&mut self, client: &mut Client, call: Call) {
        let arguments = match &call {
            Call::Nothing => json!({"command": "true"}),
            Call::Failure => json!({"command": "echo no >&2; exit 3"}),
            Call::Output => json!({"command": "seq 1 2000"}),
            Call::LargeOutput => json!({"command": "seq 1 50000"}),
            Call::Timeout => json!({"command": "sleep 60", "timeout": 0.02}),
            Call::Background => json!({"command": "sleep 60", "background": true}),
            Call::Stop(job) => json!({"job_id": job}),
            Call::Session => {
                json!({"command": "cd /; N=$((N+1))", "session": format!("s{}", self.number)})
            }
        };
        let tool = if matches!(call, Call::Stop(_)) { "stop_job" } else { "execute_command" };
        self.id = client.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        self.call = call;
    }
}

impl Call {
    /// Holds the answer to what it must be, and returns the job that was begun.
    fn check(&self, answer: &Value) -> Option<String> {
        let reply = &answer["result"]["structuredContent"];
        let right = match self {
            Self::Nothing | Self::Session => reply["return_code"] == 0,
            Self::Failure => reply["return_code"] == 3,
            Self::Output => reply["output"].as_str().is_some_and(|text| text.ends_with("\n2000\n")),
            Self::LargeOutput => reply["spill_uri"].is_string(),
            Self::Timeout => reply["timed_out"] == true,
            Self::Background => reply["job_id"].is_string(),
            Self::Stop(_) => reply["survivors"] == 0,
        };
        assert!(right, "{self:?}: {answer}");
        let job = reply["job_id"].as_str().filter(|_| matches!(self, Self::Background));
        job.map(str::to_owned)
    }
}

/// Counts the tree when there is no more of it than before, or else when it does not change.
fn settled(client: &Client, before: Option<Census>, patience: Duration) -> Census {
    let began = Instant::now();
    let mut last = Census::default();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = Census::of_tree(client.pid());
        let counts =
            |census: Census| [census.descriptors, census.threads, census.processes, census.zombies];
        let quiet = match before {
            Some(before) => {
                counts(now).iter().zip(counts(before)).all(|(now, before)| *now <= before)
            }
            None => counts(now) == counts(last),
        };
        if quiet || began.elapsed() > patience {
            return now;
        }
        last = now;
    }
}
