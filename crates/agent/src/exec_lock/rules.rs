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
//! Names are compared as text. A bare name means that name in one of the folders of `PATH`, and a path means that path,
//! so that nothing lies between what is compared and what is executed that a command could change: no link, no `..`.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::listener::{MAX_ARGUMENT, MAX_ARGUMENTS};
use super::target::{FileId, Interpreter, Target, base_name};
use crate::exec_rules::{AllowedProgram, Arguments, ExecRules, MayRun, RefusedBecause};

/// Folders that count as part of every `PATH`.
const SYSTEM: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Programs that are many in one file, and choose by the name they are called by. Their file says nothing.
const MANY_IN_ONE: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// Shells that take a command after `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Looks up a path for the process that asks.
pub type Find<'a> = dyn Fn(&[u8]) -> Option<Target> + 'a;

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
        let own = path.split(|byte| *byte == b':');
        let own = own.map(|folder| PathBuf::from(std::ffi::OsStr::from_bytes(folder)));
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

    /// What a process of this standing becomes when it executes the file, or why it may not. `find` looks up other
    /// files as the process would.
    pub fn decide(
        &self,
        standing: &Standing,
        env_program: Option<&str>,
        target: &Target,
        arguments: &[Vec<u8>],
        find: &Find<'_>,
    ) -> Result<Standing, RefusedBecause> {
        if let Some(denied) = self.denied.iter().find(|it| it.is(target, arguments, find)) {
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
        let is_named = |it: &&AllowedProgram| {
            it.named && self.names(&it.name, target) && takes(&it.arguments, arguments)
        };
        if let Some(rule) = allowed.iter().find(is_named) {
            return Ok(Standing::of(&rule.may_run, standing));
        }
        // The interpreter of a script is part of the script.
        if env_program.is_some_and(|program| self.names(program, target)) {
            return Ok(standing.clone());
        }
        let Standing::Bound(needed) = standing else {
            return self.plain_command(standing, target, arguments);
        };
        if needed.iter().any(|name| self.means(name, target)) {
            let rule = allowed.iter().find(|it| !it.named && self.means(&it.name, target));
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
        let is_shell = SHELLS.iter().any(|shell| self.names(shell, target));
        let text = match arguments {
            [_, option, text, ..] if option == b"-c" && is_shell => plain_text(text),
            _ => None,
        };
        let name = text.and_then(|text| text.split(' ').find(|word| !word.is_empty()));
        let needed: &[String] = if let Standing::Bound(needed) = standing { needed } else { &[] };
        let mut named = self.allowed.iter().flatten().filter(|it| it.named).map(|it| &it.name);
        let may = |name: &str| named.any(|it| it == name) || needed.iter().any(|it| glob(it, name));
        match name.is_some_and(may) {
            true => Ok(standing.clone()),
            false => Err(RefusedBecause::NotAllowed),
        }
    }

    /// Whether the process names this file by this name or path.
    fn names(&self, name: &str, target: &Target) -> bool {
        match name.contains('/') {
            true => target.path.as_os_str() == name,
            false => target.name() == name && self.is_in_path(target),
        }
    }

    /// The same for a pattern. A path has no `..` in it, which would lead out of what the pattern says.
    fn means(&self, pattern: &str, target: &Target) -> bool {
        let straight = target.path.components().all(|part| {
            matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_))
        });
        match pattern.contains('/') {
            true => straight && glob(pattern, &target.path.to_string_lossy()),
            false => glob(pattern, target.name()) && self.is_in_path(target),
        }
    }

    /// Whether the path is a folder of `PATH` and a name, as text.
    fn is_in_path(&self, target: &Target) -> bool {
        let path = target.path.as_os_str().as_bytes();
        let name = target.name().as_bytes();
        self.folders.iter().any(|folder| {
            let folder = folder.as_os_str().as_bytes();
            let rest = path.strip_prefix(folder).and_then(|rest| rest.strip_suffix(name));
            rest == Some(b"/") || (folder.ends_with(b"/") && rest == Some(b""))
        })
    }
}

/// Whether a program may be executed with these arguments, of which the first is its name.
fn takes(allowed: &Option<Vec<Arguments>>, arguments: &[Vec<u8>]) -> bool {
    let Some(allowed) = allowed else { return true };
    let given = arguments.get(1..).unwrap_or_default();
    allowed.iter().any(|Arguments { words, open }| {
        let fits = if *open { given.len() >= words.len() } else { given.len() == words.len() };
        fits && words.iter().zip(given).all(|(word, given)| word.as_bytes() == given)
    })
}

/// The text for a shell, if it is a program and arguments in which the shell finds nothing to do, all of it known.
fn plain_text(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() < MAX_ARGUMENT)?;
    // Its own arguments are data.
    let text = text.strip_suffix(" \"$@\"").unwrap_or(text);
    let text = text.strip_prefix("exec ").unwrap_or(text);
    // Every other piece is between single quotes.
    let pieces = text.split('\'');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " /_.,:@%+-=".contains(c);
    let plain = pieces.clone().step_by(2).all(|piece| piece.chars().all(is_plain));
    let name = text.split(' ').find(|word| !word.is_empty())?;
    (plain && pieces.count() % 2 == 1 && !name.contains(['\'', '='])).then_some(text)
}

impl Denied {
    fn new(pattern: String, folders: &[PathBuf]) -> Self {
        let name = base_name(Path::new(&pattern)).to_lowercase();
        let own = pattern.starts_with('/').then(|| PathBuf::from(&pattern));
        let found: Vec<PathBuf> = match name.contains('*') {
            false => folders.iter().map(|folder| folder.join(&name)).collect(),
            true => {
                let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
                let paths = entries.flatten().flatten().map(|entry| entry.path());
                paths.filter(|path| glob(&name, &base_name(path).to_lowercase())).collect()
            }
        };
        let mut files = HashMap::new();
        for path in own.into_iter().chain(found) {
            let called = base_name(&path).to_owned();
            let Ok(path) = fs::canonicalize(path) else { continue };
            let Ok(found) = fs::metadata(&path) else { continue };
            // A name that leads to another program, as `reboot` does to `systemctl`, denies only that name.
            if found.is_file() && is_version_of(&called, base_name(&path)) {
                files.insert(FileId::from(&found), (path, found.len()));
            }
        }
        Self { pattern, files }
    }

    /// Whether the file, or what the kernel runs in its place, is the denied program: by its name, the file it leads
    /// to, or its content.
    fn is(&self, target: &Target, arguments: &[Vec<u8>], find: &Find<'_>) -> bool {
        let interpreter = target.interpreter.as_ref();
        let of_interpreter = |it: &Interpreter| {
            let words: Vec<_> = [&it.words[it.words.len() - 1..], arguments].concat();
            self.is(&it.target, &words, find)
        };
        interpreter.is_some_and(of_interpreter)
            || self.is_file(target, arguments)
            || is_loader(target) && self.is_loaded(arguments, find)
    }

    fn is_file(&self, target: &Target, arguments: &[Vec<u8>]) -> bool {
        let pattern = base_name(Path::new(&self.pattern)).to_lowercase();
        let is_name = |name: &str| glob(&pattern, &name.to_lowercase());
        let argument = |at: usize| {
            let argument = arguments.get(at).and_then(|it| std::str::from_utf8(it).ok());
            argument.map(|it| base_name(Path::new(it))).unwrap_or_default()
        };
        is_name(target.name())
            || is_name(target.real_name())
            || is_name(argument(0))
            || (MANY_IN_ONE.contains(&target.real_name()) && is_name(argument(1)))
            || self.files.contains_key(&target.id)
            || self.is_copied(target)
    }

    /// Scripts are not compared: many are the same for different programs, and start those by their own names.
    fn is_copied(&self, target: &Target) -> bool {
        let mut same_size = self.files.values().filter(|(_, size)| *size == target.size);
        target.interpreter.is_none()
            && same_size.any(|(path, _)| !target.is_readable || target.has_content_of(path))
    }

    /// Whether one of the arguments is the path of a denied program.
    fn is_loaded(&self, arguments: &[Vec<u8>], find: &Find<'_>) -> bool {
        // There may be more that were not read.
        arguments.len() >= MAX_ARGUMENTS
            || arguments.iter().skip(1).any(|argument| {
                let target = find(argument);
                target.is_some_and(|target| self.is_file(&target, std::slice::from_ref(argument)))
            })
    }
}

/// Whether a file is the program of that name, perhaps in some version: `python3.11` for `python3`.
fn is_version_of(name: &str, file: &str) -> bool {
    let version = file.strip_prefix(name);
    version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || ".-".contains(c)))
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
