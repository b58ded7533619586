//! `mcpz server shell`

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use mcpz_engine::CpuShare;
use mcpz_runtime::Later;
use mcpz_server::serve_stdio;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::ServerFlags;
use crate::config::{self, Config};
use crate::descriptors::make_room;
use crate::http::{self, Http};
use crate::log::{Detail, Format};
use crate::settings::Settings;
use crate::traces::Traces;

pub fn run(flags: &ServerFlags) -> Result<ExitCode, Box<dyn Error>> {
    let config = config::load(flags.shell.config.as_deref());
    let file = config.as_ref().ok().and_then(|config| config.shell_tool.log_format);
    let log = flags.shell.log_format.or(file).unwrap_or_default();
    // Whoever reads our words as JSON can read why there will be none.
    config.map_err(Into::into).and_then(|config| serve(flags, config)).or_else(|error| {
        log.complain(error.as_ref());
        Ok(ExitCode::FAILURE)
    })
}

fn serve(flags: &ServerFlags, config: Config) -> Result<ExitCode, Box<dyn Error>> {
    let http = flags.http.http.then(|| Http::load(&flags.http, config.http.clone())).transpose()?;
    let made = http.as_ref().and_then(|http| http.made.clone());
    let mut settings = Settings::load(&flags.shell, config, made)?.confined()?;
    // Over HTTP there are several clients, and none is to have more than another.
    settings.engine.limits.together.cpu = http.as_ref().map_or(CpuShare::Any, |_| CpuShare::Even);
    if let Some(time) = flags.finish_time {
        settings.finish_time = Duration::from_secs(time);
    }
    settings.log.catch_panics();
    warn_of_doors(settings.log, &settings.engine.policy);
    warn_of_no_jobs(&settings);
    match (settings.verbose, &http) {
        (true, _) => settings.log.start(Detail::Everything),
        // A service that serves many is watched by its log.
        (false, Some(_)) => settings.log.start(Detail::Runs),
        (false, None) => settings.log.start(Detail::Faults),
    }
    hide();
    mcpz_agent::return_large_blocks_at_once();
    let traces = Traces::begin(settings.log);
    settings.spans = traces.as_ref().map(|traces| traces.spans.clone());
    let served = match http {
        Some(http) => http::run(settings, http),
        None => run_stdio(settings),
    };
    traces.into_iter().for_each(Traces::finish);
    served.map(|()| ExitCode::SUCCESS)
}

fn run_stdio(mut settings: Settings) -> Result<(), Box<dyn Error>> {
    make_room(&mut settings.engine, 0);
    let later = Later::default();
    let runtime = runtime(&later)?;
    let (finish_time, memory) = (settings.finish_time, settings.memory);
    let served = runtime.block_on(async {
        tracing::info!("mcpz shell server started");
        serve_stdio(settings.shell(later), finish_time, memory, shutdown()?).await
    });
    // A thread may still wait for a terminal's input; there is nothing to wait for.
    runtime.shutdown_background();
    Ok(served?)
}

fn warn_of_doors(log: Format, policy: &mcpz_policy::Policy) {
    let doors = policy.open_doors();
    if !doors.is_empty() {
        let doors = doors.join(", ");
        log.warn(&format!("the allow list has programs that can run any other: {doors}"));
    }
}

/// A call is not handed over to where nobody can ask for it.
fn warn_of_no_jobs(settings: &Settings) {
    if settings.faces.background_after.is_some() && !settings.tools.has_jobs() {
        settings.log.warn(
            "background_after hands no call over as a job, as the tools for jobs are not offered: add \
             read_job and stop_job to --tools",
        );
    }
}

/// One thread is enough for a client, and the fastest: no call waits for another thread to wake.
/// What can wait is done when it has nothing else to do.
pub fn runtime(later: &Later) -> std::io::Result<Runtime> {
    let later = later.clone();
    Builder::new_current_thread().enable_all().on_thread_park(move || later.catch_up()).build()
}

/// Keeps our memory and environment from the commands we run.
pub fn hide() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Done when we are asked to end.
pub fn shutdown() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
