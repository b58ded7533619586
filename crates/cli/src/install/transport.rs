//! How a client reaches the server: over stdio, or at a URL.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, CommandFactory, ValueHint};

use super::InstallError;
use crate::args::{Args, InstallFlags, StdioFlags};
use crate::environment;
use crate::settings::{AuthKind, TOKEN_VARIABLE};

#[derive(Debug)]
pub enum Transport {
    /// The client starts the server.
    Stdio {
        command: String,
        args: Vec<String>,
    },
    Http {
        url: String,
        token: Token,
    },
}

#[derive(Debug)]
pub enum Token {
    /// The token itself, which goes into the client's file.
    Plain(String),
    /// The name of a variable in the client's environment.
    Variable(String),
    None,
}

impl Transport {
    pub fn from_flags(flags: &InstallFlags) -> Result<Self, InstallError> {
        let Some(url) = &flags.http else {
            let program = environment::program().map_err(InstallError::Program)?;
            let (command, args) = (text(program.as_os_str())?, server_args(flags)?);
            return Ok(Self::Stdio { command, args });
        };
        let rest = url.strip_prefix("http://").or(url.strip_prefix("https://")).unwrap_or_default();
        if rest.is_empty() || rest.starts_with('/') || !is_visible_ascii(url) {
            return Err(InstallError::Url(url.clone()));
        }
        let token = match (&flags.token, &flags.token_env, flags.auth) {
            (_, _, Some(AuthKind::None)) => Token::None,
            (Some(token), ..) if token.is_empty() || !is_visible_ascii(token) => {
                return Err(InstallError::Token);
            }
            (Some(token), ..) => Token::Plain(token.clone()),
            (None, Some(name), _) => Token::Variable(name.clone()),
            (None, None, _) => Token::Variable(TOKEN_VARIABLE.to_owned()),
        };
        Ok(Self::Http { url: url.clone(), token })
    }
}

fn is_visible_ascii(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The arguments that the client passes to mcpz: the server's flags as the user typed them, so that
/// there is no second list of these flags to maintain.
fn server_args(flags: &InstallFlags) -> Result<Vec<String>, InstallError> {
    let server = StdioFlags::augment_args(clap::Command::new("mcpz server shell"));
    let typed = Args::command().get_matches();
    let trailing = server.clone().no_binary_name(true).try_get_matches_from(&flags.server);
    let trailing = trailing.unwrap_or_else(|error| error.exit());
    let mut args = vec!["server".to_owned(), "shell".to_owned()];
    for matches in typed.subcommand_matches("install").into_iter().chain([&trailing]) {
        for flag in server.get_arguments() {
            args.extend(given(flag, matches)?);
        }
    }
    Ok(args)
}

/// A flag with its values, if the user typed it.
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
        // A relative path would mean something else where the client starts the server.
        let path = Path::new(value);
        let is_path = flag.get_value_hint() == ValueHint::AnyPath;
        let absolute = std::path::absolute(path).ok().filter(|_| is_path && path.exists());
        args.push(name.clone());
        args.push(text(absolute.as_deref().map_or(value, Path::as_os_str))?);
    }
    Ok(args)
}

fn text(value: &OsStr) -> Result<String, InstallError> {
    value.to_str().map(str::to_owned).ok_or_else(|| InstallError::NotText(PathBuf::from(value)))
}
