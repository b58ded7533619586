//! Calls that continue after they were answered: the extension `io.modelcontextprotocol/tasks`.
//!
//!     tools/call ─▶ work ─┬─ done in time ─▶ its answer
//!                         └─ continues ────▶ a handle;  tasks/get ─▶ its status, in the end its answer
//!
//! Only a request that declares the extension is ever answered with a handle. A task is the very future that the call
//! waited for, so it ends with the answer the call would have had, and is cancelled as a call is. Only its owner finds
//! it, under an id nobody can guess.
//!
//! No task asks its client for input. A command that waits for some becomes a job, as in any other call, and the model
//! writes to it; elicitation would put every prompt of a program before the user.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use mcpz_audit::rfc3339;
use mcpz_output::{Output, Stream};
use mcpz_runtime::random_name;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ErrorData, JsonObject, ProtocolVersion,
    RequestMetaObject, TaskPayload,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// When a call becomes a task, unless the settings say when a command becomes a job. A model gets the answer of a task
/// only later, perhaps after it has gone on without it. So most builds and tests should not become one, nor what ends
/// at a default limit of 30 seconds. But hosts give a call up after a minute.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(40);

/// The most running tasks of one owner. Further calls are answered when they are done.
const MAX_RUNNING: usize = 64;

/// The most ended tasks of one owner that are remembered.
const MAX_ENDED: usize = 50;

/// The shortest and the longest time between two polls that a task asks for.
const SHORT_POLL: Duration = Duration::from_millis(500);
const LONG_POLL: Duration = Duration::from_secs(5);

/// Whether the revision of a request has the extension.
pub fn is_newest(meta: &RequestMetaObject) -> bool {
    meta.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether a request itself declares the extension. What an earlier one declared does not count.
pub fn declares(meta: &RequestMetaObject) -> bool {
    is_newest(meta) && meta.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// The tasks of one owner.
#[derive(Debug)]
pub struct Tasks {
    /// Oldest first.
    all: Mutex<Vec<Arc<Task>>>,
    slots: Arc<Semaphore>,
    /// How long an ended task is remembered.
    keep_time: Duration,
}

/// What a call needs to become a task.
pub struct TaskSlot {
    id: String,
    _permit: OwnedSemaphorePermit,
}

/// A call that is running.
pub struct Work {
    pub call: Pin<Box<dyn Future<Output = CallToolResult> + Send>>,
    /// Cancels the call.
    pub cancelled: CancellationToken,
    /// What its command prints, once it runs.
    pub output: Arc<OnceLock<Output>>,
    pub streams: &'static [Stream],
}

/// How a call is answered.
#[derive(Debug)]
pub enum Answered {
    Now(CallToolResult),
    /// With a handle, for it continues as a task.
    Later(Arc<Task>),
}

#[derive(Debug)]
pub struct Task {
    id: String,
    began: Instant,
    began_at: SystemTime,
    cancelled: CancellationToken,
    output: Arc<OnceLock<Output>>,
    streams: &'static [Stream],
    end: watch::Receiver<Option<TaskEnd>>,
    keep_time: Duration,
}

#[derive(Debug, Clone)]
struct TaskEnd {
    payload: TaskPayload,
    at: SystemTime,
    took: Duration,
}

impl Tasks {
    pub fn new(keep_time: Duration) -> Self {
        Self { all: Mutex::default(), slots: Arc::new(Semaphore::new(MAX_RUNNING)), keep_time }
    }

    /// A slot for a call that may become a task, if one is free.
    pub fn slot(&self) -> Option<TaskSlot> {
        let permit = self.slots.clone().try_acquire_owned().ok()?;
        Some(TaskSlot { id: random_name().ok()?, _permit: permit })
    }

    /// Waits until a call is done, for `time` at most; then the call becomes a task. Until then,
    /// `asked` cancels it.
    pub async fn answer(
        self: &Arc<Self>,
        slot: TaskSlot,
        mut work: Work,
        asked: &CancellationToken,
        time: Duration,
    ) -> Answered {
        let mut time = pin!(sleep(time));
        loop {
            let wanted = !work.cancelled.is_cancelled();
            tokio::select! {
                biased;
                answer = &mut work.call => return Answered::Now(answer),
                () = asked.cancelled(), if wanted => work.cancelled.cancel(),
                () = &mut time, if wanted => break,
            }
        }
        Answered::Later(self.add(slot, work))
    }

    fn add(self: &Arc<Self>, slot: TaskSlot, work: Work) -> Arc<Task> {
        let (ending, end) = watch::channel(None);
        let task = Arc::new(Task {
            id: slot.id.clone(),
            began: Instant::now(),
            began_at: SystemTime::now(),
            cancelled: work.cancelled,
            output: work.output,
            streams: work.streams,
            end,
            keep_time: self.keep_time,
        });
        self.insert(task.clone());
        let (tasks, followed) = (Arc::downgrade(self), task.clone());
        tokio::spawn(async move {
            // In a task of its own, so that a panic ends only the call.
            let answer = tokio::spawn(work.call).await.ok();
            drop(slot);
            ending.send_replace(Some(followed.ended_with(answer)));
            let (id, time) = (followed.id.clone(), followed.keep_time);
            // If it is forgotten earlier, its answer must go with it.
            drop(followed);
            sleep(time).await;
            if let Some(tasks) = tasks.upgrade() {
                tasks.lock().retain(|task| task.id != id);
            }
        });
        task
    }

    fn insert(&self, task: Arc<Task>) {
        let mut all = self.lock();
        all.push(task);
        let ended = all.iter().filter(|task| task.has_ended()).count();
        if ended > MAX_ENDED
            && let Some(oldest) = all.iter().position(|task| task.has_ended())
        {
            all.remove(oldest);
        }
    }

    pub fn find(&self, id: &str) -> Option<Arc<Task>> {
        self.lock().iter().find(|task| task.id == id).cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Cancels every task.
    pub fn cancel_all(&self) {
        for task in self.lock().iter() {
            task.cancelled.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Task>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends it, with everything its command started. A task that has ended stays as it is.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// The answer of a call that becomes this task.
    pub fn handle(&self) -> CreateTaskResult {
        CreateTaskResult::new(self.status().task)
    }

    fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// Its status once it has ended.
    pub async fn ended(&self) -> DetailedTask {
        // The sender lives until there is an end.
        let _ = self.end.clone().wait_for(Option::is_some).await;
        self.status()
    }

    pub fn status(&self) -> DetailedTask {
        let ended = self.end.borrow().clone();
        let age = ended.as_ref().map_or_else(|| self.began.elapsed(), |ended| ended.took);
        let updated_at = ended.as_ref().map_or(self.began_at, |ended| ended.at);
        // A running task is not forgotten.
        let ttl = ended.as_ref().map(|ended| ended.took + self.keep_time);
        let payload = ended.map_or(TaskPayload::Working, |ended| ended.payload);
        let times = (rfc3339(self.began_at), rfc3339(updated_at));
        let mut task = rmcp::model::Task::new(&*self.id, payload.status(), times.0, times.1);
        task.status_message = self.message(&payload);
        task.ttl_ms = ttl.map(|ttl| ttl.as_millis() as u64);
        // So the client learns of the end late by a tenth at most.
        let poll = (age / 10).clamp(SHORT_POLL, LONG_POLL);
        task.poll_interval_ms = Some(poll.as_millis() as u64);
        DetailedTask::new(task, payload)
    }

    /// What its command printed last, or why it failed.
    fn message(&self, payload: &TaskPayload) -> Option<String> {
        match payload {
            TaskPayload::Working => {
                let newest = self.output.get()?.last_lines(self.streams);
                Some(newest.trim_end().to_owned()).filter(|text| !text.is_empty())
            }
            TaskPayload::Failed { error } => error["message"].as_str().map(str::to_owned),
            _ => None,
        }
    }

    fn ended_with(&self, answer: Option<CallToolResult>) -> TaskEnd {
        let payload = match answer {
            Some(_) if self.cancelled.is_cancelled() => TaskPayload::Cancelled,
            Some(answer) => TaskPayload::Completed { result: object(&answer) },
            None => {
                let error = ErrorData::internal_error("the call ended without a result", None);
                TaskPayload::Failed { error: object(&error) }
            }
        };
        TaskEnd { payload, at: SystemTime::now(), took: self.began.elapsed() }
    }
}

fn object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Arc<Tasks> {
        Arc::new(Tasks::new(Duration::from_secs(60)))
    }

    fn start(
        tasks: &Arc<Tasks>,
        call: impl Future<Output = CallToolResult> + Send + 'static,
    ) -> Arc<Task> {
        let (cancelled, output) = (CancellationToken::new(), Arc::default());
        let work = Work { call: Box::pin(call), cancelled, output, streams: &[Stream::Stdout] };
        tasks.add(tasks.slot().unwrap(), work)
    }

    async fn done() -> CallToolResult {
        CallToolResult::success(Vec::new())
    }

    #[tokio::test]
    async fn a_call_that_panics_is_a_task_that_failed() {
        let task = start(&tasks(), async { panic!("as it may") });
        let status = task.ended().await;
        let message = Some("the call ended without a result".to_owned());
        assert_eq!(status.task.status_message, message);
        let TaskPayload::Failed { error } = status.payload else { panic!("{status:?}") };
        assert_eq!(error["code"], -32603);
    }

    #[tokio::test]
    async fn so_many_calls_may_be_tasks_and_others_when_they_have_ended() {
        let tasks = tasks();
        let slots: Vec<_> = (0..MAX_RUNNING).filter_map(|_| tasks.slot()).collect();
        assert_eq!((slots.len(), tasks.slot().is_none()), (MAX_RUNNING, true));
        drop(slots);
        start(&tasks, done()).ended().await;
        assert_eq!((0..MAX_RUNNING).filter_map(|_| tasks.slot()).count(), MAX_RUNNING);
    }

    #[tokio::test]
    async fn what_has_ended_is_remembered_for_a_time() {
        let hasty = Arc::new(Tasks::new(Duration::ZERO));
        let running = start(&hasty, std::future::pending());
        let ended = start(&hasty, done());
        ended.ended().await;
        while hasty.find(&ended.id).is_some() {
            tokio::task::yield_now().await;
        }
        assert!(hasty.find(&running.id).is_some());
    }

    #[tokio::test]
    async fn of_many_that_have_ended_the_oldest_is_forgotten() {
        let tasks = tasks();
        let running = start(&tasks, std::future::pending());
        let first = start(&tasks, done());
        first.ended().await;
        for _ in 0..MAX_ENDED {
            assert!(tasks.find(&first.id).is_some());
            start(&tasks, done()).ended().await;
        }
        start(&tasks, done());
        assert!(tasks.find(&first.id).is_none() && tasks.find(&running.id).is_some());
    }
}
