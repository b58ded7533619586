//! The life of a recorder.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::{FIRST_OWNER, InheritedStdio, OwnKeeper, daemonize, decode, encode};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::launch::{Begun as Answer, Order};
use super::permit::Permit;
use super::{Ending, Standing};
use crate::desk::{Access, Desk};
use crate::enclosure::{self, Confining, Enclosure};
use crate::error::Error;
use crate::gate::Pending;
use crate::jobs::{Job, Jobs};
use crate::run::Run;
use crate::variables::Variables;
use mcpz_audit::{Audit, Discretion};
use mcpz_output::Secrets;
use mcpz_output::{Output, Stream};
use mcpz_output::{Spill, SpillSettings};
use mcpz_runtime::Later;

/// How long those who follow may take to hear the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long a recorder stays for a disk that is full. An end that is not on record by then is recorded as lost
/// by the next server.
const STAY: Duration = Duration::from_secs(24 * 3600);

/// Between two tries to write down the end.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Between two looks whether its folder is still there.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Records one run, from its start until nothing of it is left, in a process that whoever started
/// this one has nothing to do with. Must be called while there is one thread.
pub fn record() -> io::Result<()> {
    let InheritedStdio { mut input, mut output } = daemonize()?;
    let mut letter = Vec::new();
    input.read_to_end(&mut letter)?;
    let Some((mut order, _)) = decode::<Order>(&letter).map_err(io::Error::other)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    drop(letter);
    // The runtime, and the keeper with it, goes before its folders do.
    let (start, _groups) = match order.confining.take() {
        None => {
            let (keep, groups) = OwnKeeper::fork(order.limits)?;
            (Start::Kept(keep), Some(groups))
        }
        Some(confining) => (Start::Enclosed(Box::new(confining)), None),
    };
    let later = Later::default();
    let idle = later.clone();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || idle.catch_up())
        .build()?;
    runtime.block_on(async {
        match begin(order, start, later.clone()).await {
            Ok(begun) => {
                // Whoever has asked for it may be gone; it was to outlive them.
                let _ = answer(&mut output, &Ok(()));
                drop(output);
                begun.see_through(&later).await
            }
            Err(text) => answer(&mut output, &Err(text)),
        }
    })
}

/// Tells whoever waits that the run has begun, or why not.
fn answer(mut output: impl Write, begun: &Answer) -> io::Result<()> {
    let mut letter = Vec::new();
    encode(begun, &mut letter).map_err(io::Error::other)?;
    output.write_all(&letter)
}

/// What starts the run: our own keeper, or the agent inside the sandbox.
enum Start {
    Kept(OwnKeeper),
    Enclosed(Box<Confining>),
}

/// A run that can be found, and asked for.
struct Begun {
    job: Arc<Job>,
    standing: Standing,
    desk: Desk,
    audit: Audit,
    permit: Permit,
}

async fn begin(order: Order, start: Start, later: Later) -> Result<Begun, String> {
    let mut card = order.card;
    card.recorder = std::process::id() as i32;
    let standing = Standing { folder: order.folder, card };
    let secrets = Secrets::new(order.secrets);
    let discretion = Discretion { commands: order.log_commands, secrets: secrets.clone() };
    let audit = Audit::new(order.audit, discretion, later.clone());
    // A server that is itself below another one is let in at its own jobs alone.
    let access = Access::new(audit.clone()).with_server(standing.card.server);
    let recorded = audit.resume(&standing.card.run).map_err(|error| error.chain())?;
    let (jobs, estate) =
        (standing.folder.parent().ok_or("it has no folder")?, &standing.card.estate);
    let Some(permit) = Permit::take(jobs, estate, order.jobs).await else {
        let error = Error::TooManyJobs { limit: order.jobs };
        recorded.end(Err(error.reason()));
        return Err(error.chain());
    };
    let (per_run, per_owner, total) = (order.limit, order.limit, order.limit);
    let settings = SpillSettings { parent: standing.folder.clone(), per_run, per_owner, total };
    let spill = Arc::new(Spill::new(settings));
    let output = Output::new(spill.account().recording(standing.output()));
    let mut pending = Pending {
        program: order.program,
        directory: order.directory,
        timeout: order.timeout,
        warnings: Vec::new(),
        stdin: order.stdin,
        input: standing.card.input,
        secrets,
        enclosure: None,
        directing: None,
        closing: Arc::default(),
        again: None,
    };
    let mut spawn = order.spawn.join_directory(|| None).ok_or("its directory is gone")?;
    let process = match start {
        Start::Kept(keep) => keep.spawn(spawn),
        Start::Enclosed(confining) => {
            let own = std::env::current_exe().map_err(|error| error.to_string())?;
            let variables = Variables::new(std::env::vars_os());
            let (program, variables, limits) = (own.as_path(), &variables, order.limits);
            let inside = enclosure::Agent { program, variables, limits };
            let made = Enclosure::make(&confining, &inside).await;
            let enclosure = made.map_err(|error| error.chain())?;
            let own = std::mem::take(&mut spawn.environment);
            let variables = enclosure.variables(&standing.card.run).into_iter();
            spawn.environment = variables.chain(own).collect();
            let enclosure = pending.enclosure.insert(Arc::new(enclosure));
            enclosure.link().spawn(FIRST_OWNER, spawn)
        }
    };
    let process = process.map_err(|error| error.to_string())?;
    let run = Run::start(process, pending, recorded, output, None, later);
    let jobs = Jobs::default();
    let job = jobs.add_detached(run, &standing.card);
    let (owner, known) = (Arc::from(standing.card.owner.as_str()), job.clone());
    // The jobs go where they are asked for.
    let register = move || {
        let _ = &jobs;
        vec![(Arc::clone(&owner), known.clone())]
    };
    let desk = Desk::open(&standing.folder, Arc::new(register), access);
    let desk = desk.map_err(|error| error.to_string())?;
    job.started().await?;
    // From now on it can be found, and asked for.
    let standing = Standing::begin(standing.folder, standing.card);
    let standing = standing.map_err(|error| error.to_string())?;
    Ok(Begun { job, standing, desk, audit, permit })
}

impl Begun {
    /// Waits until nothing is left of a job, and writes down what became of it. Servers that follow it
    /// are told as well: while the disk is full, nobody else can find out.
    async fn see_through(self, later: &Later) -> io::Result<()> {
        let Self { job, standing, desk, audit, permit } = self;
        job.gone().await;
        drop(permit);
        let mut ending = Ending::of(&job);
        let newest = job.output.passing(Stream::Stdout);
        if standing.keep_newest(&newest).is_err() {
            ending.lost += newest.len() as u64;
        }
        let mut written = standing.end(&ending);
        let folder = standing.folder.clone();
        let _ = timeout(FAREWELL, desk.forsaken()).await;
        // The record of the end may be among what was put off.
        later.catch_up();
        let room = async {
            audit.caught_up().await;
            while written.as_ref().is_err_and(is_full) {
                sleep(TRY_AGAIN).await;
                written = standing.end(&ending);
            }
        };
        tokio::select! {
            _ = timeout(STAY, room) => {}
            () = is_removed(&folder) => {}
        }
        written
    }
}

/// Done when somebody has removed a job's folder: what became of it matters to nobody any more.
async fn is_removed(folder: &Path) {
    while folder.exists() {
        sleep(LOOK_AGAIN).await;
    }
}

/// Whether there may be room later.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
