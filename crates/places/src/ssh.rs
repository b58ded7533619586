//! Another host, by the user's own `ssh`: keys, jump hosts, known hosts and names are those of its configuration.
//!
//!     ssh HOST 'look for the agent; …; exec agent --stream'
//!         ◀── ready                      or  ◀── wanted Linux x86_64
//!                                            ──▶ the program
//!                                            ◀── ready
//!
//! The agent is kept in the user's cache folder there, under the hash of its content. It is compared with that before
//! every use, and removed when nobody has used it for a month.

use std::path::Path;
use std::process::Command;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::agent_file::AgentFile;
use crate::child::Child;
use crate::error::PlaceError;
use crate::opening::Opening;

/// The longest answer of the script before the agent takes over, with whatever a login prints.
const MAX_ANSWER: usize = 64 << 10;

/// What the script says, so that nothing that a login prints is taken for it.
const READY: &str = "mcpz-agent-ready";
const WANTED: &str = "mcpz-agent-wanted";
const FAILED: &str = "mcpz-agent-failed";

/// Where to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    destination: String,
    port: Option<u16>,
    /// More options for `ssh`.
    options: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a host; write [USER@]HOST[:PORT]")]
pub struct InvalidHost(String);

/// What the host says before the agent takes over.
enum Said {
    Ready,
    Wanted { machine: String },
}

impl Ssh {
    /// `host` is `[USER@]HOST[:PORT]`, or a name in the configuration of `ssh`.
    pub fn new(host: &str, options: Vec<String>) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost(host.to_owned());
        let (destination, port) = match host.rsplit_once(':') {
            // An IPv6 address has more colons, and needs brackets to have a port.
            Some((before, port)) if !before.contains(':') || before.ends_with(']') => {
                (before, Some(port.parse().map_err(|_| invalid())?))
            }
            _ => (host, None),
        };
        let destination = destination.replace(['[', ']'], "");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "@.-_:%+".contains(c);
        let is_host = !destination.is_empty()
            && !destination.starts_with('-')
            && !destination.ends_with('@')
            && destination.chars().all(is_plain);
        is_host.then_some(Self { destination, port, options }).ok_or_else(invalid)
    }

    pub fn host(&self) -> &str {
        &self.destination
    }

    /// Starts `ssh`, and has the agent copied there if it is not there yet.
    pub async fn start(&self, agent: &Path, opening: &Opening<'_>) -> Result<Child, PlaceError> {
        let agent_file = AgentFile::read(agent).await?;
        let failed = |error| PlaceError::Program {
            program: "ssh".to_owned(),
            error,
            advice: "install an OpenSSH client",
        };
        let mut child =
            Child::start(self.command(&agent_file, opening), opening).map_err(failed)?;
        match prepare(&mut child, agent, &agent_file).await {
            Ok(()) => Ok(child),
            Err(PlaceError::Copy { .. }) => Err(PlaceError::Copy { said: child.end().await }),
            Err(PlaceError::Connection(error)) => {
                let said = child.end().await;
                match said.is_empty() {
                    true => Err(error.into()),
                    false => Err(PlaceError::Refused(said)),
                }
            }
            Err(error) => {
                child.end().await;
                Err(error)
            }
        }
    }

    fn command(&self, agent: &AgentFile, opening: &Opening<'_>) -> Command {
        let mut command = Command::new("ssh");
        command.env_clear().envs(opening.variables.iter().map(|(name, value)| (name, value)));
        // Nobody is there to answer a question, or to use a terminal.
        command.args(["-T", "-e", "none", "-o", "BatchMode=yes", "-o", "RemoteCommand=none"]);
        command.args(self.options.iter());
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.arg("--").arg(&self.destination).arg(script(agent));
        command
    }
}

/// The script that runs there, in one line and one pair of quotes, so that every login shell passes it on as it is.
fn script(agent: &AgentFile) -> String {
    let (sum, length) = (&agent.sha256, agent.content.len());
    let lines = [
        "umask 077",
        "d=${XDG_CACHE_HOME:-$HOME/.cache}/mcpz",
        &format!("f=$d/agent-{sum}"),
        "t=$f.$$",
        &format!("is() {{ [ \"$(sha256sum <\"$1\" 2>/dev/null | cut -c1-64)\" = {sum} ]; }}"),
        "if is \"$f\"; then touch \"$f\"; else trap \"rm -f \\\"$t\\\"\" EXIT HUP TERM PIPE",
        &format!("mkdir -p \"$d\" && echo {WANTED} \"$(uname -m)\" && head -c {length} >\"$t\""),
        "if is \"$t\" && chmod 700 \"$t\" && mv \"$t\" \"$f\"; then trap - EXIT HUP TERM PIPE; else",
        &format!("echo {FAILED}; exit 1; fi; fi"),
        "find \"$d\" -name \"agent-*\" -mtime +30 -exec rm -f {} + 2>/dev/null",
        &format!("echo {READY}; exec \"$f\" agent --stream"),
    ];
    // After words that expect a command there must be no semicolon.
    let joined = lines.join("; ").replace("else; ", "else ").replace("then; ", "then ");
    format!("exec sh -c '{joined}'")
}

/// Copies the agent if it is wanted, and returns when it takes over.
async fn prepare(child: &mut Child, path: &Path, agent: &AgentFile) -> Result<(), PlaceError> {
    let theirs = match read_answer(child).await? {
        Said::Ready => return Ok(()),
        Said::Wanted { machine } => machine,
    };
    if theirs != agent.machine {
        let (path, ours) = (path.to_owned(), agent.machine.clone());
        return Err(PlaceError::Architecture { path, ours, theirs });
    }
    let copied = child.stream()?.write_all(&agent.content).await;
    // If that fails, what the host says tells why.
    match read_answer(child).await {
        Ok(Said::Ready) => Ok(copied?),
        Ok(Said::Wanted { .. }) | Err(_) => Err(PlaceError::Copy { said: String::new() }),
    }
}

/// Reads until the script says something. Byte by byte: what follows belongs to the agent.
async fn read_answer(child: &mut Child) -> Result<Said, PlaceError> {
    let stream = child.stream()?;
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
    use super::*;

    #[test]
    fn hosts_are_written_as_for_ssh_and_are_never_options() {
        let host = |text: &str| Ssh::new(text, Vec::new()).map(|ssh| (ssh.destination, ssh.port));
        let of = |name: &str, port| Some((name.to_owned(), port));
        assert_eq!(host("build").ok(), of("build", None));
        assert_eq!(host("me@build.example:2222").ok(), of("me@build.example", Some(2222)));
        assert_eq!(host("fe80::1%eth0").ok(), of("fe80::1%eth0", None));
        assert_eq!(host("me@[2001:db8::1]:22").ok(), of("me@2001:db8::1", Some(22)));
        for wrong in ["", "-oProxyCommand=x", "a b", "host:", "host:port", "me@", "$(x)", "a;b"] {
            assert!(host(wrong).is_err(), "{wrong:?} counts as a host");
        }
    }

    #[test]
    fn the_script_is_one_line_that_every_shell_passes_on() {
        let agent =
            AgentFile { content: vec![0; 7], sha256: "0".repeat(64), machine: String::new() };
        let script = script(&agent);
        let inner = script.strip_prefix("exec sh -c '").and_then(|it| it.strip_suffix('\''));
        let inner = inner.expect("the script is one quoted word");
        assert!(!inner.contains(['\'', '\n', '!']));
        let parsed = Command::new("sh").args(["-n", "-c", inner]).status().unwrap();
        assert!(parsed.success(), "{inner}");
    }
}
