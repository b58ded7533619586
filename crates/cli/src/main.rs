//! The `mcpz` program. Reads flags, files and the environment, and is the only one that prints.

mod args;
mod audit;
mod call;
mod check;
mod client;
mod colours;
mod command_environment;
mod descriptors;
mod doctor;
mod environment;
mod fetch;
mod health;
mod http;
mod install;
mod jobs;
mod jwks;
mod log;
mod manual;
mod pairs;
mod policy;
mod process;
#[cfg(test)]
mod reference;
mod restrictions;
mod sandbox;
mod server;
mod settings;
mod setup;
mod traces;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Args, Command, PolicyCommand, Server};
use crate::log::Format;

fn main() -> ExitCode {
    let result = serve_a_server().unwrap_or_else(run);
    result.unwrap_or_else(|error| {
        if is_closed_pipe(error.as_ref()) {
            return ExitCode::SUCCESS;
        }
        Format::Text.complain(error.as_ref());
        ExitCode::FAILURE
    })
}

/// Whether whoever reads us has seen enough.
fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// What a server starts us for, if it does: it waits for that, and the agent stays. What reads flags is
/// large, and not needed.
fn serve_a_server() -> Option<Result<ExitCode, Box<dyn Error>>> {
    let mut arguments = environment::arguments();
    let (what, None) = (arguments.next()?, arguments.next()) else { return None };
    let done: Result<(), Box<dyn Error>> = match what.to_str()? {
        "agent" => mcpz_agent::serve_stdin().map_err(Into::into),
        "record" => mcpz_engine::record().map_err(Into::into),
        command_environment::LOGIN_SUBCOMMAND => {
            let variables = mcpz_engine::Variables::new(environment::variables());
            mcpz_engine::tell(&variables).map_err(Into::into)
        }
        _ => return None,
    };
    Some(done.map(|()| ExitCode::SUCCESS))
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let matches = Args::command().color(colours::choice()).get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match args.command {
        Command::Server { server: Server::Shell(flags) } => server::run(&flags),
        Command::Call(flags) => call::run(&flags),
        Command::Check(flags) => check::run(&flags),
        Command::Policy { policy: PolicyCommand::Test { file } } => check::test(&file),
        Command::Audit { audit } => audit::run(audit),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Install(flags) => install::run(&flags),
        Command::Jobs { jobs } => jobs::run(jobs),
        Command::Health { url } => health::run(url.as_deref()),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::pages(dir.as_deref()),
        Command::Trial { terms } => sandbox::run_trial(&terms),
    }
}
