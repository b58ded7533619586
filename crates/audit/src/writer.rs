//! The processes that still owe the trail the ends of runs.
//!
//! Each such process has a file in the folder of the trail and keeps it locked: a server under a name that
//! stands in the beginnings it writes, the recorder of a detached job under the id of its run. When all ends
//! are on record, the file goes. One that is there and not locked is of a process that was killed, or that
//! found the disk full to the end: the next server looks for runs of that name that have no end
//! ([`Unended`]), and records them as lost.
//!
//!     writer-NAME.lock   locked       its owner lives
//!                        not locked   somebody has to look for its runs
//!
//! A process number would not do: it is used again, and means something else in another container.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::Error;
use crate::files::{self, Held, Sharing};
use crate::reader::audit_lines;
use crate::unreadable;

/// How many are taken over at a time; each is an open file.
const MAX_GONE: usize = 100;

/// A process that writes, for as long as its file is locked by us.
pub struct Writer {
    pub name: Arc<str>,
    path: PathBuf,
    _held: Held,
}

impl Writer {
    pub fn enter(folder: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = files::writer(folder, name);
        // Under its name only when it is locked: somebody could take it for that of one that is gone.
        let part = path.with_extension("part");
        let file = Arc::new(files::open(&part, false)?);
        let _held = Held::take(file, Sharing::Alone, Duration::ZERO)?;
        fs::rename(part, &path)?;
        Ok(Self { name: name.into(), path, _held })
    }

    /// Takes over the files of those that are gone.
    pub fn gone(folder: &Path) -> Vec<Self> {
        let names = files::all_writers(folder).unwrap_or_default().into_iter();
        let gone = names.filter_map(|name| {
            let path = files::writer(folder, &name);
            let file = Arc::new(files::open(&path, false).ok()?);
            let _held = Held::take(file, Sharing::Alone, Duration::ZERO).ok()?;
            Some(Self { name: name.into(), path, _held })
        });
        gone.take(MAX_GONE).collect()
    }

    /// The names of those that live.
    pub fn living(folder: &Path) -> io::Result<HashSet<String>> {
        let mut living = files::all_writers(folder)?;
        living.retain(|name| {
            let file = fs::File::open(files::writer(folder, name));
            let look = |file| Held::take(Arc::new(file), Sharing::Readers, Duration::ZERO);
            matches!(file.and_then(look), Err(error) if error.kind() == io::ErrorKind::TimedOut)
        });
        Ok(living)
    }

    /// Removes the file: all its runs have an end.
    pub fn leave(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The runs of a trail that have begun and not ended.
#[derive(Default)]
pub struct Unended {
    /// The writer that has begun each.
    begun: HashMap<String, String>,
    /// Ends whose beginning has not come yet, or was let go of: what waits for the trail joins it late.
    ended: HashSet<String>,
}

/// What a record is about.
#[derive(Deserialize)]
pub struct Kind<'a> {
    pub event: &'a str,
    #[serde(default)]
    pub what: &'a str,
    #[serde(default)]
    pub id: &'a str,
    #[serde(default)]
    pub writer: &'a str,
}

impl Unended {
    pub fn note(&mut self, record: &Kind<'_>) {
        let Kind { event, id, writer, .. } = *record;
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

    /// Each with the writer that has begun it.
    pub fn runs(self) -> impl Iterator<Item = (String, String)> {
        self.begun.into_iter()
    }
}

/// The runs that have no end on record and that these would have recorded the end of.
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
    // A detached job goes on without its server.
    let theirs =
        |(id, writer): &(String, String)| is_gone(id) || is_gone(writer) && !others.contains(id);
    Ok(unended.runs().filter(theirs).map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(unended: &mut Unended, event: &str, id: &str) {
        unended.note(&Kind { event, what: "", id, writer: "server" });
    }

    #[test]
    fn a_run_has_ended_whichever_of_its_records_comes_first() {
        let mut unended = Unended::default();
        for (event, id) in [("start", "a"), ("end", "b"), ("start", "b"), ("start", "c")] {
            note(&mut unended, event, id);
        }
        note(&mut unended, "end", "a");
        let runs: Vec<_> = unended.runs().collect();
        assert_eq!(runs, [("c".to_owned(), "server".to_owned())]);
    }

    #[test]
    fn a_writer_that_has_not_left_lives_or_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| Writer::enter(folder.path(), name).unwrap());
        assert!(Writer::gone(folder.path()).is_empty());
        assert_eq!(Writer::living(folder.path()).unwrap().len(), 2);
        drop(one);
        other.leave();
        let gone = Writer::gone(folder.path());
        assert_eq!(gone.iter().map(|gone| &*gone.name).collect::<Vec<_>>(), ["one"]);
        // Somebody else looks after it now.
        assert!(Writer::gone(folder.path()).is_empty());
        gone.into_iter().for_each(Writer::leave);
        assert!(files::all_writers(folder.path()).unwrap().is_empty());
    }
}
