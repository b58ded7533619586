//! The life of a recorder.

use std::io::{self, Read, Write};
use std::sync::Arc;

use mcpz_agent::{Given, Keep, decode, encode, kill_all_below, stand_alone};
use tokio::runtime::Builder;

use super::launch::{Begun, Order};
use super::{Ending, Standing};
use crate::audit::{Audit, Discretion};
use crate::desk;
use crate::gate::Pending;
use crate::jobs::{Job, Jobs, State};
use crate::later::Later;
use crate::output::Output;
use crate::run::Run;
use crate::secrets::Secrets;
use crate::spill::{Spill, SpillSettings};

/// Records one run, from its start until nothing of it is left, in a process that whoever started
/// this one has nothing to do with. Must be called while there is one thread.
pub fn record() -> io::Result<()> {
    let Given { mut input, mut output } = stand_alone()?;
    let mut letter = Vec::new();
    input.read_to_end(&mut letter)?;
    let Some((order, _)) = decode::<Order>(&letter).map_err(io::Error::other)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    drop(letter);
    // The runtime, and the keeper with it, goes before its folders do.
    let (keep, _groups) = Keep::fork(order.limits)?;
    let later = Later::default();
    let idle = later.clone();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || idle.catch_up())
        .build()?;
    runtime.block_on(async {
        match begin(order, keep, later).await {
            Ok((job, standing)) => {
                answer(output, &Ok(()))?;
                see_through(&job, &standing).await
            }
            Err(text) => answer(&mut output, &Err(text)),
        }
    })
}

/// Tells whoever waits that the run has begun, or why not.
fn answer(mut output: impl Write, begun: &Begun) -> io::Result<()> {
    let mut letter = Vec::new();
    encode(begun, &mut letter).map_err(io::Error::other)?;
    output.write_all(&letter)
}

async fn begin(order: Order, keep: Keep, later: Later) -> Result<(Arc<Job>, Standing), String> {
    let standing = order.standing().ok_or("its folder cannot be read")?;
    let secrets = Secrets::new(order.secrets);
    let discretion = Discretion { commands: order.log_commands, secrets: secrets.clone() };
    let audit = Audit::new(order.audit, discretion, later.clone());
    let recorded = audit.resume(&standing.card.run);
    let (per_run, total) = (order.limit, order.limit);
    let settings = SpillSettings { per_run, total, ..SpillSettings::new(&standing.folder) };
    let output = Output::new(Arc::new(Spill::new(settings)).recording(standing.output()));
    let pending = Pending {
        program: order.program,
        directory: order.directory,
        timeout: order.timeout,
        warnings: Vec::new(),
        stdin: order.stdin,
        input: standing.card.input,
        secrets,
        directing: None,
    };
    let spawn = order.spawn.unpack(|| None).ok_or("its directory is gone")?;
    let process = keep.spawn(spawn).map_err(|error| error.to_string())?;
    let run = Run::start(process, pending, recorded, output, None, later);
    let jobs = Jobs::default();
    let job = jobs.add_detached(run, &standing.card);
    let (owner, known) = (Arc::from(standing.card.owner.as_str()), job.clone());
    // The jobs go where they are asked for.
    let register = move || {
        let _ = &jobs;
        vec![(Arc::clone(&owner), known.clone())]
    };
    desk::open(&standing.folder, Arc::new(register)).map_err(|error| error.to_string())?;
    job.started().await?;
    Ok((job, standing))
}

/// Waits until nothing is left of a job, and writes down what became of it.
async fn see_through(job: &Job, standing: &Standing) -> io::Result<()> {
    job.gone().await;
    if job.state() == State::Lost {
        kill_all_below();
    }
    standing.end(&Ending::of(job))
}
