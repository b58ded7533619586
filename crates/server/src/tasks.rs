//! Calls that go on after they were answered: the extension `io.modelcontextprotocol/tasks`.
//!
//!     tools/call ─▶ work ─┬─ done in time ─▶ its answer
//!                         └─ goes on ──────▶ a handle;  tasks/get ─▶ how it is, at last its answer
//!
//! Only a request that declares the extension is ever answered with a handle. A task comes to exactly
//! what the call would have been answered with, and is found by its owner alone, under an id nobody
//! can guess.

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

/// How long a call is waited for before it becomes a task, unless it is set when it becomes a job.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The most calls of one owner that may be tasks at once; others are waited for.
const MAX_RUNNING: usize = 64;

/// The most tasks of one owner that have ended and are remembered.
const MAX_ENDED: usize = 50;

/// The least and the most time between two questions how a task is.
const SHORT_POLL: Duration = Duration::from_millis(500);
const LONG_POLL: Duration = Duration::from_secs(5);

/// Whether a request is of a revision that has the extension.
pub fn is_newest(meta: &RequestMetaObject) -> bool {
    meta.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether a request declares the extension, itself: what was declared before does not count.
pub fn declares(meta: &RequestMetaObject) -> bool {
    is_newest(meta) && meta.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// The tasks of one owner.
#[derive(Debug)]
pub struct Tasks {
    /// Oldest first.
    all: Mutex<Vec<Arc<Task>>>,
    places: Arc<Semaphore>,
    /// How long a task is remembered when it has ended.
    keep_time: Duration,
}

/// What a call may need to go on as a task.
pub struct Place {
    id: String,
    _permit: OwnedSemaphorePermit,
}

/// A call that is carried out.
pub struct Work {
    pub call: Pin<Box<dyn Future<Output = CallToolResult> + Send>>,
    /// Cancels the call.
    pub cancelled: CancellationToken,
    /// What its command prints, once it does.
    pub output: Arc<OnceLock<Output>>,
    pub streams: &'static [Stream],
}

/// A call that was waited for.
#[derive(Debug)]
pub enum Seen {
    Done(CallToolResult),
    GoesOn(Arc<Task>),
}

#[derive(Debug)]
pub struct Task {
    id: String,
    began: Instant,
    began_at: SystemTime,
    cancelled: CancellationToken,
    output: Arc<OnceLock<Output>>,
    streams: &'static [Stream],
    end: watch::Receiver<Option<Ended>>,
    keep_time: Duration,
}

#[derive(Debug, Clone)]
struct Ended {
    payload: TaskPayload,
    at: SystemTime,
    took: Duration,
}

impl Tasks {
    pub fn new(keep_time: Duration) -> Self {
        Self { all: Mutex::default(), places: Arc::new(Semaphore::new(MAX_RUNNING)), keep_time }
    }

    /// A place for a call that may become a task, if there is one.
    pub fn place(&self) -> Option<Place> {
        let permit = self.places.clone().try_acquire_owned().ok()?;
        Some(Place { id: random_name().ok()?, _permit: permit })
    }

    /// Waits for a call until it is done, or for so long; then it goes on as a task.
    pub async fn see_through(
        self: &Arc<Self>,
        place: Place,
        mut work: Work,
        asked: &CancellationToken,
        patience: Duration,
    ) -> Seen {
        let mut patience = pin!(sleep(patience));
        loop {
            let wanted = !work.cancelled.is_cancelled();
            tokio::select! {
                biased;
                answer = &mut work.call => return Seen::Done(answer),
                () = asked.cancelled(), if wanted => work.cancelled.cancel(),
                () = &mut patience, if wanted => break,
            }
        }
        Seen::GoesOn(self.go_on(place, work))
    }

    fn go_on(self: &Arc<Self>, place: Place, work: Work) -> Arc<Task> {
        let (ending, end) = watch::channel(None);
        let task = Arc::new(Task {
            id: place.id.clone(),
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
            // A call that panics fails by itself.
            let answer = tokio::spawn(work.call).await.ok();
            drop(place);
            ending.send_replace(Some(followed.ended_with(answer)));
            let (id, time) = (followed.id.clone(), followed.keep_time);
            // Whoever forgets it earlier has its answer gone, too.
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
        let ended = all.iter().filter(|task| task.is_over()).count();
        if ended > MAX_ENDED
            && let Some(oldest) = all.iter().position(|task| task.is_over())
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

    /// Has all of them end.
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

    /// Ends it, with all its command has started. What has ended stays as it is.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// What a call is answered with that goes on.
    pub fn handle(&self) -> CreateTaskResult {
        CreateTaskResult::new(self.told().task)
    }

    fn is_over(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// How it is when it has ended.
    pub async fn ended(&self) -> DetailedTask {
        // Its sender lives until there is an end.
        let _ = self.end.clone().wait_for(Option::is_some).await;
        self.told()
    }

    /// How it is now.
    pub fn told(&self) -> DetailedTask {
        let ended = self.end.borrow().clone();
        let age = ended.as_ref().map_or_else(|| self.began.elapsed(), |ended| ended.took);
        let updated_at = ended.as_ref().map_or(self.began_at, |ended| ended.at);
        // While it runs it is not forgotten.
        let ttl = ended.as_ref().map(|ended| ended.took + self.keep_time);
        let payload = ended.map_or(TaskPayload::Working, |ended| ended.payload);
        let times = (rfc3339(self.began_at), rfc3339(updated_at));
        let mut task = rmcp::model::Task::new(&*self.id, payload.status(), times.0, times.1);
        task.status_message = self.message(&payload);
        task.ttl_ms = ttl.map(|ttl| ttl.as_millis() as u64);
        // So the answer is late by a tenth at most.
        let poll = (age / 10).clamp(SHORT_POLL, LONG_POLL);
        task.poll_interval_ms = Some(poll.as_millis() as u64);
        DetailedTask::new(task, payload)
    }

    /// What its command printed last, or why there is no answer.
    fn message(&self, payload: &TaskPayload) -> Option<String> {
        match payload {
            TaskPayload::Working => {
                let newest = self.output.get()?.newest(self.streams);
                Some(newest.trim_end().to_owned()).filter(|text| !text.is_empty())
            }
            TaskPayload::Failed { error } => error["message"].as_str().map(str::to_owned),
            _ => None,
        }
    }

    fn ended_with(&self, answer: Option<CallToolResult>) -> Ended {
        let payload = match answer {
            Some(_) if self.cancelled.is_cancelled() => TaskPayload::Cancelled,
            Some(answer) => TaskPayload::Completed { result: object(&answer) },
            None => {
                let error = ErrorData::internal_error("the call broke off", None);
                TaskPayload::Failed { error: object(&error) }
            }
        };
        Ended { payload, at: SystemTime::now(), took: self.began.elapsed() }
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

    fn go_on(
        tasks: &Arc<Tasks>,
        call: impl Future<Output = CallToolResult> + Send + 'static,
    ) -> Arc<Task> {
        let (cancelled, output) = (CancellationToken::new(), Arc::default());
        let work = Work { call: Box::pin(call), cancelled, output, streams: &[Stream::Stdout] };
        tasks.go_on(tasks.place().unwrap(), work)
    }

    async fn done() -> CallToolResult {
        CallToolResult::success(Vec::new())
    }

    #[tokio::test]
    async fn a_call_that_panics_is_a_task_that_failed() {
        let task = go_on(&tasks(), async { panic!("as it may") });
        let told = task.ended().await;
        let message = Some("the call broke off".to_owned());
        assert_eq!(told.task.status_message, message);
        let TaskPayload::Failed { error } = told.payload else { panic!("{told:?}") };
        assert_eq!(error["code"], -32603);
    }

    #[tokio::test]
    async fn so_many_calls_may_be_tasks_and_others_when_they_have_ended() {
        let tasks = tasks();
        let places: Vec<_> = (0..MAX_RUNNING).filter_map(|_| tasks.place()).collect();
        assert_eq!((places.len(), tasks.place().is_none()), (MAX_RUNNING, true));
        drop(places);
        go_on(&tasks, done()).ended().await;
        assert_eq!((0..MAX_RUNNING).filter_map(|_| tasks.place()).count(), MAX_RUNNING);
    }

    #[tokio::test]
    async fn what_has_ended_is_remembered_for_a_time() {
        let hasty = Arc::new(Tasks::new(Duration::ZERO));
        let running = go_on(&hasty, std::future::pending());
        let ended = go_on(&hasty, done());
        ended.ended().await;
        while hasty.find(&ended.id).is_some() {
            tokio::task::yield_now().await;
        }
        assert!(hasty.find(&running.id).is_some());
    }

    #[tokio::test]
    async fn of_many_that_have_ended_the_oldest_is_forgotten() {
        let tasks = tasks();
        let running = go_on(&tasks, std::future::pending());
        let first = go_on(&tasks, done());
        first.ended().await;
        for _ in 0..MAX_ENDED {
            assert!(tasks.find(&first.id).is_some());
            go_on(&tasks, done()).ended().await;
        }
        go_on(&tasks, done());
        assert!(tasks.find(&first.id).is_none() && tasks.find(&running.id).is_some());
    }
}
