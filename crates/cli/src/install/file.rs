//! A client's file on disk, and its backups next to it. A file is replaced as a whole: no reader ever sees
//! half of it.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::InstallError;

#[derive(Debug)]
pub struct File {
    /// Where the client looks for it. It may be a symbolic link.
    path: PathBuf,
    /// Where it is.
    target: PathBuf,
    /// Nothing if it does not exist.
    pub text: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Debug)]
pub struct Backup {
    pub path: PathBuf,
    pub text: String,
}

impl File {
    pub fn open(path: &Path) -> Result<Self, InstallError> {
        let fail = |source| InstallError::Read { path: path.to_owned(), source };
        let path = path.to_owned();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { target: path.clone(), path, text: None, metadata: None });
            }
            found => found.map_err(fail)?,
        };
        let target = fs::canonicalize(&path).map_err(fail)?;
        let text = Some(fs::read_to_string(&target).map_err(fail)?);
        let metadata = Some(fs::metadata(&target).map_err(fail)?);
        Ok(Self { path, target, text, metadata })
    }

    /// Copies the file to a backup, unless one with the same text exists. Never overwrites an older
    /// backup, which may be the only copy of the original.
    pub fn back_up(&self) -> Result<Option<PathBuf>, InstallError> {
        let Some(text) = &self.text else { return Ok(None) };
        let backups = self.backups();
        if let Some(same) = backups.iter().find(|backup| backup.text == *text) {
            return Ok(Some(same.path.clone()));
        }
        let free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        let path = (1..).map(|number| self.backup_path(number)).find(free);
        let path = path.expect("some number is free");
        replace(&path, text, self.metadata.as_ref(), true)
            .map_err(|source| InstallError::Write { path: path.clone(), source })?;
        Ok(Some(path))
    }

    /// The backups, oldest first.
    pub fn backups(&self) -> Vec<Backup> {
        let read = |number| {
            let path = self.backup_path(number);
            let text = fs::read_to_string(&path).ok()?;
            Some(Backup { path, text })
        };
        // A removed backup leaves a gap.
        (1..100).filter_map(read).collect()
    }

    fn backup_path(&self, number: usize) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".mcpz-backup");
        if number > 1 {
            path.push(format!("-{number}"));
        }
        path.into()
    }

    /// Replaces the file. If it does not exist yet and will contain a secret, only its owner can read it.
    pub fn write(&self, text: &str, secret: bool) -> Result<(), InstallError> {
        let fail = |source| InstallError::Write { path: self.path.clone(), source };
        if let Some(folder) = self.target.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        self.check_unchanged()?;
        replace(&self.target, text, self.metadata.as_ref(), secret).map_err(fail)
    }

    pub fn delete(&self) -> Result<(), InstallError> {
        self.check_unchanged()?;
        let fail = |source| InstallError::Write { path: self.path.clone(), source };
        fs::remove_file(&self.target).map_err(fail)
    }

    /// Fails if the file changed since it was read: a running client may write it.
    fn check_unchanged(&self) -> Result<(), InstallError> {
        match fs::read_to_string(&self.target).ok() == self.text {
            true => Ok(()),
            false => Err(InstallError::Changed { path: self.path.clone() }),
        }
    }
}

/// Writes a new file next to `path` and moves it there. It gets the old file's owner and mode.
fn replace(path: &Path, text: &str, old: Option<&Metadata>, secret: bool) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".mcpz-{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let mode = if secret || old.is_some() { 0o600 } else { 0o666 };
    let written =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary).and_then(
            |mut file| {
                file.write_all(text.as_bytes())?;
                if let Some(old) = old {
                    // Only root can change the owner, and only root needs to.
                    let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
                    file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
                }
                file.sync_all()?;
                fs::rename(&temporary, path)
            },
        );
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
