//! The record of everything that was asked for, run and refused.
//!
//! A JSON line before each run and one after it, and one before all that is typed into it, in a folder only we can read; whoever cannot write
//! the first runs nothing. Each line holds the mark of the one before and one of its own, made with a
//! key, and the head beside the file tells which was the last: a line that is changed, removed or
//! put elsewhere shows ([`verify`]). Several processes write to one trail.
//!
//!     gate ─▶ Audit::start ─▶ Recorded ─▶ run ─▶ Recorded::end
//!       └───▶ Audit::refuse (on the disk before it is told)
//!
//! The marks hold against whoever cannot read the key. A command that runs as the same user can,
//! unless something keeps it from the folder.

mod clock;
mod escape;
mod files;
mod head;
mod line;
mod peers;
mod reader;
mod record;
mod seal;
mod trail;
mod typing;
mod verify;
mod waiting;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpz_agent::aside;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;

pub use clock::rfc3339;
pub use escape::{Escaping, visible};
pub use peers::RefusedPeer;
pub use reader::{AuditTail, audit_lines};
pub use record::{Asked, Discretion};
pub(crate) use seal::sha256;
pub use typing::Entered;
pub use verify::{Defect, Fault, Verified, verify};

use crate::error::Error;
use crate::gate::Permit;
use crate::later::Later;
use crate::outcome::Outcome;
use crate::random::random_name;
use peers::Rejection;
use record::{Closing, Opening};
use trail::Trail;
use typing::Typed;

/// How many ends of runs are kept that cannot be recorded.
const MAX_OWED: usize = 10_000;

/// Between two tries to record them.
const TRY_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSettings {
    /// The folder of the trail; made when the first record is written.
    pub folder: PathBuf,
    /// How long a file may get before another is begun, in bytes.
    pub max_size: u64,
    /// How many files are kept besides the one that is written.
    pub keep: u64,
}

impl AuditSettings {
    /// The least a file may be allowed to hold.
    pub const MIN_SIZE: u64 = trail::MIN_SIZE;

    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), max_size: 64_000_000, keep: 16 }
    }
}

/// Writes the trail. Clones share everything.
#[derive(Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

struct Shared {
    /// The file that is written, for those who have to be told where it is.
    path: PathBuf,
    discretion: Discretion,
    trail: Mutex<Trail>,
    /// Ends of runs that could not be recorded yet.
    owed: Mutex<VecDeque<Value>>,
    later: Later,
}

/// Proof that a run is on record. Its end is recorded too, once: when it is known or, if nobody
/// says it, when this is dropped.
pub struct Recorded {
    audit: Audit,
    id: Arc<str>,
    ended: bool,
}

impl Audit {
    /// Nothing is made or opened until there is something to write.
    pub fn new(settings: AuditSettings, discretion: Discretion, later: Later) -> Self {
        let path = files::current(&settings.folder);
        let (trail, owed) = (Mutex::new(Trail::new(settings)), Mutex::default());
        Self { shared: Arc::new(Shared { path, discretion, trail, owed, later }) }
    }

    /// Records that a command is going to run. Without this, it must not.
    pub fn start(&self, asked: &Asked<'_>, permit: &Permit) -> Result<Recorded, Error> {
        let id = self.new_id()?;
        self.append(&Opening::start(&id, asked, permit, &self.shared.discretion))?;
        Ok(Recorded { audit: self.clone(), id, ended: false })
    }

    /// Takes over a run whose beginning another process has put on record.
    pub fn resume(&self, id: &str) -> Recorded {
        Recorded { audit: self.clone(), id: id.into(), ended: false }
    }

    /// Records that a command will not run, on the disk: who was refused may try to remove the trace.
    pub async fn refuse(&self, asked: &Asked<'_>, error: &Error) -> Result<(), Error> {
        let id = self.new_id()?;
        self.append_synced(&Opening::refused(&id, asked, error, &self.shared.discretion)).await
    }

    /// Records what is going to be typed. Without this, it must not.
    pub fn start_typing(&self, entered: &Entered<'_>) -> Result<(), Error> {
        self.append(&Typed::start(entered, &self.shared.discretion)).map(drop)
    }

    /// Records what will not be typed, on the disk.
    pub async fn refuse_typing(&self, entered: &Entered<'_>, error: &Error) -> Result<(), Error> {
        self.append_synced(&Typed::refused(entered, error, &self.shared.discretion)).await
    }

    /// Records who was refused at a control socket, on the disk.
    pub async fn refuse_peer(&self, peer: &RefusedPeer<'_>) -> Result<(), Error> {
        let id = self.new_id()?;
        self.append_synced(&Rejection::new(&id, peer, &self.shared.discretion)).await
    }

    async fn append_synced(&self, record: &impl Serialize) -> Result<(), Error> {
        let file = self.append(record)?;
        self.settle();
        let synced = aside(move || file.sync_data()).await;
        synced.map_err(io::Error::from).flatten().map_err(|source| self.error(source))
    }

    fn new_id(&self) -> Result<Arc<str>, Error> {
        random_name().map(Arc::from).map_err(|source| self.error(source))
    }

    /// Writes a line now, and later, with others that came meanwhile, how far the trail goes.
    fn append(&self, record: &impl Serialize) -> Result<Arc<File>, Error> {
        let (file, settled) = {
            let mut trail = self.trail();
            let settled = trail.is_settled();
            (trail.add(record).map_err(|source| self.error(source))?, settled)
        };
        if settled {
            // Not while the trail is ours: a runtime that ends does it at once.
            let audit = self.clone();
            self.shared.later.add(move || audit.settle());
        }
        Ok(file)
    }

    /// Keeps the end of a run that cannot be recorded until it can.
    fn owe(&self, closing: &Closing<'_>, id: &str, error: &Error) {
        let mut owed = self.owed();
        let known = !owed.is_empty();
        match serde_json::to_value(closing) {
            Ok(closing) if owed.len() < MAX_OWED => owed.push_back(closing),
            _ => tracing::error!("the end of {id} is not on record: {}", error.chain()),
        }
        drop(owed);
        if known {
            return;
        }
        tracing::error!("the end of {id} is not on record yet: {}", error.chain());
        if let Ok(runtime) = Handle::try_current() {
            let audit = self.clone();
            runtime.spawn(async move {
                while !audit.catch_up() {
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                tracing::error!("the ends of all runs are on record now");
            });
        }
    }

    /// Records what could not be recorded before. False if some of it still cannot.
    pub fn catch_up(&self) -> bool {
        loop {
            // Not while it is written: whatever fails meanwhile is added.
            let Some(first) = self.owed().front().cloned() else { return true };
            if self.append(&first).is_err() {
                return false;
            }
            self.owed().pop_front();
        }
    }

    fn owed(&self) -> MutexGuard<'_, VecDeque<Value>> {
        self.shared.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self) {
        if let Err(source) = self.trail().settle() {
            // The lines are there: whoever writes next goes on from them.
            tracing::warn!("{}", self.error(source).chain());
        }
    }

    fn trail(&self) -> MutexGuard<'_, Trail> {
        self.shared.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Audit { path: self.shared.path.clone(), source }
    }
}

impl Drop for Shared {
    /// Nobody writes any more: what waits joins the trail, if it can.
    fn drop(&mut self) {
        let trail = self.trail.get_mut().unwrap_or_else(PoisonError::into_inner);
        if trail.is_open()
            && let Err(error) = trail.gather()
        {
            tracing::warn!("what is left to do for the audit trail is left to others: {error}");
        }
    }
}

impl Recorded {
    /// What the run is known by, here and to whoever asked for it.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Leaves it to another process to record the end.
    pub fn leave(mut self) -> Arc<str> {
        self.ended = true;
        self.id.clone()
    }

    /// Records what became of the run.
    pub fn end(mut self, answer: Result<&Outcome, &Error>) {
        self.write_end(answer);
    }

    fn write_end(&mut self, answer: Result<&Outcome, &Error>) {
        self.ended = true;
        let closing = Closing::new(&self.id, answer, &self.audit.shared.discretion);
        if let Err(error) = self.audit.append(&closing) {
            // It has run, and will have ended when there is room again.
            self.audit.owe(&closing, &self.id, &error);
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.ended {
            self.write_end(Err(&Error::Cancelled));
        }
    }
}

/// An error of somebody who reads the trail.
fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Trail { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::request::{Origin, RunRequest};
    use crate::secrets::Secrets;

    #[test]
    fn a_run_that_ends_with_the_runtime_has_its_end_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let discretion = Discretion { commands: true, secrets: Secrets::default() };
        let audit = Audit::new(AuditSettings::new(folder.path()), discretion, Later::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (request, origin) = (RunRequest::script("sleep 300"), Origin::default());
        let permit = Permit { rules: Vec::new(), warnings: Vec::new() };
        runtime.block_on(async {
            let asked = Asked {
                request: &request,
                origin: &origin,
                owner: "somebody",
                shell: Path::new("/bin/sh"),
                directory: Path::new("/"),
                timeout: Some(Duration::from_secs(1)),
            };
            let recorded = audit.start(&asked, &permit).unwrap();
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
        assert!(audit.trail().is_settled());
    }
}
