//! Where detached jobs are kept: a folder each, named by its run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Card, Ending};
use crate::desk::{self, private_folder};

const CARD: &str = "job.json";
const END: &str = "end.json";
const OUTPUT: &str = "output";

/// How long a job that has ended can be read.
const KEEP_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most jobs of one owner that have ended and are kept.
const MAX_ENDED: usize = 50;

/// The longest file of ours that is read whole.
const MAX_SIZE: u64 = 32 << 20;

/// The folder of all detached jobs.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: PathBuf,
}

/// One job's folder.
#[derive(Debug, Clone)]
pub struct Standing {
    pub folder: PathBuf,
    pub card: Card,
}

impl Shelf {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// All folders: of jobs, and of those who can be asked for theirs.
    pub fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// All jobs, oldest first.
    pub fn jobs(&self) -> Vec<Standing> {
        let mut jobs: Vec<_> = self.folders().into_iter().filter_map(Standing::open).collect();
        jobs.sort_by_key(|job| job.card.started_at);
        jobs
    }

    /// The folder of the desk of a server.
    pub fn server(&self) -> PathBuf {
        self.folder.join(format!("server-{}", std::process::id()))
    }

    /// Removes what servers that were killed have left.
    pub fn sweep(&self) {
        for folder in self.folders() {
            let named = folder.file_name().and_then(|name| name.to_str());
            let server = named.is_some_and(|name| name.starts_with("server-"));
            if server && desk::is_deserted(&folder) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    /// Makes a folder for a job that is about to begin.
    pub fn add(&self, card: Card) -> io::Result<Standing> {
        let standing = Standing { folder: self.folder.join(&card.run), card };
        private_folder(&standing.folder)?;
        create(&standing.output())?;
        write(&standing.folder.join(CARD), &standing.card)?;
        Ok(standing)
    }

    /// Removes what has ended long ago, and of each owner's what is more than can be kept; then the
    /// oldest that have ended while all take more than `total`. Returns how much more there may be.
    pub fn tidy(&self, total: u64) -> u64 {
        let (now, jobs) = (SystemTime::now(), self.jobs());
        let mut ended: Vec<_> = jobs.iter().filter(|job| job.ending().is_some()).collect();
        let old = |job: &Standing| {
            let age = job.ended_at().and_then(|at| now.duration_since(at).ok());
            age.is_some_and(|age| age > KEEP_TIME)
        };
        let mut used: u64 = jobs.iter().map(Standing::size).sum();
        while let Some(oldest) = ended.first() {
            let estate = &oldest.card.estate;
            let many = ended.iter().filter(|job| job.card.estate == *estate).count() > MAX_ENDED;
            if !many && !old(oldest) && used <= total {
                break;
            }
            used -= oldest.size();
            oldest.remove();
            ended.remove(0);
        }
        total.saturating_sub(used)
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

    /// What became of it, if that is known.
    pub fn ending(&self) -> Option<Ending> {
        read(&self.folder.join(END))
    }

    pub(super) fn end(&self, ending: &Ending) -> io::Result<()> {
        let part = self.folder.join("end.part");
        write(&part, ending)?;
        fs::rename(part, self.folder.join(END))
    }

    /// Removes it with all it printed.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn ended_at(&self) -> Option<SystemTime> {
        fs::metadata(self.folder.join(END)).and_then(|end| end.modified()).ok()
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

fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    create(path)?.write_all(&serde_json::to_vec(content)?)
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let short = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_SIZE);
    let bytes = short.then(|| fs::read(path).ok())??;
    serde_json::from_slice(&bytes).ok()
}
