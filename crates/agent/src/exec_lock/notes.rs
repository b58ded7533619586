//! What programs were when a command began, so that they are not executed after the command has changed them.
//!
//! A policy allows a program for what it is, or an interpreter because a script names it. A command that may only copy
//! files could put others in their place. So the files of the programs that it names are noted before it begins. Those
//! that they need are too many for that. They must be older than the command, in folders that are still the same. The
//! ways to these folders are looked at between two commands, when nobody waits. A folder on the way that has changed
//! since then counts only if it was certainly there when the command began.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::clock::ClockWatch;
use super::formats::{Format, formats};
use super::identity::{Changed, FileId};
use super::note::Note;
use super::seen::{Confirmed, Seen, TRUSTED};
use super::target::{LOADERS, Target};
use super::wanted::Wanted;

/// How many scripts may run one another.
const MOST_SCRIPTS: usize = 3;

/// How many links the kernel follows.
const MOST_LINKS: usize = 40;

pub struct Notes {
    files: HashMap<PathBuf, Note>,
    /// Files that something else has changed than what makes programs.
    distrusted: HashSet<PathBuf>,
    /// The parts of the ways to folders, as this command or an earlier one has found them.
    ways: HashMap<PathBuf, WayNote>,
    /// Whether those to all folders that were wanted last are still known, as far as they were there.
    knows_ways: bool,
    began: Changed,
    clock: ClockWatch,
    /// What else the kernel runs with programs.
    others: Vec<Other>,
    /// What earlier commands have found.
    seen: Seen,
    /// When the ways were looked at for the next command.
    looked_ahead: Option<Instant>,
}

/// A file that the kernel uses to run programs, and what it was.
#[derive(PartialEq, Eq)]
struct Other {
    path: PathBuf,
    id: FileId,
    changed: Changed,
    /// What it says, if it is a format: no time tells when one was switched on.
    text: Option<String>,
}

/// What a folder, or a link or file on the way, was.
struct WayNote {
    id: FileId,
    is_folder: bool,
    changed: Changed,
    /// Whether it was looked at before this command began. Another folder may have been in its place since then.
    is_from_before: bool,
}

impl Notes {
    /// A command begins, and nothing is known from before.
    fn begin() -> Self {
        let (began, clock) = (Changed::now(), ClockWatch::new());
        let (files, ways, distrusted, seen, looked_ahead) = Default::default();
        let (others, knows_ways) = (others(&formats()), false);
        Self { files, distrusted, ways, knows_ways, began, clock, others, seen, looked_ahead }
    }

    /// A command begins. Names mean files in these folders.
    pub fn begin_in(folders: &[PathBuf]) -> Self {
        let mut new = Self::begin();
        new.seen.renew(folders, Changed::now(), |_| None);
        new
    }

    /// The same after an earlier command. What that has found is usually still there.
    pub fn begin_after(mut earlier: Self, folders: &[PathBuf]) -> Self {
        let now = Changed::now();
        let has_looked = earlier.looked_ahead.take().is_some_and(|at| at.elapsed() < TRUSTED);
        if !has_looked {
            earlier.look_at_ways(false);
        }
        let Self { mut ways, mut knows_ways, mut seen, clock, .. } = earlier;
        let found = |path: &Path| {
            let found = ways.get(path).filter(|it| !has_looked && it.is_folder)?;
            Some((found.id, found.changed))
        };
        if !seen.renew(folders, now, found) {
            ways.clear();
            knows_ways = false;
        }
        let began = Changed::now();
        let clock = Some(clock).filter(ClockWatch::is_even).unwrap_or_else(ClockWatch::new);
        let (files, distrusted, looked_ahead) = Default::default();
        let others = others(&formats());
        Self { files, distrusted, ways, knows_ways, began, clock, others, seen, looked_ahead }
    }

    /// Looks at the ways for the next command already now, when nobody waits for it. What others change until that
    /// begins is then not as before, but older than it.
    pub fn look_ahead(&mut self) {
        if self.looked_ahead.is_none() {
            self.look_at_ways(true);
            self.looked_ahead = Some(Instant::now());
        }
    }

    /// What was changed since an earlier command is not as the next one finds it, whenever it was made.
    fn look_at_ways(&mut self, is_before: bool) {
        let before = self.ways.len();
        self.ways.retain(|path, note| note.renew(path, is_before));
        self.knows_ways &= self.ways.len() == before;
    }

    /// The next command may need programs in other folders than the last.
    pub fn forget_wanted(&mut self) {
        self.knows_ways = false;
    }

    /// Another command begins in the same shell. What earlier ones named is known.
    pub fn begin_another(&mut self, folders: &[PathBuf]) {
        let files = std::mem::take(&mut self.files);
        let earlier = std::mem::replace(self, Self::begin());
        *self = Self { files, knows_ways: false, ..Self::begin_after(earlier, folders) };
    }

    /// Notes what is there.
    pub fn take(&mut self, wanted: &Wanted) {
        if !self.knows_ways {
            wanted.folders().for_each(|folder| self.add_folder(folder));
            self.knows_ways = true;
        }
        wanted.files.iter().for_each(|path| self.add(path.clone(), &wanted.search, 0));
    }

    /// A process is about to make programs. What has changed by now is not its work.
    pub fn distrust_changed(&mut self, wanted: &Wanted) {
        let mut now = Self::begin();
        now.take(wanted);
        let changed = now.files.into_iter().filter(|(path, note)| {
            !self.files.get(path).is_some_and(|known| known.is_same_as(note))
        });
        self.distrusted.extend(changed.map(|(path, _)| path));
    }

    /// Such a process has ended. Notes what it has made, if that is as wanted.
    pub fn take_made(&mut self, wanted: &Wanted, is_wanted: impl Fn(&Path, &Target) -> bool) {
        let mut now = Self::begin();
        now.take(wanted);
        for (path, note) in now.files {
            let target = || Target::find_own(None, path.as_os_str().as_bytes());
            if !self.distrusted.contains(&path) && target().is_ok_and(|it| is_wanted(&path, &it)) {
                self.files.insert(path, note);
            }
        }
    }

    /// Notes the way to a folder that has programs which others need.
    fn add_folder(&mut self, folder: &Path) {
        if self.ways.contains_key(folder) {
            return;
        }
        let is_known = |path: &Path| self.ways.get(path).is_some_and(|note| note.is_folder);
        let way = way_to(folder, is_known).into_iter().flatten();
        self.ways.extend(way.map(|(path, found)| (path, WayNote::of(&found))));
    }

    /// Notes the file of a program, if there is one, and what runs it. If `env` looks that up for a script, it may be a
    /// script as well.
    fn add(&mut self, path: PathBuf, folders: &[PathBuf], depth: usize) {
        match self.seen.confirm(&path) {
            Some(Confirmed::File(note)) => return drop(self.files.insert(path, note)),
            Some(Confirmed::Nothing) => return,
            None => {}
        }
        let target = match Target::find_own(None, path.as_os_str().as_bytes()) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.seen.add_absent(path);
            }
            Err(_) => return,
        };
        if let Some(program) = target.env_program().filter(|_| depth < MOST_SCRIPTS) {
            let files = folders.iter().map(|folder| folder.join(program));
            files.for_each(|file| self.add(file, folders, depth + 1));
        }
        self.note(path, &target);
    }

    fn note(&mut self, path: PathBuf, target: &Target) {
        target.parts().for_each(|part| self.note(part.path.clone(), part));
        let is_found_by_name = path.parent().is_some_and(|it| self.ways.contains_key(it));
        let note = Note::of(target, is_found_by_name);
        if target.parts().next().is_none() {
            self.seen.add(&path, &note);
        }
        self.files.insert(path, note);
    }

    /// Whether the file at this path is what it was, and so is what runs it.
    pub fn fit(&self, path: &Path, target: &Target) -> bool {
        self.has_same_others(target) && self.is_noted(path, target)
    }

    /// The same for a command that goes on beside another one. What only that has named was not noted.
    pub fn fit_beside(&self, path: &Path, target: &Target) -> bool {
        match self.files.contains_key(path) {
            true => self.fit(path, target),
            false => self.fit_needed(target),
        }
    }

    fn is_noted(&self, path: &Path, target: &Target) -> bool {
        self.files.get(path).is_some_and(|note| note.is_of(target))
            && target.parts().all(|part| self.is_noted(&part.path, part))
    }

    /// Whether a file that no command names is what it was. If it was not noted, it must be older than the command, and
    /// so must what runs it, and the way to them.
    pub fn fit_needed(&self, target: &Target) -> bool {
        self.has_same_others(target)
            && match self.files.contains_key(&target.path) {
                true => self.is_noted(&target.path, target),
                false => self.clock.is_even() && self.precede(target),
            }
    }

    fn precede(&self, target: &Target) -> bool {
        // What is not as an earlier command has found it was changed since then, but perhaps before this one began.
        let is_as_before = |(path, found): &(PathBuf, Metadata)| {
            self.ways.get(path).is_some_and(|note| note.was_same(found))
                || self.is_older(Changed::from(found))
                || found.is_dir() && self.was_at(path, found)
        };
        self.is_older(target.changed)
            && way_to(&target.path, |_| false).is_some_and(|way| {
                // Below `/proc/self`, a path is another file for us than for the process.
                let is_it = way.last().is_some_and(|(_, found)| FileId::from(found) == target.id);
                is_it && way.iter().all(is_as_before)
            })
            && target.parts().all(|part| self.precede(part))
    }

    /// Whether a folder was at this path already when the command began. It was if it was there for looking up names,
    /// or if nothing in the folder around it has changed since then.
    fn was_at(&self, path: &Path, found: &Metadata) -> bool {
        let around = || fs::symlink_metadata(path.parent()?).ok();
        self.seen.has_folder(path, found.into())
            || around().is_some_and(|it| self.is_older(Changed::from(&it)))
    }

    fn has_same_others(&self, target: &Target) -> bool {
        others(target.formats()).iter().eq(&self.others)
    }

    fn is_older(&self, changed: Changed) -> bool {
        changed.is_before(self.began)
    }
}

impl WayNote {
    fn of(found: &Metadata) -> Self {
        let (id, changed) = (found.into(), found.into());
        Self { id, is_folder: found.is_dir(), changed, is_from_before: false }
    }

    /// Whether it still is. A folder changes with what is in it, and is still the same.
    fn is_same(&self, found: &Metadata) -> bool {
        let now = Self::of(found);
        (self.id, self.is_folder) == (now.id, now.is_folder)
            && (self.is_folder || self.changed == now.changed)
    }

    /// The same for what it was when the command began.
    fn was_same(&self, found: &Metadata) -> bool {
        let is_untouched = || self.changed == Changed::from(found);
        self.is_same(found) && (!self.is_from_before || is_untouched())
    }

    /// Looks at it again, perhaps before the command begins. Returns whether it still is what it was.
    fn renew(&mut self, path: &Path, is_before: bool) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| {
            let is_same = self.is_same(&found);
            *self = Self { is_from_before: is_before, ..Self::of(&found) };
            is_same
        })
    }
}

/// All folders and links on the way that an absolute path leads, and what is at its end, without folders that are known
/// already.
fn way_to(path: &Path, is_known: impl Fn(&Path) -> bool) -> Option<Vec<(PathBuf, Metadata)>> {
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| part.as_os_str().into()).collect()
    };
    let (mut rest, mut at, mut links) = (parts(path), PathBuf::new(), 0);
    let mut way = Vec::new();
    while let Some(part) = rest.pop() {
        match part.as_os_str().as_bytes() {
            b"/" => at = part,
            b".." => drop(at.pop()),
            _ => {
                let next = at.join(part);
                if is_known(&next) {
                    at = next;
                    continue;
                }
                let found = fs::symlink_metadata(&next).ok()?;
                if found.is_symlink() {
                    links += 1;
                    rest.extend(parts(&fs::read_link(&next).ok()?));
                } else {
                    at.clone_from(&next);
                }
                way.push((next, found));
            }
        }
        if links > MOST_LINKS {
            return None;
        }
    }
    path.is_absolute().then_some(way)
}

/// The usual loaders as they are now, and the formats for which the kernel was told an interpreter.
fn others(formats: &[Format]) -> Vec<Other> {
    let loaders = LOADERS.iter().map(|path| (Path::new(path), None));
    let formats = formats.iter().map(|format| (&*format.path, format.text.clone()));
    let found = loaders.chain(formats).filter_map(|(path, text)| {
        let found = fs::metadata(path).ok()?;
        Some(Other { path: path.into(), id: (&found).into(), changed: (&found).into(), text })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// Waits until what was made before is older than what begins now.
    fn settle() {
        let now = Changed::now();
        while !now.is_before(Changed::now()) {
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_folder_that_this_command_has_put_back_is_not_the_one_that_it_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for folder in ["tools/bin", "others/bin"] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::copy("/bin/true", at(folder).join("helper")).unwrap();
        }
        let parts = vec![at("tools/bin")];
        let wanted = Wanted { parts, ..Wanted::default() };
        let fits = |notes: &Notes| {
            let target = Target::find_own(None, at("tools/bin/helper").as_os_str().as_bytes());
            notes.fit_needed(&target.unwrap())
        };
        let swap = |away: &str, there: &str| {
            fs::rename(at("tools"), at(away)).unwrap();
            fs::rename(at(there), at("tools")).unwrap();
        };
        let begin_after = |notes: Notes| {
            settle();
            let mut notes = Notes::begin_after(notes, &[]);
            notes.take(&wanted);
            assert!(fits(&notes));
            notes
        };
        settle();
        let mut notes = Notes::begin_in(&[]);
        notes.take(&wanted);
        for looks_ahead in [false, true] {
            if looks_ahead {
                notes.look_ahead();
            }
            swap("first", "others");
            notes = begin_after(notes);
            // What is new in a folder does not matter.
            fs::write(at("tools/new"), "").unwrap();
            assert!(fits(&notes));
            swap("others", "first");
            assert!(!fits(&notes), "{looks_ahead}");
            notes = begin_after(notes);
        }
    }
}
