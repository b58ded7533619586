//! The `mcpz` program. Reads flags, files and the environment, and is the only one that prints.

mod args;
mod around;
mod audit;
mod call;
mod check;
mod colours;
mod config;
mod doctor;
mod environment;
mod fetch;
mod health;
mod http;
mod install;
mod jobs;
mod keys;
mod log;
mod login;
mod manual;
mod pairs;
mod policy;
#[cfg(test)]
mod reference;
mod restrictions;
mod sandbox;
mod secrets;
mod server;
mod settings;
mod size;
mod traces;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Args, Command, PolicyCommand, Server};
use crate::log::Format;

fn main() -> ExitCode {
    let matches = Args::command().color(colours::choice()).get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match args.command {
        Command::Server { server: Server::Shell(flags) } => server::run(&flags),
        Command::Call(flags) => call::run(&flags),
        Command::Check(flags) => check::run(&flags),
        Command::Policy { policy: PolicyCommand::Test { file } } => check::test(&file),
        Command::Audit { audit } => audit::run(audit),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Install(flags) => install::run(&flags),
        Command::Jobs { jobs } => jobs::run(jobs),
        Command::Environment => {
            let variables = mcpz_engine::Variables::new(std::env::vars_os());
            mcpz_engine::tell(&variables).map_err(Into::into).map(|()| ExitCode::SUCCESS)
        }
        Command::Health { url } => health::run(url.as_deref()),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::pages(dir.as_deref()),
        Command::Record => mcpz_engine::record().map_err(Into::into).map(|()| ExitCode::SUCCESS),
        Command::Trial { terms } => sandbox::run_trial(&terms),
        Command::Agent => mcpz_agent::serve_stdin().map_err(Into::into).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        Format::Text.complain(error.as_ref());
        ExitCode::FAILURE
    })
}
