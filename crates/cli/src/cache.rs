//! `mcpz cache`: what commands in sandboxes wrote to caches.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use mcpz_sandbox::{CacheUsage, clear_caches, limit_caches};

use crate::args::CacheCommand;
use crate::environment;

#[derive(Debug, thiserror::Error)]
#[error("there is no folder for caches; set HOME or XDG_CACHE_HOME")]
struct NoFolder;

pub fn run(command: CacheCommand) -> Result<ExitCode, Box<dyn Error>> {
    let folder = environment::cache_folder().ok_or(NoFolder)?;
    let found = match command {
        CacheCommand::Show => described(limit_caches(&folder, u64::MAX)),
        CacheCommand::Clear => match clear_caches(&folder) {
            CacheUsage { layers: 0, .. } => "empty".to_owned(),
            left => format!("{}, in use", described(left)),
        },
    };
    writeln!(io::stdout(), "{}: {found}", folder.display())?;
    Ok(ExitCode::SUCCESS)
}

/// How much there is, in words.
pub fn described(CacheUsage { bytes, layers }: CacheUsage) -> String {
    let of = if layers == 1 { "one sandbox" } else { "sandboxes" };
    match layers {
        0 => "empty".to_owned(),
        1 => format!("{:.1} MB of {of}", bytes as f64 / 1e6),
        _ => format!("{:.1} MB of {layers} {of}", bytes as f64 / 1e6),
    }
}
