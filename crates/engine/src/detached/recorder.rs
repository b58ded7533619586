//! The recorder of one detached job, from its start until the end is on the disk.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpz_agent::{
    FIRST_OWNER, InheritedStdio, OWN_PROGRAM, OwnKeeper, Process, daemonize, decode, encode,
    program_path,
};
use mcpz_audit::{Audit, Redaction};
use mcpz_output::{Output, Secrets, Spill, SpillSettings, Stream};
use mcpz_runtime::Later;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::JobFolder;
use super::launch::{Launch, Launched};
use super::lock::JobLock;
use crate::control::{Access, ControlSocket};
use crate::error::Error;
use crate::gate::Plan;
use crate::jobs::{Job, JobEnd, Jobs};
use crate::run::{Backing, Run};
use crate::sandbox::{InnerAgent, Occupied, Sandbox};
use crate::settings::SandboxSettings;
use crate::variables::Variables;

/// How long followers may take to receive the end.
const FOLLOWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a recorder waits for room on a full disk. The next server records an end still missing by then as lost.
const MAX_DISK_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The pause between two attempts to write the end.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);

/// How often to check that its folder still exists.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Records one run, from its start until none of its processes is left, in a process independent of the caller's.
/// `variables` are those of this process. Call it while there is only one thread.
pub fn record(variables: Variables) -> io::Result<()> {
    let InheritedStdio { mut input, mut output } = daemonize()?;
    let mut frame = Vec::new();
    input.read_to_end(&mut frame)?;
    let Some((mut launch, _)) = decode::<Launch>(&frame).map_err(io::Error::other)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    drop(frame);
    // Dropped after the runtime: the keeper must be gone before its cgroups are removed.
    let (start, _groups) = match launch.sandbox.take() {
        None => {
            let (keep, groups) = OwnKeeper::fork(launch.limits)?;
            (Start::Kept(keep), Some(groups))
        }
        Some(settings) => (Start::Sandboxed { settings: Box::new(settings), variables }, None),
    };
    let later = Later::default();
    let idle = later.clone();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || idle.catch_up())
        .build()?;
    runtime.block_on(async {
        let secrets = Secrets::new(std::mem::take(&mut launch.secrets));
        let secrets = if launch.mask_tokens { secrets.with_tokens() } else { secrets };
        let redaction = Redaction { log_commands: launch.log_commands, secrets: secrets.clone() };
        let audit = Audit::new(launch.audit.clone(), redaction, later.clone());
        match begin(launch, start, secrets, audit.clone(), later.clone()).await {
            Ok(running) => {
                // The server may be gone. The job is meant to outlive it.
                let _ = answer(&mut output, &Launched::Begun);
                drop(output);
                running.finish(&later).await
            }
            Err(error) => {
                let answered = answer(&mut output, &Launched::Failed(error.chain()));
                drop(output);
                // The server leaves it to us to record why.
                later.catch_up();
                let _ = timeout(MAX_DISK_WAIT, audit.wait_for_pending()).await;
                answered
            }
        }
    })
}

/// Tells the waiting server that the run has started, or why not.
fn answer(mut output: impl Write, launched: &Launched) -> io::Result<()> {
    let mut frame = Vec::new();
    encode(launched, &mut frame).map_err(io::Error::other)?;
    output.write_all(&frame)
}

/// What starts the run.
enum Start {
    /// Our own keeper.
    Kept(OwnKeeper),
    /// The agent inside a sandbox.
    Sandboxed { settings: Box<SandboxSettings>, variables: Variables },
}

/// A job that others can find and control.
struct RunningJob {
    job: Arc<Job>,
    folder: JobFolder,
    socket: ControlSocket,
    audit: Audit,
    lock: JobLock,
}

/// Everything a run needs before it can start.
struct Ready {
    folder: JobFolder,
    lock: JobLock,
    socket: ControlSocket,
    process: Process,
    sandbox: Option<Occupied>,
}

async fn begin(
    mut launch: Launch,
    start: Start,
    secrets: Secrets,
    audit: Audit,
    later: Later,
) -> Result<RunningJob, Error> {
    launch.manifest.recorder = std::process::id() as i32;
    let recorded = audit.adopt(&launch.manifest.run)?;
    let plan = Plan {
        program: std::mem::take(&mut launch.program),
        directory: std::mem::take(&mut launch.directory),
        timeout: launch.timeout,
        warnings: Vec::new(),
        stdin: std::mem::take(&mut launch.stdin),
        beginning: None,
        input: launch.manifest.input,
        secrets,
        description: None,
        root: None,
        exec_rules: None,
    };
    let (limit, job) = (launch.limit, Arc::new(OnceLock::new()));
    let Ready { folder, lock, socket, process, sandbox } =
        match prepare(launch, start, &audit, &job).await {
            Ok(ready) => ready,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
    let (per_run, per_owner, total) = (limit, limit, limit);
    let settings = SpillSettings { parent: folder.folder.clone(), per_run, per_owner, total };
    let spill = Arc::new(Spill::new(settings));
    let output = Output::new(spill.account().permanent(folder.output()));
    let backing = Backing { sandbox, later, ..Backing::default() };
    let command = folder.manifest.command.clone();
    let run = Run::start(process, command, plan, recorded, output, backing);
    let jobs = Jobs::default();
    let added = jobs.add_detached(run, folder.manifest.name(), folder.manifest.started_at);
    // The jobs live as long as the socket that serves them.
    let _ = job.set((jobs, added.clone()));
    added.started().await.map_err(Error::NotStarted)?;
    // From now on others can find it.
    folder.publish().map_err(|source| folder.error(source))?;
    Ok(RunningJob { job: added, folder, socket, audit, lock })
}

/// The job, once it runs, and the table that keeps it.
type Recorded = Arc<OnceLock<(Jobs, Arc<Job>)>>;

async fn prepare(
    launch: Launch,
    start: Start,
    audit: &Audit,
    job: &Recorded,
) -> Result<Ready, Error> {
    let (run, owner) = (launch.manifest.run.clone(), launch.manifest.owner.clone());
    let folder = JobFolder { folder: launch.folder, manifest: launch.manifest };
    let lock = JobLock::take(folder.jobs(), &folder.manifest.owner_key, launch.jobs).await;
    let lock = lock.ok_or(Error::TooManyJobs { limit: launch.jobs })?;
    folder.write_manifest().map_err(|source| folder.error(source))?;
    // A server below another one may use only the sockets of its own jobs.
    let access = Access::new(audit.clone()).with_server(folder.manifest.server);
    let (owner, served): (Arc<str>, _) = (owner.into(), job.clone());
    let register = move || {
        let job = served.get().map(|(_, job)| (owner.clone(), job.clone()));
        job.into_iter().collect()
    };
    let socket = ControlSocket::open(&folder.folder, Arc::new(register), access);
    let socket = socket.map_err(|source| folder.error(source))?;
    let spawn = launch.spawn.join_directory(|| None);
    let mut spawn = spawn.ok_or_else(|| Error::Resources(io::ErrorKind::NotFound.into()))?;
    let (process, sandbox) = match start {
        Start::Kept(keep) => (keep.spawn(spawn)?, None),
        Start::Sandboxed { settings, variables } => {
            let (variables, limits) = (&variables, launch.limits);
            let outside = Path::new(OWN_PROGRAM);
            let program = program_path(outside).ok_or(Error::Replaced)?;
            let inner = InnerAgent { program: &program, outside, variables, limits };
            let sandbox = Arc::new(Sandbox::make(&settings, &inner).await?);
            let occupied = Occupied::new(sandbox.clone());
            let own = std::mem::take(&mut spawn.environment);
            spawn.environment = sandbox.variables(&run).into_iter().chain(own).collect();
            (sandbox.link().spawn(FIRST_OWNER, spawn)?, Some(occupied))
        }
    };
    Ok(Ready { folder, lock, socket, process, sandbox })
}

impl RunningJob {
    /// Waits until none of the job's processes is left, and writes its end. Followers get the end as well: while the
    /// disk is full, they cannot read it.
    async fn finish(self, later: &Later) -> io::Result<()> {
        let Self { job, folder, socket, audit, lock } = self;
        job.wait_until_gone().await;
        drop(lock);
        let mut end = JobEnd::of(&job);
        let newest = job.output.tail_beyond_cut(Stream::Stdout);
        if folder.keep_newest(&newest).is_err() {
            end.lost += newest.len() as u64;
        }
        let mut written = folder.end(&end);
        let _ = timeout(FOLLOWER_TIMEOUT, socket.wait_until_unfollowed()).await;
        // The record of the end may be among the deferred work.
        later.catch_up();
        let room = async {
            audit.wait_for_pending().await;
            while written.as_ref().is_err_and(is_full) {
                sleep(WRITE_INTERVAL).await;
                written = folder.end(&end);
            }
        };
        tokio::select! {
            _ = timeout(MAX_DISK_WAIT, room) => {}
            () = wait_until_removed(&folder.folder) => {}
        }
        written
    }
}

/// Completes when someone has removed the job's folder: then nobody needs its end.
async fn wait_until_removed(folder: &Path) {
    while folder.exists() {
        sleep(POLL_INTERVAL).await;
    }
}

/// Whether there may be room later.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
