//! Where the programs are that a command may execute: what is to be noted about them before it begins.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::identity::FileId;
use crate::exec_rules::AllowedProgram;

/// Folders that count as part of every `PATH`.
const SYSTEM: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Files and folders, as paths that may lead through links.
#[derive(Default)]
pub struct Wanted {
    /// In which names are looked up.
    pub search: Vec<PathBuf>,
    /// With programs that others need.
    pub parts: Vec<PathBuf>,
    /// Programs that a command names, and those that others need by their whole paths.
    pub files: Vec<PathBuf>,
    /// Which folders those were where rules begin.
    pub begins: HashMap<PathBuf, FileId>,
}

impl Wanted {
    /// For these programs. Names mean files in these folders.
    pub fn new(programs: &[AllowedProgram], search: Vec<PathBuf>) -> Self {
        let mut new = Self { search, ..Self::default() };
        new.extend(programs);
        new
    }

    /// For these programs as well.
    pub fn extend(&mut self, programs: &[AllowedProgram]) {
        let needed: HashSet<&str> = programs.iter().flat_map(AllowedProgram::needs).collect();
        let (mut files, mut parts) = (Vec::new(), Vec::new());
        for pattern in needed.into_iter().filter(|pattern| pattern.starts_with('/')) {
            match pattern.split_once('*') {
                None => files.push(pattern.into()),
                Some((fixed, _)) => {
                    let folder = fixed.rsplit_once('/').map_or(fixed, |(folder, _)| folder);
                    parts.push(folder.into());
                }
            }
        }
        for program in programs.iter().filter(|program| program.named) {
            if !program.name.contains('/') {
                files.extend(self.search.iter().map(|folder| folder.join(&program.name)));
            }
            files.extend(program.paths());
        }
        for begin in programs.iter().flat_map(begins).collect::<HashSet<_>>() {
            self.begins.extend(folder_at(begin).map(|id| (begin.to_owned(), id)));
        }
        add_new(&mut self.files, files);
        add_new(&mut self.parts, parts);
    }

    /// Whether the rules for a program still begin in the same folders.
    pub fn begin_there(&self, program: &AllowedProgram) -> bool {
        begins(program).all(|it| folder_at(it).as_ref() == self.begins.get(it))
    }

    /// All folders that have programs.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.search.iter().chain(&self.parts).map(PathBuf::as_path)
    }
}

/// The folders of a `PATH` that mean the same everywhere.
pub fn folders_of(path: &[u8]) -> impl Iterator<Item = PathBuf> {
    let all =
        path.split(|byte| *byte == b':').map(|folder| PathBuf::from(OsStr::from_bytes(folder)));
    all.filter(|folder| folder.is_absolute())
}

/// The same with those of the system, each once.
pub fn folders(path: &[u8]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let all = folders_of(path).chain(SYSTEM.map(PathBuf::from));
    all.filter(|folder| seen.insert(folder.clone())).collect()
}

fn begins(program: &AllowedProgram) -> impl Iterator<Item = &Path> {
    let limits = program.calls.iter().flatten().filter_map(|call| call.limit.as_ref());
    limits.map(|limit| limit.directory.as_path())
}

fn folder_at(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|found| (&found).into())
}

fn add_new(known: &mut Vec<PathBuf>, more: Vec<PathBuf>) {
    let mut seen: HashSet<_> = known.iter().cloned().collect();
    known.extend(more.into_iter().filter(|path| seen.insert(path.clone())));
}
