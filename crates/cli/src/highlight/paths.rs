//! Paths that exist.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Span, words};

const PATH: &str = "4";

/// How many paths are looked for, and how long.
const MAX_LOOKUPS: usize = 100;
const MAX_TIME: Duration = Duration::from_millis(50);

pub struct Paths {
    /// Where relative paths begin.
    directory: PathBuf,
    known: HashMap<String, bool>,
    spent: Duration,
}

impl Paths {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, known: HashMap::new(), spent: Duration::ZERO }
    }

    pub fn spans(&mut self, line: &str) -> Vec<Span> {
        let paths = words(line).map(|word| {
            let path = line[word.clone()].trim_end_matches(['.', ':']);
            word.start..word.start + path.len()
        });
        let paths = paths.filter(|at| line[at.clone()].trim_matches('/').contains(['/', '.']));
        let paths = paths.filter(|at| line[at.clone()].contains('/'));
        paths.filter(|at| self.exists(&line[at.clone()])).map(|at| (at, PATH)).collect()
    }

    fn exists(&mut self, path: &str) -> bool {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        if self.known.len() >= MAX_LOOKUPS || self.spent > MAX_TIME {
            return false;
        }
        let began = Instant::now();
        let exists = std::fs::symlink_metadata(self.directory.join(path)).is_ok();
        self.spent += began.elapsed();
        self.known.insert(path.to_owned(), exists);
        exists
    }
}
