//! The `mcpz` program: reads flags, files and environment variables, puts the parts together, and prints.
//!
//!     flags, variables, files ─▶ settings ─▶ setup ─┬─▶ server, http ─▶ until the client leaves
//!                                                   └─▶ call, check, history, jobs, install, … ─▶ one answer
//!
//! No other crate reads settings from the environment, or prints.

mod age;
mod args;
mod audit;
mod cache;
mod call;
mod check;
mod client;
mod colours;
mod command_environment;
mod doctor;
mod environment;
mod fetch;
mod health;
mod highlight;
mod history;
mod http;
mod install;
mod jobs;
mod jwks;
mod log;
mod manual;
mod open_files;
mod places;
mod policy;
mod process;
#[cfg(test)]
mod reference;
mod relay;
mod restrictions;
mod sandbox;
mod server;
mod settings;
mod setup;
mod terminal;
mod traces;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Args, Command, PolicyCommand, Server};
use crate::log::Format;

fn main() -> ExitCode {
    let result = run_internal().unwrap_or_else(run);
    result.unwrap_or_else(|error| {
        if is_closed_pipe(error.as_ref()) {
            return ExitCode::SUCCESS;
        }
        Format::Text.error(error.as_ref());
        ExitCode::FAILURE
    })
}

/// Whether the reader of our output has closed it, as `head` does.
fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The commands that only servers use, if we were started with one. They skip the parser of flags: it is large,
/// a server waits for some of them, and an agent stays in memory.
fn run_internal() -> Option<Result<ExitCode, Box<dyn Error>>> {
    let mut arguments = environment::arguments();
    let (command, option) = (arguments.next()?, arguments.next());
    if command == mcpz_places::SUPERVISE {
        let ended = mcpz_agent::supervise(option?, arguments);
        return Some(ended.map(ExitCode::from).map_err(Into::into));
    }
    let operand = arguments.next();
    if arguments.next().is_some() {
        return None;
    }
    if let Some(option) = option {
        let is_relay = command == "agent" && option == "--stream";
        return is_relay.then(|| relay::run(operand.map(Into::into)).map(|()| ExitCode::SUCCESS));
    }
    let done: Result<(), Box<dyn Error>> = match command.to_str()? {
        "agent" => mcpz_agent::serve_stdin().map_err(Into::into),
        "record" => mcpz_engine::record(variables()).map_err(Into::into),
        command_environment::LOGIN_SUBCOMMAND => {
            mcpz_engine::report_variables(&variables()).map_err(Into::into)
        }
        _ => return None,
    };
    Some(done.map(|()| ExitCode::SUCCESS))
}

/// The variables of this process.
fn variables() -> mcpz_engine::Variables {
    mcpz_engine::Variables::new(environment::variables())
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
        Command::Cache { cache } => cache::run(cache),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Install(flags) => install::run(&flags),
        Command::History(flags) => history::run(flags),
        Command::Jobs { jobs } => jobs::run(jobs),
        Command::Places { places, json } => places::run(places, json),
        Command::Health { url } => health::run(url.as_deref()),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::pages(dir.as_deref()),
        Command::Trial { terms } => sandbox::run_trial(&terms),
        Command::Homes => sandbox::serve_homes(),
    }
}
