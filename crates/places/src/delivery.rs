//! Brings the agent to where a shell runs: through the shell's own input, and only if it is not there yet.
//!
//!     script ◀── ready                      or  ◀── wanted Linux x86_64
//!                                               ──▶ the program
//!                                               ◀── ready
//!
//! It is kept under the hash of its content, and compared with that before every use. A program `mcpz` in the search
//! path with the same content does as well. What nobody has used for a month is removed.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::agent_file::AgentFile;
use crate::error::PlaceError;

/// The longest answer of the script before the agent takes over, with whatever a login prints.
const MAX_ANSWER: usize = 64 << 10;

/// What the script says, so that nothing that a login prints is taken for it.
const READY: &str = "mcpz-agent-ready";
const WANTED: &str = "mcpz-agent-wanted";
const FAILED: &str = "mcpz-agent-failed";

/// What differs between places, in the words of a shell, without single quotes.
pub struct Delivery<'a> {
    /// The folder that keeps the agent, which is `$d` from then on.
    pub folder: &'a str,
    /// What must be true of the folder.
    pub check: &'a str,
    /// Starts the agent, which is `$f`.
    pub start: &'a str,
}

/// What the script says before the agent takes over.
enum Said {
    Ready,
    Wanted { machine: String },
}

impl Delivery<'_> {
    /// A script in one line.
    pub fn script(&self, agent: &AgentFile) -> String {
        let Self { folder, check, start } = self;
        let (sum, length) = (&agent.sha256, agent.content.len());
        let lines = [
            "umask 077",
            &format!("d={folder}"),
            &format!("f=$d/agent-{sum}"),
            "t=$f.$$",
            "p=$(command -v mcpz)",
            &format!("is() {{ [ \"$(sha256sum 2>/dev/null <\"$1\" | cut -c1-64)\" = {sum} ]; }}"),
            &format!("fail() {{ echo {FAILED}; exit 1; }}"),
            "if [ -f \"$p\" ] && is \"$p\"; then f=$p; else mkdir -p \"$d\"",
            &format!("{check} || fail"),
            "if [ -f \"$f\" ] && is \"$f\"; then touch \"$f\"; else trap \"rm -f \\\"$t\\\"\" EXIT HUP TERM PIPE",
            &format!("echo {WANTED} \"$(uname -m)\" && head -c {length} >\"$t\""),
            "if is \"$t\" && chmod 700 \"$t\" && mv \"$t\" \"$f\"; then trap - EXIT HUP TERM PIPE; else fail; fi; fi",
            "find \"$d\" -name \"agent-*\" -mtime +30 -exec rm -f {} + 2>/dev/null; fi",
            &format!("echo {READY}; {start}"),
        ];
        lines.join("; ")
    }
}

/// Sends the agent if it is wanted, and returns when it takes over.
pub async fn deliver<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    path: &Path,
    agent: &AgentFile,
) -> Result<(), PlaceError> {
    let theirs = match read_answer(stream).await? {
        Said::Ready => return Ok(()),
        Said::Wanted { machine } => machine,
    };
    if theirs != agent.machine {
        let (path, ours) = (path.to_owned(), agent.machine.clone());
        return Err(PlaceError::Architecture { path, ours, theirs });
    }
    let copied = stream.write_all(&agent.content).await;
    // If that fails, what the place says tells why.
    match read_answer(stream).await {
        Ok(Said::Ready) => Ok(copied?),
        Ok(Said::Wanted { .. }) | Err(_) => Err(PlaceError::Copy { said: String::new() }),
    }
}

/// Reads until the script says something. Byte by byte: what follows belongs to the agent.
async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> Result<Said, PlaceError> {
    let (mut line, mut total) = (Vec::new(), 0);
    loop {
        let byte = stream.read_u8().await?;
        total += 1;
        if total > MAX_ANSWER {
            return Err(std::io::Error::from(std::io::ErrorKind::InvalidData).into());
        }
        if byte != b'\n' {
            line.push(byte);
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (Some(READY), None) => return Ok(Said::Ready),
            (Some(WANTED), Some(machine)) => {
                return Ok(Said::Wanted { machine: machine.to_owned() });
            }
            (Some(FAILED), None) => return Err(PlaceError::Copy { said: String::new() }),
            _ => line.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use std::sync::Arc;

    use super::*;

    /// Runs the script with an agent that is a script itself, and returns what that prints.
    async fn delivered(agent: &AgentFile, folder: &Path, path: &str) -> String {
        let folder = folder.display().to_string();
        let start = "exec \"$f\" hello";
        let script = Delivery { folder: &folder, check: "[ -O \"$d\" ]", start }.script(agent);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script]).env("PATH", path);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let output = std::os::fd::OwnedFd::from(theirs.try_clone().unwrap());
        shell.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(output).stderr(Stdio::inherit());
        let mut child = shell.spawn().unwrap();
        drop(shell);
        let mut stream = tokio::net::UnixStream::from_std(ours).unwrap();
        deliver(&mut stream, Path::new("agent"), agent).await.unwrap();
        let mut printed = String::new();
        stream.read_to_string(&mut printed).await.unwrap();
        child.wait().unwrap();
        printed
    }

    #[tokio::test]
    async fn the_agent_is_copied_once_and_one_in_the_search_path_is_used_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let content = b"#!/bin/sh\necho $0 says $1\n";
        let path = folder.path().join("source");
        std::fs::write(&path, content).unwrap();
        let agent = AgentFile::read(&path).await.unwrap();
        let mut agent = Arc::into_inner(agent).unwrap();
        agent.machine = std::env::consts::ARCH.to_owned();
        let kept = folder.path().join("kept").join(format!("agent-{}", agent.sha256));
        let usual = "/usr/bin:/bin";
        let told = format!("{} says hello\n", kept.display());
        for _ in 0..2 {
            assert_eq!(delivered(&agent, &folder.path().join("kept"), usual).await, told);
        }
        // One that was changed is replaced.
        std::fs::write(&kept, "#!/bin/sh\necho wrong\n").unwrap();
        assert_eq!(delivered(&agent, &folder.path().join("kept"), usual).await, told);

        let installed = folder.path().join("mcpz");
        std::fs::copy(&kept, &installed).unwrap();
        let path = format!("{}:{usual}", folder.path().display());
        let unused = folder.path().join("unused");
        let told = format!("{} says hello\n", installed.display());
        assert_eq!(delivered(&agent, &unused, &path).await, told);
        assert!(!unused.exists());
    }
}
