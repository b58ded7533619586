//! `mcpz server shell`: starts a server on standard input and output, or over HTTP.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use mcpz_agent::CpuShare;
use mcpz_runtime::Later;
use mcpz_server::serve_stdio;

use crate::args::ServerFlags;
use crate::http::{self, Http};
use crate::log::{Detail, Format};
use crate::settings::{self, Settings};
use crate::setup::Setup;
use crate::traces::Traces;
use crate::{open_files, process};

pub fn run(flags: &ServerFlags) -> Result<ExitCode, Box<dyn Error>> {
    let flags = &flags.settings;
    let file = settings::load_file(flags.startup.config());
    let format = file.as_ref().ok().and_then(|file| file.shell_tool.log_format);
    let log = flags.shell_tool.log_format.or(format).unwrap_or_default();
    let served = file.map_err(Into::into).and_then(|file| serve(&Settings::merge(flags, file)?));
    // A program that reads our log as JSON reads there why the server did not start.
    served.or_else(|error: Box<dyn Error>| {
        log.error(error.as_ref());
        Ok(ExitCode::FAILURE)
    })
}

fn serve(settings: &Settings) -> Result<ExitCode, Box<dyn Error>> {
    let http = settings.startup.http().then(|| Http::new(settings)).transpose()?;
    let token = http.as_ref().and_then(|http| http.generated_token.clone());
    let mut setup = Setup::new(settings, token)?.confined()?;
    // Over HTTP there are several clients, which share CPU time evenly.
    setup.engine.limits.per_owner.cpu = http.as_ref().map_or(CpuShare::Any, |_| CpuShare::Even);
    setup.log.catch_panics();
    warn_of_allowed_runners(setup.log, &setup.engine.policy);
    warn_of_missing_job_tools(&setup);
    warn_of_missing_lock(&setup);
    warn_of_removed_trail(setup.log, &setup.engine.audit.folder);
    match (setup.verbose, &http) {
        (true, _) => setup.log.start(Detail::Everything),
        // A service for many clients is watched by its log.
        (false, Some(_)) => setup.log.start(Detail::Runs),
        (false, None) => setup.log.start(Detail::Errors),
    }
    process::hide();
    mcpz_agent::return_large_blocks_at_once();
    let traces = Traces::begin(setup.log);
    setup.spans = traces.as_ref().map(|traces| traces.spans.clone());
    let served = match http {
        Some(http) => http::run(setup, http),
        None => run_stdio(setup),
    };
    traces.into_iter().for_each(Traces::finish);
    served.map(|()| ExitCode::SUCCESS)
}

fn run_stdio(mut setup: Setup) -> Result<(), Box<dyn Error>> {
    open_files::raise_limit(&mut setup.engine, 0);
    let later = Later::default();
    let runtime = process::runtime(&later)?;
    let (finish_time, memory) = (setup.finish_time, setup.memory);
    let served = runtime.block_on(async {
        tracing::info!("mcpz shell server started");
        serve_stdio(setup.shell(later), finish_time, memory, process::shutdown()?).await
    });
    // Does not wait for the thread that may still read from a terminal.
    runtime.shutdown_background();
    Ok(served?)
}

fn warn_of_allowed_runners(log: Format, policy: &mcpz_policy::Policy) {
    let runners = policy.open_doors();
    if !runners.is_empty() {
        let runners = runners.join(", ");
        log.warn(&format!("the allow list contains programs that can run any other: {runners}"));
    }
}

fn warn_of_missing_lock(setup: &Setup) {
    if let Some(error) = &setup.no_lock {
        setup.log.warn(&format!(
            "this kernel cannot hold commands to the policy ({error}); only what mcpz understands of them is checked"
        ));
    }
}

/// Calls become jobs only if the client has tools to read and stop them.
fn warn_of_missing_job_tools(setup: &Setup) {
    if setup.faces.background_after.is_some() && !setup.tools.has_jobs() {
        setup.log.warn(
            "background_after has no effect without the job tools; add read_job and stop_job to --tools",
        );
    }
}

fn warn_of_removed_trail(log: Format, folder: &Path) {
    if matches!(mcpz_audit::trail_was_removed(folder), Ok(true)) {
        let folder = folder.display();
        log.warn(&format!(
            "the audit trail in {folder} was removed, but not its key; if you removed it yourself, remove \
             audit.key as well, or `mcpz audit verify` will report missing records"
        ));
    }
}
