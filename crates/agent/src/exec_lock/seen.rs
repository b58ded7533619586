//! What was found at the paths of programs, so that the next command only has to confirm it.
//!
//! Usually nothing has changed between two commands. One look at a file tells whether it is still the same, and one
//! look at a folder, whether there may be new names in it. Whatever changes unnoticed is refused when it is executed,
//! because it is not what was noted: trusting this never allows more. And it is trusted for a short time only.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::identity::{Changed, FileId};
use super::note::Note;

/// How long anything is only confirmed.
pub const TRUSTED: Duration = Duration::from_secs(10);

/// How many files are remembered.
const MOST: usize = 1024;

#[derive(Default)]
pub struct Seen {
    began: Option<Instant>,
    /// The folders in which names are looked up, and what each was.
    folders: Vec<(PathBuf, Option<State>)>,
    /// Files that the kernel runs as they are, without an interpreter.
    files: HashMap<PathBuf, Note>,
    /// Names that are not there.
    absent: HashSet<PathBuf>,
}

/// A file or folder at the moment when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State {
    id: FileId,
    /// When its content or rights, or a name in it, were last changed. `None` if that may happen in the same moment.
    changed: Option<Changed>,
}

/// What is still at a path.
pub enum Confirmed {
    File(Note),
    Nothing,
}

impl Seen {
    /// Looks at these folders, and forgets what may not be true any more. False if nothing is known now. `found` tells
    /// what was found at a path, not before `now`, if that is a folder and no link.
    pub fn renew(
        &mut self,
        folders: &[PathBuf],
        now: Changed,
        found: impl Fn(&Path) -> Option<(FileId, Changed)>,
    ) -> bool {
        let state = |path: &Path| match found(path) {
            Some((id, changed)) => Some(State::new(id, changed, now)),
            None => State::at(path, now),
        };
        let id = |folder: &Option<State>| folder.map(|it| it.id);
        let mut changed = Vec::new();
        let is_trusted = self.began.is_some_and(|began| began.elapsed() < TRUSTED)
            && self.files.len() + self.absent.len() <= MOST
            && self
                .folders
                .iter()
                .map(|(path, _)| path.as_os_str())
                .eq(folders.iter().map(|it| it.as_os_str()))
            && self.folders.iter_mut().all(|(path, folder)| {
                let before = std::mem::replace(folder, state(path));
                if !State::is_same(before, *folder) {
                    changed.push(&*path);
                }
                id(&before) == id(folder)
            });
        if !is_trusted {
            let look = |path: &PathBuf| (path.clone(), state(path));
            self.folders = folders.iter().map(look).collect();
            (self.files, self.absent) = Default::default();
            self.began = Some(Instant::now());
            return false;
        }
        if !changed.is_empty() {
            self.absent.retain(|path| changed.iter().all(|it| path.parent() != Some(it)));
        }
        true
    }

    /// Whether names are looked up in this folder, and it was at this path when they were looked at last.
    pub fn has_folder(&self, path: &Path, id: FileId) -> bool {
        let is_it = |(folder, state): &(PathBuf, Option<State>)| {
            folder == path && state.is_some_and(|state| state.id == id)
        };
        self.folders.iter().any(is_it)
    }

    /// What is at this path, if that was seen and is still so.
    pub fn confirm(&self, path: &Path) -> Option<Confirmed> {
        if self.absent.contains(path) {
            return Some(Confirmed::Nothing);
        }
        let note = self.files.get(path)?;
        let found = fs::metadata(path).ok()?;
        let is_same = (note.id, note.changed) == (FileId::from(&found), Changed::from(&found));
        is_same.then(|| Confirmed::File(note.clone()))
    }

    /// Remembers a file that the kernel runs as it is, if a change would show.
    pub fn add(&mut self, path: &Path, note: &Note) {
        if note.was_over {
            self.files.insert(path.to_owned(), note.clone());
        }
    }

    /// Remembers that nothing could be found at this path.
    pub fn add_absent(&mut self, path: PathBuf) {
        let is_watched = self.folders.iter().any(|(folder, _)| path.parent() == Some(folder));
        // A link may lead nowhere now, and somewhere else soon.
        if is_watched && fs::symlink_metadata(&path).is_err() {
            self.absent.insert(path);
        }
    }
}

impl State {
    pub fn at(path: &Path, now: Changed) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self::new((&found).into(), (&found).into(), now))
    }

    fn new(id: FileId, changed: Changed, now: Changed) -> Self {
        Self { id, changed: Some(changed).filter(|it| it.is_before(now)) }
    }

    /// Whether nothing has changed between two looks.
    pub fn is_unchanged(self, later: Self) -> bool {
        self == later && self.changed.is_some()
    }

    /// The same where there may have been nothing.
    pub fn is_same(before: Option<Self>, later: Option<Self>) -> bool {
        match (before, later) {
            (Some(before), Some(later)) => before.is_unchanged(later),
            (before, later) => before.is_none() && later.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::thread::sleep;

    use super::super::target::Target;
    use super::*;

    /// Waits until a change of this file would show in its time.
    fn settle(path: &Path) {
        while !Changed::from(&fs::metadata(path).unwrap()).is_before(Changed::now()) {
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_file_is_confirmed_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool");
        fs::write(&path, "one").unwrap();
        settle(&path);
        let mut seen = Seen::default();
        let target = Target::find_own(None, path.as_os_str().as_bytes()).unwrap();
        let mut note = Note::of(&target, true);
        note.was_over = true;
        seen.add(&path, &note);
        assert!(matches!(seen.confirm(&path), Some(Confirmed::File(_))));
        fs::write(&path, "two").unwrap();
        assert!(seen.confirm(&path).is_none());
        note.was_over = false;
        seen = Seen::default();
        seen.add(&path, &note);
        assert!(seen.confirm(&path).is_none());
    }

    #[test]
    fn a_name_is_missing_until_its_folder_changes() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let path = folder.path().join("tool");
        settle(folder.path());
        let mut seen = Seen::default();
        assert!(!seen.renew(&folders, Changed::now(), |_| None));
        seen.add_absent(path.clone());
        assert!(seen.renew(&folders, Changed::now(), |_| None));
        assert!(matches!(seen.confirm(&path), Some(Confirmed::Nothing)));
        fs::write(&path, "").unwrap();
        assert!(seen.renew(&folders, Changed::now(), |_| None));
        assert!(seen.confirm(&path).is_none());
    }

    #[test]
    fn a_name_in_a_folder_that_has_just_changed_is_looked_up_again() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let (path, mut seen) = (folder.path().join("tool"), Seen::default());
        seen.renew(&folders, Changed::now(), |_| None);
        seen.folders[0].1 = State::at(&folders[0], Changed { seconds: 0, nanoseconds: 1 });
        seen.add_absent(path.clone());
        assert!(seen.renew(&folders, Changed::now(), |_| None));
        assert!(seen.confirm(&path).is_none());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_looked_up_again() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let path = folder.path().join("tool");
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        settle(folder.path());
        let mut seen = Seen::default();
        seen.renew(&folders, Changed::now(), |_| None);
        seen.add_absent(path.clone());
        assert!(seen.confirm(&path).is_none());
    }

    #[test]
    fn another_folder_in_its_place_makes_everything_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().join("bin")];
        fs::create_dir(&folders[0]).unwrap();
        settle(&folders[0]);
        let mut seen = Seen::default();
        seen.renew(&folders, Changed::now(), |_| None);
        seen.add_absent(folders[0].join("tool"));
        fs::rename(&folders[0], folder.path().join("old")).unwrap();
        fs::create_dir(&folders[0]).unwrap();
        assert!(!seen.renew(&folders, Changed::now(), |_| None));
        assert!(seen.confirm(&folders[0].join("tool")).is_none());
    }
}
