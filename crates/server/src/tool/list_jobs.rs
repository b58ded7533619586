//! Lists the jobs of whoever asks.

use std::time::UNIX_EPOCH;

use mcpz_engine::Job;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{Answer, Effect, answer, define_briefly, json};
use super::jobs::{Told, output_uri};

pub const NAME: &str = "list_jobs";

const DESCRIPTION: &str = "List background jobs";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {}

#[derive(Debug, Serialize)]
struct Reply {
    jobs: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    told: Told,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    command: String,
    /// Seconds since 1970
    started_at: u64,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tty: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detached: Option<bool>,
    /// Its output as a resource, for clients that follow it
    #[serde(skip_serializing_if = "Option::is_none")]
    output_uri: Option<String>,
}

pub fn definition() -> rmcp::model::Tool {
    define_briefly::<Params>(NAME, DESCRIPTION, Effect::Reads)
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let Params {} = call.parse()?;
    let jobs = call.engine.jobs(call.owner).await;
    let reply = Reply { jobs: jobs.iter().map(|job| Listed::new(&call, job)).collect() };
    Ok(answer(&reply, vec![json(&reply)], false))
}

impl Listed {
    fn new(call: &Call<'_>, job: &Job) -> Self {
        let started_at = job.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self {
            told: Told::new(job),
            pid: job.pid(),
            command: job.command.clone(),
            started_at,
            duration_ms: job.duration().as_millis() as u64,
            session: job.session().map(str::to_owned),
            tty: job.has_terminal().then_some(true),
            detached: job.is_detached().then_some(true),
            output_uri: output_uri(call, job),
        }
    }
}
