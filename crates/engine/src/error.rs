//! Why a command has no outcome.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcpz_agent::{Failure, LinkError, Stage};
use mcpz_audit::Reason;
use mcpz_policy::Denial;
use mcpz_proxy::RulesError;
use mcpz_runtime::with_causes;
use mcpz_sandbox::ViewError;

use crate::outcome::End;
use crate::signals::signal_name;

/// A command that ran and failed is not among these: it has an outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refused by the policy: {0}")]
    Refused(Denial),
    #[error("the {what} contains a NUL byte, which no program can be given")]
    NulByte { what: &'static str },
    #[error("`{0}` is not the name of an environment variable")]
    BadVariable(String),
    #[error("cannot enter the working directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "{} is not within the allowed directories; add it to allowed_directories to allow it",
        .0.display()
    )]
    NotAllowedThere(PathBuf),
    #[error(
        "{} is outside of {}; add it to allowed_directories to allow it",
        path.display(), root.display()
    )]
    NotAllowedOutside { path: PathBuf, root: PathBuf },
    #[error(
        "nothing can be kept within a directory here: that needs the system call openat2, of Linux 5.6"
    )]
    Boundless(#[source] io::Error),
    #[error("the sandbox cannot be made")]
    View(#[source] ViewError),
    #[error("the sandbox cannot be made")]
    Net(#[source] RulesError),
    #[error("the command cannot be confined as it must be")]
    Confinement(#[source] io::Error),
    #[error("cannot execute {}", program.display())]
    Program { program: PathBuf, source: io::Error },
    #[error("the system cannot start another process")]
    Resources(#[source] io::Error),
    #[error("cannot reach the agent that starts processes")]
    Agent(#[from] LinkError),
    #[error(transparent)]
    Audit(#[from] mcpz_audit::Error),
    #[error(transparent)]
    Output(#[from] mcpz_output::Error),
    #[error("too many commands are running and waiting; try again later")]
    Busy,
    #[error("{limit} jobs are running, which is the limit; stop one, or wait until one has ended")]
    TooManyJobs { limit: usize },
    #[error(
        "the session `{name}` has a directory and variables already; change them with `cd` and \
         `export`"
    )]
    SessionRuns { name: String },
    #[error(
        "{program} reads what is typed, and takes it for a program: only text and the ends of lines can \
         be judged, other keys cannot"
    )]
    Keys { program: String },
    #[error(
        "{program} reads what is typed, and takes it for a program; somebody else has typed before, and what \
         comes now cannot be judged without that; stop the job and start another"
    )]
    TypedElsewhere { program: String },
    #[error(
        "cannot find out which programs read what is typed, as the job does not answer; try again"
    )]
    Unseen,
    #[error("the job has not read what it was sent before; nothing more is sent until it does")]
    Unread,
    /// Another process could not start it, for this reason.
    #[error("{0}")]
    NotBegun(String),
    #[error(transparent)]
    NotStarted(Arc<Error>),
    #[error("the process that should have kept the detached job has ended")]
    NoRecorder,
    #[error(
        "there is no place for detached jobs: the server has no folder for its state; set HOME or \
         XDG_STATE_HOME for it"
    )]
    NoJobsFolder,
    #[error("cannot keep a detached job in {}", path.display())]
    JobsFolder { path: PathBuf, source: io::Error },
    #[error(
        "detached jobs have filled what they may take of the disk (`spill_per_client`, `spill_total`); \
         stop one that prints much"
    )]
    JobsFolderFull,
    #[error("the session has ended before it was this command's turn; the next one begins anew")]
    SessionEnded,
    #[error("there are {limit} sessions, which is the limit; end one with `exit`")]
    TooManySessions { limit: usize },
    #[error("the login shell {shell} {}", how(*end))]
    Login { shell: String, end: End },
    #[error("cancelled before it was started")]
    Cancelled,
    #[error("the server is ending")]
    Closed,
}

impl Error {
    pub(crate) fn from_failure(failure: Failure, program: PathBuf, directory: PathBuf) -> Self {
        let source = io::Error::from_raw_os_error(failure.errno);
        match failure.stage {
            Stage::Resources => Self::Resources(source),
            Stage::Directory => Self::Directory { path: directory, source },
            Stage::Confinement => Self::Confinement(source),
            Stage::Program => Self::Program { program, source },
        }
    }

    /// The rule of the policy that decided, if one did.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Refused(denial) => denial.rule(),
            _ => None,
        }
    }

    /// What is put on record of it. Where it quotes the command, it can be told without.
    pub(crate) fn reason(&self) -> Reason {
        let discreet = match self {
            Self::Refused(_) => Some("refused by the policy".to_owned()),
            Self::Program { source, .. } => Some(format!("cannot execute it: {source}")),
            _ => None,
        };
        Reason { rule: self.rule().map(str::to_owned), text: self.chain(), discreet }
    }

    /// The error with all its causes, on one line.
    pub fn chain(&self) -> String {
        with_causes(self)
    }
}

/// How a login shell has failed to tell what it was asked.
fn how(end: End) -> String {
    match end {
        End::TimedOut { after } => format!("took longer than {} seconds to start", after.as_secs()),
        End::Exited(code) => format!("has ended by itself while it started, with exit code {code}"),
        End::Signalled(signal) => format!("was ended by {}", signal_name(signal)),
        End::Cancelled | End::Lost => "was lost".to_owned(),
        End::Closed(_) => "was ended with the server".to_owned(),
    }
}
