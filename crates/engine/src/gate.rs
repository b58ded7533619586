//! The only way to run anything.
//!
//! Only the gate makes a [`Cleared`], and only a `Cleared` runs. It holds exactly the bytes the policy judged, so what
//! was checked is what runs, and the proof that the audit trail has the request ([`RecordedRun`]).
//!
//!     Resolved ─▶ policy ─▶ bounds ─▶ audit trail ─▶ Cleared
//!                    └─────────┴─ refused: recorded as well

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{Directory, EncodedRules, Spawn, Stdin};
use mcpz_audit::{Audit, Permit, RecordedRun, RequestedRun, Source};
use mcpz_output::Secrets;
use mcpz_policy::{Judgement, Lock, Scene, Traces, Verdict};

use crate::bounds::Bounds;
use crate::environment::{Environment, Login};
use crate::error::Error;
use crate::exec_rules::KnownRules;
use crate::owner_identity::OwnerIdentity;
use crate::request::{Command, Input, Origin, RunRequest, TerminalSize};
use crate::resolved::{Beginning, Program, Resolved};
use crate::settings::Settings;

/// The `TERM` of commands that run in a terminal.
const TERMINAL: &str = "xterm-256color";

/// Variables that keep pagers from running commands, and interactive shells from recalling earlier ones. With a policy,
/// what is typed into them would otherwise run more than it says. A bash of the first level may run `.bashrc`, if its
/// server was started over ssh, and `cd -` would lead to a folder that nobody named.
const GUARDS: [(&str, Option<&str>); 4] =
    [("LESSSECURE", Some("1")), ("histchars", Some("")), ("SHLVL", Some("1")), ("OLDPWD", None)];

/// The owner of the login shell in the audit trail.
const LOGIN: &str = "login_env";

/// A command that may run.
pub struct Cleared {
    spawn: Spawn,
    plan: Plan,
    recorded: RecordedRun,
    traces: Traces,
}

/// What a run's task needs to know about a cleared command.
pub struct Plan {
    /// The shell, or the program itself.
    pub program: PathBuf,
    pub directory: PathBuf,
    pub timeout: Option<Duration>,
    /// Why the command looks dangerous, if it does.
    pub warnings: Vec<&'static str>,
    /// What is written to its standard input first.
    pub stdin: Vec<u8>,
    /// How it takes input after that.
    pub input: Option<Input>,
    /// What the policy has to know about it when something is typed into it.
    pub beginning: Option<Beginning>,
    /// What is masked in its output.
    pub secrets: Secrets,
    pub description: Option<String>,
    /// The directory that it must not leave, if its place has to see to that.
    pub root: Option<PathBuf>,
    /// What it may execute, for a shell that runs already.
    pub exec_rules: Option<EncodedRules>,
}

impl Cleared {
    /// The id of the run.
    pub fn id(&self) -> &Arc<str> {
        self.recorded.id()
    }

    pub fn timeout(&self) -> Option<Duration> {
        self.plan.timeout
    }

    /// What it leaves for later commands of its shell.
    pub fn traces(&self) -> Traces {
        self.traces
    }

    /// Trades the proof, once, for what the agent and the run's task need.
    pub fn into_parts(self) -> (Spawn, Plan, RecordedRun) {
        (self.spawn, self.plan, self.recorded)
    }
}

/// On which terms a request may run.
struct Admitted {
    /// The directory to enter.
    directory: Directory,
    /// The grounds for allowing it.
    permit: Permit,
    lock: Option<Lock>,
    traces: Traces,
}

/// What every request has to pass.
pub struct Gate<'a> {
    pub settings: &'a Settings,
    pub environment: &'a Environment,
    /// Where rules with relative paths begin.
    pub working_directory: &'a Path,
    /// Whether it runs in a place, whose files are not those of this machine.
    pub in_place: bool,
    pub bounds: &'a Bounds,
    pub audit: &'a Audit,
    pub known_rules: &'a KnownRules,
}

impl Gate<'_> {
    /// Judges a request, records it and prepares the run.
    pub async fn clear(
        &self,
        owner: &OwnerIdentity,
        origin: &Origin,
        request: Resolved,
    ) -> Result<Cleared, Error> {
        let judgement = self.judge(&request);
        self.pass(owner, origin, request, judgement).await
    }

    /// Refuses a request that the policy denies, before anything is started for it.
    pub async fn check(
        &self,
        owner: &OwnerIdentity,
        origin: &Origin,
        request: &Resolved,
    ) -> Result<(), Error> {
        let Verdict::Deny(denial) = self.judge(request).verdict else { return Ok(()) };
        let error = Error::Refused(denial);
        let asked = asked(request, origin.source(owner.name()));
        self.audit.record_refusal(&asked, &error.reason()).await?;
        Err(error)
    }

    /// The same as `clear` for a shell of ours that does nothing until it gets commands, each of which is judged.
    pub async fn clear_own(
        &self,
        owner: &OwnerIdentity,
        origin: &Origin,
        request: Resolved,
    ) -> Result<Cleared, Error> {
        let lock = self.settings.policy.lock_of_session();
        self.pass(owner, origin, request, Judgement { lock, ..Judgement::allowed() }).await
    }

    /// The same for the user's login shell, which runs in the user's home.
    pub fn clear_login(&self, login: &Login) -> Result<Cleared, Error> {
        let request = RunRequest {
            directory: Some(login.directory.clone()),
            timeout: Some(login.timeout),
            environment: login.environment.clone(),
            ..RunRequest::new(Command::Argv(login.command.clone()))
        };
        let directory = self.working_directory;
        let request = Resolved::new(self.settings, self.environment, directory, None, request);
        let origin = Origin { tool: LOGIN.to_owned(), ..Origin::default() };
        let permit = Permit { rules: Vec::new(), warnings: Vec::new() };
        let recorded = self.audit.record_start(&asked(&request, origin.source(LOGIN)), &permit)?;
        let directory = Directory::Path(login.directory.clone());
        let admitted = Admitted { directory, permit, lock: None, traces: Traces::default() };
        Ok(self.prepare(request, admitted, recorded))
    }

    async fn pass(
        &self,
        owner: &OwnerIdentity,
        origin: &Origin,
        request: Resolved,
        judgement: Judgement,
    ) -> Result<Cleared, Error> {
        let asked = asked(&request, origin.source(owner.name()));
        let admitted = match self.admit(&request, judgement) {
            Ok(admitted) => admitted,
            Err(error) => {
                self.audit.record_refusal(&asked, &error.reason()).await?;
                return Err(error);
            }
        };
        let recorded = self.audit.record_start(&asked, &admitted.permit)?;
        Ok(self.prepare(request, admitted, recorded))
    }

    /// Asks the policy about a request. A command in a session is judged behind what earlier ones have left.
    fn judge(&self, request: &Resolved) -> Judgement {
        let (policy, working_directory) = (&self.settings.policy, self.working_directory);
        let home = self.home();
        let home = home.as_ref().map(|home| home.to_string_lossy());
        let Resolved { directory, environment, .. } = request;
        let before = request.before.as_ref();
        let scene = Scene {
            directory: &before.map_or(directory, |it| &it.directory).to_string_lossy(),
            rules_begin: &working_directory.to_string_lossy(),
            home: home.as_deref(),
            variables: before.map_or(environment, |it| &it.environment),
            typed: request.input.is_some() && request.stdin.is_none(),
            locked: self.settings.lock,
        };
        match &request.program {
            Program::Script { text, shell } => {
                let before = before.map_or("", |before| &before.text);
                policy.judge_next(before, text, &shell.to_string_lossy(), &scene)
            }
            Program::Argv(words) => policy.judge_words(words, &scene),
        }
    }

    /// What `~` stands for in a command.
    fn home(&self) -> Option<PathBuf> {
        match self.in_place {
            true => self.environment.variables.get("HOME").map(PathBuf::from),
            false => self.settings.home.clone(),
        }
    }

    /// Checks a request, and returns on which terms it may run.
    fn admit(&self, request: &Resolved, judgement: Judgement) -> Result<Admitted, Error> {
        check_bytes(request)?;
        let Judgement { verdict, threats, rules, lock, traces } = judgement;
        if let Verdict::Deny(denial) = verdict {
            return Err(Error::Refused(denial));
        }
        let directory = match self.bounds.open(request)? {
            // A directory descriptor from outside leads to the whole machine through `..`, so none enters a sandbox.
            Directory::Handle(_) if self.settings.sandbox.is_some() => {
                Directory::Path(request.directory.clone())
            }
            directory => directory,
        };
        let mut warnings: Vec<_> = threats.iter().map(|threat| threat.what).collect();
        warnings.sort_unstable();
        warnings.dedup();
        let lock = lock.filter(|_| self.settings.lock);
        Ok(Admitted { directory, permit: Permit { rules, warnings }, lock, traces })
    }

    /// Prepares what the agent and the task need to run a recorded request.
    fn prepare(&self, request: Resolved, admitted: Admitted, recorded: RecordedRun) -> Cleared {
        let Admitted { directory, permit, lock, traces } = admitted;
        let typed = request.input.is_some() && self.settings.policy.restricts();
        let beginning = typed.then(|| request.beginning());
        let (executed, program) = match request.program {
            Program::Script { text, shell } => {
                let (executed, shell) = (shell.clone(), shell.into());
                (executed, mcpz_agent::Program::Script { shell, text: text.into() })
            }
            Program::Argv(words) => {
                let name = words.first().map(PathBuf::from).unwrap_or_default();
                let words = words.into_iter().map(OsString::from).collect();
                (name, mcpz_agent::Program::Argv(words))
            }
        };
        let environment = request.environment.into_iter();
        let environment = environment.map(|(name, value)| (name.into(), Some(value.into())));
        let mut environment: Vec<(OsString, Option<OsString>)> = environment.collect();
        if self.settings.policy.restricts() {
            environment.extend(GUARDS.map(|(name, value)| (name.into(), value.map(Into::into))));
        }
        let stdin = match request.input {
            Some(Input::Terminal(TerminalSize { rows, columns })) => {
                if !environment.iter().any(|(name, _)| name == "TERM") {
                    environment.push(("TERM".into(), Some(TERMINAL.into())));
                }
                Stdin::Terminal { rows, columns }
            }
            Some(Input::Pipe) => Stdin::Pipe,
            None if request.stdin.is_some() => Stdin::Pipe,
            None => Stdin::Null,
        };
        let joined = request.joined;
        let path = self.environment.variables.get("PATH");
        let (replies, exec_rules) = (false, lock.map(|lock| self.known_rules.of(lock, path)));
        let spawn = Spawn {
            program,
            directory,
            environment,
            stdin,
            joined,
            replies,
            exec_rules: exec_rules.clone(),
        };
        let plan = Plan {
            program: executed,
            directory: request.directory,
            timeout: request.timeout,
            warnings: permit.warnings,
            stdin: request.stdin.unwrap_or_default(),
            input: request.input,
            beginning,
            secrets: self.environment.secrets.clone(),
            description: request.description,
            root: self.bounds.root_there(),
            exec_rules,
        };
        Cleared { spawn, plan, recorded, traces }
    }
}

/// A request in the form the audit trail takes.
fn asked<'a>(request: &'a Resolved, source: Source<'a>) -> RequestedRun<'a> {
    let command = match &request.program {
        Program::Script { text, shell } => mcpz_audit::Command::Script { text, shell },
        Program::Argv(words) => mcpz_audit::Command::Argv(words),
    };
    RequestedRun {
        source,
        command,
        directory: &request.directory,
        timeout: request.timeout,
        description: request.description.as_deref(),
        place: request.place.as_deref(),
        environment: request.environment.iter().map(|(name, _)| name.as_str()).collect(),
        stdin_bytes: request.stdin.as_ref().map(|bytes| bytes.len() as u64),
    }
}

/// Refuses bytes that no program can receive.
fn check_bytes(request: &Resolved) -> Result<(), Error> {
    let nul = match &request.program {
        Program::Script { text, .. } => text.contains('\0'),
        Program::Argv(words) => words.iter().any(|word| word.contains('\0')),
    };
    if nul {
        return Err(Error::NulByte { what: "command".to_owned() });
    }
    let directory = request.directory.as_os_str().as_encoded_bytes();
    if request.names_directory && directory.contains(&0) {
        return Err(Error::NulByte { what: "working directory".to_owned() });
    }
    for (name, value) in &request.environment {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::BadVariable(name.clone()));
        }
        if value.contains('\0') {
            return Err(Error::NulByte { what: format!("value of `{name}`") });
        }
    }
    Ok(())
}
