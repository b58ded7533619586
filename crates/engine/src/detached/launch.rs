//! Starts a recorder, and tells it what to run.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use mcpz_agent::{
    Attached, Directory, Limits, LinkError, Spawn, decode, encode, path_of, start_child,
    wait_for_child,
};
use mcpz_audit::AuditSettings;
use serde::{Deserialize, Serialize};

use super::Manifest;
use crate::error::Error;
use crate::settings::SandboxSettings;
use crate::variables::Variables;

/// Everything a recorder has to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct Launch {
    pub folder: PathBuf,
    pub manifest: Manifest,
    pub spawn: Spawn<Attached>,
    /// What to execute and where, for the message if that fails.
    pub program: PathBuf,
    pub directory: PathBuf,
    pub timeout: Option<Duration>,
    /// What it may use.
    pub limits: Limits,
    /// How many detached jobs its owner may have.
    pub jobs: usize,
    pub stdin: Vec<u8>,
    /// What is masked in its output.
    pub secrets: Vec<(String, Vec<u8>)>,
    /// Whether tokens are recognised and masked, too.
    pub mask_tokens: bool,
    /// How much of its output to keep.
    pub limit: u64,
    pub audit: AuditSettings,
    /// Whether the audit trail contains the text of commands.
    pub log_commands: bool,
    /// The sandbox it runs in, if it has one.
    pub sandbox: Option<SandboxSettings>,
}

/// What a recorder answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Launched {
    Begun,
    /// Why it did not start. The recorder has recorded that.
    Failed(String),
}

/// Why a detached job did not start.
#[derive(Debug)]
pub enum LaunchError {
    /// The recorder has recorded it.
    Recorded(Error),
    /// Nobody has recorded it yet.
    Unrecorded(Error),
}

impl From<Error> for LaunchError {
    fn from(error: Error) -> Self {
        Self::Unrecorded(error)
    }
}

/// Starts a recorder, with these variables and no others, and waits until its run has started or failed. May wait for
/// the disk.
pub fn launch(
    program: &Path,
    variables: &Variables,
    launch: &Launch,
    directory: Option<OwnedFd>,
) -> Result<(), LaunchError> {
    let mut frame = Vec::new();
    encode(launch, &mut frame).map_err(|error| Error::from(LinkError::TooLong(error)))?;
    let mut command = Command::new(program);
    command.env_clear().envs(variables.all().iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &directory {
        // By its descriptor: the name may belong to another directory by now.
        command.current_dir(path_of(directory));
    }
    command.arg0("mcpz").arg("record").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut recorder = start_child(&mut command).map_err(Error::Resources)?;
    let mut answer = Vec::new();
    let exchanged = (|| {
        recorder.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&frame)?;
        let mut stdout = recorder.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        stdout.read_to_end(&mut answer)
    })();
    // The recorder itself lives on in another process.
    wait_for_child(recorder);
    exchanged.map_err(Error::Resources)?;
    match decode(&answer) {
        Ok(Some((Launched::Begun, _))) => Ok(()),
        Ok(Some((Launched::Failed(reason), _))) => {
            Err(LaunchError::Recorded(Error::RecorderFailed(reason)))
        }
        _ => Err(Error::NoRecorder.into()),
    }
}

/// Splits a spawn into what fits in a launch and the open directory, if it has one.
pub fn enclose(spawn: Spawn) -> (Spawn<Attached>, Option<OwnedFd>) {
    let (mut spawn, handle) = spawn.split_directory();
    if handle.is_some() {
        spawn.directory = Directory::Own;
    }
    (spawn, handle)
}
