//! The run a page is read from: a new one, or one whose output is kept.

use std::sync::Arc;
use std::time::Duration;

use mcpz_engine::{Condition, End, Job, KeptOutput, Outcome, Position};
use mcpz_output::{Error, Output, Stream};
use tokio::time::Instant;

use super::super::Call;
use super::super::ending::{Ending, is_error};
use super::super::error::{ToolError, check_not_blank};
use super::Params;
use crate::blocking::run_blocking;
use crate::output_uri::Cursor;
use crate::watcher::CallOutcome;

/// How long to wait for the end of a command whose output has ended.
const END_TIME: Duration = Duration::from_secs(1);

pub struct Source {
    pub id: String,
    pub found: KeptOutput,
    /// The job it is, if it had not ended when the call looked.
    pub job: Option<Arc<Job>>,
    /// Whether it became a job in this call.
    pub became_job: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("no output is kept for this cursor; run the command again without a cursor")]
struct OutputGone;

impl Source {
    /// Runs the command until it ends or becomes a job.
    pub async fn run(call: &Call<'_>, params: &Params) -> Result<Self, ToolError> {
        check_not_blank("cmd", &params.cmd)?;
        let request = params.request(call.default_timeout());
        let (engine, owner, after) = (call.engine, call.owner, call.background_after);
        let run = call.watcher.run_followed(engine, owner, request, after).await;
        let (id, outcome) = run.map_err(ToolError::NotRun)?;
        let (found, became_job) = match outcome {
            CallOutcome::Ended(outcome) => {
                (KeptOutput::new(outcome.output.clone(), Some(outcome)), false)
            }
            CallOutcome::HandedOver(job) => (KeptOutput::new(job.output.clone(), None), true),
        };
        Ok(Self { id, found, job: None, became_job }.with_job(call).await)
    }

    /// Finds the run that a cursor names, or the newest run of the same request.
    pub async fn find(
        call: &Call<'_>,
        params: &Params,
        cursor: &Cursor,
    ) -> Result<Self, ToolError> {
        let found = match &cursor.id {
            None => call.owner.find_newest(&params.request(call.default_timeout())),
            Some(id) => call.owner.find(id).map(|found| (id.clone(), found)),
        };
        let (id, found) = found.ok_or_else(|| ToolError::failed(OutputGone))?;
        Ok(Self { id, found, job: None, became_job: false }.with_job(call).await)
    }

    async fn with_job(mut self, call: &Call<'_>) -> Self {
        if self.found.outcome.is_none() {
            let jobs = call.engine.jobs(call.owner).await;
            self.job = jobs.into_iter().find(|job| *job.run == *self.id);
            self.look_for_end();
        }
        self
    }

    fn look_for_end(&mut self) {
        if let Some(job) = &self.job {
            self.found.outcome = job.end().outcome.and_then(Result::ok);
        }
    }

    /// Looks whether a job has ended whose output has. False if it is still printing.
    pub async fn learn_end(&mut self) -> bool {
        let Some(job) = self.job.as_ref().filter(|_| self.found.output.is_finished()) else {
            return false;
        };
        job.wait_for(&Condition::Exit, Position::default(), Instant::now() + END_TIME).await;
        self.look_for_end();
        true
    }

    pub fn has_ended(&self) -> bool {
        self.found.outcome.is_some()
    }

    pub fn has_failed(&self) -> bool {
        self.found.outcome.as_ref().is_some_and(|outcome| is_error(outcome.end))
    }

    pub fn was_cancelled(&self) -> bool {
        self.found.outcome.as_ref().is_some_and(|outcome| outcome.end == End::Cancelled)
    }

    pub fn how_it_ended(&self) -> String {
        let ended = |outcome: &Outcome| match outcome.end.exit_code() {
            Some(code) => format!("the command ended with exit code {code}"),
            None => format!("the command ended: {}", Ending::from(outcome).text()),
        };
        self.found.outcome.as_ref().map_or("the command is still running".into(), ended)
    }

    /// The compressed form of stdout, which is made once.
    pub async fn gzipped(&self, call: &Call<'_>) -> Result<Output, ToolError> {
        if let Some(gzipped) = &self.found.gzipped {
            return Ok(gzipped.clone());
        }
        let (source, target) = (self.found.output.clone(), call.owner.new_output());
        let gzipped = target.clone();
        run_blocking(&call.watcher.cancelled, move |stop| {
            mcpz_output::gzip(&source, Stream::Stdout, &gzipped, &stop).map_err(Error::Read)
        })
        .await?;
        call.owner.keep_gzipped(&self.id, target.clone());
        Ok(target)
    }
}
