//! A client's file on disk: what was there is kept beside it, and no reader ever sees half of it.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::InstallError;

#[derive(Debug)]
pub struct File {
    /// As the client knows it. It may be a link.
    path: PathBuf,
    target: PathBuf,
    pub text: Option<String>,
    like: Option<Metadata>,
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
                return Ok(Self { target: path.clone(), path, text: None, like: None });
            }
            found => found.map_err(fail)?,
        };
        let target = fs::canonicalize(&path).map_err(fail)?;
        let text = Some(fs::read_to_string(&target).map_err(fail)?);
        let like = Some(fs::metadata(&target).map_err(fail)?);
        Ok(Self { path, target, text, like })
    }

    /// Keeps what is there now, unless it is kept already. An older backup is never written over: it
    /// may be the only one from before.
    pub fn keep(&self) -> Result<Option<PathBuf>, InstallError> {
        let Some(text) = &self.text else { return Ok(None) };
        let kept = self.backups();
        if let Some(same) = kept.iter().find(|backup| backup.text == *text) {
            return Ok(Some(same.path.clone()));
        }
        let free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        let path = (1..).map(|number| self.backup_path(number)).find(free);
        let path = path.expect("some number is free");
        put(&path, text, self.like.as_ref(), true)
            .map_err(|source| InstallError::Write { path: path.clone(), source })?;
        Ok(Some(path))
    }

    /// What was kept, oldest first.
    pub fn backups(&self) -> Vec<Backup> {
        let read = |number| {
            let path = self.backup_path(number);
            let text = fs::read_to_string(&path).ok()?;
            Some(Backup { path, text })
        };
        // One that was removed leaves a gap.
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

    /// Puts a text in place of what was read. A file that holds a secret is for its owner alone if we
    /// make it.
    pub fn write(&self, text: &str, secret: bool) -> Result<(), InstallError> {
        let fail = |source| InstallError::Write { path: self.path.clone(), source };
        if let Some(folder) = self.target.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        self.check_unchanged()?;
        put(&self.target, text, self.like.as_ref(), secret).map_err(fail)
    }

    pub fn delete(&self) -> Result<(), InstallError> {
        self.check_unchanged()?;
        let fail = |source| InstallError::Write { path: self.path.clone(), source };
        fs::remove_file(&self.target).map_err(fail)
    }

    /// A client that runs may have written since we read.
    fn check_unchanged(&self) -> Result<(), InstallError> {
        match fs::read_to_string(&self.target).ok() == self.text {
            true => Ok(()),
            false => Err(InstallError::Changed { path: self.path.clone() }),
        }
    }
}

/// Writes a file beside its place and moves it there.
fn put(path: &Path, text: &str, like: Option<&Metadata>, secret: bool) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".mcpz-{}", std::process::id()));
    let beside = path.with_file_name(name);
    let mode = if secret || like.is_some() { 0o600 } else { 0o666 };
    let written =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside).and_then(
            |mut file| {
                file.write_all(text.as_bytes())?;
                if let Some(like) = like {
                    // Only root can give a file away, and only for root it may belong to another.
                    let _ = std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid()));
                    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
                }
                file.sync_all()?;
                fs::rename(&beside, path)
            },
        );
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
