//! The files of programs that rules name, wherever their names lead, and copies of them.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use mcpz_policy::{glob, is_same_program, program_names};

use crate::exec_lock::identity::{Changed, FileId};
use crate::exec_lock::listings::Listings;
use crate::exec_lock::seen::State;
use crate::exec_lock::target::{Target, base_name};

/// How many files a program may have. Each is open.
const MAX_FILES: usize = 200;

/// Files of programs.
#[derive(Default)]
pub struct Files {
    known: HashMap<FileId, KnownFile>,
    /// The names under which they were looked up, and what was there.
    names: HashMap<PathBuf, Option<State>>,
}

struct KnownFile {
    /// The name of the program.
    called: String,
    path: PathBuf,
    /// Whether the name leads to another program, as `reboot` does to `systemctl`. The file itself is then not denied,
    /// whatever it is called by, but copies of it and other links are.
    is_others: bool,
    size: u64,
    /// Open, so that it can still be compared when it has been removed.
    content: Option<File>,
}

impl Files {
    /// Forgets the names, but not the files that they led to.
    pub fn forget_names(&mut self) {
        self.names.clear();
    }

    /// Whether the names still lead to the same files, with the same content.
    pub fn are_there(&self) -> bool {
        let now = Changed::now();
        self.names.iter().all(|(name, before)| State::is_same(*before, State::at(name, now)))
    }

    /// Notes what is at this path, even if that is nothing.
    pub fn watch(&mut self, path: PathBuf) {
        let state = State::at(&path, Changed::now());
        self.names.insert(path, state);
    }

    /// Adds the files in these folders whose names match the pattern.
    pub fn find(&mut self, pattern: &str, folders: &[PathBuf], listings: &mut Listings) {
        for folder in folders {
            match pattern.contains('*') {
                false => self.add([folder.join(pattern)]),
                true => self.add(listings.matching(folder, pattern)),
            }
        }
    }

    /// Adds the files that are this program by another name, such as `python3.11` for `python`.
    pub fn find_otherwise(&mut self, pattern: &str, folders: &[PathBuf], listings: &mut Listings) {
        // A name such as `editor` may also lead to another program.
        let is_it = |path: &PathBuf| {
            fs::canonicalize(path).is_ok_and(|real| {
                let name = base_name(&real).to_lowercase();
                program_names(&name).iter().any(|name| glob(pattern, name))
            })
        };
        for folder in folders {
            let (own, others): (Vec<_>, Vec<_>) =
                listings.named_otherwise(folder, pattern).into_iter().partition(&is_it);
            self.add(own);
            others.into_iter().for_each(|path| self.watch(path));
        }
    }

    /// Adds what is at these paths. The folder of a missing name tells if it appears, but not what a link leads to.
    pub fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths.into_iter().filter(|path| fs::symlink_metadata(path).is_ok()) {
            let called = base_name(&path).to_owned();
            // Before it is looked at, so that no change is missed.
            self.watch(path.clone());
            let Ok(path) = fs::canonicalize(path) else { continue };
            let Ok(found) = fs::metadata(&path) else { continue };
            if let Some(known) = self.known.get_mut(&FileId::from(&found)) {
                known.size = found.len();
            } else if found.is_file() && self.known.len() < MAX_FILES {
                let is_others = !is_same_program(&called, base_name(&path));
                // Never waits for a pipe that takes the file's place.
                let mut options = OpenOptions::new();
                options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
                let (size, content) = (found.len(), options.open(&path).ok());
                let file = KnownFile { called, path, is_others, size, content };
                self.known.insert(FileId::from(&found), file);
            }
        }
    }

    /// Whether it is one of them, whatever it is called.
    pub fn has(&self, target: &Target) -> bool {
        self.find_file(target).is_some()
    }

    /// The name of the program that the file is, or is a copy of.
    pub fn name_of(&self, target: &Target) -> Option<&str> {
        let found = self.find_file(target);
        let found = found.filter(|it| !(it.is_others && it.path == target.real_path));
        found.map(|it| it.called.as_str())
    }

    /// The file that it is, or is a copy of. Scripts are not compared: many are the same for different programs, and
    /// start those by their own names.
    fn find_file(&self, target: &Target) -> Option<&KnownFile> {
        let is_copy = |it: &&KnownFile| {
            let same_size = it.size == target.size && target.interpreter.is_none();
            let same_content =
                || it.content.as_ref().is_some_and(|content| target.has_content_of(content));
            same_size && (!target.is_readable || same_content())
        };
        self.known.get(&target.id).or_else(|| self.known.values().find(is_copy))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn target(path: &Path) -> Target {
        Target::find_own(None, path.as_os_str().as_bytes()).unwrap()
    }

    #[test]
    fn a_loader_is_one_by_its_link_and_by_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        // As musl has it.
        fs::copy("/bin/true", folder.path().join("libc.so")).unwrap();
        symlink("libc.so", folder.path().join("ld-musl.so.1")).unwrap();
        let mut files = Files::default();
        files.find("ld*.so*", &[folder.path().to_owned()], &mut Listings::default());
        for name in ["libc.so", "ld-musl.so.1"] {
            let path = folder.path().join(name);
            assert!(files.has(&target(&path)), "{name}");
        }
    }

    #[test]
    fn a_name_that_leads_to_something_else_is_looked_up_again() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 3] = [
            ("a link on the way", |folder| {
                fs::remove_file(folder.join("current")).unwrap();
                symlink("v2", folder.join("current")).unwrap();
            }),
            ("a folder where a link led nowhere", |folder| {
                fs::create_dir(folder.join("later")).unwrap();
                fs::copy("/bin/echo", folder.join("later/other")).unwrap();
            }),
            ("the content", |folder| {
                fs::copy("/bin/echo", folder.join("bin/third")).unwrap();
            }),
        ];
        for (what, change) in changes {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            ["bin", "v1", "v2"].iter().for_each(|it| fs::create_dir(at(it)).unwrap());
            ["v1/tool", "bin/third"].iter().for_each(|it| drop(fs::copy("/bin/true", at(it))));
            ["v2/tool", "copy"].iter().for_each(|it| drop(fs::copy("/bin/echo", at(it))));
            symlink("v1", at("current")).unwrap();
            symlink("../current/tool", at("bin/tool")).unwrap();
            symlink("../later/other", at("bin/other")).unwrap();
            let mut files = Files::default();
            let mut look_up = || {
                let names = ["tool", "other", "third"];
                names.iter().for_each(|it| files.find(it, &[at("bin")], &mut Listings::default()));
                files.are_there()
            };
            // What was just changed may change again in the same moment.
            while !look_up() {}
            assert!(!files.has(&target(&at("copy"))), "{what}");
            change(folder.path());
            assert!(!files.are_there(), "{what}");
            files.find("*", &[at("bin")], &mut Listings::default());
            assert!(files.has(&target(&at("copy"))), "{what}");
        }
    }
}
