//! Writes records: one before each run, one after it, and a refusal in place of both.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpz_runtime::{Later, random_name, spawn_blocking};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::error::Error;
use crate::files;
use crate::input::{InputRecord, TypedInput};
use crate::record::{EndRecord, Permit, Reason, Redaction, RequestRecord, RequestedRun, RunEnd};
use crate::refused_peer::{PeerRefusalRecord, RefusedPeer};
use crate::settings::AuditSettings;
use crate::trail::Trail;
use crate::writer::{Writer, unended};

/// How many ends that could not be recorded are held in memory.
const MAX_PENDING: usize = 10_000;

/// The pause between two attempts to record them, at first and at most.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(30);

/// How many of them the last message names.
const MAX_NAMED: usize = 100;

/// Writes the trail. Clones share everything.
#[derive(Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    redaction: Redaction,
    trail: Mutex<Trail>,
    pending: Mutex<PendingEnds>,
    writers: Mutex<Writers>,
    later: Later,
}

/// Ends of runs that could not be recorded yet.
#[derive(Default)]
struct PendingEnds {
    ends: VecDeque<Value>,
    /// Whether some did not fit and were dropped.
    overflowed: bool,
}

/// The writer files that we hold while there are ends to record.
#[derive(Default)]
struct Writers {
    own: Option<Writer>,
    /// Writers that are gone, and whose ends we record.
    taken_over: Vec<Writer>,
}

/// Proof that a run is on record. Its end is recorded exactly once: by [`end`](Self::end) or, without that, on
/// drop.
pub struct RecordedRun {
    audit: Audit,
    id: Arc<str>,
    ended: bool,
}

impl Audit {
    /// Creates or opens nothing until there is something to write.
    pub fn new(settings: AuditSettings, redaction: Redaction, later: Later) -> Self {
        let folder = settings.folder.clone();
        let (trail, pending) = (Mutex::new(Trail::new(settings)), Mutex::default());
        let writers = Mutex::default();
        Self { shared: Arc::new(Shared { folder, redaction, trail, pending, writers, later }) }
    }

    /// Records that a command is about to run. Without this record it must not run.
    pub fn record_start(
        &self,
        requested: &RequestedRun<'_>,
        permit: &Permit,
    ) -> Result<RecordedRun, Error> {
        let id = self.new_id()?;
        let writer = self.register_writer(random_name)?;
        self.append(&RequestRecord::start(
            (&id, &writer),
            requested,
            permit,
            &self.shared.redaction,
        ))?;
        Ok(RecordedRun { audit: self.clone(), id, ended: false })
    }

    /// Continues the record of a run that another process has started to record. A process that uses this records
    /// only that run.
    pub fn adopt(&self, id: &str) -> Result<RecordedRun, Error> {
        let recorded = RecordedRun { audit: self.clone(), id: id.into(), ended: false };
        match self.register_writer(|| Ok(id.to_owned())) {
            Ok(_) => Ok(recorded),
            Err(error) => {
                recorded.end(Err(Reason::new(error.chain())));
                Err(error)
            }
        }
    }

    /// Registers this process as one that has ends to record, and returns its name.
    fn register_writer(
        &self,
        name: impl FnOnce() -> io::Result<String>,
    ) -> Result<Arc<str>, Error> {
        let own = &mut self.writers().own;
        if let Some(own) = own {
            return Ok(own.name.clone());
        }
        let writer = name().and_then(|name| Writer::register(&self.shared.folder, &name));
        let writer = writer.map_err(|source| self.error(source))?;
        Ok(own.insert(writer).name.clone())
    }

    /// Records the runs of processes that are gone as lost: they were killed, or the disk was full to the end.
    pub async fn record_lost_runs(&self) {
        let folder = self.shared.folder.clone();
        let gone =
            spawn_blocking(move || Writer::claim_abandoned(&folder)).await.unwrap_or_default();
        if gone.is_empty() {
            return;
        }
        // Their waiting records count as well.
        if let Err(source) = self.trail().flush_all() {
            tracing::warn!("{}", self.error(source).chain());
        }
        let folder = self.shared.folder.clone();
        let found = spawn_blocking(move || (unended(&folder, &gone), gone)).await;
        let Ok((Ok(runs), gone)) = found else { return };
        for id in runs {
            self.record_end(&EndRecord::lost(&id), &id);
        }
        let all_recorded = self.pending().ends.is_empty();
        match all_recorded {
            true => gone.into_iter().for_each(Writer::unregister),
            false => self.writers().taken_over.extend(gone),
        }
    }

    /// Records that a command will not run. Syncs to the disk first: a caller that was refused may try to remove
    /// the trace.
    pub async fn record_refusal(
        &self,
        requested: &RequestedRun<'_>,
        reason: &Reason,
    ) -> Result<(), Error> {
        let id = self.new_id()?;
        self.append_synced(&RequestRecord::refused(&id, requested, reason, &self.shared.redaction))
            .await
    }

    /// Records what is about to be typed. Without this record it must not be typed.
    pub fn record_input(&self, typed: &TypedInput<'_>) -> Result<(), Error> {
        self.append(&InputRecord::start(typed, &self.shared.redaction)).map(drop)
    }

    /// Records what will not be typed, and syncs it to the disk.
    pub async fn record_refused_input(
        &self,
        typed: &TypedInput<'_>,
        reason: &Reason,
    ) -> Result<(), Error> {
        self.append_synced(&InputRecord::refused(typed, reason, &self.shared.redaction)).await
    }

    /// Records a process that was refused at a control socket, and syncs that to the disk.
    pub async fn record_refused_peer(&self, peer: &RefusedPeer<'_>) -> Result<(), Error> {
        let id = self.new_id()?;
        self.append_synced(&PeerRefusalRecord::new(&id, peer, &self.shared.redaction)).await
    }

    async fn append_synced(&self, record: &impl Serialize) -> Result<(), Error> {
        let file = self.append(record)?;
        self.flush();
        let synced = spawn_blocking(move || file.sync_data()).await;
        synced.map_err(io::Error::from).flatten().map_err(|source| self.error(source))
    }

    fn new_id(&self) -> Result<Arc<str>, Error> {
        random_name().map(Arc::from).map_err(|source| self.error(source))
    }

    /// Writes a line now. The head is written later, once for all lines until then.
    fn append(&self, record: &impl Serialize) -> Result<Arc<File>, Error> {
        let (file, flushed) = {
            let mut trail = self.trail();
            let flushed = trail.is_flushed();
            (trail.add(record).map_err(|source| self.error(source))?, flushed)
        };
        if flushed {
            // Not while we hold the mutex: a runtime that is ending runs it at once.
            let audit = self.clone();
            self.shared.later.add(move || audit.flush());
        }
        Ok(file)
    }

    /// Records the end of a run, or postpones that until it can be recorded.
    fn record_end(&self, record: &EndRecord<'_>, id: &str) {
        if let Err(error) = self.append(record) {
            // The run has taken place, so its end is recorded as soon as there is room.
            self.postpone(record, id, &error);
        }
    }

    fn postpone(&self, record: &EndRecord<'_>, id: &str, error: &Error) {
        let mut pending = self.pending();
        let known = !pending.ends.is_empty();
        match serde_json::to_value(record) {
            Ok(record) if pending.ends.len() < MAX_PENDING => pending.ends.push_back(record),
            _ => {
                pending.overflowed = true;
                tracing::error!("cannot record the end of {id}: {}", error.chain());
            }
        }
        drop(pending);
        if known {
            return;
        }
        tracing::error!("cannot record the end of {id} yet: {}", error.chain());
        if let Ok(runtime) = Handle::try_current() {
            let audit = self.clone();
            runtime.spawn(async move {
                audit.wait_for_pending().await;
                tracing::error!("the ends of all runs are now recorded");
            });
        }
    }

    /// Waits until all pending ends are recorded.
    pub async fn wait_for_pending(&self) {
        let mut pause = FIRST_RETRY;
        while !self.retry_pending() {
            tokio::time::sleep(pause).await;
            pause = MAX_RETRY.min(2 * pause);
        }
    }

    /// Tries to record the pending ends. Returns false if some are left.
    pub fn retry_pending(&self) -> bool {
        loop {
            // Do not hold the mutex while writing: an end that fails meanwhile is added.
            let Some(first) = self.pending().ends.front().cloned() else { return true };
            if self.append(&first).is_err() {
                return false;
            }
            self.pending().ends.pop_front();
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingEnds> {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.shared.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self) {
        if let Err(source) = self.trail().flush() {
            // The lines are there. The next writer continues after them.
            tracing::warn!("{}", self.error(source).chain());
        }
    }

    fn trail(&self) -> MutexGuard<'_, Trail> {
        self.shared.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Write { path: files::current(&self.shared.folder), source }
    }
}

impl Drop for Shared {
    /// Nobody writes any more: tries one last time, and reports what is left.
    fn drop(&mut self) {
        let trail = self.trail.get_mut().unwrap_or_else(PoisonError::into_inner);
        let PendingEnds { ends, overflowed } =
            self.pending.get_mut().unwrap_or_else(PoisonError::into_inner);
        while ends.front().is_some_and(|first| trail.add(first).is_ok()) {
            ends.pop_front();
        }
        let flushed = match ends.is_empty() && trail.is_open() {
            true => trail.flush_all(),
            false => trail.flush(),
        };
        if let Err(error) = flushed {
            tracing::warn!("cannot complete the audit trail; the next server will: {error}");
        }
        if !ends.is_empty() {
            let ids = ends.iter().filter_map(|end| end["id"].as_str());
            let named = ids.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
            let more = match ends.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            tracing::error!(
                "the ends of these runs are not recorded; the next server will record them as lost: \
                 {named}{more}"
            );
        } else if !*overflowed {
            let writers = self.writers.get_mut().unwrap_or_else(PoisonError::into_inner);
            let Writers { own, taken_over } = std::mem::take(writers);
            own.into_iter().chain(taken_over).for_each(Writer::unregister);
        }
    }
}

impl RecordedRun {
    /// The id of the run, in the trail and for its caller.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Leaves it to another process to record the end.
    pub fn hand_over(mut self) -> Arc<str> {
        self.ended = true;
        self.id.clone()
    }

    /// Records how the run ended.
    pub fn end(mut self, end: Result<RunEnd, Reason>) {
        self.write_end(end);
    }

    fn write_end(&mut self, end: Result<RunEnd, Reason>) {
        self.ended = true;
        let record = EndRecord::new(&self.id, end, &self.audit.shared.redaction);
        self.audit.record_end(&record, &self.id);
    }
}

impl Drop for RecordedRun {
    fn drop(&mut self) {
        if !self.ended {
            self.write_end(Err(Reason::new("cancelled before it was started")));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mcpz_output::Secrets;

    use super::*;
    use crate::record::{Command, Source};

    #[test]
    fn a_run_that_ends_with_the_runtime_has_its_end_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let redaction = Redaction { log_commands: true, secrets: Secrets::default() };
        let audit = Audit::new(AuditSettings::new(folder.path()), redaction, Later::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let permit = Permit { rules: Vec::new(), warnings: Vec::new() };
        runtime.block_on(async {
            let requested = RequestedRun {
                source: Source { tool: "execute_command", client: None, owner: "somebody" },
                command: Command::Script { text: "sleep 300", shell: Path::new("/bin/sh") },
                directory: Path::new("/"),
                timeout: Some(Duration::from_secs(1)),
                description: None,
                place: None,
                environment: Vec::new(),
                stdin_bytes: None,
            };
            let recorded = audit.record_start(&requested, &permit).unwrap();
            audit.shared.later.catch_up();
            tokio::spawn(async move {
                let _recorded = recorded;
                std::future::pending::<()>().await;
            });
            tokio::task::yield_now().await;
        });
        drop(runtime);
        let lines = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(audit.trail().is_flushed());
    }
}
