//! One program as a tar archive, which is how an engine takes files.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

use crate::agent_file::AgentFile;

const BLOCK: usize = 512;

/// An archive of one file that everybody may execute and root owns, in parts that are not copied.
pub struct Archive(VecDeque<Bytes>);

/// What is in the file, which others may need as well.
struct Content(Arc<AgentFile>);

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.0.content
    }
}

impl Archive {
    /// `None` if tar has no room for its name or length.
    pub fn new(name: &str, file: Arc<AgentFile>) -> Option<Self> {
        let length = file.content.len();
        // The file ends at a whole block, and two empty ones follow.
        let rest = length.next_multiple_of(BLOCK) - length + 2 * BLOCK;
        let (head, rest) = (header(name, length)?.to_vec(), vec![0; rest]);
        Some(Self([head.into(), Bytes::from_owner(Content(file)), rest.into()].into()))
    }
}

impl Stream for Archive {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(self.0.pop_front())
    }
}

fn header(name: &str, length: usize) -> Option<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let length = format!("{length:011o}");
    if name.len() >= 100 || length.len() > 11 {
        return None;
    }
    let zero = "0000000";
    // The checksum counts as spaces.
    let fields = [
        (0, name),
        (100, "0000755"),
        (108, zero),
        (116, zero),
        (124, &length),
        (136, "00000000000"),
        (148, "        "),
        (156, "0"),
        (257, "ustar"),
        (263, "00"),
    ];
    for (at, value) in fields {
        header[at..][..value.len()].copy_from_slice(value.as_bytes());
    }
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(header)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn tar_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        for content in [vec![], vec![7; 512], vec![8; 70_001]] {
            let mut tar = Command::new("tar");
            tar.arg("-xvvC").arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut tar = tar.spawn().unwrap();
            let file = Arc::new(AgentFile::new(content.clone()));
            let archive = Archive::new(".agent", file).unwrap();
            let parts: Vec<_> = archive.0.into_iter().collect();
            tar.stdin.take().unwrap().write_all(&parts.concat()).unwrap();
            let output = tar.wait_with_output().unwrap();
            let listed = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && listed.starts_with("-rwxr-xr-x 0/0"), "{listed}");
            assert_eq!(std::fs::read(folder.path().join(".agent")).unwrap(), content);
        }
        let file = Arc::new(AgentFile::new(Vec::new()));
        assert!(Archive::new(&"x".repeat(100), file).is_none());
    }
}
