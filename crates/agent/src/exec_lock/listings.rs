//! The names of the programs in folders, and what else they stand for: `python3.11` is `python`.
//!
//! A folder may have thousands of names. It is read once, and again when a name in it was added or removed.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use mcpz_policy::{glob, program_names};

use super::identity::Changed;
use super::seen::State;

#[derive(Default)]
pub struct Listings(HashMap<PathBuf, Listing>);

struct Listing {
    folder: State,
    names: Vec<String>,
    /// By each name in lower case that a program has besides its own, the places of those that do.
    others: OnceCell<HashMap<String, Vec<usize>>>,
}

impl Listings {
    /// The files in a folder whose names match a pattern.
    pub fn matching(&mut self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let Some(listing) = self.of(folder) else { return Vec::new() };
        let names = listing.names.iter().filter(|name| glob(pattern, &name.to_lowercase()));
        names.map(|name| folder.join(name)).collect()
    }

    /// The files in a folder that are this program by another name.
    pub fn named_otherwise(&mut self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let Some(listing) = self.of(folder) else { return Vec::new() };
        let others = listing.others();
        let places: Vec<&usize> = match pattern.contains('*') {
            false => others.get(pattern).into_iter().flatten().collect(),
            true => {
                others.iter().filter(|(name, _)| glob(pattern, name)).flat_map(|it| it.1).collect()
            }
        };
        places.into_iter().map(|at| folder.join(&listing.names[*at])).collect()
    }

    fn of(&mut self, folder: &Path) -> Option<&Listing> {
        let now = State::at(folder, Changed::now())?;
        let is_known = self.0.get(folder).is_some_and(|it| it.folder.is_unchanged(now));
        if !is_known {
            let entries = fs::read_dir(folder).ok()?.flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            let listing = Listing { folder: now, names, others: OnceCell::new() };
            self.0.insert(folder.to_owned(), listing);
        }
        self.0.get(folder)
    }
}

impl Listing {
    fn others(&self) -> &HashMap<String, Vec<usize>> {
        self.others.get_or_init(|| {
            let mut others: HashMap<String, Vec<usize>> = HashMap::new();
            for (at, name) in self.names.iter().enumerate() {
                let own = name.to_lowercase();
                for other in program_names(&own).into_iter().filter(|other| *other != own) {
                    others.entry(other.to_owned()).or_default().push(at);
                }
            }
            others
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_what_its_name_stands_for() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::write(folder.path().join(name), "").unwrap();
        ["python3.11", "GCC-12", "python3-config", "perl"].into_iter().for_each(make);
        let mut listings = Listings::default();
        let mut find = |name: &str| {
            let found = listings.named_otherwise(folder.path(), name);
            found.iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(find("python"), ["python3.11"]);
        assert_eq!(find("python3"), ["python3.11"]);
        assert_eq!(find("gcc"), ["GCC-12"]);
        assert!(find("python3.11").is_empty() && find("perl").is_empty());
        make("perl5.36");
        assert_eq!(find("perl"), ["perl5.36"]);
        assert_eq!(find("pyth*"), ["python3.11", "python3.11"]);
    }
}
