//! The record of everything that was asked for, run and refused.
//!
//! A JSON line before each run and one after it, and one before all that is typed into it, in a folder only we can read; whoever cannot write
//! the first runs nothing. Each line holds the mark of the one before and one of its own, made with a
//! key, and the head beside the file tells which was the last: a line that is changed, removed or
//! put elsewhere shows ([`verify`]). Several processes write to one trail; when one of them is gone, another
//! records the ends it has not.
//!
//!     gate ─▶ Audit::start ─▶ Recorded ─▶ run ─▶ Recorded::end
//!       └───▶ Audit::refuse (on the disk before it is told)
//!
//! The marks hold against whoever cannot read the key. A command that runs as the same user can,
//! unless something keeps it from the folder.

mod clock;
mod error;
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
mod writer;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpz_runtime::aside;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;

pub use clock::rfc3339;
pub use error::Error;
pub use escape::{Escaping, visible};
pub use peers::RefusedPeer;
pub use reader::{AuditTail, audit_lines};
pub use record::{Asked, Command, Discretion, Ended, Permit, Reason, Source};
pub use seal::sha256;
pub use typing::Entered;
pub use verify::{Defect, Fault, Verified, verify};

use mcpz_runtime::Later;
use mcpz_runtime::random_name;
use peers::Rejection;
use record::{Closing, Opening};
use trail::Trail;
use typing::Typed;
use writer::{Writer, unended};

/// How many ends of runs are kept that cannot be recorded.
const MAX_OWED: usize = 10_000;

/// Between two tries to record them, at first and at last.
const TRY_AGAIN: Duration = Duration::from_secs(1);
const TRY_SELDOM: Duration = Duration::from_secs(30);

/// How many of them are named at the end.
const MAX_NAMED: usize = 100;

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
    folder: PathBuf,
    discretion: Discretion,
    trail: Mutex<Trail>,
    owed: Mutex<Owed>,
    writers: Mutex<Writers>,
    later: Later,
}

/// Ends of runs that could not be recorded yet.
#[derive(Default)]
struct Owed {
    ends: VecDeque<Value>,
    /// Whether there were more than are kept.
    too_many: bool,
}

/// Who is known to record ends, as long as there are some to record.
#[derive(Default)]
struct Writers {
    own: Option<Writer>,
    /// Those that are gone, and whose ends we owe.
    taken_over: Vec<Writer>,
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
        let folder = settings.folder.clone();
        let (trail, owed) = (Mutex::new(Trail::new(settings)), Mutex::default());
        let writers = Mutex::default();
        Self { shared: Arc::new(Shared { folder, discretion, trail, owed, writers, later }) }
    }

    /// Records that a command is going to run. Without this, it must not.
    pub fn start(&self, asked: &Asked<'_>, permit: &Permit) -> Result<Recorded, Error> {
        let id = self.new_id()?;
        let writer = self.enter(random_name)?;
        self.append(&Opening::start((&id, &writer), asked, permit, &self.shared.discretion))?;
        Ok(Recorded { audit: self.clone(), id, ended: false })
    }

    /// Takes over a run whose beginning another process has put on record, and no other.
    pub fn resume(&self, id: &str) -> Result<Recorded, Error> {
        let recorded = Recorded { audit: self.clone(), id: id.into(), ended: false };
        match self.enter(|| Ok(id.to_owned())) {
            Ok(_) => Ok(recorded),
            Err(error) => {
                recorded.end(Err(Reason::new(error.chain())));
                Err(error)
            }
        }
    }

    /// Makes it known that we have ends to record, and returns the name we do so by.
    fn enter(&self, name: impl FnOnce() -> io::Result<String>) -> Result<Arc<str>, Error> {
        let own = &mut self.writers().own;
        if let Some(own) = own {
            return Ok(own.name.clone());
        }
        let writer = name().and_then(|name| Writer::enter(&self.shared.folder, &name));
        let writer = writer.map_err(|source| self.error(source))?;
        Ok(own.insert(writer).name.clone())
    }

    /// Records the ends of runs whose process is gone and has not: it was killed, or the disk was full.
    pub async fn take_over(&self) {
        let folder = self.shared.folder.clone();
        let gone = aside(move || Writer::gone(&folder)).await.unwrap_or_default();
        if gone.is_empty() {
            return;
        }
        // What they have left waiting counts.
        if let Err(source) = self.trail().gather() {
            tracing::warn!("{}", self.error(source).chain());
        }
        let folder = self.shared.folder.clone();
        let found = aside(move || (unended(&folder, &gone), gone)).await;
        let Ok((Ok(runs), gone)) = found else { return };
        for id in runs {
            self.close(&Closing::lost(&id), &id);
        }
        let all_recorded = self.owed().ends.is_empty();
        match all_recorded {
            true => gone.into_iter().for_each(Writer::leave),
            false => self.writers().taken_over.extend(gone),
        }
    }

    /// Records that a command will not run, on the disk: who was refused may try to remove the trace.
    pub async fn refuse(&self, asked: &Asked<'_>, reason: &Reason) -> Result<(), Error> {
        let id = self.new_id()?;
        self.append_synced(&Opening::refused(&id, asked, reason, &self.shared.discretion)).await
    }

    /// Records what is going to be typed. Without this, it must not.
    pub fn start_typing(&self, entered: &Entered<'_>) -> Result<(), Error> {
        self.append(&Typed::start(entered, &self.shared.discretion)).map(drop)
    }

    /// Records what will not be typed, on the disk.
    pub async fn refuse_typing(&self, entered: &Entered<'_>, reason: &Reason) -> Result<(), Error> {
        self.append_synced(&Typed::refused(entered, reason, &self.shared.discretion)).await
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

    /// Records the end of a run, or keeps it until it can be recorded.
    fn close(&self, closing: &Closing<'_>, id: &str) {
        if let Err(error) = self.append(closing) {
            // It has run, and will have ended when there is room again.
            self.owe(closing, id, &error);
        }
    }

    fn owe(&self, closing: &Closing<'_>, id: &str, error: &Error) {
        let mut owed = self.owed();
        let known = !owed.ends.is_empty();
        match serde_json::to_value(closing) {
            Ok(closing) if owed.ends.len() < MAX_OWED => owed.ends.push_back(closing),
            _ => {
                owed.too_many = true;
                tracing::error!("the end of {id} is not on record: {}", error.chain());
            }
        }
        drop(owed);
        if known {
            return;
        }
        tracing::error!("the end of {id} is not on record yet: {}", error.chain());
        if let Ok(runtime) = Handle::try_current() {
            let audit = self.clone();
            runtime.spawn(async move {
                audit.caught_up().await;
                tracing::error!("the ends of all runs of this server are on record now");
            });
        }
    }

    /// Waits until all is recorded that could not be before.
    pub async fn caught_up(&self) {
        let mut pause = TRY_AGAIN;
        while !self.catch_up() {
            tokio::time::sleep(pause).await;
            pause = TRY_SELDOM.min(2 * pause);
        }
    }

    /// Records what could not be recorded before. False if some of it still cannot.
    pub fn catch_up(&self) -> bool {
        loop {
            // Not while it is written: whatever fails meanwhile is added.
            let Some(first) = self.owed().ends.front().cloned() else { return true };
            if self.append(&first).is_err() {
                return false;
            }
            self.owed().ends.pop_front();
        }
    }

    fn owed(&self) -> MutexGuard<'_, Owed> {
        self.shared.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.shared.writers.lock().unwrap_or_else(PoisonError::into_inner)
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
        Error::Write { path: files::current(&self.shared.folder), source }
    }
}

impl Drop for Shared {
    /// Nobody writes any more: the last try, and the last word.
    fn drop(&mut self) {
        let trail = self.trail.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Owed { ends, too_many } = self.owed.get_mut().unwrap_or_else(PoisonError::into_inner);
        while ends.front().is_some_and(|first| trail.add(first).is_ok()) {
            ends.pop_front();
        }
        let settled = match ends.is_empty() && trail.is_open() {
            true => trail.gather(),
            false => trail.settle(),
        };
        if let Err(error) = settled {
            tracing::warn!("what is left to do for the audit trail is left to others: {error}");
        }
        if !ends.is_empty() {
            let ids = ends.iter().filter_map(|end| end["id"].as_str());
            let named = ids.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
            let more = match ends.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            tracing::error!(
                "the ends of these runs are not on record; the next server records that they are lost: \
                 {named}{more}"
            );
        } else if !*too_many {
            let writers = self.writers.get_mut().unwrap_or_else(PoisonError::into_inner);
            let Writers { own, taken_over } = std::mem::take(writers);
            own.into_iter().chain(taken_over).for_each(Writer::leave);
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
    pub fn end(mut self, end: Result<Ended, Reason>) {
        self.write_end(end);
    }

    fn write_end(&mut self, end: Result<Ended, Reason>) {
        self.ended = true;
        let closing = Closing::new(&self.id, end, &self.audit.shared.discretion);
        self.audit.close(&closing, &self.id);
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.ended {
            self.write_end(Err(Reason::new("cancelled before it was started")));
        }
    }
}

/// An error of somebody who reads the trail.
fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| Error::Read { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcpz_output::Secrets;

    use super::*;

    #[test]
    fn a_run_that_ends_with_the_runtime_has_its_end_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let discretion = Discretion { commands: true, secrets: Secrets::default() };
        let audit = Audit::new(AuditSettings::new(folder.path()), discretion, Later::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let permit = Permit { rules: Vec::new(), warnings: Vec::new() };
        runtime.block_on(async {
            let asked = Asked {
                source: Source { tool: "execute_command", client: None, owner: "somebody" },
                command: Command::Script { text: "sleep 300", shell: Path::new("/bin/sh") },
                directory: Path::new("/"),
                timeout: Some(Duration::from_secs(1)),
                description: None,
                environment: Vec::new(),
                stdin_bytes: None,
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
