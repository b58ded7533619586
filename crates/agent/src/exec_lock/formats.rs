//! Formats of programs for which the kernel was told an interpreter (`binfmt_misc`).

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use mcpz_sandbox::mounts;

/// A file that describes a format, or says whether all are switched on, or takes new ones.
pub struct Format {
    pub path: PathBuf,
    /// What it says, if it can be read.
    pub text: Option<String>,
}

impl Format {
    /// The program that runs files of this format.
    pub fn interpreter(&self) -> Option<PathBuf> {
        let mut lines = self.text.as_ref()?.lines();
        lines.find_map(|line| line.strip_prefix("interpreter ")).map(PathBuf::from)
    }
}

/// All that we see.
pub fn formats() -> impl Iterator<Item = Format> {
    let folders = folders().iter().filter_map(|folder| fs::read_dir(folder).ok());
    let paths = folders.flatten().flatten().map(|entry| entry.path());
    paths.map(|path| Format { text: fs::read_to_string(&path).ok(), path })
}

/// Where the kernel shows them: in the usual folder, even if it is mounted later, and wherever else it was mounted when
/// they were first looked at. A command that is held mounts nothing.
fn folders() -> &'static [PathBuf] {
    const USUAL: &str = "/proc/sys/fs/binfmt_misc";
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let mounted = mounts().into_iter().filter(|mount| mount.kind == b"binfmt_misc");
        let mut folders: Vec<_> =
            mounted.map(|mount| mount.point).chain([PathBuf::from(USUAL)]).collect();
        folders.sort();
        folders.dedup();
        folders
    })
}
