//! Where files are, by their paths alone: the file system is not consulted, so links are not resolved.

use crate::names::Names;
use crate::script::Word;

/// Devices that may be written under any policy.
const DEVICES: Names =
    Names("/dev/null /dev/zero /dev/full /dev/tty /dev/stdout /dev/stderr /dev/stdin");

/// The directories a command may run in: after a `cd`, it may have happened or not.
#[derive(Debug, Clone)]
pub struct WorkingDirectories {
    /// `None` if only the run will know.
    directories: Option<Vec<String>>,
    /// Where the request starts.
    base: String,
    home: Option<String>,
}

impl WorkingDirectories {
    pub fn new(directory: &str, home: Option<&str>) -> Self {
        let base = normalized(directory);
        Self { directories: Some(vec![base.clone()]), base, home: home.map(normalized) }
    }

    /// Takes note of a `cd`. `again` if it may happen more than once.
    pub fn enter(&mut self, target: Option<&Word>, again: bool) {
        let Some(target) = target else {
            let home = self.home.clone();
            match (&mut self.directories, home) {
                (Some(directories), Some(home)) => directories.push(home),
                _ => self.directories = None,
            }
            return;
        };
        // `cd -` leads back to a directory that is in the list already, unless there was no `cd` before.
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

    /// Whether a command may run somewhere else than where the request starts.
    pub fn have_changed(&self) -> bool {
        self.directories.as_ref().is_none_or(|directories| directories.len() > 1)
    }

    /// From here on, only the run will know the directory.
    pub fn forget(&mut self) {
        self.directories = None;
    }

    /// The paths a word may name, one for each directory. `None` if only the run will know.
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

    /// Whether a word certainly names a file in one of the folders, or a harmless device.
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

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// A path without `.`, `..` and double slashes.
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
