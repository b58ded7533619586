//! Our standard input, as that of the command.
//!
//! It is read only for `stdin=-`. A call inherits the input of whatever started it: a pipe of a service that never
//! ends, or the list that a loop with `read` goes through, of which nothing may be missing after a call.

use std::io::{self, Read};

use mcpz_server::MAX_LINE;
use rustix::fs::FileType;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// The argument of tools that give their commands an input.
const ARGUMENT: &str = "stdin";

/// How large an input may be as JSON. The rest of a message is for the other arguments.
const MAX: usize = MAX_LINE - (2 << 20);

#[derive(Debug, thiserror::Error)]
pub enum StdinError {
    #[error("cannot read standard input: {0}")]
    Unreadable(#[from] io::Error),
    #[error("standard input is not UTF-8; pass the path of a file to the command instead")]
    NotText,
    #[error(
        "standard input is too large for a call; pass the path of a file to the command instead"
    )]
    TooLarge,
}

/// Whether a tool has an input that `arguments` say nothing about.
pub fn is_unused(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> bool {
    is_argument(schema) && !arguments.contains_key(ARGUMENT)
}

/// Replaces `-` in `stdin=-` with all of standard input.
pub async fn read(
    schema: &Map<String, Value>,
    arguments: &mut Map<String, Value>,
) -> Result<(), StdinError> {
    if let Some(text) = arguments.get_mut(ARGUMENT).filter(|text| *text == "-")
        && is_argument(schema)
    {
        *text = all_of_it().await?.into();
    }
    Ok(())
}

/// Whether standard input is a pipe in which something waits that nobody has read.
pub fn is_waiting() -> bool {
    let stdin = io::stdin();
    let is_pipe =
        rustix::fs::fstat(&stdin).is_ok_and(|it| FileType::from_raw_mode(it.st_mode).is_fifo());
    is_pipe && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

fn is_argument(schema: &Map<String, Value>) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(ARGUMENT).is_some())
}

async fn all_of_it() -> Result<String, StdinError> {
    let (tell, told) = oneshot::channel();
    // No thread of the runtime: that would wait for the end of the input, even if the call is interrupted.
    std::thread::Builder::new().spawn(|| {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(MAX as u64).read_to_end(&mut bytes);
        let _ = tell.send(read.map(|_| bytes));
    })?;
    let bytes = told.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
    if bytes.len() == MAX {
        return Err(StdinError::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|_| StdinError::NotText)?;
    match serde_json::to_string(&text).is_ok_and(|json| json.len() <= MAX) {
        true => Ok(text),
        false => Err(StdinError::TooLarge),
    }
}
