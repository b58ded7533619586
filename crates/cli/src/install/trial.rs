//! Starts a server once, the way a client would, to see whether it starts at all.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long the server may take to answer.
const TIME: Duration = Duration::from_secs(20);

/// What a client asks first. The end of input that follows ends the server.
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"mcpz install","version":"1"}}}"#,
    "\n"
);

/// Why a server cannot be used, in its own words if it had any.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("{0}")]
    Said(String),
    #[error("it exits without a word")]
    Silent,
    #[error("it does not answer within {} seconds", TIME.as_secs())]
    Late,
    #[error(transparent)]
    Start(#[from] io::Error),
}

/// Starts the server in a directory and ends it again.
pub fn run(command: &str, args: &[String], directory: &Path) -> Result<(), TrialError> {
    let mut server = Command::new(command);
    server.args(args).current_dir(directory);
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = server.spawn()?;
    let answered = converse(&mut server);
    if matches!(answered, Err(TrialError::Late)) {
        let _ = server.kill();
    }
    let _ = server.wait();
    answered
}

fn converse(server: &mut Child) -> Result<(), TrialError> {
    let (Some(mut stdin), Some(stdout), Some(mut stderr)) =
        (server.stdin.take(), server.stdout.take(), server.stderr.take())
    else {
        return Err(TrialError::Silent);
    };
    // A server that does not start may not read it.
    let _ = stdin.write_all(HELLO.as_bytes());
    drop(stdin);
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut answer = String::new();
        let _ = BufReader::new(stdout).read_line(&mut answer);
        let mut said = String::new();
        if answer.is_empty() {
            let _ = stderr.read_to_string(&mut said);
        } else {
            // A server whose log nobody reads would wait.
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        let _ = sender.send((answer, said));
    });
    let (answer, said) = heard.recv_timeout(TIME).map_err(|_| TrialError::Late)?;
    match (answer.is_empty(), said.trim()) {
        (false, _) => Ok(()),
        (true, "") => Err(TrialError::Silent),
        (true, said) => Err(TrialError::Said(said.trim_start_matches("mcpz: ").to_owned())),
    }
}
