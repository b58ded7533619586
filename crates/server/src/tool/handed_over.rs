//! A command that takes longer than a call waits for it: it goes on as a job, and the answer names it.

use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::Job;
use mcpz_output::{Room, Stream};
use rmcp::model::ContentBlock;
use schemars::JsonSchema;
use serde::Serialize;

use super::Call;
use super::deadline::in_seconds;
use super::error::ToolError;
use super::jobs::{Printed, Wanted, output_uri, read};
use super::shown::resource_link;

/// The job, as part of an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HandedOver {
    pub job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    pub state: String,
}

impl HandedOver {
    /// What there is to know of a job that has started, or why it has not.
    pub async fn new(job: &Job) -> Result<Self, ToolError> {
        job.started().await.map_err(ToolError::NotStarted)?;
        let (job_id, state) = (job.id().to_owned(), job.state().name().to_owned());
        Ok(Self { job_id, pid: job.pid(), state })
    }
}

/// What a command has printed until it was handed over, and how to go on.
pub struct SoFar {
    pub job: HandedOver,
    pub stdout: String,
    pub stderr: String,
    pub message: String,
    /// How long it has been running.
    pub elapsed: Duration,
    pub links: Vec<ContentBlock>,
}

impl SoFar {
    /// `read_job` goes on where this ends.
    pub async fn read(call: &Call<'_>, job: &Arc<Job>, room: Room) -> Result<Self, ToolError> {
        let handed_over = HandedOver::new(job).await?;
        let wanted = Wanted::new(call);
        let Printed { text: stdout, next: from, .. } =
            read(call, job, &[Stream::Stdout], wanted, room).await?;
        let (stderr, told) = match call.watcher.streams.contains(&Stream::Stderr) {
            true => {
                let left = room.less(room.measure.of(&stdout));
                let wanted = Wanted { from, ..Wanted::new(call) };
                let printed = read(call, job, &[Stream::Stderr], wanted, left).await?;
                (printed.text, printed.next)
            }
            false => (String::new(), from),
        };
        job.note_told(told);
        let link = |uri: String| resource_link(&uri, &job.output, Stream::Stdout);
        Ok(Self {
            job: handed_over,
            stdout,
            stderr,
            message: how_to_go_on(job, call.patience.unwrap_or_default()),
            elapsed: job.duration(),
            links: output_uri(call, job).map(link).into_iter().collect(),
        })
    }
}

/// What to do about a command that still ran after that time.
pub fn how_to_go_on(job: &Job, waited: Duration) -> String {
    let (time, id) = (in_seconds(waited), job.id());
    format!(
        "still running after {time}; it goes on as {id}, without a timeout: wait for it with read_job, or end \
         it with stop_job"
    )
}
