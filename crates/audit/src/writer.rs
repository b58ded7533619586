//! The processes that still have ends of runs to record.
//!
//! Each of them keeps a file in the trail's folder locked. A server's file has a random name, which is in the start
//! records it writes; the recorder of a detached job uses the id of its run. The file is removed once all ends are
//! on record.
//!
//!     writer-NAME.lock   locked       its process lives
//!                        not locked   its process was killed, or found the disk full to the end
//!
//! A server that starts, or whose detached job is lost, takes the locks of such abandoned files, searches the trail
//! for runs of those names that have no end ([`Unended`]), and records them as lost. Without abandoned files it
//! searches nothing.
//!
//! Process ids would not do: they are reused, and containers that share a folder have the same ones.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, unreadable};
use crate::files::{self, FileLock, LockMode};
use crate::reader::audit_lines;

/// How many abandoned writers are claimed at a time. Each is an open file.
const MAX_CLAIMED: usize = 100;

/// The file of a writer, locked by us.
pub struct Writer {
    pub name: Arc<str>,
    path: PathBuf,
    _lock: FileLock,
}

impl Writer {
    pub fn register(folder: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = files::writer(folder, name);
        // Rename it only after it is locked. Before that, another process could take it for an abandoned one.
        let part = path.with_extension("part");
        let file = Arc::new(files::open(&part, false)?);
        let _lock = FileLock::acquire(file, LockMode::Exclusive, Duration::ZERO)?;
        fs::rename(part, &path)?;
        Ok(Self { name: name.into(), path, _lock })
    }

    /// Takes the locks of abandoned files.
    pub fn claim_abandoned(folder: &Path) -> Vec<Self> {
        let names = files::all_writers(folder).unwrap_or_default().into_iter();
        let gone = names.filter_map(|name| {
            let path = files::writer(folder, &name);
            let file = Arc::new(files::open(&path, false).ok()?);
            let _lock = FileLock::acquire(file, LockMode::Exclusive, Duration::ZERO).ok()?;
            Some(Self { name: name.into(), path, _lock })
        });
        gone.take(MAX_CLAIMED).collect()
    }

    /// The names of writers that live.
    pub fn living(folder: &Path) -> io::Result<HashSet<String>> {
        let mut living = files::all_writers(folder)?;
        living.retain(|name| {
            let file = fs::File::open(files::writer(folder, name));
            let look = |file| FileLock::acquire(Arc::new(file), LockMode::Shared, Duration::ZERO);
            matches!(file.and_then(look), Err(error) if error.kind() == io::ErrorKind::TimedOut)
        });
        Ok(living)
    }

    /// Removes the file, because all its runs have an end on record.
    pub fn unregister(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The processes that still have ends to record, by the names in their `writer` fields. A detached job is its own.
pub fn living_writers(folder: &Path) -> HashSet<String> {
    Writer::living(folder).unwrap_or_default()
}

/// The runs of a trail that started and have not ended.
#[derive(Default)]
pub struct Unended {
    /// The writer of each start record, by run.
    begun: HashMap<String, String>,
    /// Ends whose start was not read yet, or was in a file that is gone. Waiting records join the trail late.
    ended: HashSet<String>,
}

/// What a record is about.
#[derive(Deserialize)]
pub struct RecordKind<'a> {
    pub event: &'a str,
    #[serde(default)]
    pub what: &'a str,
    #[serde(default)]
    pub id: &'a str,
    #[serde(default)]
    pub writer: &'a str,
}

impl Unended {
    pub fn note(&mut self, record: &RecordKind<'_>) {
        let RecordKind { event, id, writer, .. } = *record;
        match event {
            "start" if !self.ended.remove(id) => {
                self.begun.insert(id.to_owned(), writer.to_owned());
            }
            "end" if self.begun.remove(id).is_none() => {
                self.ended.insert(id.to_owned());
            }
            _ => {}
        }
    }

    /// The runs, each with the writer of its start record.
    pub fn runs(self) -> impl Iterator<Item = (String, String)> {
        self.begun.into_iter()
    }
}

/// The runs without an end on record whose end these writers should have recorded.
pub fn unended(folder: &Path, gone: &[Writer]) -> Result<Vec<String>, Error> {
    let all = || files::all_writers(folder).map_err(unreadable(folder));
    let mut others = all()?;
    let mut unended = Unended::default();
    for line in audit_lines(folder)? {
        if let Ok(record) = serde_json::from_str(&line) {
            unended.note(&record);
        }
    }
    others.extend(all()?);
    let is_gone = |name: &str| gone.iter().any(|gone| *gone.name == *name);
    // A detached job outlives its server.
    let theirs =
        |(id, writer): &(String, String)| is_gone(id) || is_gone(writer) && !others.contains(id);
    Ok(unended.runs().filter(theirs).map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(unended: &mut Unended, event: &str, id: &str) {
        unended.note(&RecordKind { event, what: "", id, writer: "server" });
    }

    #[test]
    fn a_run_has_ended_whichever_record_comes_first() {
        let mut unended = Unended::default();
        for (event, id) in [("start", "a"), ("end", "b"), ("start", "b"), ("start", "c")] {
            note(&mut unended, event, id);
        }
        note(&mut unended, "end", "a");
        let runs: Vec<_> = unended.runs().collect();
        assert_eq!(runs, [("c".to_owned(), "server".to_owned())]);
    }

    #[test]
    fn a_registered_writer_is_living_or_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] =
            ["one", "other"].map(|name| Writer::register(folder.path(), name).unwrap());
        assert!(Writer::claim_abandoned(folder.path()).is_empty());
        assert_eq!(Writer::living(folder.path()).unwrap().len(), 2);
        drop(one);
        other.unregister();
        let gone = Writer::claim_abandoned(folder.path());
        assert_eq!(gone.iter().map(|gone| &*gone.name).collect::<Vec<_>>(), ["one"]);
        // It is claimed now.
        assert!(Writer::claim_abandoned(folder.path()).is_empty());
        gone.into_iter().for_each(Writer::unregister);
        assert!(files::all_writers(folder.path()).unwrap().is_empty());
    }
}
