//! The program that becomes the agent in a place: its content, and the machines it runs on.

use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use mcpz_runtime::spawn_blocking;

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

impl AgentFile {
    pub async fn read(path: &Path) -> Result<Self, PlaceError> {
        let (owned, failed) =
            (path.to_owned(), |source| PlaceError::Agent { path: path.to_owned(), source });
        let read = spawn_blocking(move || std::fs::read(owned).map(Self::new)).await;
        read.unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into())).map_err(failed)
    }

    fn new(content: Vec<u8>) -> Self {
        let sha256 = hexadecimal(digest(&SHA256, &content).as_ref());
        let machine = machine(&content);
        Self { content, sha256, machine }
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
        assert_eq!(AgentFile::new(b"#!/bin/sh".to_vec()).machine, "an unknown machine");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(AgentFile::new(b"abc".to_vec()).sha256, abc);
    }
}
