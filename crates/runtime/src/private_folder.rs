//! A folder for this process alone, which goes when it is dropped.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::random_name;

#[derive(Debug)]
pub struct PrivateFolder(PathBuf);

impl PrivateFolder {
    pub fn create(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!("mcpz-tmp-{}", random_name()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
