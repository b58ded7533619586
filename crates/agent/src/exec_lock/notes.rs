//! What programs were when a command began, so that they are not executed after the command has changed them.
//!
//! A policy allows a program for what it is, or an interpreter because a script names it. A command that may only copy
//! files could put others in their place. So the files of the programs that it names are noted before it begins. Those
//! that they need are too many for that. They must be older than the command, in folders that are still the same.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::clock::ClockWatch;
use super::formats::formats;
use super::identity::{Changed, FileId};
use super::target::{LOADERS, Target};
use crate::exec_rules::AllowedProgram;

/// The largest program whose content is noted, and one that cannot be executed yet.
const LARGEST: u64 = 1 << 20;
const LARGEST_NEW: u64 = 16 << 20;

/// How many scripts may run one another.
const MOST_SCRIPTS: usize = 3;

/// How many links the kernel follows.
const MOST_LINKS: usize = 40;

pub struct Notes {
    files: HashMap<PathBuf, Note>,
    /// Files that something else has changed than what makes programs.
    distrusted: HashSet<PathBuf>,
    /// The parts of the ways to folders.
    ways: HashMap<PathBuf, WayNote>,
    began: Changed,
    clock: ClockWatch,
    /// What else the kernel runs with programs.
    others: Vec<Other>,
}

/// What a file was.
struct Note {
    id: FileId,
    changed: Changed,
    /// Whether a later change would show in its time: that was over, and the file system keeps it.
    was_over: bool,
    /// What is in it, if that is little. It is still the same if only its rights have changed.
    content: Option<Vec<u8>>,
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
#[derive(PartialEq, Eq)]
struct WayNote {
    id: FileId,
    /// A folder changes with what is in it, and is still the same.
    changed: Option<Changed>,
}

impl Notes {
    pub fn begin() -> Self {
        let (began, clock) = (Changed::now(), ClockWatch::new());
        let (files, ways, distrusted) = Default::default();
        Self { files, distrusted, ways, began, clock, others: others() }
    }

    /// The same after an earlier command. The ways to folders are usually still the same, and looking at their parts is
    /// faster than finding them again.
    pub fn begin_after(earlier: Self) -> Self {
        const MOST: usize = 128;
        let is_same = |(path, note): (&PathBuf, &WayNote)| {
            fs::symlink_metadata(path).is_ok_and(|found| WayNote::of(&found) == *note)
        };
        let mut ways = earlier.ways;
        // Where one part has changed, others may no longer be on the way.
        if ways.len() > MOST || !ways.iter().all(is_same) {
            ways.clear();
        }
        Self { ways, ..Self::begin() }
    }

    /// Another command begins. What earlier ones named is known.
    pub fn begin_another(&mut self) {
        let files = std::mem::take(&mut self.files);
        *self = Self { files, ..Self::begin() };
    }

    /// Notes what these programs are that a command names, and where those are that they need. Names mean files in
    /// these folders.
    pub fn take(&mut self, programs: &[AllowedProgram], folders: &[PathBuf]) {
        folders.iter().for_each(|folder| self.add_folder(folder));
        let needed: HashSet<&str> = programs.iter().flat_map(AllowedProgram::needs).collect();
        for pattern in needed.into_iter().filter(|pattern| pattern.starts_with('/')) {
            match pattern.split_once('*') {
                None => self.add(pattern.into(), folders, 0),
                Some((fixed, _)) => {
                    let folder = fixed.rsplit_once('/').map_or(fixed, |(folder, _)| folder);
                    self.add_folder(folder.as_ref());
                }
            }
        }
        for program in programs.iter().filter(|program| program.named) {
            if !program.name.contains('/') {
                folders.iter().for_each(|it| self.add(it.join(&program.name), folders, 0));
            }
            program.paths().for_each(|path| self.add(path, folders, 0));
        }
    }

    /// A process is about to make programs. What has changed by now is not its work.
    pub fn distrust_changed(&mut self, programs: &[AllowedProgram], folders: &[PathBuf]) {
        let mut now = Self::begin();
        now.take(programs, folders);
        let changed = now.files.into_iter().filter(|(path, note)| {
            !self.files.get(path).is_some_and(|known| known.is_same_as(note))
        });
        self.distrusted.extend(changed.map(|(path, _)| path));
    }

    /// Such a process has ended. Notes what it has made, if that is as wanted.
    pub fn take_made(
        &mut self,
        programs: &[AllowedProgram],
        folders: &[PathBuf],
        is_wanted: impl Fn(&Path, &Target) -> bool,
    ) {
        let mut now = Self::begin();
        now.take(programs, folders);
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
        let is_known = |path: &Path| self.ways.get(path).is_some_and(WayNote::is_folder);
        let way = way_to(folder, is_known).into_iter().flatten();
        self.ways.extend(way.map(|(path, found)| (path, WayNote::of(&found))));
    }

    /// Notes the file of a program, if there is one, and what runs it. If `env` looks that up for a script, it may be a
    /// script as well.
    fn add(&mut self, path: PathBuf, folders: &[PathBuf], depth: usize) {
        let Ok(target) = Target::find_own(None, path.as_os_str().as_bytes()) else { return };
        if let Some(program) = target.env_program().filter(|_| depth < MOST_SCRIPTS) {
            let files = folders.iter().map(|folder| folder.join(program));
            files.for_each(|file| self.add(file, folders, depth + 1));
        }
        self.note(path, &target);
    }

    fn note(&mut self, path: PathBuf, target: &Target) {
        target.parts().for_each(|part| self.note(part.path.clone(), part));
        // What is too large to be noted has to be told by its time.
        let was_over = is_over(target) && (target.size > LARGEST_NEW || keeps_times(&target.file));
        let content = match (path.parent(), target.is_executable) {
            _ if !was_over && target.size <= LARGEST_NEW => content_of(target),
            // Nobody changes the rights of what is there to be found by its name.
            (Some(folder), _) if self.ways.contains_key(folder) => None,
            (_, true) if target.size <= LARGEST => content_of(target),
            (_, false) if target.size <= LARGEST_NEW => content_of(target),
            _ => None,
        };
        self.files.insert(path, Note { id: target.id, changed: target.changed, was_over, content });
    }

    /// Whether the file at this path is what it was, and so is what runs it.
    pub fn fit(&self, path: &Path, target: &Target) -> bool {
        self.has_same_others()
            && self.files.get(path).is_some_and(|note| note.is_of(target))
            && target.parts().all(|part| self.fit(&part.path, part))
    }

    /// Whether a file that no command names is what it was. If it was not noted, it must be older than the command, and
    /// so must what runs it, and the way to them.
    pub fn fit_needed(&self, target: &Target) -> bool {
        match self.files.contains_key(&target.path) {
            true => self.fit(&target.path, target),
            false => self.precede(target),
        }
    }

    fn precede(&self, target: &Target) -> bool {
        let is_as_before = |(path, found): &(PathBuf, Metadata)| match self.ways.get(path) {
            Some(note) => *note == WayNote::of(found),
            None => self.is_older(Changed::from(found)),
        };
        self.clock.is_even()
            && self.has_same_others()
            && self.is_older(target.changed)
            && way_to(&target.path, |_| false).is_some_and(|way| {
                // Below `/proc/self`, a path is another file for us than for the process.
                let is_it = way.last().is_some_and(|(_, found)| FileId::from(found) == target.id);
                is_it && way.iter().all(is_as_before)
            })
            && target.parts().all(|part| self.precede(part))
    }

    fn has_same_others(&self) -> bool {
        others().iter().eq(&self.others)
    }

    fn is_older(&self, changed: Changed) -> bool {
        changed.is_before(self.began)
    }
}

impl Note {
    /// Whether the file is still what it was.
    fn is_of(&self, target: &Target) -> bool {
        let is_alike = |content: &Vec<u8>| {
            content.len() as u64 == target.size && content_of(target).as_ref() == Some(content)
        };
        let is_untouched = self.was_over && self.id == target.id && self.changed == target.changed;
        is_untouched || self.content.as_ref().is_some_and(is_alike)
    }

    fn is_same_as(&self, later: &Self) -> bool {
        let is_untouched = self.was_over && self.id == later.id && self.changed == later.changed;
        is_untouched || (self.content.is_some() && self.content == later.content)
    }
}

impl WayNote {
    fn of(found: &Metadata) -> Self {
        Self { id: found.into(), changed: (!found.is_dir()).then(|| Changed::from(found)) }
    }

    fn is_folder(&self) -> bool {
        self.changed.is_none()
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

/// The usual loaders, and the formats for which the kernel was told an interpreter, as they are now.
fn others() -> Vec<Other> {
    let loaders = LOADERS.into_iter().map(|path| (PathBuf::from(path), None));
    let formats = formats().map(|format| (format.path, format.text));
    let found = loaders.chain(formats).filter_map(|(path, text)| {
        let found = fs::metadata(&path).ok()?;
        Some(Other { path, id: FileId::from(&found), changed: Changed::from(&found), text })
    });
    found.collect()
}

/// Whether every write shows in the time of a file. In memory and over a network, one through a mapping need not, and
/// what is written to an overlay may be in memory.
fn keeps_times(file: &OwnedFd) -> bool {
    const BCACHEFS: i64 = 0xca45_1a4e;
    const EROFS: i64 = 0xe0f5_e1e2;
    const SQUASHFS: i64 = 0x7371_7368;
    const ZFS: i64 = 0x2fc1_2fc1;
    const KEEPING: [i64; 8] = [
        libc::EXT4_SUPER_MAGIC,
        libc::XFS_SUPER_MAGIC,
        libc::BTRFS_SUPER_MAGIC,
        libc::F2FS_SUPER_MAGIC,
        BCACHEFS,
        ZFS,
        // They cannot be written.
        EROFS,
        SQUASHFS,
    ];
    rustix::fs::fstatfs(file).is_ok_and(|found| KEEPING.contains(&found.f_type))
}

/// Whether a change would give the file another time now. For a large one, the tick of the clock is worth waiting for.
fn is_over(target: &Target) -> bool {
    const TICK: Duration = Duration::from_millis(1);
    const MOST_TICKS: usize = 20;
    let is_over = || target.changed.is_before(Changed::now());
    let mut waits = (0..MOST_TICKS).filter(|_| target.size > LARGEST_NEW);
    is_over()
        || waits.any(|_| {
            std::thread::sleep(TICK);
            is_over()
        })
}

fn content_of(target: &Target) -> Option<Vec<u8>> {
    fs::read(format!("/proc/self/fd/{}", target.file.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::ptr;
    use std::thread::sleep;

    use super::*;

    const OWN: &str = "#!/bin/sh\necho own..\n";
    const OTHER: &str = "#!/bin/sh\necho other\n";

    /// Writes over the beginning of a file through a mapping that was read before.
    fn write_mapped(path: &Path, text: &str) {
        let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that is at least as long as the text, and that nobody else uses.
        unsafe {
            let descriptor = file.as_raw_fd();
            let mapped = libc::mmap(
                ptr::null_mut(),
                text.len(),
                protection,
                libc::MAP_SHARED,
                descriptor,
                0,
            );
            assert_ne!(mapped, libc::MAP_FAILED);
            assert_eq!(ptr::read_volatile(mapped.cast::<u8>()), text.as_bytes()[0]);
            ptr::copy_nonoverlapping(text.as_ptr(), mapped.cast(), text.len());
            assert_eq!(libc::munmap(mapped, text.len()), 0);
        }
    }

    #[test]
    fn a_program_that_is_written_through_a_mapping_is_another_one() {
        // In memory, such a file keeps its time.
        for folder in [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()] {
            let path = folder.path().join("tool");
            fs::write(&path, OWN).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            let target = || Target::find_own(None, path.as_os_str().as_bytes()).unwrap();
            while !is_over(&target()) {
                sleep(Duration::from_millis(1));
            }
            let mut notes = Notes::begin();
            notes.add(path.clone(), &[], 0);
            assert!(notes.fit(&path, &target()), "{}", path.display());
            write_mapped(&path, OTHER);
            assert!(!notes.fit(&path, &target()), "{}", path.display());
        }
    }
}
