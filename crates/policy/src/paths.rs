//! Where files are, by their names alone: no file system is looked at.

use crate::names::Names;
use crate::script::Word;

/// Files everybody may write.
const DEVICES: Names =
    Names("/dev/null /dev/zero /dev/full /dev/tty /dev/stdout /dev/stderr /dev/stdin");

/// The directories a command may run in, as far as the script has told.
#[derive(Debug, Clone)]
pub struct WorkingDirectories {
    /// `None` if only the run will know.
    directories: Option<Vec<String>>,
    /// Where the request runs.
    base: String,
    home: Option<String>,
}

impl WorkingDirectories {
    pub fn new(directory: &str, home: Option<&str>) -> Self {
        let base = normalized(directory);
        Self { directories: Some(vec![base.clone()]), base, home: home.map(normalized) }
    }

    /// Notes a `cd`: from here on, it may have happened or not.
    pub fn enter(&mut self, target: Option<&Word>, again: bool) {
        let Some(target) = target else {
            let home = self.home.clone();
            match (&mut self.directories, home) {
                (Some(directories), Some(home)) => directories.push(home),
                _ => self.directories = None,
            }
            return;
        };
        // Back to where it was, which is known unless it was never left.
        let back = target.text().as_deref() == Some("-");
        if back && self.directories.as_ref().is_some_and(|directories| directories.len() > 1) {
            return;
        }
        let upward = target.text().is_none_or(|text| again && text.contains(".."));
        let found = self.resolve(target).filter(|_| !upward && !back);
        match (&mut self.directories, found) {
            (Some(directories), Some(found)) if directories.len() < 64 => {
                directories.extend(found);
                directories.sort();
                directories.dedup();
            }
            _ => self.directories = None,
        }
    }

    /// Whether a command may run somewhere else than where the script began.
    pub fn have_changed(&self) -> bool {
        self.directories.as_ref().is_none_or(|directories| directories.len() > 1)
    }

    /// From here on, only the run will know.
    pub fn forget(&mut self) {
        self.directories = None;
    }

    /// What a word names, for each directory it may be relative to; `None` if that is not known.
    pub fn resolve(&self, word: &Word) -> Option<Vec<String>> {
        let text = word.text()?;
        if let Some(rest) = text.strip_prefix('~').filter(|_| word.starts_with_tilde()) {
            let rest = rest.strip_prefix('/').or(rest.is_empty().then_some(""))?;
            return Some(vec![normalized(&format!("{}/{rest}", self.home.as_ref()?))]);
        }
        word.literal()?;
        if text.starts_with('/') {
            return Some(vec![normalized(&text)]);
        }
        let directories = self.directories.as_ref()?;
        Some(
            directories
                .iter()
                .map(|directory| normalized(&format!("{directory}/{text}")))
                .collect(),
        )
    }

    /// Whether a word certainly names a file in one of the folders, or one that everybody may write.
    pub fn is_within(&self, word: &Word, folders: &[String]) -> bool {
        let inside = |path: &String| {
            let folder = |folder: &String| {
                let folder = match folder.starts_with('/') {
                    true => normalized(folder),
                    false => normalized(&format!("{}/{folder}", self.base)),
                };
                let rest = path.strip_prefix(&folder);
                folder == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let descriptor = path.strip_prefix("/dev/fd/");
            DEVICES.has(path)
                || descriptor.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
                || folders.iter().any(folder)
        };
        self.resolve(word).is_some_and(|paths| paths.iter().all(inside))
    }
}

/// What a path ends with.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// A path without `.`, `..` and doubled slashes.
fn normalized(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_plain() {
        for (path, plain) in [("/a/../b//c/.", "/b/c"), ("/", "/"), ("/../..", "/"), ("/a/", "/a")]
        {
            assert_eq!(normalized(path), plain);
        }
    }
}
