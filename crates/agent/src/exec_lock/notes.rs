//! What programs were when a command began, so that they are not executed after the command has changed them.
//!
//! A policy allows a program for what it is, or an interpreter because a script names it. A command that may only copy
//! files could put others in their place. So the files of the programs that it names are noted before it begins. Of the
//! others that these need, it is enough that nothing on the way to them has changed since.

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::target::{Changed, FileId, Target};

/// The longest script whose text is noted.
const LONGEST_SCRIPT: u64 = 64 << 10;

/// How many scripts may run one another.
const MOST_SCRIPTS: usize = 3;

pub struct Notes {
    files: HashMap<PathBuf, Note>,
    began: Changed,
}

/// What a file was.
struct Note {
    id: FileId,
    changed: Changed,
    /// The text of a script. It is still the same if only its rights have changed.
    text: Option<Vec<u8>>,
}

impl Notes {
    pub fn begin() -> Self {
        Self { files: HashMap::new(), began: Changed::now() }
    }

    /// Another command begins. What earlier ones named is known.
    pub fn begin_another(&mut self) {
        self.began = Changed::now();
    }

    /// Notes the file of a program, if there is one, and what runs it. Names mean files in these folders.
    pub fn add(&mut self, path: PathBuf, folders: &[PathBuf]) {
        self.add_below(path, folders, 0);
    }

    /// The same for what `env` looks up for a script, which may be a script itself.
    fn add_below(&mut self, path: PathBuf, folders: &[PathBuf], depth: usize) {
        let Ok(target) = Target::find_own(None, path.as_os_str().as_bytes()) else { return };
        if let Some(program) = target.env_program().filter(|_| depth < MOST_SCRIPTS) {
            let files = folders.iter().map(|folder| folder.join(program));
            files.for_each(|file| self.add_below(file, folders, depth + 1));
        }
        self.note(path, &target);
    }

    fn note(&mut self, path: PathBuf, target: &Target) {
        target.parts().for_each(|part| self.note(part.path.clone(), part));
        let is_short = target.interpreter.is_some() && target.size <= LONGEST_SCRIPT;
        let text = if is_short { text_of(target) } else { None };
        self.files.insert(path, Note { id: target.id, changed: target.changed, text });
    }

    /// Whether the file at this path is what it was, and so is what runs it.
    pub fn fit(&self, path: &Path, target: &Target) -> bool {
        let is_same = |note: &Note| {
            let is_untouched = note.id == target.id && note.changed == target.changed;
            is_untouched || (note.text.is_some() && note.text == text_of(target))
        };
        self.files.get(path).is_some_and(is_same)
            && target.parts().all(|part| self.fit(&part.path, part))
    }

    /// Whether a file that was not noted, what runs it, and the way to them are older than the command.
    pub fn precede(&self, target: &Target) -> bool {
        let is_older = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|found| Changed::from(&found) < self.began)
        };
        let is_way_older = |path: &Path| {
            let mut way = path.ancestors().filter(|part| part.parent().is_some());
            way.all(is_older)
        };
        let mut links = target.links.iter();
        is_way_older(&target.path)
            && is_way_older(&target.real_path)
            && links.all(|link| is_way_older(link))
            && target.parts().all(|part| self.precede(part))
    }
}

fn text_of(script: &Target) -> Option<Vec<u8>> {
    fs::read(format!("/proc/self/fd/{}", script.file.as_raw_fd())).ok()
}
