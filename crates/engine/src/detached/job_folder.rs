//! The folder of one detached job.
//!
//!     job.json    the manifest, once it runs
//!     output      its output
//!     newest      the last bytes of an output that could not be kept whole
//!     end.json    how it ended
//!     control     the socket of its recorder
//!
//! Room for `newest` and `end.json` is reserved before the job starts, because the disk may be full when it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpz_output::NEWEST_KEPT;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use serde::de::DeserializeOwned;

use super::Manifest;
use crate::control::{self, create_private_folder};
use crate::error::Error;
use crate::jobs::JobEnd;

pub(super) const MANIFEST: &str = "job.json";
const MANIFEST_PART: &str = "job.part";
const END: &str = "end.json";
pub(super) const END_PART: &str = "end.part";
pub(super) const OUTPUT: &str = "output";
const NEWEST: &str = "newest";
pub(super) const NEWEST_PART: &str = "newest.part";

/// The size of an end.
const END_SIZE: usize = 4096;

/// More than starting a job takes.
const SPARE: usize = 32 << 10;

/// The largest file of ours to read whole.
const MAX_SIZE: u64 = 32 << 20;

/// One job's folder.
#[derive(Debug, Clone)]
pub struct JobFolder {
    pub folder: PathBuf,
    pub manifest: Manifest,
}

impl JobFolder {
    /// Makes a folder for a job that is about to start. Without a manifest it does not count as a job yet.
    pub(super) fn reserve(jobs: &Path, run: &str) -> io::Result<PathBuf> {
        let folder = jobs.join(run);
        create_private_folder(&folder)?;
        let filled = create(&folder.join(OUTPUT)).and_then(|_| {
            // Reserves room for the end.
            create(&folder.join(END_PART))?.write_all(&[b' '; END_SIZE])
        });
        // Reserves room for the newest output, which is optional.
        let newest = folder.join(NEWEST_PART);
        if filled.is_ok() && reserve(&newest, NEWEST_KEPT).is_err() {
            let _ = fs::remove_file(newest);
        }
        filled.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        Ok(folder)
    }

    pub fn open(folder: PathBuf) -> Option<Self> {
        let manifest: Manifest = read(&folder.join(MANIFEST))?;
        // Recorders name the folder by its run. Any other one is not ours.
        folder.ends_with(&manifest.run).then_some(Self { folder, manifest })
    }

    pub fn output(&self) -> PathBuf {
        self.folder.join(OUTPUT)
    }

    /// The last bytes of an output that was not kept to its end, once the job has ended.
    pub(super) fn newest(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match open(&self.folder.join(NEWEST)) {
            Ok(mut file) => file.read_to_end(&mut bytes).map(|_| bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(bytes),
            Err(error) => Err(error),
        }
    }

    /// The same, without what a reader who has read up to `known` has seen, and its offset. `lost` is how many bytes of
    /// the output were lost.
    pub fn newest_after(&self, known: u64, lost: u64) -> io::Result<(u64, Vec<u8>)> {
        let mut newest = self.newest()?;
        let at = fs::metadata(self.output())?.len() + lost;
        let told = known.saturating_sub(at).min(newest.len() as u64);
        newest.drain(..told as usize);
        Ok((at + told, newest))
    }

    /// Writes the part of an output that is only in memory, to the reserved room if there is any.
    pub(super) fn keep_newest(&self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            self.release_newest();
            return Ok(());
        }
        let part = self.folder.join(NEWEST_PART);
        let reserved = File::options().write(true).open(&part).or_else(|_| create(&part));
        let written = reserved.and_then(|file| {
            file.write_all_at(bytes, 0)?;
            file.set_len(bytes.len() as u64)
        });
        let kept = written.and_then(|()| fs::rename(part, self.folder.join(NEWEST)));
        // The offset of an incomplete part would be unknown.
        kept.inspect_err(|_| self.release_newest())
    }

    /// Gives back the room reserved for the newest output.
    pub(super) fn release_newest(&self) {
        let _ = fs::remove_file(self.folder.join(NEWEST_PART));
    }

    /// Writes the manifest under a name that does not count yet.
    pub(super) fn write_manifest(&self) -> io::Result<()> {
        create(&self.folder.join(MANIFEST_PART))?.write_all(&serde_json::to_vec(&self.manifest)?)
    }

    /// Lets others find the job.
    pub(super) fn publish(&self) -> io::Result<()> {
        fs::rename(self.folder.join(MANIFEST_PART), self.folder.join(MANIFEST))
    }

    /// The folder of all jobs.
    pub(super) fn jobs(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// An error of this folder.
    pub(super) fn error(&self, source: io::Error) -> Error {
        Error::JobsFolder { path: self.folder.clone(), source }
    }

    /// How it ended, if that is known.
    pub fn read_end(&self) -> Option<JobEnd> {
        read(&self.folder.join(END))
    }

    /// Whether it has ended, or its recorder has.
    pub fn is_over(&self) -> bool {
        self.folder.join(END).exists() || control::is_abandoned(&self.folder)
    }

    pub(super) fn end(&self, end: &JobEnd) -> io::Result<()> {
        let part = self.folder.join(END_PART);
        let written = File::options().write(true).open(&part).and_then(|file| {
            let whole = serde_json::to_vec(end)?;
            // The refusals may be long, and are optional.
            let brief = serde_json::to_vec(&JobEnd { refused: Vec::new(), ..end.clone() })?;
            file.write_all_at(&whole, 0).or_else(|_| {
                file.set_len(0)?;
                file.write_all_at(&brief, 0)
            })
        });
        written.and_then(|()| fs::rename(part, self.folder.join(END)))
    }

    /// How long it took, judging by its last output.
    pub(super) fn took(&self) -> Duration {
        let last = fs::metadata(self.output()).and_then(|output| output.modified());
        last.ok()
            .and_then(|last| last.duration_since(self.manifest.started_at).ok())
            .unwrap_or_default()
    }

    /// Removes it and its output.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    pub(super) fn size(&self) -> u64 {
        // Blocks, not length: a file can have holes.
        fs::metadata(self.output()).map_or(0, |output| output.blocks() * 512)
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    new.open(path)
}

/// Makes a file that can be written up to `length` even when the disk is full. Fails unless some more room is left.
fn reserve(path: &Path, length: usize) -> io::Result<()> {
    let mut file = create(path)?;
    let size = length + SPARE;
    // Not every file system supports it.
    if fallocate(&file, FallocateFlags::empty(), 0, size as u64).is_err() {
        file.write_all(&vec![0; size])?;
    }
    file.set_len(length as u64)
}

/// Opens a regular file without blocking or following a link.
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
