//! Why a command has no outcome.
//!
//! Each text says what failed and with what value, then what to do about it if something can be done. Causes are not
//! repeated in it: [`Error::chain`] adds them.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcpz_agent::{Failure, LinkError, Stage, signal_name};
use mcpz_audit::Reason;
use mcpz_places::PlaceError;
use mcpz_policy::Denial;
use mcpz_proxy::RulesError;
use mcpz_runtime::with_causes;
use mcpz_sandbox::ViewError;

use crate::outcome::End;

/// Why a command did not run. A command that ran and failed has an outcome instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refused by the policy: {0}")]
    Refused(Denial),
    #[error("the {what} contains a NUL byte; remove it")]
    NulByte { what: String },
    #[error("`{0}` is not a valid variable name: it is empty, or contains `=` or a NUL byte")]
    BadVariable(String),
    #[error("cannot enter the working directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{0} is not within the allowed directories; add it to allowed_directories to allow it")]
    DirectoryNotAllowed(RefusedDirectory),
    #[error("{directory} is outside of {}; add it to allowed_directories to allow it", root.display())]
    DirectoryOutside { directory: RefusedDirectory, root: PathBuf },
    #[error(
        "cannot keep commands within the allowed directories: the system call openat2 is not available; it needs \
         Linux 5.6 or newer, and a container that permits it"
    )]
    NoOpenat2(#[source] io::Error),
    #[error("there is no place `{name}`; the places are: {known}")]
    UnknownPlace { name: String, known: String },
    #[error("the place `{name}` cannot be used")]
    Place { name: String, source: PlaceError },
    #[error(
        "the place `{name}` was lost before it started the command; send the command again to make the place again"
    )]
    PlaceLost { name: String },
    #[error(
        "the session `{name}` runs {where_it_is}; leave out `place`, or choose another session"
    )]
    SessionElsewhere { name: String, where_it_is: String },
    #[error(
        "there are already {limit} places like `{name}`, as many as `max` allows; try again when one has ended"
    )]
    TooManyPlaces { name: String, limit: usize },
    #[error(
        "`{what}` is not possible in the place `{name}`, which ends with this server; `background` is"
    )]
    NotInPlace { what: &'static str, name: String },
    #[error(
        "the program of mcpz was replaced or removed while this server runs; restart the server"
    )]
    Replaced,
    #[error("cannot set up the sandbox")]
    SandboxLayout(#[source] ViewError),
    #[error("cannot set up the network of the sandbox")]
    SandboxNetwork(#[source] RulesError),
    #[error("cannot confine the command, so it was not started")]
    Confinement(#[source] io::Error),
    #[error("cannot execute {}", program.display())]
    Program { program: PathBuf, source: io::Error },
    #[error("a system call failed while starting the command")]
    Resources(#[source] io::Error),
    #[error("the agent could not start the command")]
    Agent(#[from] LinkError),
    #[error(transparent)]
    Audit(#[from] mcpz_audit::Error),
    #[error(transparent)]
    Output(#[from] mcpz_output::Error),
    #[error("too many commands are running and waiting; try again later")]
    Busy,
    #[error("the limit of running jobs ({limit}) is reached; stop one, or wait for one to end")]
    TooManyJobs { limit: usize },
    #[error(
        "the session `{name}` is already running; change its directory and variables with `cd` and `export`"
    )]
    SessionAlreadyRuns { name: String },
    #[error(
        "{program} executes its input, or may, and the policy cannot judge these keys; send text and the enter key, \
         and send no other keys"
    )]
    UnjudgeableKeys { program: String },
    #[error(
        "{program} executes its input, and the policy cannot judge a continuation of what someone else typed; stop the \
         job and start another"
    )]
    TypedElsewhere { program: String },
    #[error(
        "{program} executes its input, and the policy cannot judge that in a job which another server started; start a \
         new job"
    )]
    BeginningUnknown { program: String },
    #[error(
        "cannot find out which programs read the job's input because the job is not responding; try again"
    )]
    ReadersUnknown,
    #[error("the job has not read its earlier input; send more after it has")]
    InputUnread,
    /// The reason a recorder gives.
    #[error("{0}")]
    RecorderFailed(String),
    #[error(transparent)]
    NotStarted(Arc<Error>),
    #[error("the recorder of the detached job ended unexpectedly; try again")]
    NoRecorder,
    #[error(
        "cannot keep a detached job: the server has no state folder; set HOME or XDG_STATE_HOME for the server"
    )]
    NoJobsFolder,
    #[error("cannot keep a detached job in {}", path.display())]
    JobsFolder { path: PathBuf, source: io::Error },
    #[error(
        "detached jobs have used up their disk space (`spill_per_client`, `spill_total`); stop one that prints a lot"
    )]
    JobsFolderFull,
    #[error(
        "the session ended before this command ran; send the command again to start a new session"
    )]
    SessionEnded,
    #[error("the limit of sessions ({limit}) is reached; end one with `exit`")]
    TooManySessions { limit: usize },
    #[error("the login shell {shell} {}", how(*end))]
    Login { shell: String, end: End },
    #[error("cancelled before it was started")]
    Cancelled,
    #[error("the server is shutting down")]
    Closed,
}

/// A directory outside of the bounds.
#[derive(Debug)]
pub struct RefusedDirectory {
    pub path: PathBuf,
    /// Where it really is, if it looks as if it were within bounds.
    pub target: Option<PathBuf>,
}

impl fmt::Display for RefusedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.target {
            Some(target) => write!(f, " (a symbolic link leads to {})", target.display()),
            None => Ok(()),
        }
    }
}

impl Error {
    /// `root` is the directory that it must not leave.
    pub(crate) fn from_failure(
        failure: Failure,
        program: PathBuf,
        directory: PathBuf,
        root: Option<PathBuf>,
    ) -> Self {
        let source = io::Error::from_raw_os_error(failure.errno);
        match failure.stage {
            Stage::Resources => Self::Resources(source),
            Stage::Directory => Self::Directory { path: directory, source },
            Stage::Outside => {
                let directory = RefusedDirectory { path: directory, target: None };
                match root {
                    Some(root) => Self::DirectoryOutside { directory, root },
                    None => Self::DirectoryNotAllowed(directory),
                }
            }
            Stage::Confinement => Self::Confinement(source),
            Stage::Program => Self::Program { program, source },
            Stage::Denied => {
                let source = io::Error::new(source.kind(), "a rule denies what it leads to");
                Self::Program { program, source }
            }
        }
    }

    /// The policy rule that refused the command, if one did.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Refused(denial) => denial.rule(),
            _ => None,
        }
    }

    /// The reason for the audit trail. If it quotes the command, it has a second text that does not.
    pub(crate) fn reason(&self) -> Reason {
        let redacted = match self {
            Self::Refused(_) => Some("refused by the policy".to_owned()),
            Self::Program { source, .. } => Some(format!("cannot execute it: {source}")),
            _ => None,
        };
        Reason { rule: self.rule().map(str::to_owned), text: self.chain(), redacted }
    }

    /// The error and all its causes on one line.
    pub fn chain(&self) -> String {
        with_causes(self)
    }
}

/// How a login shell ended without reporting its variables.
fn how(end: End) -> String {
    match end {
        End::TimedOut { after } => format!("took longer than {} s to start", after.as_secs_f64()),
        End::Exited(code) => format!("ended during startup with exit code {code}"),
        End::Signalled(signal) => format!("was ended by {}", signal_name(signal)),
        End::Cancelled => "was cancelled".to_owned(),
        End::Lost => "was lost because its keeper was killed".to_owned(),
        End::Closed(_) => "was ended because the server is shutting down".to_owned(),
    }
}
