//! A folder of ours for what must not stay where it appeared.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::folder::Folder;

/// How many things are kept. The oldest go first.
const MOST_KEPT: usize = 200;

#[derive(Debug)]
pub struct Quarantine {
    folder: PathBuf,
    taken: u64,
}

impl Quarantine {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, taken: 0 }
    }

    /// Moves an entry of a folder here, and returns where it is now. `None` if it is gone already.
    pub fn take(&mut self, folder: &Folder, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let cell = self.new_cell()?;
        let moved = match Folder::open(&cell).and_then(|cell| folder.move_to(name, &cell)) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                copy_away(folder, name, &cell.join(name))
            }
            moved => moved,
        };
        match moved {
            Ok(()) => Ok(Some(cell.join(name))),
            Err(error) => {
                let _ = fs::remove_dir(&cell);
                if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
            }
        }
    }

    /// A new folder with a name that sorts by time.
    fn new_cell(&mut self) -> io::Result<PathBuf> {
        DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        self.prune();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        loop {
            self.taken += 1;
            let (time, process) = (since.as_millis(), std::process::id());
            let cell = self.folder.join(format!("{time}-{process}-{:08}", self.taken));
            match DirBuilder::new().mode(0o700).create(&cell) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| cell),
            }
        }
    }

    fn prune(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut cells: Vec<_> = entries.map(|entry| entry.path()).collect();
        if cells.len() < MOST_KEPT {
            return;
        }
        cells.sort();
        for cell in &cells[..=cells.len() - MOST_KEPT] {
            let _ = fs::remove_dir_all(cell);
        }
    }
}

/// Moves something to another file system. Its name is free at once.
fn copy_away(folder: &Folder, name: &OsStr, kept: &Path) -> io::Result<()> {
    let cell = kept.parent().and_then(Path::file_name).unwrap_or_default();
    let aside = format!(".{}.moving", cell.display());
    let aside = OsStr::new(&aside);
    folder.rename(name, aside)?;
    let path = folder.path_of(aside);
    let copied = copy(&path, kept);
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(&path)?;
    } else {
        fs::remove_file(&path)?;
    }
    copied
}

/// Copies files, folders and links. What else there may be runs nothing and is left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let found = from.symlink_metadata()?;
    if found.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)
    } else if found.is_dir() {
        DirBuilder::new().mode(0o700).create(to)?;
        fs::read_dir(from)?.try_for_each(|entry| {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))
        })
    } else if found.is_file() {
        fs::copy(from, to).map(|_| ())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_links_are_moved_with_or_without_rights() {
        let outer = tempfile::tempdir().unwrap();
        let mut quarantine = Quarantine::new(outer.path().join("q/r"));
        let folder = outer.path().join("p");
        fs::create_dir_all(folder.join("tree/d")).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("link")).unwrap();
        let close = |path: &Path, mode: u32| {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        close(&folder.join("tree"), 0);
        close(&folder, 0o500);
        let opened = Folder::open(&folder).unwrap();
        for name in ["file", "link", "tree"].map(OsStr::new) {
            let kept = quarantine.take(&opened, name).unwrap().unwrap();
            assert!(kept.symlink_metadata().is_ok());
            assert!(folder.join(name).symlink_metadata().is_err());
            assert_eq!(quarantine.take(&opened, name).unwrap(), None);
        }
    }

    #[test]
    fn another_file_system_gets_a_copy() {
        let outer = tempfile::tempdir().unwrap();
        let tree = outer.path().join(".vscode");
        fs::create_dir_all(tree.join("d")).unwrap();
        fs::write(tree.join("d/x"), "text").unwrap();
        std::os::unix::fs::symlink("d", tree.join("l")).unwrap();
        let kept = outer.path().join("kept");
        let folder = Folder::open(outer.path()).unwrap();
        copy_away(&folder, OsStr::new(".vscode"), &kept).unwrap();
        assert_eq!(fs::read_to_string(kept.join("l/x")).unwrap(), "text");
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_the_newest_are_kept() {
        let outer = tempfile::tempdir().unwrap();
        let mut quarantine = Quarantine::new(outer.path().join("q"));
        let folder = Folder::open(outer.path()).unwrap();
        for number in 0..MOST_KEPT + 10 {
            fs::write(outer.path().join("x"), number.to_string()).unwrap();
            quarantine.take(&folder, OsStr::new("x")).unwrap();
        }
        let mut kept: Vec<_> = fs::read_dir(outer.path().join("q")).unwrap().flatten().collect();
        kept.sort_by_key(|cell| cell.file_name());
        assert_eq!(kept.len(), MOST_KEPT);
        let last = fs::read_to_string(kept.last().unwrap().path().join("x")).unwrap();
        assert_eq!(last, (MOST_KEPT + 9).to_string());
    }
}
