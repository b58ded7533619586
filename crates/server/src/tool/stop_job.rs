//! Stops a job and all its processes.

use std::time::Duration;

use mcpz_agent::signal_number;
use mcpz_engine::Job;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Call;
use super::answer::{Answer, answer_as_json};
use super::error::ToolError;
use super::jobs::{JobReport, find_job};

pub const DESCRIPTION: &str = "Stop a job and all its processes";

/// The longest grace period, in milliseconds.
const MAX_GRACE: u64 = 60_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    job_id: String,
    /// [default: SIGTERM, to all]
    signal: Option<String>,
    /// Before SIGKILL [default: 2000]
    grace_ms: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`grace_ms` must be at most {MAX_GRACE}")]
    Grace,
    #[error("unknown signal `{0}`")]
    Signal(String),
}

#[derive(Debug, Serialize)]
pub struct Reply {
    #[serde(flatten)]
    report: JobReport,
    /// Processes that could not be ended
    survivors: usize,
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let job = find_job(&call, &params.job_id).await?;
    let signal = match &params.signal {
        None => None,
        Some(name) => Some(signal(name)?),
    };
    let grace = params.grace_ms.map_or(Job::STOP_GRACE, Duration::from_millis);
    if grace.as_millis() > u128::from(MAX_GRACE) {
        return Err(ToolError::arguments(Invalid::Grace));
    }
    let survivors = job.stop(signal, grace).await.len();
    let reply = Reply { report: JobReport::new(&job), survivors };
    Ok(answer_as_json(&reply, Vec::new(), survivors > 0))
}

fn signal(name: &str) -> Result<i32, ToolError> {
    let upper = name.to_ascii_uppercase();
    let full = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    let number = signal_number(&full).filter(|number| (1..=64).contains(number));
    let unknown = || ToolError::arguments(Invalid::Signal(name.to_owned()));
    number.map(i32::from).ok_or_else(unknown)
}
