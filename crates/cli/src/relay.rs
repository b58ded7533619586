//! `mcpz agent --stream [SOCKET]`: serves a server elsewhere, which runs its commands in the place where this process
//! is.

use std::error::Error;
use std::path::PathBuf;

use mcpz_agent::PlaceFacts;
use mcpz_runtime::Later;

use crate::{environment, process};

/// By way of standard input and output, or of a socket.
pub fn run(socket: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    process::hide();
    let directory = environment::current_directory()?;
    let facts = PlaceFacts { variables: environment::variables(), directory };
    let runtime = process::runtime(&Later::default())?;
    Ok(runtime.block_on(async {
        // What ends the place may tell us first.
        let told = process::shutdown().map_err(mcpz_agent::RelayError::Setup)?;
        mcpz_agent::serve_stream(facts, socket.as_deref(), told).await
    })?)
}
