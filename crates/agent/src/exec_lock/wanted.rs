//! Where the programs are that a command may execute: what is to be noted about them before it begins.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::exec_rules::AllowedProgram;

/// Files and folders, as paths that may lead through links.
#[derive(Default)]
pub struct Wanted {
    /// In which names are looked up.
    pub search: Vec<PathBuf>,
    /// With programs that others need.
    pub parts: Vec<PathBuf>,
    /// Programs that a command names, and those that others need by their whole paths.
    pub files: Vec<PathBuf>,
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
        add_new(&mut self.files, files);
        add_new(&mut self.parts, parts);
    }

    /// All folders that have programs.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.search.iter().chain(&self.parts).map(PathBuf::as_path)
    }
}

fn add_new(known: &mut Vec<PathBuf>, more: Vec<PathBuf>) {
    let mut seen: HashSet<_> = known.iter().cloned().collect();
    known.extend(more.into_iter().filter(|path| seen.insert(path.clone())));
}
