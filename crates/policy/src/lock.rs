//! What a command may execute, for the kernel to hold it to.
//!
//! The judge understands which programs a command names. Whatever else a program tries to execute while it runs came
//! about in a way that nobody understood, so it is refused, unless the program is known to need it (`needs.rs`).
//!
//!     judge ─ names ─▶ Lock ◀─ what they need ─ needs, Policy::runs
//!                       └─▶ the keeper of the run
//!
//! Without an allow list, everything may be executed but what a rule denies. The keeper sees every program with the
//! arguments that it really gets, so it holds all deny rules, also those with arguments such as `git push`.

mod git;
mod needs;

use std::collections::HashSet;
use std::sync::Arc;

use crate::identity::program;
use crate::locked::{
    Lock, LockedArguments, LockedCall, LockedProgram, MayRun, NamedProgram, ProgramFiles,
};
use crate::paths::base_name;
use crate::pattern::glob_path;
use crate::policy::Policy;
use crate::programs;
use crate::rule::{Rule, glob};
pub use needs::runs_anything;

impl Policy {
    /// The lock for a command that names these programs. `None` if nothing can be held.
    pub(crate) fn lock(&self, named: &Named) -> Option<Lock> {
        let denied: Vec<_> = self.deny.iter().map(ToString::to_string).collect();
        let open = self.allow.is_empty() || self.allow.iter().any(Rule::is_everything);
        let allowed = match open || named.unknown {
            true => None,
            false => Some(self.known_needs(named)),
        };
        let variables = self.allow.iter().filter(|rule| rule.is_about_variables());
        let variables = variables.map(ToString::to_string).collect();
        (allowed.is_some() || !denied.is_empty()).then_some(Lock { allowed, denied, variables })
    }

    /// The lock for a shell that waits for commands, each of which has a lock of its own.
    pub fn lock_of_session(&self) -> Option<Lock> {
        self.lock(&Named::default())
    }

    fn known_needs(&self, named: &Named) -> Arc<[LockedProgram]> {
        self.known.needs(&self.runs, &named.programs, || self.with_needs(&named.programs).into())
    }

    /// Programs, and what they need, and what that needs.
    fn with_needs(&self, named: &[NamedProgram]) -> Vec<LockedProgram> {
        let mut all: Vec<LockedProgram> = Vec::new();
        for NamedProgram { name, at, arguments } in named.iter().cloned() {
            let usual = match self.known.usual(base_name(&name), usual) {
                MayRun::AsBefore => MayRun::AsBefore,
                usual if at.is_spelled_out => usual,
                _ => MayRun::Only([].into()),
            };
            let is_git = at.is_spelled_out && program(base_name(&name)) == "git";
            let may_run = match &arguments {
                Some(calls) if is_git => self.git(calls, &mut all),
                _ => self.extended(usual, |pattern| match pattern.contains('/') {
                    true => at.told.iter().any(|it| it == pattern),
                    false => at.is_spelled_out && is_about(pattern, &name),
                }),
            };
            let may_run = match may_run {
                MayRun::Only(needed) if arguments.is_some() => {
                    MayRun::Only(without_itself(&name, &needed, &mut all))
                }
                may_run => may_run,
            };
            all.push(LockedProgram { name, files: at.files, named: true, arguments, may_run });
        }
        let mut at = 0;
        // Most programs need the same.
        let mut seen = HashSet::new();
        while let Some(program) = all.get(at) {
            let (name, may_run) = (program.name.clone(), program.may_run.clone());
            let MayRun::Only(needed) = may_run else {
                at += 1;
                continue;
            };
            let own = needs::parts(&name);
            for needed in needed.iter() {
                if own.contains(&needed.as_str()) {
                    add(&mut all, needed, None, MayRun::AsBefore);
                    continue;
                }
                if !seen.insert(needed.clone()) {
                    continue;
                }
                match self.may_run(needed) {
                    MayRun::Only(nothing) if nothing.is_empty() => {}
                    // An interpreter that runs a part of the program is not one that a rule allows.
                    MayRun::Anything => add(&mut all, needed, None, MayRun::AsBefore),
                    may_run => add(&mut all, needed, None, may_run),
                }
            }
            at += 1;
        }
        // What a program needs does not lead back to it with other arguments. Git has rules of its own for that.
        for limited in named.iter().filter(|it| it.arguments.is_some()) {
            let own = program(base_name(&limited.name));
            let others = all.iter_mut().filter(|it| !it.named && own != "git");
            others.for_each(|it| forget(&mut it.may_run, own));
        }
        all
    }

    fn may_run(&self, name: &str) -> MayRun {
        self.extended(self.known.usual(base_name(name), usual), |pattern| is_about(pattern, name))
    }

    /// What a git may execute that rules allow only for these calls. Adds the parts of git that it needs.
    fn git(&self, calls: &[LockedCall], all: &mut Vec<LockedProgram>) -> MayRun {
        let allowed: Vec<_> = self.allow.iter().filter_map(Rule::whole_command_of_git).collect();
        let Some(own) = git::own(calls, &allowed) else { return self.may_run("git") };
        let mut needed = needs::of("git");
        needed.retain(|it| it != "git" && !it.starts_with('/'));
        needed.retain(|it| it != git::RECEIVER || own.receives);
        for folder in git::FOLDERS {
            needed.push(format!("{folder}git"));
            add(all, &format!("{folder}git"), Some(own.commands.clone()), MayRun::AsBefore);
        }
        for part in own.parts {
            add(all, &part, None, MayRun::AsBefore);
            needed.push(part);
        }
        self.extended(MayRun::Only(needed.into()), |pattern| is_about(pattern, "git"))
    }

    /// What a program may execute, with what the settings add in tables that are about it.
    fn extended(&self, usual: MayRun, is_about_it: impl Fn(&str) -> bool) -> MayRun {
        let tables = self.runs.iter().filter(|table| is_about_it(&table.program));
        let told: Vec<_> = tables.flat_map(|it| &it.may_run).collect();
        if told.iter().any(|pattern| *pattern == "*") {
            return MayRun::Anything;
        }
        match usual {
            MayRun::Only(needed) if !told.is_empty() => {
                MayRun::Only(needed.iter().chain(told).cloned().collect())
            }
            other => other,
        }
    }
}

/// Whether a pattern of the settings means a program that another one needs, or any of that name. One with a folder
/// means no program elsewhere.
fn is_about(pattern: &str, name: &str) -> bool {
    match pattern.contains('/') {
        true => name.starts_with('/') && glob_path(pattern, name),
        false => glob(base_name(pattern), base_name(name)),
    }
}

/// What a program may execute, if the settings say nothing.
fn usual(name: &str) -> MayRun {
    if programs::is_shell(program(name)) {
        MayRun::AsBefore
    } else if programs::is_interpreter(name) || runs_anything(name) {
        MayRun::Anything
    } else {
        MayRun::Only(needs::of(name).into())
    }
}

/// What a program needs that rules allow only with certain arguments. It may execute itself with those as well, but not
/// with others.
fn without_itself(name: &str, needed: &[String], all: &mut Vec<LockedProgram>) -> Arc<[String]> {
    let own = program(base_name(name));
    let mut rest: Vec<_> = needed.iter().filter(|it| !is_bare(it, own)).cloned().collect();
    if own == "ssh" && rest.len() < needed.len() {
        for path in ["/usr/bin/ssh", "/usr/local/bin/ssh"] {
            add(all, path, Some(needs::jumps()), MayRun::AsBefore);
            rest.push(path.to_owned());
        }
    }
    rest.into()
}

/// A program may no longer execute another by its bare name.
fn forget(may_run: &mut MayRun, name: &str) {
    if let MayRun::Only(needed) = may_run
        && needed.iter().any(|it| is_bare(it, name))
    {
        *needed = needed.iter().filter(|it| !is_bare(it, name)).cloned().collect();
    }
}

/// Whether a program is needed by its bare name, whatever its version.
fn is_bare(needed: &str, name: &str) -> bool {
    !needed.contains('/') && program(needed) == name
}

fn add(
    all: &mut Vec<LockedProgram>,
    name: &str,
    arguments: Option<Vec<LockedArguments>>,
    may_run: MayRun,
) {
    if !all.iter().any(|program| !program.named && program.name == name) {
        let arguments = arguments.map(|all| all.into_iter().map(LockedCall::from).collect());
        let (name, files) = (name.to_owned(), Vec::new());
        all.push(LockedProgram { name, files, named: false, arguments, may_run });
    }
}

/// The programs that a command names.
#[derive(Debug, Clone, Default)]
pub struct Named {
    programs: Vec<NamedProgram>,
    /// Whether there are others, which only the run will know.
    unknown: bool,
}

impl Named {
    /// Adds a program with its arguments, if only those are allowed, or a program that only the run will know.
    pub fn add(&mut self, name: Option<&str>, at: ProgramFiles, arguments: Option<LockedCall>) {
        let Some(name) = name else {
            self.unknown = true;
            return;
        };
        let mut known = self.programs.iter_mut().find(|program| program.name == name);
        if let Some(known) = &mut known {
            known.at.files.extend_from_slice(&at.files);
            known.at.files.sort();
            known.at.files.dedup();
            // The same name may mean several files, and the lock does not tell them apart.
            known.at.told.retain(|path| at.told.contains(path));
            known.at.is_spelled_out &= at.is_spelled_out;
        }
        match (known, arguments) {
            (Some(known), None) => known.arguments = None,
            (Some(known), Some(arguments)) => {
                if let Some(all) = known.arguments.as_mut().filter(|all| !all.contains(&arguments))
                {
                    all.push(arguments);
                }
            }
            (None, arguments) => self.programs.push(NamedProgram {
                name: name.to_owned(),
                at,
                arguments: arguments.map(|arguments| vec![arguments]),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_for_a_folder_means_no_program_elsewhere() {
        for (pattern, name, expected) in [
            ("mytool", "/usr/bin/mytool", true),
            ("my*", "mytool", true),
            ("./scripts/deploy", "deploy", false),
            ("./scripts/*", "ls", false),
            ("./scripts/*", "/usr/bin/ls", false),
            ("/opt/acme/bin/*", "x", false),
            ("/opt/acme/bin/*", "/opt/acme/bin/x", true),
        ] {
            assert_eq!(is_about(pattern, name), expected, "{pattern} {name}");
        }
    }
}
