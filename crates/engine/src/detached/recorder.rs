//! The life of a recorder.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpz_agent::{FIRST_OWNER, InheritedStdio, OwnKeeper, Process, daemonize, decode, encode};
use mcpz_audit::{Audit, Discretion};
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
use crate::sandbox::{InnerAgent, Sandbox};
use crate::settings::SandboxSettings;
use crate::variables::Variables;

/// How long those who follow may take to hear the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long a recorder waits for room on a full disk. An end that is not on record by then is recorded as lost by the
/// next server.
const STAY: Duration = Duration::from_secs(24 * 3600);

/// Between two attempts to write down the end.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Between two looks whether its folder is still there.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Records one run, from its start until nothing of it is left, in a process that is independent of the one that
/// started this one. `program` and `variables` are those of this process. Must be called while there is one thread.
pub fn record(program: PathBuf, variables: Variables) -> io::Result<()> {
    let InheritedStdio { mut input, mut output } = daemonize()?;
    let mut frame = Vec::new();
    input.read_to_end(&mut frame)?;
    let Some((mut launch, _)) = decode::<Launch>(&frame).map_err(io::Error::other)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    drop(frame);
    // The runtime goes before the keeper's folders do, and the keeper with it.
    let (start, _groups) = match launch.sandbox.take() {
        None => {
            let (keep, groups) = OwnKeeper::fork(launch.limits)?;
            (Start::Kept(keep), Some(groups))
        }
        Some(settings) => {
            (Start::Sandboxed { settings: Box::new(settings), program, variables }, None)
        }
    };
    let later = Later::default();
    let idle = later.clone();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || idle.catch_up())
        .build()?;
    runtime.block_on(async {
        match begin(launch, start, later.clone()).await {
            Ok(begun) => {
                // The caller may be gone; the job was to outlive it.
                let _ = answer(&mut output, &Launched::Begun);
                drop(output);
                begun.see_through(&later).await
            }
            Err(error) => answer(&mut output, &Launched::Failed(error.chain())),
        }
    })
}

/// Tells the waiting server that the run has begun, or why not.
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
    Sandboxed { settings: Box<SandboxSettings>, program: PathBuf, variables: Variables },
}

/// A run that can be found, and asked for.
struct Begun {
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
    sandbox: Option<Arc<Sandbox>>,
}

async fn begin(mut launch: Launch, start: Start, later: Later) -> Result<Begun, Error> {
    launch.manifest.recorder = std::process::id() as i32;
    let secrets = Secrets::new(std::mem::take(&mut launch.secrets));
    let discretion = Discretion { commands: launch.log_commands, secrets: secrets.clone() };
    let audit = Audit::new(launch.audit.clone(), discretion, later.clone());
    let recorded = audit.resume(&launch.manifest.run)?;
    let plan = Plan {
        program: std::mem::take(&mut launch.program),
        directory: std::mem::take(&mut launch.directory),
        timeout: launch.timeout,
        warnings: Vec::new(),
        stdin: std::mem::take(&mut launch.stdin),
        input: launch.manifest.input,
        secrets,
        description: None,
    };
    let (limit, job) = (launch.limit, Arc::new(OnceLock::new()));
    let Ready { folder, lock, socket, process, sandbox } =
        match get_ready(launch, start, &audit, &job).await {
            Ok(ready) => ready,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
    let (per_run, per_owner, total) = (limit, limit, limit);
    let settings = SpillSettings { parent: folder.folder.clone(), per_run, per_owner, total };
    let spill = Arc::new(Spill::new(settings));
    let output = Output::new(spill.account().recording(folder.output()));
    let backing = Backing { sandbox, later, ..Backing::default() };
    let command = folder.manifest.command.clone();
    let run = Run::start(process, command, plan, recorded, output, backing);
    let jobs = Jobs::default();
    let added = jobs.add_detached(run, folder.manifest.name(), folder.manifest.started_at);
    // The jobs live as long as the socket that serves them.
    let _ = job.set((jobs, added.clone()));
    added.started().await.map_err(Error::NotStarted)?;
    // From now on it can be found, and asked for.
    folder.publish().map_err(|source| folder.error(source))?;
    Ok(Begun { job: added, folder, socket, audit, lock })
}

/// The job, once it runs. The table keeps it.
type Recorded = Arc<OnceLock<(Jobs, Arc<Job>)>>;

async fn get_ready(
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
    // A server that runs below another one may use the sockets of its own jobs only.
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
        Start::Sandboxed { settings, program, variables } => {
            let (variables, limits) = (&variables, launch.limits);
            let inner = InnerAgent { program: &program, variables, limits };
            let sandbox = Sandbox::make(&settings, &inner).await?;
            let own = std::mem::take(&mut spawn.environment);
            spawn.environment = sandbox.variables(&run).into_iter().chain(own).collect();
            (sandbox.link().spawn(FIRST_OWNER, spawn)?, Some(Arc::new(sandbox)))
        }
    };
    Ok(Ready { folder, lock, socket, process, sandbox })
}

impl Begun {
    /// Waits until nothing is left of a job, and writes down what became of it. Servers that follow it are told as
    /// well: while the disk is full, nobody else can find out.
    async fn see_through(self, later: &Later) -> io::Result<()> {
        let Self { job, folder, socket, audit, lock } = self;
        job.gone().await;
        drop(lock);
        let mut end = JobEnd::of(&job);
        let newest = job.output.passing(Stream::Stdout);
        if folder.keep_newest(&newest).is_err() {
            end.lost += newest.len() as u64;
        }
        let mut written = folder.end(&end);
        let _ = timeout(FAREWELL, socket.unfollowed()).await;
        // The record of the end may be among what was put off.
        later.catch_up();
        let room = async {
            audit.caught_up().await;
            while written.as_ref().is_err_and(is_full) {
                sleep(TRY_AGAIN).await;
                written = folder.end(&end);
            }
        };
        tokio::select! {
            _ = timeout(STAY, room) => {}
            () = is_removed(&folder.folder) => {}
        }
        written
    }
}

/// Done when someone has removed a job's folder: nobody is interested in its end any more.
async fn is_removed(folder: &Path) {
    while folder.exists() {
        sleep(LOOK_AGAIN).await;
    }
}

/// Whether there may be room later.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
