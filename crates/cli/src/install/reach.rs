//! What was asked for on the command line, as a client will use it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, CommandFactory, ValueHint};

use super::InstallError;
use super::client::{Reach, Token};
use crate::args::{Args, AuthKind, InstallFlags, ShellFlags};
use crate::http::TOKEN_VARIABLE;

pub fn load(flags: &InstallFlags) -> Result<Reach, InstallError> {
    let Some(url) = &flags.http else {
        let program = std::env::current_exe().map_err(InstallError::Program)?;
        return Ok(Reach::Start { command: text(program.as_os_str())?, args: args(flags)? });
    };
    let rest = url.strip_prefix("http://").or(url.strip_prefix("https://")).unwrap_or_default();
    if rest.is_empty() || rest.starts_with('/') || !url.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(InstallError::Url(url.clone()));
    }
    let token = match (&flags.token, &flags.token_env, flags.auth) {
        (_, _, Some(AuthKind::None)) => Token::None,
        (Some(token), ..) => Token::Plain(token.clone()),
        (None, name, _) => Token::Variable(name.as_deref().unwrap_or(TOKEN_VARIABLE).to_owned()),
    };
    match &token {
        Token::Plain(token) if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) => {
            Err(InstallError::Token)
        }
        _ => Ok(Reach::Connect { url: url.clone(), token }),
    }
}

/// What follows the program's name in a client's file. The flags are taken as they were typed, so
/// that there is no second list of them.
fn args(flags: &InstallFlags) -> Result<Vec<String>, InstallError> {
    let server = ShellFlags::augment_args(clap::Command::new("mcpz server shell"));
    let typed = Args::command().get_matches();
    let behind = server.clone().no_binary_name(true).try_get_matches_from(&flags.server);
    let behind = behind.unwrap_or_else(|error| error.exit());
    let mut args = vec!["server".to_owned(), "shell".to_owned()];
    for matches in typed.subcommand_matches("install").into_iter().chain([&behind]) {
        for flag in server.get_arguments() {
            args.extend(given(flag, matches)?);
        }
    }
    Ok(args)
}

fn given(flag: &clap::Arg, matches: &ArgMatches) -> Result<Vec<String>, InstallError> {
    let id = flag.get_id().as_str();
    if matches.value_source(id) != Some(ValueSource::CommandLine) {
        return Ok(Vec::new());
    }
    let name = format!("--{}", flag.get_long().unwrap_or(id));
    if !flag.get_action().takes_values() {
        return Ok(vec![name]);
    }
    let mut args = Vec::new();
    for value in matches.get_raw(id).into_iter().flatten() {
        // The client starts us somewhere else.
        let here = Path::new(value);
        let is_path = flag.get_value_hint() == ValueHint::AnyPath;
        let whole = std::path::absolute(here).ok().filter(|_| is_path && here.exists());
        args.push(name.clone());
        args.push(text(whole.as_deref().map_or(value, Path::as_os_str))?);
    }
    Ok(args)
}

fn text(value: &OsStr) -> Result<String, InstallError> {
    value.to_str().map(str::to_owned).ok_or_else(|| InstallError::NotText(PathBuf::from(value)))
}
