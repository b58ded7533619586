//! One program as a tar archive, which is how an engine takes files.

const BLOCK: usize = 512;

/// An archive of one file that everybody may execute and root owns. `None` if tar has no room for its name or length.
pub fn archive(name: &str, content: &[u8]) -> Option<Vec<u8>> {
    let mut header = [0; BLOCK];
    let length = format!("{:011o}", content.len());
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
    // The file ends at a whole block, and two empty ones follow.
    let end = content.len().next_multiple_of(BLOCK) + 3 * BLOCK;
    let mut archive = Vec::with_capacity(end);
    archive.extend_from_slice(&header);
    archive.extend_from_slice(content);
    archive.resize(end, 0);
    Some(archive)
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
            let archive = archive(".agent", &content).unwrap();
            tar.stdin.take().unwrap().write_all(&archive).unwrap();
            let output = tar.wait_with_output().unwrap();
            let listed = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && listed.starts_with("-rwxr-xr-x 0/0"), "{listed}");
            assert_eq!(std::fs::read(folder.path().join(".agent")).unwrap(), content);
        }
        assert_eq!(archive(&"x".repeat(100), b""), None);
    }
}
