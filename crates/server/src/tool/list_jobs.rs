//! Lists the jobs of the caller.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use mcpz_engine::{Job, JobState};
use mcpz_output::Measure;
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, answer_as_json};
use super::jobs::{JobReport, output_uri};
use super::places::describe_places;
use super::{Call, FaceSettings};
use crate::budget::{MaxAnswer, size_as_json};

pub const DESCRIPTION: &str = "List background jobs";

/// How many jobs with long commands fit into an answer at least.
const LISTED: usize = 8;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Only in the schema where there are several.
    #[schemars(skip)]
    place: Option<String>,
}

pub fn adapt(tool: Tool, _: Duration, faces: &FaceSettings) -> Tool {
    describe_places(tool, "List only jobs that run there", &faces.places)
}

#[derive(Debug, Serialize)]
pub struct Reply {
    jobs: Vec<Listed>,
    /// Jobs there was no room for; those that ended first are left out first.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_jobs: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    report: JobReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Seconds since 1970
    started_at: u64,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tty: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detached: Option<bool>,
    /// Where it runs, if not on the server's machine
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// Its output as a resource, for clients that subscribe to it
    #[serde(skip_serializing_if = "Option::is_none")]
    output_uri: Option<String>,
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let Params { place } = call.parse()?;
    let jobs = call.engine.jobs(call.owner).await;
    let is_meant = |job: &&Arc<Job>| place.is_none() || job.place() == place.as_deref();
    let jobs = jobs.iter().filter(is_meant).map(|job| Listed::new(&call, job)).collect();
    let reply = Reply::within(call.faces.max_answer, jobs);
    Ok(answer_as_json(&reply, Vec::new(), false))
}

impl Reply {
    /// As many jobs as fit into an answer. Jobs that have ended make room first.
    fn within(max_answer: MaxAnswer, mut jobs: Vec<Listed>) -> Self {
        let mut surplus = jobs.iter().map(size_as_json).sum::<usize>();
        let all = jobs.len();
        let room = max_answer.room(0, Measure::QuotedTwice).size;
        let leave_out = |job: &Listed, surplus: &mut usize| {
            let left_out = *surplus > room;
            *surplus -= if left_out { size_as_json(job) } else { 0 };
            left_out
        };
        jobs.retain(|job| job.is_running() || !leave_out(job, &mut surplus));
        jobs.retain(|job| !leave_out(job, &mut surplus));
        let omitted_jobs = Some(all - jobs.len()).filter(|omitted| *omitted > 0);
        Self { jobs, omitted_jobs }
    }
}

impl Listed {
    fn is_running(&self) -> bool {
        self.report.state == JobState::Running.name()
    }

    fn new(call: &Call<'_>, job: &Job) -> Self {
        let started_at = job.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let brief = |text: &str| call.faces.max_answer.shared_by(LISTED).echo(text);
        Self {
            report: JobReport::new(job),
            pid: job.pid(),
            command: brief(&job.command),
            description: job.description.as_deref().map(brief),
            started_at,
            duration_ms: job.duration().as_millis() as u64,
            session: job.session().map(str::to_owned),
            tty: job.has_terminal().then_some(true),
            detached: job.is_detached().then_some(true),
            place: job.place().map(str::to_owned),
            output_uri: output_uri(call, job),
        }
    }
}
