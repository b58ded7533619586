//! Starting a recorder, and what it is told.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use mcpz_agent::{Attached, Directory, Limits, LinkError, Spawn, decode, encode, path_of};
use serde::{Deserialize, Serialize};

use super::Card;
use crate::enclosure::Confining;
use crate::error::Error;
use crate::variables::Variables;
use mcpz_audit::AuditSettings;

/// All a recorder has to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub folder: PathBuf,
    pub card: Card,
    pub spawn: Spawn<Attached>,
    /// What is executed, and where, to tell if it cannot be.
    pub program: PathBuf,
    pub directory: PathBuf,
    pub timeout: Option<Duration>,
    /// What it may use.
    pub limits: Limits,
    /// How many detached jobs its owner may have.
    pub jobs: usize,
    pub stdin: Vec<u8>,
    /// What is not to be seen of its output.
    pub secrets: Vec<(String, Vec<u8>)>,
    /// The most that is kept of its output.
    pub limit: u64,
    pub audit: AuditSettings,
    /// Whether the trail says what is run.
    pub log_commands: bool,
    /// What it is confined in, if it is.
    pub confining: Option<Confining>,
}

/// What a recorder answers: the run has begun, or why not.
pub type Begun = Result<(), String>;

/// Starts a recorder, with these variables and no others, and waits until its run has begun, or could
/// not, which it puts on record. May wait for the disk.
pub fn launch(
    program: &Path,
    variables: &Variables,
    order: &Order,
    directory: Option<OwnedFd>,
) -> Result<Begun, Error> {
    let mut letter = Vec::new();
    encode(order, &mut letter).map_err(LinkError::TooLong)?;
    let mut command = Command::new(program);
    command.env_clear().envs(variables.all().iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &directory {
        // Entered by its descriptor, whatever has its name by now.
        command.current_dir(path_of(directory));
    }
    command.arg0("mcpz").arg("record").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut recorder = command.spawn().map_err(Error::Resources)?;
    let mut answer = Vec::new();
    let exchanged = (|| {
        recorder.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(&letter)?;
        let mut stdout = recorder.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        stdout.read_to_end(&mut answer)
    })();
    // It goes on elsewhere by now.
    let _ = recorder.wait();
    exchanged.map_err(Error::Resources)?;
    match decode::<Begun>(&answer) {
        Ok(Some((begun, _))) => Ok(begun),
        _ => Err(Error::NoRecorder),
    }
}

/// What of a spawn goes into an order, and the directory that is held instead of named.
pub fn enclose(spawn: Spawn) -> (Spawn<Attached>, Option<OwnedFd>) {
    let (mut spawn, handle) = spawn.split_directory();
    if handle.is_some() {
        spawn.directory = Directory::Own;
    }
    (spawn, handle)
}
