//! Decides what a process may execute.
//!
//!     denied?  ─ yes ─▶ refused
//!        │ no
//!     the process may run anything?  ─ yes ─▶ it still may
//!        │ no
//!     named by the request, or needed by the program that it is?  ─ yes ─▶ it is that program now
//!        │ no
//!     `sh -c` with a plain command that it may run?  ─ yes ─▶ it is what it was
//!        │ no
//!     refused
//!
//! A bare name stands for a program of that name in one of the folders of `PATH`, so a file of the same name elsewhere
//! is not meant.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::target::{FileId, Target, base_name};
use crate::exec_rules::{AllowedProgram, ExecRules, MayRun, RefusedBecause};

/// Folders that count as part of every `PATH`.
const SYSTEM: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Programs that are many in one file, and choose by the name they are called by. Their file says nothing.
const MANY_IN_ONE: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// Shells that take a command after `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// What a process of the run may execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Everything that is not denied.
    Free,
    /// What everyone may, and these.
    Bound(Rc<[String]>),
    /// What everyone may.
    Least,
}

impl Standing {
    pub const LEAST: Self = Self::Least;

    /// What both may execute, or less.
    pub fn least(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Free, other) => other.clone(),
            (own, Self::Free) => own,
            (own, other) if own == *other => own,
            _ => Self::Least,
        }
    }

    fn of(may_run: &MayRun, before: &Self) -> Self {
        match may_run {
            MayRun::Anything => Self::Free,
            MayRun::AsBefore => before.clone(),
            MayRun::Only(programs) if programs.is_empty() => Self::Least,
            MayRun::Only(programs) => Self::Bound(programs.as_slice().into()),
        }
    }
}

/// The rules of a run, ready to decide.
pub struct Rules {
    /// `None` if everything is allowed that is not denied.
    allowed: Option<Vec<AllowedProgram>>,
    denied: Vec<Denied>,
    folders: Vec<PathBuf>,
}

/// A denied program, and the files it is.
struct Denied {
    pattern: String,
    files: HashMap<FileId, (PathBuf, u64)>,
}

impl Rules {
    /// `path` is the `PATH` of the run.
    pub fn new(rules: ExecRules, path: &[u8]) -> Self {
        let own = path.split(|byte| *byte == b':').map(|folder| {
            let folder = Path::new(std::ffi::OsStr::from_bytes(folder));
            fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
        });
        let mut folders: Vec<PathBuf> = own.filter(|folder| folder.is_absolute()).collect();
        folders.extend(SYSTEM.map(PathBuf::from));
        let denied = rules.denied.into_iter().map(|pattern| Denied::new(pattern, &folders));
        Self { allowed: rules.allowed, denied: denied.collect(), folders }
    }

    /// Allows these programs instead.
    pub fn replace_allowed(&mut self, allowed: Option<Vec<AllowedProgram>>) {
        self.allowed = allowed;
    }

    /// Allows more programs than before.
    pub fn extend(&mut self, rules: ExecRules) {
        match (&mut self.allowed, rules.allowed) {
            (Some(own), Some(more)) => {
                for program in more {
                    if !own.contains(&program) {
                        own.push(program);
                    }
                }
            }
            (own, None) => *own = None,
            (None, Some(_)) => {}
        }
    }

    /// What the first process of the run is, which the server has cleared.
    pub fn first(&self, program: &str) -> Standing {
        let Some(allowed) = &self.allowed else { return Standing::Free };
        let rule = allowed.iter().find(|it| it.named && is_same_name(&it.name, program));
        rule.map_or(Standing::Least, |it| Standing::of(&it.may_run, &Standing::Least))
    }

    /// What a process of this standing becomes when it executes the file, or why it may not.
    pub fn decide(
        &self,
        standing: &Standing,
        env_program: Option<&str>,
        target: &Target,
        arguments: &[Vec<u8>],
    ) -> Result<Standing, RefusedBecause> {
        if let Some(denied) = self.denied.iter().find(|it| it.is(target, arguments)) {
            return Err(RefusedBecause::Denied(denied.pattern.clone()));
        }
        let Some(allowed) = &self.allowed else { return Ok(Standing::Free) };
        if *standing == Standing::Free {
            return Ok(Standing::Free);
        }
        // Names mean something else where other files are.
        if !target.same_view {
            return Err(RefusedBecause::NotAllowed);
        }
        if let Some(rule) = allowed.iter().find(|it| it.named && self.means(&it.name, target)) {
            return Ok(Standing::of(&rule.may_run, standing));
        }
        // The interpreter of a script is part of the script.
        if env_program.is_some_and(|program| self.means(program, target)) {
            return Ok(standing.clone());
        }
        let Standing::Bound(needed) = standing else {
            return self.plain_command(standing, target, arguments);
        };
        if needed.iter().any(|name| self.means(name, target)) {
            let rule = allowed.iter().find(|it| self.means(&it.name, target));
            let least = Standing::Least;
            return Ok(rule.map_or(least, |rule| Standing::of(&rule.may_run, standing)));
        }
        self.plain_command(standing, target, arguments)
    }

    /// Programs run others by `sh -c` even if there is nothing to do for a shell. If the text is only the name of a
    /// program and its arguments, the shell does what the program could do itself.
    fn plain_command(
        &self,
        standing: &Standing,
        target: &Target,
        arguments: &[Vec<u8>],
    ) -> Result<Standing, RefusedBecause> {
        let is_shell = SHELLS.contains(&target.name()) && self.is_in_path(target);
        let text = match arguments {
            [_, option, text] if option == b"-c" && is_shell => std::str::from_utf8(text).ok(),
            [_, option, dashes, text] if option == b"-c" && dashes == b"--" && is_shell => {
                std::str::from_utf8(text).ok()
            }
            _ => None,
        };
        let is_plain = |text: &&str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || " /_.,:@%+-".contains(c))
        };
        let name = text.filter(is_plain).and_then(|text| text.split(' ').find(|it| !it.is_empty()));
        let allowed = self.allowed.iter().flatten();
        let mut named = allowed.filter(|it| it.named).map(|it| &it.name);
        let needed: &[String] = if let Standing::Bound(needed) = standing { needed } else { &[] };
        let may = |name: &str| {
            named.any(|it| is_same_name(it, name)) || needed.iter().any(|it| is_same_name(it, name))
        };
        match name.is_some_and(may) {
            true => Ok(standing.clone()),
            false => Err(RefusedBecause::NotAllowed),
        }
    }

    /// Whether the rules mean this file by a name or path.
    fn means(&self, name: &str, target: &Target) -> bool {
        match name.contains('/') {
            // Paths are relative to directories that nobody knows any more; the base name has to do.
            true if !name.starts_with('/') => glob(base_name(Path::new(name)), target.name()),
            true => {
                glob(name, &target.path.to_string_lossy())
                    || glob(name, &target.real_path.to_string_lossy())
            }
            false => glob(name, target.name()) && self.is_in_path(target),
        }
    }

    /// Whether the file is in a folder of `PATH`, by the name that was given.
    fn is_in_path(&self, target: &Target) -> bool {
        // A relative path is no folder of `PATH`, whatever it leads to.
        let Some(folder) = target.path.parent().filter(|it| it.is_absolute()) else { return false };
        let known = |folder: &Path| self.folders.iter().any(|it| it == folder);
        known(folder) || fs::canonicalize(folder).is_ok_and(|folder| known(&folder))
    }
}

impl Denied {
    fn new(pattern: String, folders: &[PathBuf]) -> Self {
        let mut files = HashMap::new();
        if !pattern.contains('*') {
            let named = base_name(Path::new(&pattern)).to_owned();
            let own = pattern.starts_with('/').then(|| PathBuf::from(&pattern));
            for path in own.into_iter().chain(folders.iter().map(|folder| folder.join(&named))) {
                let Ok(path) = fs::canonicalize(path) else { continue };
                let Ok(found) = fs::metadata(&path) else { continue };
                if found.is_file() && !MANY_IN_ONE.contains(&base_name(&path)) {
                    files.insert(FileId::from(&found), (path, found.len()));
                }
            }
        }
        Self { pattern, files }
    }

    /// Whether the file is the denied program: by its name, the file it leads to, or its content.
    fn is(&self, target: &Target, arguments: &[Vec<u8>]) -> bool {
        let pattern = base_name(Path::new(&self.pattern)).to_lowercase();
        let is_name = |name: &str| glob(&pattern, &name.to_lowercase());
        let argument = |at: usize| {
            let argument = arguments.get(at).and_then(|it| std::str::from_utf8(it).ok());
            argument.map(|it| base_name(Path::new(it))).unwrap_or_default()
        };
        let chosen = match MANY_IN_ONE.contains(&target.real_name()) {
            true => is_name(argument(0)) || is_name(argument(1)),
            false => false,
        };
        chosen
            || is_name(target.name())
            || is_name(target.real_name())
            || self.files.contains_key(&target.id)
            || self.is_copied(target)
            || is_loader(target) && self.is_among(arguments)
    }

    fn is_copied(&self, target: &Target) -> bool {
        let mut same_size = self.files.values().filter(|(_, size)| *size == target.size);
        same_size.any(|(path, _)| target.has_content_of(path))
    }

    /// Whether one of the arguments is the path of a denied program.
    fn is_among(&self, arguments: &[Vec<u8>]) -> bool {
        arguments.iter().skip(1).any(|argument| {
            let path = Path::new(std::ffi::OsStr::from_bytes(argument));
            let id = fs::metadata(path).map(|found| FileId::from(&found));
            id.is_ok_and(|id| self.files.contains_key(&id))
        })
    }
}

/// Whether it is the dynamic loader, which runs the program that its arguments name.
fn is_loader(target: &Target) -> bool {
    target.real_name().starts_with("ld-") || target.real_name().starts_with("ld.so")
}

/// Whether two names or paths are the same program.
fn is_same_name(rule: &str, name: &str) -> bool {
    glob(base_name(Path::new(rule)), base_name(Path::new(name)))
}

/// Whether a text matches a pattern in which `*` stands for any number of characters.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut middle: Vec<_> = rest.split('*').collect();
    let end = middle.pop().unwrap_or_default();
    for piece in middle {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}
