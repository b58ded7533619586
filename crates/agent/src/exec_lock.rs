//! The lock behind the policy: the kernel asks the keeper before a process of its run executes anything.
//!
//!     process ─ execve ─▶ filter ─▶ kernel ─ question ─▶ keeper: Listener ─▶ Target ─▶ Rules
//!        ▲                                                                    Processes  │
//!        └──────────────────────── runs, or EACCES ◀──────── yes, no ────────────────────┘
//!
//! The policy reads a command before it runs, and refuses what it does not understand. But a program can run others in
//! ways that no table lists. Here only the file counts that is about to be executed, and which program wants it.
//!
//! What this cannot see: what a process does by itself, such as the code in an interpreter; and a process with several
//! threads, or one that shares its memory, that changes the path after it was read, since the kernel reads it again.

mod calls;
mod clock;
mod denied;
mod elf;
mod filter;
mod formats;
mod identity;
mod left;
mod listener;
mod listings;
mod makers;
mod note;
mod notes;
mod prepared;
mod processes;
mod real_path;
mod rules;
mod seen;
mod shebang;
mod shells;
mod shown;
mod standing;
mod target;
mod view;
mod wanted;

use std::collections::HashSet;
use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use mcpz_policy::is_inert;

use crate::exec_rules::{EncodedRules, RefusedBecause, RefusedExec};
use crate::git_configs::{self, SharedConfig};
use crate::tree;
use denied::Asking;
pub use filter::Asks;
use formats::Nature;
use left::Left;
use listener::{Listener, Named, Question};
use prepared::Prepared;
use processes::{Caller, Next, Processes};
use shown::{shown, whole_name};
use standing::{Asker, Standing};
use target::{Target, base_name};
use view::{View, namespace_of};

/// How many different refusals are kept.
const MAX_REFUSED: usize = 20;

/// The lock of one keeper, for one run after the other.
pub struct ExecLock {
    listener: Listener,
    token: u64,
    view: View,
    run: Option<LockedRun>,
    /// For the next run, or from an earlier one.
    prepared: Option<Prepared>,
    asks: Asks,
    /// Configurations of git that processes may change in harmless ways.
    configs: Vec<SharedConfig>,
}

/// The first process of a run.
pub struct FirstProcess<'a> {
    pub pid: i32,
    pub words: &'a [OsString],
    /// Whether it is a shell for what was judged, so that no rule about shells is about it.
    pub is_ours: bool,
    /// Whether it is the shell of a session, which takes one command after the other.
    pub is_session: bool,
    pub environment: &'a [CString],
    /// The file that was chosen for it, if the kernel was not asked.
    pub chosen: Option<&'a ChosenProgram>,
}

/// A file that the rules let the keeper execute.
pub struct ChosenProgram {
    pub file: CString,
    /// What `env` will execute, if it is a script that says so.
    env_program: Option<String>,
}

/// Why there is none.
pub enum NotChosen {
    /// The rules do not let the keeper execute it.
    Denied,
    /// None can be executed, for this reason.
    NotFound(i32),
}

/// A run whose processes may not execute everything.
struct LockedRun {
    prepared: Prepared,
    processes: Processes,
    /// What earlier commands of a session have left running.
    left: Option<Left>,
    /// The variables that its first process got.
    environment: HashSet<Vec<u8>>,
    refused: Vec<RefusedExec>,
    /// The process and the program that were refused last.
    last: Option<(i32, String)>,
    /// The first process, until it is settled what it looks like.
    first: Option<i32>,
}

impl ExecLock {
    /// Installs the filter on this process and all it will start.
    pub fn install(asks: Asks, configs: Vec<SharedConfig>) -> io::Result<Self> {
        let mut token = [0; 8];
        rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty())?;
        let token = u64::from_ne_bytes(token);
        let view = View::of("self").ok_or(io::ErrorKind::NotFound)?;
        let listener = Listener(filter::install(token, asks)?);
        Ok(Self { listener, token, view, run: None, prepared: None, asks, configs })
    }

    /// Whether the kernel asks before programs are executed.
    pub fn asks_about_execs(&self) -> bool {
        self.asks.execs
    }

    /// What the keeper passes as the fourth argument of `execve` when it starts a program itself.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Gets ready for a run with these rules and this `PATH`, before anything of it is there. Returns whether they hold
    /// anything.
    pub fn prepare(&mut self, given: &EncodedRules, path: &[u8]) -> Result<bool, postcard::Error> {
        let prepared = Prepared::next(self.prepared.take(), given, path)?;
        let holds = prepared.holds;
        self.prepared = Some(prepared);
        Ok(holds)
    }

    /// Looks at what the next run may execute, while nobody waits for it.
    pub fn look_ahead(&mut self) {
        self.prepared.iter_mut().for_each(|it| it.rules.look_ahead());
    }

    /// Chooses the first program of the run, about which the kernel does not ask, among these paths, from this
    /// directory. As the kernel does it, what cannot be executed is passed over. Fails if the rules do not let the
    /// keeper execute it.
    pub fn choose_first(
        &mut self,
        words: &[OsString],
        (directory, files): (Option<BorrowedFd<'_>>, Vec<CString>),
    ) -> Result<ChosenProgram, NotChosen> {
        let Some(prepared) = &mut self.prepared else { return Err(NotChosen::Denied) };
        let words: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let find = |path: &[u8]| Target::find_own(directory, path);
        let mut errno = libc::ENOENT;
        for file in files {
            let target = match find(file.as_bytes()) {
                Ok(target) if target.is_executable => target,
                Ok(_) => {
                    errno = libc::EACCES;
                    continue;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENOTDIR) => continue,
                    None | Some(libc::EACCES) => {
                        errno = libc::EACCES;
                        continue;
                    }
                    Some(_) => return Err(NotChosen::Denied),
                },
            };
            prepared.keep_up_with(&target);
            let asking = Asking { find: &find, is_over: &|| false };
            let asker = Asker { standing: &Standing::Least, env_program: None, is_earlier: false };
            let decided = prepared.rules.decide(asker, &target, &words, asking);
            return match target.is_clear() && decided.is_ok() {
                true if prepared.rules.holds(&Standing::Least)
                    && target.whole_nature() != Nature::Usual =>
                {
                    Err(NotChosen::NotFound(libc::ENOEXEC))
                }
                true => {
                    Ok(ChosenProgram { file, env_program: target.env_program().map(str::to_owned) })
                }
                false => Err(NotChosen::Denied),
            };
        }
        Err(NotChosen::NotFound(errno))
    }

    /// Starts to hold the run that it got ready for.
    pub fn begin(&mut self, first: &FirstProcess<'_>) {
        let Some(prepared) = self.prepared.take() else { return };
        let name = first.words.first().and_then(|name| name.to_str()).unwrap_or_default();
        let words: Vec<_> = first.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut processes = Processes::default();
        let standing = match first.is_ours {
            true => prepared.rules.first_of_ours(),
            false => prepared.rules.first(name),
        };
        let env_program = first.chosen.and_then(|it| it.env_program.clone());
        let env_program = env_program.filter(|_| standing != Standing::Free);
        processes.add_first(first.pid, standing, env_program, &words);
        let environment = first.environment.iter().map(|it| it.as_bytes().to_vec()).collect();
        let refused = Vec::new();
        let left = first.is_session.then(|| Left::nothing_of(first.pid));
        let (last, first) = (None, Some(first.pid));
        self.run = Some(LockedRun { prepared, processes, left, environment, refused, last, first });
    }

    /// Looks at the first process once more while it starts, so that it need not be looked at when it asks.
    pub fn settle(&mut self) {
        if let Some(run) = &mut self.run
            && let Some(first) = run.first.take()
        {
            run.processes.settle_first(first);
        }
    }

    /// Allows the run more than before, for what its first process gets to do next.
    pub fn permit(&mut self, rules: &EncodedRules) {
        if let Some(run) = &mut self.run
            && let Ok(rules) = rules.decode()
        {
            run.left.iter_mut().for_each(Left::look);
            let others_go_on = run.left.as_ref().is_some_and(|left| !left.is_empty());
            run.prepared.extend(rules, others_go_on);
        }
    }

    /// What was refused, and not taken yet.
    pub fn refused(&self) -> &[RefusedExec] {
        self.run.as_ref().map(|run| &*run.refused).unwrap_or_default()
    }

    /// What was refused since the last call.
    pub fn take_refused(&mut self) -> Vec<RefusedExec> {
        self.run.as_mut().map(|run| std::mem::take(&mut run.refused)).unwrap_or_default()
    }

    /// Nothing of the run is left.
    pub fn end(&mut self) {
        if let Some(run) = self.run.take() {
            self.prepared = Some(run.prepared);
        }
    }

    /// Answers the process that waits longest. Only one: what the server has allowed before the next one asks may still
    /// have to be received.
    ///
    /// `is_over` tells whether the run is to end meanwhile: then the answer does not matter any more.
    pub fn answer_next(&mut self, is_over: &dyn Fn() -> bool) {
        if let Some(question) = self.listener.next() {
            self.answer(&question, is_over);
        }
    }

    fn answer(&mut self, question: &Question, is_over: &dyn Fn() -> bool) {
        if question.is_rename() {
            let rename = question.rename();
            let is_done = |it| git_configs::rename(&self.configs, question.thread, &it);
            return match rename.is_some_and(is_done) {
                true => self.listener.succeed(question),
                false => self.listener.permit(question),
            };
        }
        let Some(run) = &mut self.run else { return self.listener.permit(question) };
        let answer = match question.is_mount() {
            true => run.judge_mount(question),
            false => run.judge(question, self.view, is_over),
        };
        match answer {
            Ok(()) => self.listener.permit(question),
            Err(errno) => self.listener.refuse(question, errno),
        }
    }
}

impl AsFd for ExecLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl LockedRun {
    /// Decides on a call that mounts something: `Ok`, or the error that it fails with.
    fn judge_mount(&mut self, question: &Question) -> Result<(), i32> {
        let Some(caller) = self.processes.caller(question.thread) else {
            return Err(libc::EPERM);
        };
        // In a user namespace of its own, a process mounts things for itself and those it starts, and they see it.
        let is_seen_here = || namespace_of("self", "user") == namespace_of(caller.process, "user");
        let is_bound = self.prepared.rules.holds(&caller.standing);
        if question.mounts_program_names() || (is_bound && is_seen_here()) {
            self.refuse(&caller, String::from("mount"), &[], RefusedBecause::Mount);
            return Err(libc::EPERM);
        }
        Ok(())
    }

    /// Decides on one call: `Ok`, or the error that it fails with.
    fn judge(
        &mut self,
        question: &Question,
        view: View,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), i32> {
        let Some(caller) = self.processes.caller(question.thread) else {
            return Err(libc::EACCES);
        };
        // The arguments first: the less time passes after the file was looked at, the better.
        let arguments = question.arguments();
        let found = question.named().and_then(|named| Target::find(question.thread, &named, view));
        let found = found.and_then(|target| Ok((target, arguments?)));
        let (target, arguments) = match found {
            // Nobody can tell what the kernel would run in its place.
            Ok((target, _)) if !target.is_clear() => {
                let program = target.path.to_string_lossy().into_owned();
                self.refuse(&caller, program, &[], RefusedBecause::Unclear);
                return Err(libc::EACCES);
            }
            Ok(found) => found,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EACCES);
                let unclear = [libc::ELOOP, libc::EXDEV, libc::EFAULT, libc::EIO];
                if !unclear.contains(&errno) && error.kind() != io::ErrorKind::UnexpectedEof {
                    return Err(errno);
                }
                let program = String::from("(unknown)");
                self.refuse(&caller, program, &[], RefusedBecause::Unclear);
                return Err(libc::EACCES);
            }
        };
        self.prepared.keep_up_with(&target);
        let nature = target.whole_nature();
        if self.prepared.rules.holds(&caller.standing) {
            if nature == Nature::Format {
                let program = target.path.to_string_lossy().into_owned();
                self.refuse(&caller, program, &arguments, RefusedBecause::Format);
                return Err(libc::EACCES);
            }
            self.prepared.rules.note_what_was_made();
        }
        let rules = &self.prepared.rules;
        let asker = Asker {
            standing: &caller.standing,
            env_program: caller.env_program.as_deref(),
            is_earlier: self.left.as_ref().is_some_and(|left| left.has(caller.process)),
        };
        let find = |path: &[u8]| {
            let named = Named::Path { directory: None, path: path.to_vec() };
            Target::find(question.thread, &named, view)
        };
        let (environment, asking) = (|| question.environment(), Asking { find: &find, is_over });
        let refused = rules.refuses_with_variables(&target, &arguments, environment, asking);
        let decided = refused.map_or_else(|| rules.decide(asker, &target, &arguments, asking), Err);
        if is_over() {
            return Err(libc::EACCES);
        }
        let decided = decided.and_then(|standing| {
            let rises = standing == Standing::Free && caller.standing != Standing::Free;
            if rises && rules.limits_arguments_of(&target) {
                let directory = target.directory();
                let allow = |name: &str, value: &str| rules.allow_setting(name, value, &directory);
                self.check_environment(question, allow)?;
            } else if rules.holds(&caller.standing) && is_run_by_shell(&target) {
                let allow = |name: &str, value: &str| {
                    !shells::changes_shells(name) || rules.allow_variable(name, value)
                };
                self.check_environment(question, allow)?;
            }
            Ok(standing)
        });
        match decided {
            // As the kernel says it. A shell then runs the file as a script, in its own process.
            Ok(_) if nature == Nature::Unknown && rules.holds(&caller.standing) => {
                Err(if target.may_be_executed() { libc::ENOEXEC } else { libc::EACCES })
            }
            Ok(standing) => {
                self.prepared.rules.note_exec(caller.process, &standing, &target, &arguments);
                let env_program = match &standing {
                    Standing::Free => None,
                    _ => target.env_program().map(str::to_owned),
                };
                let next = Next {
                    standing,
                    executable: target.executable(),
                    env_program,
                    command_line: &target.command_line(&arguments),
                };
                self.processes.note(caller, next);
                Ok(())
            }
            Err(why) => {
                let program = target.path.to_string_lossy().into_owned();
                self.refuse(&caller, program, &arguments, why);
                Err(libc::EACCES)
            }
        }
    }

    /// Refuses variables with which an allowed call may do something else, unless the run began with them.
    fn check_environment(
        &self,
        question: &Question,
        allow: impl Fn(&str, &str) -> bool,
    ) -> Result<(), RefusedBecause> {
        let environment = question.environment().map_err(|_| RefusedBecause::Unclear)?;
        let new = environment.iter().filter(|entry| !self.environment.contains(*entry));
        let mut names = new.filter_map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            let fits = self.is_set_by_git(name, value) || allow(name, value);
            (!fits).then(|| name.to_owned())
        });
        names.next().map_or(Ok(()), |name| Err(RefusedBecause::Variable(name)))
    }

    /// Whether git sets this variable for the aliases and hooks that it runs.
    fn is_set_by_git(&self, name: &str, value: &str) -> bool {
        let rules = &self.prepared.rules;
        match name {
            "GIT_PREFIX" => is_inert(value),
            "GIT_EXEC_PATH" => rules.has_parts_in(value),
            "PATH" => value.split_once(':').is_some_and(|(first, rest)| {
                let own = format!("PATH={rest}");
                rules.has_parts_in(first) && self.environment.contains(own.as_bytes())
            }),
            _ => false,
        }
    }

    fn refuse(
        &mut self,
        caller: &Caller,
        program: String,
        arguments: &[Vec<u8>],
        why: RefusedBecause,
    ) {
        let line = fs::read(format!("/proc/{}/cmdline", caller.process)).unwrap_or_default();
        let line: Vec<_> = line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        let (by, parent) = match tree::read_stat(caller.process) {
            Some((stat, name)) => {
                (whole_name(name, &line), tree::read_stat(stat.parent).map(|(_, name)| name))
            }
            None => (String::from("?"), None),
        };
        let name = base_name(program.as_ref()).to_owned();
        // A search through `PATH` tries every folder.
        let last = Some((caller.process, name.clone()));
        if self.last == last {
            return;
        }
        self.last = last;
        let same = |it: &&mut RefusedExec| {
            it.by == by && it.why == why && base_name(it.program.as_ref()) == name
        };
        if let Some(known) = self.refused.iter_mut().find(same) {
            known.times = known.times.saturating_add(1);
        } else if self.refused.len() < MAX_REFUSED {
            self.refused.push(RefusedExec {
                program,
                arguments: shown(arguments.get(1..).unwrap_or_default()),
                by,
                command_line: shown(&line),
                parent: parent.unwrap_or_default(),
                why,
                times: 1,
            });
        }
    }
}

/// Whether this kernel asks before a program is executed, and lets us listen.
pub fn can_lock() -> io::Result<()> {
    // A filter cannot be removed, but it belongs to a thread and ends with it.
    let trial = std::thread::Builder::new()
        .spawn(|| filter::install(0, Asks { execs: true, renames: true }).map(drop))?;
    trial.join().unwrap_or(Err(io::ErrorKind::Other.into()))
}

/// Whether it is a shell, or the script of one.
fn is_run_by_shell(target: &Target) -> bool {
    std::iter::once(target).chain(target.parts()).any(|it| shells::is_shell(&it.path))
}
