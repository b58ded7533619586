//! The program that becomes the agent in a place: its content, and the machines it runs on.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use aws_lc_rs::digest::{SHA256, digest};
use mcpz_runtime::spawn_blocking;
use tokio::sync::Mutex;

use crate::error::PlaceError;

/// The machines of ELF files, as `uname -m` calls them.
const MACHINES: [(u16, &str); 5] =
    [(62, "x86_64"), (183, "aarch64"), (243, "riscv64"), (21, "ppc64le"), (22, "s390x")];

pub struct AgentFile {
    pub content: Vec<u8>,
    /// In hexadecimal digits.
    pub sha256: String,
    pub machine: String,
}

/// Those that somebody needs: places that are made at the same time share them.
static IN_USE: Mutex<Vec<(Version, Weak<AgentFile>)>> = Mutex::const_new(Vec::new());

/// A file as it was at a time.
#[derive(PartialEq, Eq)]
struct Version {
    path: PathBuf,
    file: (u64, u64),
    length: u64,
    changed: (i64, i64),
}

impl AgentFile {
    pub async fn read(path: &Path) -> Result<Arc<Self>, PlaceError> {
        let failed = |source| PlaceError::Agent { path: path.to_owned(), source };
        // Held meanwhile, so that nobody reads it twice.
        let mut in_use = IN_USE.lock().await;
        let version = Version::of(path).map_err(failed)?;
        in_use.retain(|(_, file)| file.strong_count() > 0);
        let same = in_use.iter().find(|(known, _)| *known == version);
        if let Some(file) = same.and_then(|(_, file)| file.upgrade()) {
            return Ok(file);
        }
        let owned = path.to_owned();
        let read = spawn_blocking(move || std::fs::read(owned).map(Self::new)).await;
        let read = read.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
        let file = Arc::new(read.map_err(failed)?);
        in_use.push((version, Arc::downgrade(&file)));
        Ok(file)
    }

    pub(crate) fn new(content: Vec<u8>) -> Self {
        let sha256 = hexadecimal(digest(&SHA256, &content).as_ref());
        let machine = machine(&content);
        Self { content, sha256, machine }
    }
}

impl Version {
    fn of(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            file: (found.dev(), found.ino()),
            length: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The machine that a program is for.
fn machine(content: &[u8]) -> String {
    let number = content.get(18..20).and_then(|bytes| bytes.try_into().ok());
    let number = number.filter(|_| content.starts_with(b"\x7fELF")).map(u16::from_le_bytes);
    let known = MACHINES.iter().find(|(known, _)| Some(*known) == number);
    known.map_or("an unknown machine", |(_, name)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_tells_its_machine_and_its_content() {
        let own = AgentFile::read(Path::new("/proc/self/exe")).await.unwrap();
        assert_eq!(own.machine, std::env::consts::ARCH);
        assert_eq!(own.sha256.len(), 64);
        let again = AgentFile::read(Path::new("/proc/self/exe")).await.unwrap();
        assert!(Arc::ptr_eq(&own, &again), "it is read once");
        assert_eq!(AgentFile::new(b"#!/bin/sh".to_vec()).machine, "an unknown machine");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(AgentFile::new(b"abc".to_vec()).sha256, abc);
    }
}
