//! The folder of one detached job: what it is, what it prints, how it ended.
//!
//!     job.json    the manifest, from when it has begun
//!     output      what it prints
//!     newest      the last bytes of an output that could not be kept whole
//!     end.json    how it ended
//!     control     the socket of its recorder
//!
//! Room for the end is reserved before the job begins: when it ends, the disk may be full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpz_output::NEWEST_KEPT;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use serde::de::DeserializeOwned;

use super::Manifest;
use crate::control::{self, private_folder};
use crate::error::Error;
use crate::jobs::JobEnd;

pub(super) const MANIFEST: &str = "job.json";
const UNPUBLISHED: &str = "job.part";
const END: &str = "end.json";
pub(super) const UNENDED: &str = "end.part";
pub(super) const OUTPUT: &str = "output";
const NEWEST: &str = "newest";
pub(super) const UNKEPT: &str = "newest.part";

/// What the end of a job takes.
const ROOM: usize = 4096;

/// What the beginning of a job takes, and more.
const SPARE: usize = 32 << 10;

/// The longest file of ours that is read whole.
const MAX_SIZE: u64 = 32 << 20;

/// One job's folder.
#[derive(Debug, Clone)]
pub struct JobFolder {
    pub folder: PathBuf,
    pub manifest: Manifest,
}

impl JobFolder {
    /// Makes a folder for a job that is about to begin. Without a manifest, nobody takes it for a job yet.
    pub(super) fn reserve(jobs: &Path, run: &str) -> io::Result<PathBuf> {
        let folder = jobs.join(run);
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

    pub fn open(folder: PathBuf) -> Option<Self> {
        let manifest: Manifest = read(&folder.join(MANIFEST))?;
        // Whoever made it named it so.
        folder.ends_with(&manifest.run).then_some(Self { folder, manifest })
    }

    pub fn output(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    /// The last bytes of an output that could not be kept to its end, when the job has ended.
    pub(super) fn newest(&self) -> io::Result<Vec<u8>> {
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
    pub(super) fn release_newest(&self) {
        let _ = fs::remove_file(self.folder.join(UNKEPT));
    }

    /// Writes what is known about it, while nobody takes the folder for a job yet.
    pub(super) fn write_manifest(&self) -> io::Result<()> {
        create(&self.folder.join(UNPUBLISHED))?.write_all(&serde_json::to_vec(&self.manifest)?)
    }

    /// Makes it a job that can be found.
    pub(super) fn publish(&self) -> io::Result<()> {
        fs::rename(self.folder.join(UNPUBLISHED), self.folder.join(MANIFEST))
    }

    /// The folder it is in, with all others.
    pub(super) fn jobs(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// An error of its folder.
    pub(super) fn error(&self, source: io::Error) -> Error {
        Error::JobsFolder { path: self.folder.clone(), source }
    }

    /// What became of it, if that is known.
    pub fn read_end(&self) -> Option<JobEnd> {
        read(&self.folder.join(END))
    }

    /// Whether it has ended, or its recorder has.
    pub fn is_over(&self) -> bool {
        self.folder.join(END).exists() || control::is_abandoned(&self.folder)
    }

    pub(super) fn end(&self, end: &JobEnd) -> io::Result<()> {
        let part = self.folder.join(UNENDED);
        let written = File::options().write(true).open(&part).and_then(|file| {
            let whole = serde_json::to_vec(end)?;
            // What was refused may be long, and can be done without.
            let brief = serde_json::to_vec(&JobEnd { refused: Vec::new(), ..end.clone() })?;
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
            .and_then(|last| last.duration_since(self.manifest.started_at).ok())
            .unwrap_or_default()
    }

    /// Removes it with all it printed.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    pub(super) fn size(&self) -> u64 {
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
