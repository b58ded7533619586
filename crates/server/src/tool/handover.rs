//! A command that outlasts its call: it continues as a job, and the answer says which.
//!
//! That happens after `background_after`, and only where the tools for jobs are offered (`ToolSet::has_jobs`):
//! elsewhere nobody could read or end the job, so the call waits for its command. A command with a terminal is also
//! handed over when it asks for input.

use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::Job;
use mcpz_output::{Room, Stream};
use rmcp::model::ContentBlock;
use schemars::JsonSchema;
use serde::Serialize;

use super::Call;
use super::error::ToolError;
use super::excerpt::resource_link;
use super::jobs::{JobOutput, OutputRequest, output_uri, read_output};
use super::timeout::in_seconds;

/// A job, as part of an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobHandle {
    pub job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    pub state: String,
}

impl JobHandle {
    /// Waits until the job has started, or could not.
    pub async fn new(job: &Job) -> Result<Self, ToolError> {
        job.started().await.map_err(ToolError::NotStarted)?;
        let (job_id, state) = (job.id().to_owned(), job.state().name().to_owned());
        Ok(Self { job_id, pid: job.pid(), state })
    }
}

/// What a command printed before it became a job, and how to continue.
pub struct PartialOutput {
    pub job: JobHandle,
    pub stdout: String,
    pub stderr: String,
    /// Both, one after the other.
    pub joined: String,
    pub message: String,
    /// How long it has been running.
    pub elapsed: Duration,
    pub links: Vec<ContentBlock>,
}

impl PartialOutput {
    /// Reads what fits. `read_job` continues where this ends.
    pub async fn read(call: &Call<'_>, job: &Arc<Job>, room: Room) -> Result<Self, ToolError> {
        let handle = JobHandle::new(job).await?;
        let request = OutputRequest::new(call);
        let JobOutput { text: stdout, next: from, .. } =
            read_output(call, job, &[Stream::Stdout], request, room).await?;
        let (stderr, next) = match call.watcher.streams.contains(&Stream::Stderr) {
            true => {
                let left = room.less(room.measure.of(&stdout));
                let request = OutputRequest { from, ..OutputRequest::new(call) };
                let output = read_output(call, job, &[Stream::Stderr], request, left).await?;
                (output.text, output.next)
            }
            false => (String::new(), from),
        };
        job.note_told(next);
        let link = |uri: String| resource_link(&uri, &job.output, Stream::Stdout);
        Ok(Self {
            job: handle,
            joined: job.output.join(stdout.clone(), &stderr),
            stdout,
            stderr,
            message: how_to_continue(job, call.background_after.unwrap_or_default()),
            elapsed: job.duration(),
            links: output_uri(call, job).map(link).into_iter().collect(),
        })
    }
}

/// What to do with a command that still ran after `waited`.
pub fn how_to_continue(job: &Job, waited: Duration) -> String {
    let (time, id) = (in_seconds(waited), job.id());
    format!(
        "still running after {time}; it continues as {id}, without a timeout; wait for it with read_job or end \
         it with stop_job"
    )
}
