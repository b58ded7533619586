//! Where files are, by their paths alone: the file system is not consulted, so links are not resolved.

use crate::names::Names;
use crate::pattern::glob_path;
use crate::script::Word;

/// Devices that may be written under any policy.
const DEVICES: Names = Names("/dev/null /dev/zero /dev/full /dev/tty");

/// Descriptors that a script writes to anyway. To open one by its name is to open its file again, for writing even if
/// the script has it only for reading: no other descriptor is here.
pub const OUTPUTS: Names = Names("/dev/stdout /dev/stderr /dev/fd/1 /dev/fd/2");

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    File,
    /// The standard input of the process that opens it.
    Input,
    /// Another descriptor, a process, or anything else that only looks like a file.
    Special,
}

/// The directories a command may run in: after a `cd`, it may have happened or not.
#[derive(Debug, Clone, Default)]
pub struct WorkingDirectories {
    /// `None` if only the run will know.
    directories: Option<Vec<String>>,
    /// Where the request starts.
    base: String,
    /// Where relative paths in rules begin.
    rules_begin: String,
    home: Option<String>,
}

impl WorkingDirectories {
    pub fn new(directory: &str, rules_begin: &str, home: Option<&str>) -> Self {
        let (base, rules_begin) = (normalized(directory), normalized(rules_begin));
        let directories = Some(vec![base.clone()]);
        Self { directories, base, rules_begin, home: home.map(normalized) }
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

    /// Whether the path of every directory a command may run in is one word, whatever a shell does with it.
    pub fn are_plain(&self) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-+@,:".contains(c);
        let is_word = |path: &String| path.starts_with('/') && path.chars().all(is_plain);
        self.directories.as_ref().is_some_and(|directories| directories.iter().all(is_word))
    }

    /// Whether every command certainly runs in the directory where relative rules begin.
    pub fn are_where_rules_begin(&self) -> bool {
        let begin = |directory: &String| *directory == self.rules_begin;
        self.directories.as_ref().is_some_and(|directories| directories.iter().all(begin))
    }

    /// The same for that directory and those below it. `None` if only the run will know.
    pub fn are_below_where_rules_begin(&self) -> Option<bool> {
        let begin = self.rules_begin.trim_end_matches('/');
        let is_below = |directory: &String| {
            let rest = directory.strip_prefix(begin);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        Some(self.directories.as_ref()?.iter().all(is_below))
    }

    /// Where relative paths in rules begin.
    pub fn rules_begin(&self) -> &str {
        &self.rules_begin
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

    /// Where the program with this path is. `None` if only the run will know, or if a link could lead elsewhere: a link
    /// and the `..` after it lead to the folder around the link's target.
    pub fn program(&self, word: &Word) -> Option<ProgramPaths> {
        let text = word.literal().filter(|text| text.contains('/'))?;
        let mut parts = text.split('/').filter(|part| !["", "."].contains(part)).peekable();
        let mut climbs = false;
        while parts.next_if_eq(&"..").is_some() {
            climbs = true;
        }
        if parts.any(|part| part == "..") || (climbs && self.have_changed()) {
            return None;
        }
        let stays = text.starts_with('/') || self.are_where_rules_begin();
        Some(ProgramPaths {
            paths: self.resolve(word)?,
            written: stays.then(|| text.into_owned()),
            rules_begin: self.rules_begin.clone(),
            home: self.home.clone(),
        })
    }

    /// The files that a relative path may name, none for another name. Where only the run will know the directory, the
    /// one in which the request starts is meant.
    pub fn files(&self, path: &str) -> Vec<String> {
        if !path.contains('/') || path.starts_with('/') {
            return Vec::new();
        }
        let base = std::slice::from_ref(&self.base);
        let directories = self.directories.as_deref().unwrap_or(base).iter();
        directories.map(|directory| normalized(&format!("{directory}/{path}"))).collect()
    }

    /// What a word leads to where a program is about to read it.
    pub fn target(&self, word: &Word) -> Target {
        let text = word.text().unwrap_or_default();
        // A program may change its directory first: `make -C /dev -f stdin`.
        if base_name(&text) == "stdin" {
            return Target::Input;
        }
        match self.resolve(word) {
            Some(paths) => paths.iter().map(|path| target(path)).find(|it| *it != Target::File),
            None => relative_descriptor(&text).then_some(Target::Special),
        }
        .unwrap_or(Target::File)
    }

    /// Whether a word certainly names a file in one of the folders, a harmless device or one of these descriptors.
    pub fn is_within(&self, word: &Word, folders: &[String], outputs: Names) -> bool {
        let inside = |path: &String| {
            let folder = |folder: &String| {
                let folder = match folder.starts_with('/') {
                    true => normalized(folder),
                    false => normalized(&format!("{}/{folder}", self.rules_begin)),
                };
                let rest = path.strip_prefix(&folder);
                folder == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            DEVICES.has(path) || outputs.has(path) || folders.iter().any(folder)
        };
        self.resolve(word).is_some_and(|paths| paths.iter().all(inside))
    }
}

/// Where a program is that is named by a path.
#[derive(Debug, Clone)]
pub struct ProgramPaths {
    /// Its path in every directory that the command may run in.
    paths: Vec<String>,
    /// The path as it is written, if the command certainly runs where the request starts.
    written: Option<String>,
    rules_begin: String,
    home: Option<String>,
}

impl ProgramPaths {
    /// The paths that one of these patterns matches, if there are any.
    pub fn matching<'a>(&self, patterns: impl Iterator<Item = &'a str>) -> Option<Self> {
        let one = |path: &String| Self { paths: vec![path.clone()], ..self.clone() };
        let patterns: Vec<_> = patterns.collect();
        let fits = |path: &&String| patterns.iter().any(|pattern| one(path).are_all(pattern));
        let paths: Vec<_> = self.paths.iter().filter(fits).cloned().collect();
        (!paths.is_empty()).then(|| Self { paths, ..self.clone() })
    }

    pub fn files(&self) -> &[String] {
        &self.paths
    }

    /// Whether a pattern matches it wherever the command runs. Each `*` stands for one part of the path, or for
    /// characters in it.
    pub fn are_all(&self, pattern: &str) -> bool {
        let pattern = match (pattern.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => normalized(&format!("{home}/{rest}")),
            _ if pattern.starts_with('/') => normalized(pattern),
            _ => normalized(&format!("{}/{pattern}", self.rules_begin)),
        };
        !self.paths.is_empty() && self.paths.iter().all(|path| glob_path(&pattern, path))
    }

    /// Whether what is written is its path, without detours.
    pub fn are_as_written(&self) -> bool {
        let plain = |path: &String| {
            let path = path.strip_prefix("./").or(path.strip_prefix('/')).unwrap_or(path);
            !path.split('/').any(|part| ["", ".", ".."].contains(&part))
        };
        self.written.as_ref().is_some_and(plain)
    }
}

/// What a path leads to for a program in a directory that nobody knows.
pub fn target_anywhere(path: &str) -> Target {
    WorkingDirectories::default().target(&Word::known(path, 0..0))
}

/// What a plain path leads to.
fn target(path: &str) -> Target {
    let descriptor = path.strip_prefix("/dev/fd/").or_else(|| {
        let process = path.strip_prefix("/proc/")?;
        process.split_once('/')?.1.strip_prefix("fd/")
    });
    match descriptor {
        Some("0") => Target::Input,
        None if !path.starts_with("/dev/") && !path.starts_with("/proc/") => Target::File,
        _ => Target::Special,
    }
}

/// Whether a relative path may be a descriptor's in some directory: `fd/3`, `self/fd/3`, `3`.
fn relative_descriptor(path: &str) -> bool {
    let base = base_name(path);
    !base.is_empty() && base.bytes().all(|byte| byte.is_ascii_digit())
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
    fn the_input_has_many_names() {
        let mut directories = WorkingDirectories::new("/srv", "/srv", None);
        let target = |directories: &WorkingDirectories, path: &str| {
            directories.target(&Word::known(path, 0..0))
        };
        for path in ["//dev/stdin", "/dev/./fd/0", "/x/../proc/self/fd/0", "/proc/1/fd/0", "stdin"]
        {
            assert_eq!(target(&directories, path), Target::Input, "{path}");
        }
        for path in ["/dev/fd/3", "/proc/self/exe", "/proc/self/root/dev/stdout", "/dev/shm/x"] {
            assert_eq!(target(&directories, path), Target::Special, "{path}");
        }
        assert_eq!(target(&directories, "fd/0"), Target::File);
        directories.enter(Some(&Word::known("/proc/self", 0..0)), false);
        assert_eq!(target(&directories, "fd/0"), Target::Input);
        directories.forget();
        assert_eq!(target(&directories, "fd/0"), Target::Special);
        assert_eq!(target(&directories, "build.sh"), Target::File);
    }

    #[test]
    fn a_path_is_made_plain() {
        for (path, plain) in [("/a/../b//c/.", "/b/c"), ("/", "/"), ("/../..", "/"), ("/a/", "/a")]
        {
            assert_eq!(normalized(path), plain);
        }
    }
}
