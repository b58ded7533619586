//! The newest commands of the audit trail that somebody wants to see.
//!
//! The newest file is read first, and older ones only if they may have more. A run ends in the file it started in or
//! in a newer one, so ends without a start are kept for the older files. Memory is bounded by the number of commands
//! wanted and of those that ran at once, whatever the trail is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use mcpz_audit::{AuditFile, Error, audit_files, living_writers};
use mcpz_output::Grep;

use super::entry::{Ending, Entry, Record};
use super::kept::Kept;

/// More commands than run at once.
const MAX_UNENDED: usize = 4096;

/// What to look for.
pub struct Wanted {
    pub pattern: Option<Grep>,
    pub failed: bool,
    /// When it was requested, at the earliest.
    pub since: Option<String>,
    pub count: usize,
}

impl Wanted {
    /// Whether to show a command that has this output.
    pub fn includes(&self, entry: &Entry, kept: Option<&Kept>) -> bool {
        let found = |text| self.pattern.as_ref().is_none_or(|it| it.find(text).is_some());
        let matches = found(&entry.command) || kept.is_some_and(|kept| !kept.lines.is_empty());
        matches && self.includes_end(entry) && !self.is_too_old(&entry.time)
    }

    fn includes_end(&self, entry: &Entry) -> bool {
        !self.failed || entry.ending.is_failure()
    }

    fn is_too_old(&self, time: &str) -> bool {
        self.since.as_deref().is_some_and(|since| time < since)
    }
}

/// What was found.
#[derive(Default)]
pub struct Found {
    /// By time and run.
    pub entries: BTreeMap<(String, String), Entry>,
    /// How many lines are not records.
    pub broken: u64,
}

struct Search<'a> {
    wanted: &'a Wanted,
    kept: &'a HashMap<String, Kept>,
    found: Found,
    /// Those of the current file that have not ended so far, with the writer of the end; `None` if nobody wants them.
    begun: HashMap<String, Option<(Entry, String)>>,
    /// The ends of runs that started in an older file.
    ends: HashMap<String, Ending>,
    living: HashSet<String>,
}

/// The newest commands, with the matches in their outputs.
pub fn read(folder: &Path, wanted: &Wanted, kept: &HashMap<String, Kept>) -> Result<Found, Error> {
    let (begun, ends) = (HashMap::new(), HashMap::new());
    let living = living_writers(folder);
    let mut search = Search { wanted, kept, found: Found::default(), begun, ends, living };
    for file in audit_files(folder)? {
        let oldest = search.file(file);
        // One that has begun meanwhile is running, too.
        search.living.extend(living_writers(folder));
        search.settle();
        let is_over = oldest.is_some_and(|oldest| wanted.is_too_old(&oldest));
        if is_over || search.found.entries.len() >= wanted.count {
            break;
        }
    }
    Ok(search.found)
}

impl Search<'_> {
    /// Reads a file, and returns the time of its oldest record.
    fn file(&mut self, file: AuditFile) -> Option<String> {
        let mut oldest = None;
        for line in file {
            let Ok(record) = serde_json::from_str::<Record>(&line) else {
                self.found.broken += 1;
                continue;
            };
            oldest.get_or_insert_with(|| record.time.clone());
            match record.event.as_str() {
                "start" => self.start(&record),
                "end" => self.end(&record),
                "refused" => {
                    if let Some(command) = record.command() {
                        self.add(record.ending(), &record, command);
                    }
                }
                _ => {}
            }
        }
        oldest
    }

    fn start(&mut self, record: &Record) {
        let Some(command) = record.command() else { return };
        if let Some(ending) = self.ends.remove(&record.id) {
            return self.add(ending, record, command);
        }
        let entry = match self.is_unwanted(record, &command) {
            true => None,
            false => Some(Entry::new(record, command, Ending::named("running"))),
        };
        let entry = entry.map(|entry| (entry, record.writer.clone()));
        self.begun.insert(record.id.clone(), entry);
        if self.begun.len() > MAX_UNENDED {
            self.settle();
        }
    }

    /// Whether a command cannot be wanted, however it ends.
    fn is_unwanted(&self, record: &Record, command: &str) -> bool {
        let pattern = self.wanted.pattern.as_ref();
        let matches = || pattern.is_none_or(|pattern| pattern.find(command).is_some());
        let printed = || self.kept.get(&record.id).is_some_and(|kept| !kept.lines.is_empty());
        self.wanted.is_too_old(&record.time) || !(matches() || printed())
    }

    fn end(&mut self, record: &Record) {
        match self.begun.remove(&record.id) {
            Some(Some((entry, _))) => self.insert(Entry { ending: record.ending(), ..entry }),
            Some(None) => {}
            None if self.ends.len() < MAX_UNENDED => {
                self.ends.insert(record.id.clone(), record.ending());
            }
            None => {}
        }
    }

    fn add(&mut self, ending: Ending, record: &Record, command: String) {
        if !self.is_unwanted(record, &command) {
            self.insert(Entry::new(record, command, ending));
        }
    }

    /// Keeps the newest.
    fn insert(&mut self, entry: Entry) {
        if !self.wanted.includes_end(&entry) {
            return;
        }
        let kept = self.kept.get(&entry.run);
        let entry = kept.map_or(entry.clone(), |kept| entry.with_output(kept));
        self.found.entries.insert((entry.time.clone(), entry.run.clone()), entry);
        if self.found.entries.len() > self.wanted.count {
            self.found.entries.pop_first();
        }
    }

    /// Those that have no end are running, or their server was killed.
    fn settle(&mut self) {
        for (run, begun) in std::mem::take(&mut self.begun) {
            let Some((entry, writer)) = begun else { continue };
            let lives = self.living.contains(&run) || self.living.contains(&writer);
            let ending = Ending::named(if lives { "running" } else { "lost" });
            self.insert(Entry { ending, ..entry });
        }
    }
}
