//! What is made from the flags: completions for shells, pages for man.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;

#[derive(Debug, thiserror::Error)]
#[error("cannot write the pages to {}", dir.display())]
pub struct NoPages {
    dir: PathBuf,
    source: io::Error,
}

pub fn completions(shell: Shell) -> Result<ExitCode, Box<dyn Error>> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown(), "mcpz", &mut text);
    print(&text)
}

/// The page of `mcpz` itself, or in a folder those of all commands.
pub fn pages(dir: Option<&Path>) -> Result<ExitCode, Box<dyn Error>> {
    let Some(dir) = dir else {
        let mut text = Vec::new();
        Man::new(Args::command()).render(&mut text)?;
        return print(&text);
    };
    let written = std::fs::create_dir_all(dir);
    match written.and_then(|()| clap_mangen::generate_to(Args::command(), dir)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(source) => Err(NoPages { dir: dir.to_owned(), source }.into()),
    }
}

/// Our commands without the hidden ones, which would be completed.
fn shown() -> Command {
    let all = Args::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("mcpz").version(env!("CARGO_PKG_VERSION")).subcommands(shown)
}

fn print(text: &[u8]) -> Result<ExitCode, Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
