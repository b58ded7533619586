//! What deny rules refuse to execute: programs by their name, their file or its content, perhaps only with some
//! arguments.
//!
//!     execve ─▶ every program that would start ─▶ its names, the files of denied programs ─▶ rule
//!
//! More than one program may start: a script has an interpreter, the loader runs what its arguments name, and some
//! files are many programs.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use mcpz_policy::{ExactCall, Rule, glob};

use super::target::{FileId, Target, base_name};

/// Programs that are many in one file, and choose by the name they are called by. Their file says nothing.
const MANY_IN_ONE: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// Where the dynamic loader is.
const LOADERS: [&str; 6] =
    ["/lib64", "/lib", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib32", "/libx32"];

/// Looks up a path for the process that asks.
pub type Find<'a> = dyn Fn(&[u8]) -> Option<Target> + 'a;

/// The deny rules of a run.
pub struct Denied {
    rules: Vec<DenyRule>,
    loaders: Files,
}

/// A rule, and the files of the program that it names.
struct DenyRule {
    text: String,
    rule: Rule,
    files: Files,
}

/// Files of programs, with their sizes.
#[derive(Default)]
struct Files(HashMap<FileId, (PathBuf, u64)>);

impl Denied {
    /// `folders` are those of `PATH`.
    pub fn new(rules: Vec<String>, folders: &[PathBuf]) -> Self {
        let rules = rules.into_iter().filter_map(|text| {
            // The policy has made them from rules.
            let rule = Rule::new(&text).ok()?;
            let files = rule.program().map(|name| Files::of_program(name, &text, folders));
            Some(DenyRule { text, rule, files: files.unwrap_or_default() })
        });
        let rules: Vec<_> = rules.collect();
        let loaders = match rules.is_empty() {
            true => Files::default(),
            false => Files::find("ld*.so*", &LOADERS.map(PathBuf::from)),
        };
        Self { rules, loaders }
    }

    /// The rule that refuses to execute the file with these arguments, of which the first is its name.
    pub fn rule(&self, target: &Target, arguments: &[Vec<u8>], find: &Find<'_>) -> Option<&str> {
        if self.rules.is_empty() {
            return None;
        }
        if let Some(rule) = self.rule_for_program(target, arguments) {
            return Some(rule);
        }
        if let Some(interpreter) = &target.interpreter {
            let arguments = target.interpreter_arguments(arguments);
            return self.rule(&interpreter.target, &arguments, find);
        }
        if MANY_IN_ONE.contains(&target.real_name())
            && let Some(chosen) = chosen_program(arguments)
            && let Some(rule) = self.rule_for_program(target, &chosen)
        {
            return Some(rule);
        }
        match self.is_loader(target) {
            true => self.rule_for_loaded(arguments, find),
            false => None,
        }
    }

    fn rule_for_program(&self, target: &Target, arguments: &[Vec<u8>]) -> Option<&str> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let own = arguments.first().map(|name| text(name)).unwrap_or_default();
        let names = [target.name(), target.real_name(), base_name(own.as_ref())];
        let is_new = |at: &usize| !names[..*at].contains(&names[*at]);
        let rest: Vec<_> = arguments.iter().skip(1).map(|argument| text(argument)).collect();
        let call = |name: &str| ExactCall::new(name, rest.iter().cloned());
        let calls: Vec<_> = (0..names.len()).filter(is_new).map(|at| call(names[at])).collect();
        let denies = |it: &&DenyRule| {
            let by_file =
                || it.files.name_of(target).is_some_and(|name| it.rule.denies(&call(name)));
            // Only a regular expression can be about a path.
            let by_path = || {
                let path = text(target.path.as_os_str().as_bytes());
                it.rule.program().is_none() && it.rule.denies(&call(&path))
            };
            calls.iter().any(|call| it.rule.denies(call)) || by_file() || by_path()
        };
        self.rules.iter().find(denies).map(|it| it.text.as_str())
    }

    /// Whether it is the dynamic loader, which runs the program that its arguments name.
    fn is_loader(&self, target: &Target) -> bool {
        let name = target.real_name();
        name.starts_with("ld-") || name.starts_with("ld.so") || self.loaders.has(target)
    }

    /// The same for what the loader runs.
    fn rule_for_loaded(&self, arguments: &[Vec<u8>], find: &Find<'_>) -> Option<&str> {
        (1..arguments.len())
            .find_map(|at| self.rule_for_program(&find(&arguments[at])?, &arguments[at..]))
    }
}

/// What `busybox rm x` and `coreutils --coreutils-prog=rm x` run.
fn chosen_program(arguments: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let first = arguments.get(1)?;
    let name = first.strip_prefix(b"--coreutils-prog=").unwrap_or(first);
    Some([&[name.to_vec()], &arguments[2..]].concat())
}

impl Files {
    /// The files of a program that a rule names, in these folders, or at the path in the rule.
    fn of_program(name: &str, rule: &str, folders: &[PathBuf]) -> Self {
        let mut files = Self::find(&name.to_lowercase(), folders);
        let path = rule.split_whitespace().next().filter(|path| path.starts_with('/'));
        files.add(path.map(PathBuf::from));
        files
    }

    /// The files in these folders whose names match the pattern.
    fn find(pattern: &str, folders: &[PathBuf]) -> Self {
        let mut files = Self::default();
        match pattern.contains('*') {
            false => files.add(folders.iter().map(|folder| folder.join(pattern))),
            true => {
                let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
                let paths = entries.flatten().flatten().map(|entry| entry.path());
                files.add(paths.filter(|path| glob(pattern, &base_name(path).to_lowercase())));
            }
        }
        files
    }

    fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            let called = base_name(&path).to_owned();
            let Ok(path) = fs::canonicalize(path) else { continue };
            let Ok(found) = fs::metadata(&path) else { continue };
            // A name that leads to another program, as `reboot` does to `systemctl`, means only that name.
            if found.is_file() && is_version_of(&called, base_name(&path)) {
                self.0.insert(FileId::from(&found), (path, found.len()));
            }
        }
    }

    fn has(&self, target: &Target) -> bool {
        self.name_of(target).is_some()
    }

    /// The name of the program that the file is, or is a copy of. Scripts are not compared: many are the same for
    /// different programs, and start those by their own names.
    fn name_of(&self, target: &Target) -> Option<&str> {
        let is_copy = |(path, size): &&(PathBuf, u64)| {
            let same_size = *size == target.size && target.interpreter.is_none();
            same_size && (!target.is_readable || target.has_content_of(path))
        };
        let found = self.0.get(&target.id).or_else(|| self.0.values().find(is_copy));
        found.map(|(path, _)| base_name(path))
    }
}

/// Whether a file is the program of that name, perhaps in some version: `python3.11` for `python3`.
fn is_version_of(name: &str, file: &str) -> bool {
    let version = file.strip_prefix(name);
    version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || ".-".contains(c)))
}
