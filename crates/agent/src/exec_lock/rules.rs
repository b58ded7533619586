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
//! so that nothing lies between what is compared and what is executed that a command could change: no link, no `..`. A
//! relative path means the file that the policy took it for, in a folder that is still where it was at first.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mcpz_policy::{Rule, glob, glob_path, is_harmless, is_inert, is_settled};

use super::calls::takes;
use super::denied::{Asking, Denied, LOADERS};
use super::identity::FileId;
use super::makers::{self, Made, Makers, Makes};
use super::notes::Notes;
use super::real_path::real_path;
use super::shells::{is_shell, plain_program};
use super::standing::{Asker, Standing};
use super::target::{Target, base_name};
use super::wanted::{Wanted, folders, folders_of};
use crate::exec_rules::{AllowedProgram, ExecRules, RefusedBecause};

/// The rules of a run, ready to decide.
pub struct Rules {
    /// `None` if everything is allowed that is not denied.
    allowed: Option<Vec<AllowedProgram>>,
    denied: Denied,
    /// The server's `PATH`.
    path: Vec<u8>,
    /// Where allowed programs are, in the folders of `PATH` and elsewhere.
    wanted: Wanted,
    /// Rules for variables.
    variables: Vec<Rule>,
    /// What programs were when the command began, under an allow list.
    notes: Option<Notes>,
    /// The same for processes of earlier commands in the same shell: what programs were when the first of them began.
    earlier: Option<Notes>,
    makers: Makers,
}

/// Variables that shells set by themselves.
const BY_SHELLS: [&str; 6] = ["_", "PWD", "OLDPWD", "SHLVL", "LINES", "COLUMNS"];

fn is_one_word(value: &str) -> bool {
    is_inert(value) && !value.contains(char::is_whitespace)
}

impl Rules {
    /// `path` is the `PATH` of the run, in whose folders programs are denied. The allowed ones are in the server's.
    pub fn new(mut rules: ExecRules, path: &[u8]) -> Self {
        let folders = folders(&rules.path);
        let denied_in = folders_of(path).chain(folders.iter().cloned()).collect();
        let denied = Denied::new(std::mem::take(&mut rules.denied), denied_in);
        let wanted = Wanted::new(&[], folders);
        let (path, variables, makers) = (rules.path.clone(), Vec::new(), Makers::default());
        let (notes, earlier) = (None, None);
        let mut new =
            Self { allowed: None, denied, path, wanted, variables, notes, earlier, makers };
        new.replace_allowed(rules);
        new
    }

    /// Looks up the files of denied programs once more.
    pub fn look_up(&mut self) {
        self.denied.look_up();
    }

    /// Allows these programs instead.
    pub fn replace_allowed(&mut self, rules: ExecRules) {
        if self.path != rules.path {
            self.wanted.search = folders(&rules.path);
            self.path = rules.path;
        }
        self.variables = rules.variables.iter().filter_map(|text| Rule::new(text).ok()).collect();
        self.allowed = rules.allowed.map(|all| all.into_iter().map(with_real_folders).collect());
        let programs = self.allowed.as_deref().unwrap_or_default();
        self.wanted = Wanted::new(programs, std::mem::take(&mut self.wanted.search));
        (self.makers, self.earlier) = (Makers::default(), None);
        let mut earlier = self.notes.take();
        earlier.iter_mut().for_each(Notes::forget_wanted);
        self.note(earlier);
    }

    /// Looks at denied programs again, if something has changed.
    pub fn keep_up(&mut self) {
        self.denied.keep_up();
    }

    /// Looks at the ways to allowed programs for the next run.
    pub fn look_ahead(&mut self) {
        self.notes.iter_mut().for_each(Notes::look_ahead);
    }

    /// The same for a run after the one before.
    pub fn begin_again(&mut self) {
        (self.makers, self.earlier) = (Makers::default(), None);
        let earlier = self.notes.take();
        self.note(earlier);
    }

    fn note(&mut self, earlier: Option<Notes>) {
        self.notes = self.allowed.as_ref().map(|_| {
            let mut notes = match earlier {
                Some(earlier) => Notes::begin_after(earlier, &self.wanted.search),
                None => Notes::begin_in(&self.wanted.search),
            };
            notes.take(&self.wanted);
            notes
        });
    }

    /// Allows more programs than before, for a command that begins now. Processes of earlier ones that go on are held
    /// to what programs were when the first of these began.
    pub fn extend(&mut self, rules: ExecRules, others_go_on: bool) {
        // What was made by now is not the work of what comes.
        self.note_what_was_made();
        match others_go_on {
            true if self.earlier.is_none() && self.notes.is_some() => {
                let mut now = Notes::begin_in(&self.wanted.search);
                now.take(&self.wanted);
                self.earlier = self.notes.replace(now);
            }
            true => {}
            false => self.earlier = None,
        }
        match (&mut self.allowed, rules.allowed) {
            (Some(own), Some(more)) => {
                let more: Vec<_> = more.into_iter().map(with_real_folders).collect();
                if let Some(notes) = &mut self.notes {
                    notes.begin_another(&self.wanted.search);
                    notes.take(&Wanted::new(&more, self.wanted.search.clone()));
                }
                self.wanted.extend(&more);
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

    /// The same for a shell that runs what was judged.
    pub fn first_of_ours(&self) -> Standing {
        if self.allowed.is_some() { Standing::Least } else { Standing::Free }
    }

    /// Whether a process of this standing may execute only what is allowed.
    pub fn holds(&self, standing: &Standing) -> bool {
        self.allowed.is_some() && *standing != Standing::Free
    }

    /// Why nobody may execute the file with these arguments.
    pub fn refuses(
        &self,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> Option<RefusedBecause> {
        self.denied.refuses(target, arguments, asking)
    }

    /// The same because of variables that it would get.
    pub fn refuses_with_variables(
        &self,
        target: &Target,
        arguments: &[Vec<u8>],
        environment: impl FnOnce() -> io::Result<Vec<Vec<u8>>>,
        asking: Asking<'_>,
    ) -> Option<RefusedBecause> {
        self.denied.refuses_with_variables(target, arguments, environment, asking)
    }

    /// What a process becomes when it executes the file, or why it may not.
    pub fn decide(
        &self,
        asker: Asker<'_>,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> Result<Standing, RefusedBecause> {
        if let Some(why) = self.refuses(target, arguments, asking) {
            return Err(why);
        }
        let Asker { standing, env_program, is_earlier } = asker;
        let Some(allowed) = &self.allowed else { return Ok(Standing::Free) };
        if *standing == Standing::Free {
            return Ok(Standing::Free);
        }
        if !target.same_view {
            return Err(RefusedBecause::Elsewhere);
        }
        if target.has_moving_part() || is_run_by_loader(target) {
            return Err(RefusedBecause::Unclear);
        }
        let named_as = |it: &AllowedProgram| {
            let file = self.file_named_by(it, target)?;
            self.takes(it, target, arguments, asking).then_some((it.may_run.clone(), file))
        };
        if let Some((may_run, file)) = allowed.iter().find_map(named_as) {
            self.check_notes(is_earlier, |notes| match is_earlier {
                true => notes.fit_beside(&file, target),
                false => notes.fit(&file, target),
            })?;
            return Ok(Standing::of(&may_run, standing));
        }
        // The interpreter of a script is part of the script.
        if env_program.is_some_and(|program| self.names(program, target)) {
            return self.check_needed(is_earlier, target).map(|()| standing.clone());
        }
        let becomes = self.as_needed(standing, target, arguments, asking)?;
        self.check_needed(is_earlier, target).map(|()| becomes)
    }

    fn takes(
        &self,
        program: &AllowedProgram,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> bool {
        takes(program, target, arguments, asking) && self.wanted.begin_there(program)
    }

    /// The same for a program that no command names.
    fn as_needed(
        &self,
        standing: &Standing,
        target: &Target,
        arguments: &[Vec<u8>],
        asking: Asking<'_>,
    ) -> Result<Standing, RefusedBecause> {
        let Standing::Bound(needed) = standing else {
            return self.plain_command(standing, target, arguments);
        };
        let others = || self.allowed.iter().flatten().filter(|it| !it.named);
        let as_needed = |pattern: &String| {
            let any = |it: &&AllowedProgram| it.calls.is_none() && self.means(&it.name, target);
            let rule = others().find(|it| it.name == *pattern).or_else(|| others().find(any));
            let Some(rule) = rule else { return Some(Standing::Least) };
            let takes = self.takes(rule, target, arguments, asking);
            takes.then(|| Standing::of(&rule.may_run, standing))
        };
        let becomes = needed.iter().filter(|it| self.means(it, target)).find_map(as_needed);
        becomes.map_or_else(|| self.plain_command(standing, target, arguments), Ok)
    }

    /// A process is about to become this by executing the file with these arguments. It may make programs.
    pub fn note_exec(
        &mut self,
        process: i32,
        becomes: &Standing,
        target: &Target,
        arguments: &[Vec<u8>],
    ) {
        let makes = match becomes {
            _ if makers::is_asked_about_itself(arguments) => return,
            Standing::Free => Makes::Anything,
            _ if self.is_in_path(target) && makers::is_linker(target) => {
                match makers::output_of_linker(process, arguments) {
                    Some(path) => Makes::Binary(path),
                    None => return,
                }
            }
            _ => return,
        };
        if self.makers.add(process, makes) {
            let all = self.notes.iter_mut().chain(&mut self.earlier);
            all.for_each(|notes| notes.distrust_changed(&self.wanted));
        }
    }

    /// Notes what programs are now, if one that could make them has ended. What is executed next could change them.
    pub fn note_what_was_made(&mut self) {
        let Some(programs) = &self.allowed else { return };
        let all = self.notes.iter_mut().chain(&mut self.earlier);
        match self.makers.take_ended() {
            Some(Made::Anything) => {
                all.for_each(|notes| notes.take_made(&self.wanted, |_, _| true));
            }
            // Not those that are found by their names, or needed, nor what a link leads to.
            Some(Made::Binaries(paths)) => {
                let named: HashSet<_> = programs.iter().flat_map(AllowedProgram::paths).collect();
                let is_made = |path: &Path, target: &Target| {
                    let folder = path.parent().unwrap_or(path);
                    let is_found = self.wanted.search.iter().any(|it| it == folder);
                    let is_binary = target.links.is_empty() && target.parts().next().is_none();
                    named.contains(path)
                        && !is_found
                        && is_binary
                        && paths.contains(&target.real_path)
                };
                all.for_each(|notes| notes.take_made(&self.wanted, is_made));
            }
            None => {}
        }
    }

    /// Refuses a program that no command names, if it has changed since the command began.
    fn check_needed(&self, is_earlier: bool, target: &Target) -> Result<(), RefusedBecause> {
        self.check_notes(is_earlier, |notes| notes.fit_needed(target))
    }

    fn check_notes(
        &self,
        is_earlier: bool,
        fit: impl FnOnce(&Notes) -> bool,
    ) -> Result<(), RefusedBecause> {
        let notes = self.earlier.as_ref().filter(|_| is_earlier).or(self.notes.as_ref());
        let notes = notes.filter(|_| !self.makers.make_anything());
        match notes.is_none_or(fit) {
            true => Ok(()),
            false => Err(RefusedBecause::Changed),
        }
    }

    /// Whether rules allow the program only with certain arguments.
    pub fn limits_arguments_of(&self, target: &Target) -> bool {
        let Some(allowed) = &self.allowed else { return false };
        let names_it = |it: &&AllowedProgram| self.file_named_by(it, target).is_some();
        allowed.iter().filter(names_it).all(|it| it.calls.is_some())
    }

    /// The file as the command names it by this rule, if it does.
    fn file_named_by(&self, rule: &AllowedProgram, target: &Target) -> Option<PathBuf> {
        let by_name = || self.names(&rule.name, target).then(|| target.path.clone());
        let by_file = || rule.files.iter().find(|it| is(it, target)).cloned();
        Some(rule).filter(|rule| rule.named).and_then(|_| by_name().or_else(by_file))
    }

    /// Whether an allowed program has parts in this folder, which are programs themselves.
    pub fn has_parts_in(&self, folder: &str) -> bool {
        let its = |it: &AllowedProgram| !it.named && it.name.starts_with('/');
        let mut parts = self.allowed.iter().flatten().filter(|it| its(it));
        parts.any(|it| it.name.rsplit_once('/').is_some_and(|(parts, _)| glob_path(parts, folder)))
    }

    /// Whether a shell may get a variable that the run did not begin with.
    pub fn allow_variable(&self, name: &str, value: &str) -> bool {
        BY_SHELLS.contains(&name) || is_harmless(name, value) || self.name_variable(name, value)
    }

    /// The same for a program that runs what its variables say, in this directory. The policy asks for the same.
    pub fn allow_setting(&self, name: &str, value: &str, directory: &Path) -> bool {
        let is_by_shell = BY_SHELLS.contains(&name)
            && match name {
                "PWD" => real_path(value.as_ref()).is_ok_and(|it| it == directory),
                "OLDPWD" => is_one_word(value) && Path::new(value).is_dir(),
                // Whatever a shell executed before.
                "_" => is_one_word(value),
                _ => value.bytes().all(|byte| byte.is_ascii_digit()),
            };
        is_by_shell
            || (is_harmless(name, value) && is_settled(name, value))
            || self.name_variable(name, value)
    }

    fn name_variable(&self, name: &str, value: &str) -> bool {
        self.variables.iter().any(|rule| rule.allows_variable(name, Some(value)))
    }

    /// Programs run others by `sh -c` even if there is nothing to do for a shell. If the text is only the name of a
    /// program and its arguments, the shell does what the program could do itself.
    fn plain_command(
        &self,
        standing: &Standing,
        target: &Target,
        arguments: &[Vec<u8>],
    ) -> Result<Standing, RefusedBecause> {
        let name = plain_program(arguments).filter(|_| is_shell(&target.path));
        let needed: &[String] = if let Standing::Bound(needed) = standing { needed } else { &[] };
        let mut named = self.allowed.iter().flatten().filter(|it| it.named).map(|it| &it.name);
        let may =
            |name: &str| named.any(|it| it == name) || needed.iter().any(|it| glob_path(it, name));
        match name.is_some_and(may) {
            true => Ok(standing.clone()),
            false => Err(RefusedBecause::NotAllowed),
        }
    }

    /// Whether the process names this file by this name or absolute path.
    fn names(&self, name: &str, target: &Target) -> bool {
        match name.contains('/') {
            true => name.starts_with('/') && target.path.as_os_str() == name,
            false => target.name() == name && self.is_in_path(target),
        }
    }

    /// The same for a pattern. A path has no `..` in it, which would lead out of what the pattern says.
    fn means(&self, pattern: &str, target: &Target) -> bool {
        let straight = target.path.components().all(|part| {
            matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_))
        });
        match pattern.contains('/') {
            // A relative one would mean another file in every folder.
            true => {
                straight
                    && pattern.starts_with('/')
                    && glob_path(pattern, &target.path.to_string_lossy())
            }
            false => glob(pattern, target.name()) && self.is_in_path(target),
        }
    }

    /// Whether the path is a folder of `PATH` and a name, as text.
    fn is_in_path(&self, target: &Target) -> bool {
        let path = target.path.as_os_str().as_bytes();
        let name = target.name().as_bytes();
        self.wanted.search.iter().any(|folder| {
            let folder = folder.as_os_str().as_bytes();
            let rest = path.strip_prefix(folder).and_then(|rest| rest.strip_suffix(name));
            rest == Some(b"/") || (folder.ends_with(b"/") && rest == Some(b""))
        })
    }
}

/// A program whose files are in the folders to which links lead now.
fn with_real_folders(mut program: AllowedProgram) -> AllowedProgram {
    for file in &mut program.files {
        let folder = file.ancestors().skip(1).find_map(|folder| {
            let rest = file.strip_prefix(folder).ok()?;
            Some(fs::canonicalize(folder).ok()?.join(rest))
        });
        *file = folder.unwrap_or_else(|| file.clone());
    }
    for limit in program.calls.iter_mut().flatten().filter_map(|call| call.limit.as_mut()) {
        limit.directory = fs::canonicalize(&limit.directory).unwrap_or_default();
    }
    program
}

/// Whether it is a script for the dynamic loader, which would load any program that the script names.
fn is_run_by_loader(target: &Target) -> bool {
    target.interpreter.as_ref().is_some_and(|it| {
        let name = it.target.real_name();
        LOADERS.iter().any(|pattern| glob(pattern, name)) || is_run_by_loader(&it.target)
    })
}

/// Whether the file is the one that is meant, in a folder that no new link leads to.
fn is(meant: &Path, target: &Target) -> bool {
    let Some(folder) = meant.parent().filter(|_| base_name(meant) == target.name()) else {
        return false;
    };
    fs::canonicalize(folder).is_ok_and(|found| found == folder)
        && fs::metadata(meant).is_ok_and(|found| FileId::from(&found) == target.id)
}

/// Whether two names or paths are the same program.
fn is_same_name(rule: &str, name: &str) -> bool {
    glob(base_name(Path::new(rule)), base_name(Path::new(name)))
}
