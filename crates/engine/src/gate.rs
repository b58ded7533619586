//! The only door to running anything.
//!
//! Nobody else can make a [`Cleared`], and nothing but a `Cleared` is run. It holds what was judged
//! byte for byte, so what was checked is what runs, and the proof that it is on record.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpz_agent::{Directory, Process, Program, Spawn, SpawnFrame, Stdin};
use mcpz_policy::{Judgement, Scene, Verdict};
use tokio::sync::oneshot;

use crate::bounds::{Bounds, directory};
use crate::enclosure::Enclosure;
use crate::engine::Settings;
use crate::error::Error;
use crate::outcome::Closing;
use crate::request::{Command, Input, Origin, RunRequest, Size};
use crate::store::Owner;
use crate::surroundings::Login;
use mcpz_audit::{Asked, Audit, Permit, Recorded, Source};
use mcpz_output::Secrets;

/// The kind of terminal commands are told they have.
const TERMINAL: &str = "xterm-256color";

/// What the login shell is on record as.
const LOGIN: &str = "login_env";

/// A command that may run.
pub struct Cleared {
    spawn: Spawn,
    pending: Pending,
    recorded: Recorded,
}

/// What the run's own task needs of a cleared command.
pub struct Pending {
    /// What is executed: the shell, or the program itself.
    pub program: PathBuf,
    pub directory: PathBuf,
    pub timeout: Option<Duration>,
    /// What the command looks like, if that is a reason to be careful.
    pub warnings: Vec<&'static str>,
    /// What it is given to read at once.
    pub stdin: Vec<u8>,
    /// How it can be written to after that.
    pub input: Option<Input>,
    /// What is not to be seen of its output.
    pub secrets: Secrets,
    /// What it is confined in, which lives as long as it does.
    pub enclosure: Option<Arc<Enclosure>>,
    /// Who waits for the ends of a program that is directed.
    pub directing: Option<oneshot::Sender<(OwnedFd, OwnedFd)>>,
    /// Why everything ends, once it does.
    pub closing: Arc<OnceLock<Closing>>,
    /// Has another agent start it, if one was killed before it did.
    pub again: Option<Again>,
}

/// Has a command started that was not.
pub(crate) type Again = Box<dyn FnOnce(SpawnFrame) -> Result<Process, Error> + Send + Sync>;

impl Cleared {
    /// What the run is known by.
    pub fn id(&self) -> &Arc<str> {
        self.recorded.id()
    }

    pub fn timeout(&self) -> Option<Duration> {
        self.pending.timeout
    }

    /// Gives up the proof for what the agent and the run's task need. It works once.
    pub fn into_parts(self) -> (Spawn, Pending, Recorded) {
        (self.spawn, self.pending, self.recorded)
    }
}

/// What a request has to pass.
pub struct Gate<'a> {
    pub settings: &'a Settings,
    pub bounds: &'a Bounds,
    pub audit: &'a Audit,
}

impl Gate<'_> {
    /// Judges a request, puts it on record and turns it into what will run.
    pub async fn clear(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Cleared, Error> {
        self.pass(owner, origin, request, judge).await
    }

    /// The same for a program of our own, which does nothing before it is told to.
    pub async fn clear_own(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Cleared, Error> {
        self.pass(owner, origin, request, |_, _| Judgement::allowed()).await
    }

    /// The same for the login shell of whoever started us, which runs where they are at home.
    pub fn clear_login(&self, login: &Login) -> Result<Cleared, Error> {
        let request = RunRequest {
            directory: Some(login.directory.clone()),
            timeout: Some(login.timeout),
            environment: login.environment.clone(),
            ..RunRequest::new(Command::Argv(login.command.clone()))
        };
        let origin = Origin { tool: LOGIN.to_owned(), ..Origin::default() };
        let permit = Permit { rules: Vec::new(), warnings: Vec::new() };
        let asked = self.asked(&request, origin.source(LOGIN), &login.directory);
        let recorded = self.audit.start(&asked, &permit)?;
        let directory = Directory::Path(login.directory.clone());
        Ok(self.lay_out(request, directory, permit, recorded))
    }

    async fn pass(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
        judge: fn(&Settings, &RunRequest) -> Judgement,
    ) -> Result<Cleared, Error> {
        let settings = self.settings;
        let path = directory(settings, &request);
        let asked = self.asked(&request, origin.source(owner.name()), &path);
        let (directory, permit) = match self.admit(&path, &request, judge) {
            Ok(admitted) => admitted,
            Err(error) => {
                self.audit.refuse(&asked, &error.reason()).await?;
                return Err(error);
            }
        };
        let recorded = self.audit.start(&asked, &permit)?;
        Ok(self.lay_out(request, directory, permit, recorded))
    }

    /// A request as it is put on record.
    fn asked<'a>(
        &'a self,
        request: &'a RunRequest,
        source: Source<'a>,
        directory: &'a Path,
    ) -> Asked<'a> {
        let command = match &request.command {
            Command::Script { text, shell } => {
                let shell = shell.as_deref().unwrap_or(&self.settings.shell);
                mcpz_audit::Command::Script { text, shell }
            }
            Command::Argv(words) => mcpz_audit::Command::Argv(words),
        };
        Asked {
            source,
            command,
            directory,
            timeout: self.timeout(request),
            description: request.description.as_deref(),
            environment: request.environment.iter().map(|(name, _)| name.as_str()).collect(),
            stdin_bytes: request.stdin.as_ref().map(|bytes| bytes.len() as u64),
        }
    }

    fn timeout(&self, request: &RunRequest) -> Option<Duration> {
        match request.lasting {
            true => request.timeout,
            false => Some(request.timeout.unwrap_or(self.settings.timeout)),
        }
    }

    /// What agent and task need to run what is on record.
    fn lay_out(
        &self,
        request: RunRequest,
        entered: Directory,
        permit: Permit,
        recorded: Recorded,
    ) -> Cleared {
        let settings = self.settings;
        let (path, timeout) = (directory(settings, &request), self.timeout(&request));
        let (executed, program) = match request.command {
            Command::Script { text, shell } => {
                let shell = shell.unwrap_or_else(|| settings.shell.clone());
                (shell.clone(), Program::Script { shell: shell.into(), text: OsString::from(text) })
            }
            Command::Argv(words) => {
                let name = words.first().map(PathBuf::from).unwrap_or_default();
                (name, Program::Argv(words.into_iter().map(OsString::from).collect()))
            }
        };
        let environment = request.environment.into_iter();
        let environment = environment.map(|(name, value)| (name.into(), Some(value.into())));
        let mut environment: Vec<(OsString, Option<OsString>)> = environment.collect();
        let stdin = match request.input {
            Some(Input::Terminal(Size { rows, columns })) => {
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
        let directory = entered;
        let spawn = Spawn { program, directory, environment, stdin, joined, controlled: false };
        let pending = Pending {
            program: executed,
            directory: path,
            timeout,
            warnings: permit.warnings,
            stdin: request.stdin.unwrap_or_default(),
            input: request.input,
            secrets: settings.secrets.clone(),
            enclosure: None,
            directing: None,
            closing: Arc::default(),
            again: None,
        };
        Cleared { spawn, pending, recorded }
    }

    /// What to enter for a request that may run, and what allows it.
    fn admit(
        &self,
        path: &Path,
        request: &RunRequest,
        judge: fn(&Settings, &RunRequest) -> Judgement,
    ) -> Result<(Directory, Permit), Error> {
        check_bytes(request)?;
        let Judgement { verdict, threats, rules } = judge(self.settings, request);
        if let Verdict::Deny(denial) = verdict {
            return Err(Error::Refused(denial));
        }
        let directory = match self.bounds.place(path, request)? {
            // From a directory that is held, `..` leads out of every ring.
            Directory::Handle(_) if self.settings.confining.is_some() => {
                Directory::Path(path.to_owned())
            }
            directory => directory,
        };
        let warnings = threats.iter().map(|threat| threat.what).collect();
        Ok((directory, Permit { rules, warnings }))
    }
}

fn judge(settings: &Settings, request: &RunRequest) -> Judgement {
    let directory = directory(settings, request);
    let home = settings.home.as_ref().map(|home| home.to_string_lossy());
    let scene = Scene {
        directory: &directory.to_string_lossy(),
        home: home.as_deref(),
        variables: &request.environment,
        typed: request.input.is_some() && request.stdin.is_none(),
    };
    match &request.command {
        Command::Script { text, shell } => {
            let shell = shell.as_ref().unwrap_or(&settings.shell).to_string_lossy();
            let alone = settings.policy.judge(text, &shell, &scene);
            match request.before.as_deref() {
                None | Some("") => alone,
                _ if alone.verdict != Verdict::Allow => alone,
                // The shell knows what it was told before, and so does whoever judges.
                Some(before) => {
                    let whole = settings.policy.judge(&[before, text].concat(), &shell, &scene);
                    whole.behind(before.len())
                }
            }
        }
        Command::Argv(words) => settings.policy.judge_words(words, &scene),
    }
}

/// Refuses what no program could be given, with its name.
fn check_bytes(request: &RunRequest) -> Result<(), Error> {
    let nul = match &request.command {
        Command::Script { text, .. } => text.contains('\0'),
        Command::Argv(words) => words.iter().any(|word| word.contains('\0')),
    };
    if nul {
        return Err(Error::NulByte { what: "command" });
    }
    let directory = request.directory.as_ref().map(|path| path.as_os_str().as_encoded_bytes());
    if directory.is_some_and(|path| path.contains(&0)) {
        return Err(Error::NulByte { what: "working directory" });
    }
    for (name, value) in &request.environment {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Error::BadVariable(name.clone()));
        }
        if value.contains('\0') {
            return Err(Error::NulByte { what: "environment" });
        }
    }
    Ok(())
}
