//! Where detached jobs are kept: a folder each, named by its run.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use serde::de::DeserializeOwned;

use super::permit::PERMITS;
use super::{Card, Ending};
use crate::desk::{self, private_folder};
use mcpz_output::NEWEST_KEPT;
use mcpz_output::SpillSettings;
use mcpz_runtime::random_name;

const CARD: &str = "job.json";
const END: &str = "end.json";
const UNENDED: &str = "end.part";
const OUTPUT: &str = "output";
const NEWEST: &str = "newest";
const UNKEPT: &str = "newest.part";

/// How long a job that has ended can be read.
const KEEP_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most jobs of one owner that have ended and are kept.
const MAX_ENDED: usize = 50;

/// How the folder of a server's desk begins.
const SERVER: &str = "server-";

/// How long a recorder may take until its job has begun.
const UNBEGUN: Duration = Duration::from_secs(600);

/// More than the tick of the clock by which a disk notes changes.
const COARSE: Duration = Duration::from_millis(100);

/// What the end of a job takes.
const ROOM: usize = 4096;

/// What the beginning of a job takes, and more.
const SPARE: usize = 32 << 10;

/// The longest file of ours that is read whole.
const MAX_SIZE: u64 = 32 << 20;

/// The folder of all detached jobs. Clones share what they have seen.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

/// Whose job each folder is. That never changes, so whoever looks for their own reads no others.
#[derive(Debug, Default)]
struct Seen {
    /// When the folder of all had last changed; nothing if that was too short ago to tell.
    at: Option<SystemTime>,
    estates: HashMap<PathBuf, String>,
    /// Those that are no jobs, or not yet.
    others: Vec<PathBuf>,
}

/// One job's folder.
#[derive(Debug, Clone)]
pub struct Standing {
    pub folder: PathBuf,
    pub card: Card,
}

impl Shelf {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), seen: Arc::default() }
    }

    /// All folders: of jobs, and of those who can be asked for theirs.
    pub fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| !path.ends_with(PERMITS)).collect()
    }

    /// All jobs, oldest first.
    pub fn jobs(&self) -> Vec<Standing> {
        let mut jobs: Vec<_> = self.folders().into_iter().filter_map(Standing::open).collect();
        jobs.sort_by_key(|job| job.card.started_at);
        jobs
    }

    /// The jobs of an estate, oldest first.
    pub fn jobs_of(&self, estate: &str) -> Vec<Standing> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = fs::metadata(&self.folder).and_then(|folder| folder.modified()).ok();
        if changed.is_none() || changed != seen.at {
            let (mut before, now) = (std::mem::take(&mut *seen), self.folders());
            for folder in now {
                match before.estates.remove_entry(&folder) {
                    Some((folder, estate)) => drop(seen.estates.insert(folder, estate)),
                    None => seen.others.push(folder),
                }
            }
            // The clock of the disk may not have moved on since: more can come within the same tick.
            let settled = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > COARSE);
            seen.at = changed.filter(settled);
        }
        for folder in std::mem::take(&mut seen.others) {
            match Standing::open(folder.clone()) {
                Some(job) => drop(seen.estates.insert(folder, job.card.estate)),
                None => seen.others.push(folder),
            }
        }
        let own = seen.estates.iter().filter(|(_, whose)| *whose == estate);
        let own: Vec<_> = own.map(|(folder, _)| folder.clone()).collect();
        drop(seen);
        let mut jobs: Vec<_> = own.into_iter().filter_map(Standing::open).collect();
        jobs.sort_by_key(|job| job.card.started_at);
        jobs
    }

    /// Removes what servers, and recorders that had not begun, have left when they were killed.
    pub fn sweep(&self) {
        for folder in self.folders() {
            let begun = folder.join(CARD).exists();
            let young = age(&folder).is_none_or(|age| age < UNBEGUN);
            let server = is_server(&folder);
            if desk::is_deserted(&folder) && !begun && (server || !young) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// Makes a folder for the desk of a server.
    pub fn add_server(&self) -> io::Result<PathBuf> {
        let folder = self.folder.join(format!("{SERVER}{}", random_name()?));
        private_folder(&folder)?;
        Ok(folder)
    }

    /// Makes a folder for a job that is about to begin, which nobody takes for one yet.
    pub fn add(&self, run: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(run);
        private_folder(&folder)?;
        let filled = create(&folder.join(OUTPUT)).and_then(|_| {
            // Room for the end is taken now: there may be none then.
            create(&folder.join(UNENDED))?.write_all(&[b' '; ROOM])
        });
        // The same for its newest output, which can be done without.
        let newest = folder.join(UNKEPT);
        if filled.is_ok() && reserve(&newest, NEWEST_KEPT).is_err() {
            let _ = fs::remove_file(newest);
        }
        filled.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        Ok(folder)
    }

    /// Removes what has ended long ago, what is more of each owner's than can be kept, and what takes
    /// too much room: of this estate's, oldest first, then of whose is most. Returns how much more there
    /// may be of it.
    pub fn tidy(&self, estate: &str, most: &SpillSettings) -> u64 {
        self.sweep();
        let jobs = self.jobs();
        let mut used = Used::default();
        jobs.iter().for_each(|job| used.add(job));
        let mut ended: Vec<_> = jobs.iter().filter(|job| job.is_over()).collect();
        // Recorders that were killed have left it.
        ended.iter().for_each(|job| job.release_newest());
        let mut kept: HashMap<&str, usize> = HashMap::new();
        // From the newest on: the oldest are those that are too many.
        ended.reverse();
        ended.retain(|job| {
            let own = kept.entry(&job.card.estate).or_default();
            *own += 1;
            let old = age(&job.output()).is_some_and(|age| age > KEEP_TIME);
            if *own > MAX_ENDED || old {
                used.remove(job);
            }
            *own <= MAX_ENDED && !old
        });
        // From the oldest on.
        ended.reverse();
        ended.retain(|job| {
            let stays = job.card.estate != estate || used.of(estate) <= most.per_owner;
            if !stays {
                used.remove(job);
            }
            stays
        });
        while used.all > most.total
            && let Some(next) = (0..ended.len()).max_by_key(|&at| {
                let used = used.of(&ended[at].card.estate);
                (used, Reverse(at))
            })
        {
            used.remove(ended.remove(next));
        }
        let own = most.per_owner.saturating_sub(used.of(estate));
        own.min(most.total.saturating_sub(used.all))
    }
}

/// How much is on the disk.
#[derive(Debug, Default)]
struct Used {
    all: u64,
    of_each: HashMap<String, u64>,
}

impl Used {
    fn of(&self, estate: &str) -> u64 {
        self.of_each.get(estate).copied().unwrap_or(0)
    }

    fn add(&mut self, job: &Standing) {
        let size = job.size();
        self.all += size;
        *self.of_each.entry(job.card.estate.clone()).or_default() += size;
    }

    /// Removes a job with its folder.
    fn remove(&mut self, job: &Standing) {
        let size = job.size();
        self.all = self.all.saturating_sub(size);
        if let Some(own) = self.of_each.get_mut(&job.card.estate) {
            *own = own.saturating_sub(size);
        }
        job.remove();
    }
}

impl Standing {
    pub fn open(folder: PathBuf) -> Option<Self> {
        let card: Card = read(&folder.join(CARD))?;
        // Whoever made it named it so.
        folder.ends_with(&card.run).then_some(Self { folder, card })
    }

    pub fn output(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    /// The last bytes of an output that could not be kept to its end, when the job has ended.
    fn newest(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match open(&self.folder.join(NEWEST)) {
            Ok(mut file) => file.read_to_end(&mut bytes).map(|_| bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
            Err(error) => Err(error),
        }
    }

    /// The same without what somebody knows who has read up to a place, and where that begins, in an output of
    /// which so many bytes were lost.
    pub fn newest_after(&self, known: u64, lost: u64) -> io::Result<(u64, Vec<u8>)> {
        let mut newest = self.newest()?;
        let at = fs::metadata(self.output())?.len() + lost;
        let told = known.saturating_sub(at).min(newest.len() as u64);
        newest.drain(..told as usize);
        Ok((at + told, newest))
    }

    /// Keeps what memory alone has of an output, where room was reserved for it, if that was possible.
    pub(super) fn keep_newest(&self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            self.release_newest();
            return Ok(());
        }
        let part = self.folder.join(UNKEPT);
        let reserved = File::options().write(true).open(&part).or_else(|_| create(&part));
        let written = reserved.and_then(|file| {
            file.write_all_at(bytes, 0)?;
            file.set_len(bytes.len() as u64)
        });
        let kept = written.and_then(|()| fs::rename(part, self.folder.join(NEWEST)));
        // Part of it could not be placed.
        kept.inspect_err(|_| self.release_newest())
    }

    /// Gives back the room that was reserved for the newest output.
    fn release_newest(&self) {
        let _ = fs::remove_file(self.folder.join(UNKEPT));
    }

    /// Notes that it has begun, and by whom it can be asked for.
    pub(super) fn begin(folder: PathBuf, card: Card) -> io::Result<Self> {
        let part = folder.join("job.part");
        create(&part)?.write_all(&serde_json::to_vec(&card)?)?;
        fs::rename(part, folder.join(CARD))?;
        Ok(Self { folder, card })
    }

    /// What became of it, if that is known.
    pub fn ending(&self) -> Option<Ending> {
        read(&self.folder.join(END))
    }

    /// Whether it has ended, or its recorder has.
    pub fn is_over(&self) -> bool {
        self.folder.join(END).exists() || desk::is_deserted(&self.folder)
    }

    pub(super) fn end(&self, ending: &Ending) -> io::Result<()> {
        let part = self.folder.join(UNENDED);
        let written = File::options().write(true).open(&part).and_then(|file| {
            let whole = serde_json::to_vec(ending)?;
            // What was refused may be long, and can be done without.
            let brief = serde_json::to_vec(&Ending { refused: Vec::new(), ..ending.clone() })?;
            file.write_all_at(&whole, 0).or_else(|_| {
                file.set_len(0)?;
                file.write_all_at(&brief, 0)
            })
        });
        written.and_then(|()| fs::rename(part, self.folder.join(END)))
    }

    /// How long it took, as far as its last word tells.
    pub(super) fn took(&self) -> Duration {
        let last = fs::metadata(self.output()).and_then(|output| output.modified());
        last.ok()
            .and_then(|last| last.duration_since(self.card.started_at).ok())
            .unwrap_or_default()
    }

    /// Removes it with all it printed.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn size(&self) -> u64 {
        // What is on the disk: a file can have holes.
        fs::metadata(self.output()).map_or(0, |output| output.blocks() * 512)
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    new.open(path)
}

/// Makes a file that can be written up to a length when the disk is full, if that leaves something for others.
fn reserve(path: &Path, length: usize) -> io::Result<()> {
    let mut file = create(path)?;
    let size = length + SPARE;
    // Not every file system can do that.
    if fallocate(&file, FallocateFlags::empty(), 0, size as u64).is_err() {
        file.write_all(&vec![0; size])?;
    }
    file.set_len(length as u64)
}

fn is_server(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(SERVER))
}

fn age(path: &Path) -> Option<Duration> {
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified()).ok()?;
    SystemTime::now().duration_since(changed).ok()
}

/// Opens a file, and nothing that could keep us waiting or lead elsewhere.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut bytes = Vec::new();
    open(path).ok()?.take(MAX_SIZE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
