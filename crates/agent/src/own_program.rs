//! The program of this process, as a path that others can use.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Leads to the program of the process that follows it, even if that was removed.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The path that this one leads to. `None` if another file is there now, which must not be started.
pub fn program_path(own: &Path) -> Option<PathBuf> {
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let path = own.canonicalize().ok()?;
    (id(own)? == id(&path)?).then_some(path)
}
