//! Reports the state and the new output of jobs, at once or after waiting for something to happen.

use std::sync::Arc;

use mcpz_engine::{Condition, Job, Met, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Call;
use super::answer::{Answer, answer_as_json};
use super::changes::NotWithCursor;
use super::error::ToolError;
use super::extract::{ExtractName, NotWithExtract};
use super::jobs::{JobReport, OutputRequest, WaitParams, find_job, parse_cursor, report};
use super::paging::check_limit;
use super::view::{NotWithView, ViewName};

pub const DESCRIPTION: &str = "Read a job's state and new output, now or after waiting";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    job_id: Option<String>,
    /// Wait for any, or all
    job_ids: Option<Vec<String>>,
    /// next_cursor of an answer [default: the last]
    cursor: Option<String>,
    /// Last N lines
    tail: Option<usize>,
    limit_bytes: Option<usize>,
    /// Regex
    grep: Option<String>,
    #[serde(default)]
    view: ViewName,
    #[serde(default)]
    extract: ExtractName,
    json_path: Option<String>,
    #[serde(flatten)]
    wait: WaitParams,
    all: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("pass either `job_id` or `job_ids`")]
    Jobs,
    #[error("`cursor` works only with `job_id`")]
    Cursor,
    #[error("`json_path` works only with `extract`, and in read_file_chunk")]
    JsonPath,
}

#[derive(Debug, Serialize)]
pub struct Reply {
    #[serde(flatten)]
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<JobReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<JobReport>>,
}

pub async fn call(mut call: Call<'_>) -> Answer {
    let params: Params = call.parse()?;
    let ids = match (&params.job_id, &params.job_ids) {
        (Some(id), None) => std::slice::from_ref(id),
        (None, Some(ids)) if !ids.is_empty() => ids,
        _ => return Err(ToolError::arguments(Invalid::Jobs)),
    };
    if params.cursor.is_some() && params.job_ids.is_some() {
        return Err(ToolError::arguments(Invalid::Cursor));
    }
    let mut jobs = Vec::new();
    for id in ids {
        jobs.push(find_job(&call, id).await?);
    }
    if params.view != ViewName::Full && (params.grep.is_some() || params.tail.is_some()) {
        return Err(ToolError::arguments(NotWithView("`grep` and `tail`")));
    }
    if params.view == ViewName::Changes && params.cursor.is_some() {
        return Err(ToolError::arguments(NotWithCursor));
    }
    let kind = params.extract.kind();
    let is_part = params.grep.is_some() || params.tail.is_some() || params.cursor.is_some();
    if kind.is_some() && (is_part || params.view != ViewName::Full) {
        return Err(ToolError::arguments(NotWithExtract("`grep`, `tail`, `cursor` and `view`")));
    }
    if kind.is_none() && params.json_path.is_some() {
        return Err(ToolError::arguments(Invalid::JsonPath));
    }
    let cursor = params.cursor.as_deref().map(parse_cursor).transpose()?;
    let limit = params.limit_bytes.map(check_limit).transpose()?;
    let condition = params.wait.condition().await?;
    // Only now, when the arguments are known to be right: this changes where a later call begins.
    let revisited: Vec<_> = jobs.iter().map(|job| job.revisit()).collect();
    let from = |job: &Job| match (cursor, &params.grep) {
        (Some(cursor), _) => cursor,
        // The last place was not one among matching lines, so all of them are read.
        (None, Some(_)) => Position::default(),
        (None, None) => job.told(),
    };
    let met = match condition {
        Some((condition, time)) => {
            let begin = |(job, first): (&Arc<Job>, _)| match (cursor, &condition) {
                (None, Condition::Text(_)) => (job.clone(), first),
                _ => (job.clone(), cursor.unwrap_or_else(|| job.told())),
            };
            let places = jobs.iter().zip(revisited).map(begin).collect();
            let waited = wait_for(places, condition, Instant::now() + time, params.all);
            tokio::select! {
                met = waited => met,
                () = call.watcher.cancelled.cancelled() => return Err(ToolError::Cancelled),
            }
        }
        None => vec![None; jobs.len()],
    };
    let mut reports = Vec::new();
    for (job, met) in jobs.iter().zip(met) {
        let request = OutputRequest {
            from: from(job),
            tail: params.tail,
            limit: limit.map(|limit| (limit / jobs.len()).max(1)),
            grep: params.grep.clone(),
            view: params.view,
            extract: kind,
            json_path: params.json_path.clone(),
            max_answer: call.faces.max_answer.shared_by(jobs.len()),
            taken: 0,
        };
        reports.push(report(&call, job, request, met).await?);
    }
    let reply = match params.job_id {
        Some(_) => Reply { report: reports.pop(), jobs: None },
        None => Reply { report: None, jobs: Some(reports) },
    };
    Ok(answer_as_json(&reply, Vec::new(), false))
}

/// Waits until the condition is met for one of the jobs, or for all. Returns what is known of each by then.
async fn wait_for(
    jobs: Vec<(Arc<Job>, Position)>,
    condition: Condition,
    until: Instant,
    all: Option<bool>,
) -> Vec<Option<Met>> {
    let mut met = vec![None; jobs.len()];
    let mut waits = JoinSet::new();
    for (at, (job, place)) in jobs.into_iter().enumerate() {
        let condition = condition.clone();
        waits.spawn(async move { (at, job.wait_for(&condition, place, until).await) });
    }
    while let Some(waited) = waits.join_next().await {
        let Ok((at, how)) = waited else { continue };
        let happened = how != Met::TimedOut;
        met[at] = Some(how);
        if happened && all != Some(true) {
            break;
        }
    }
    met
}
