//! `mcpz completions` and `mcpz man`: both are generated from the flags.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;

#[derive(Debug, thiserror::Error)]
#[error("cannot write the man pages to {}", dir.display())]
pub struct WriteError {
    dir: PathBuf,
    source: io::Error,
}

pub fn completions(shell: Shell) -> Result<ExitCode, Box<dyn Error>> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible_commands(), "mcpz", &mut text);
    print(&text)
}

/// Prints the page of `mcpz` itself, or writes those of all commands to a folder.
pub fn pages(dir: Option<&Path>) -> Result<ExitCode, Box<dyn Error>> {
    let Some(dir) = dir else {
        let mut text = Vec::new();
        Man::new(Args::command()).render(&mut text)?;
        return print(&text);
    };
    let written = std::fs::create_dir_all(dir);
    match written.and_then(|()| clap_mangen::generate_to(Args::command(), dir)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(source) => Err(WriteError { dir: dir.to_owned(), source }.into()),
    }
}

/// Our commands without the hidden ones: completions would offer them.
fn visible_commands() -> Command {
    let all = Args::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("mcpz").version(env!("CARGO_PKG_VERSION")).subcommands(visible)
}

fn print(text: &[u8]) -> Result<ExitCode, Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
