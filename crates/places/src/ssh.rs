//! Another host, by the user's own `ssh`: keys, jump hosts, known hosts and names are those of its configuration.
//!
//! The agent is kept in the user's cache folder there.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::agent_file::AgentFile;
use crate::child::{Child, supervised};
use crate::delivery::{Delivery, deliver};
use crate::error::PlaceError;
use crate::opening::Opening;

/// Where the agent is kept there, and how it is started.
const DELIVERY: Delivery<'_> = Delivery {
    folder: "${XDG_CACHE_HOME:-$HOME/.cache}/mcpz",
    check: "[ -d \"$d\" ]",
    start: "exec \"$f\" agent --stream",
};

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
        let command = self.command(&agent_file, opening);
        let started = command.and_then(|command| Child::start(command, opening));
        let mut child = started.map_err(failed)?;
        match deliver(child.stream()?, agent, &agent_file).await {
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

    fn command(&self, agent: &AgentFile, opening: &Opening<'_>) -> io::Result<Command> {
        let mut command = supervised("ssh", opening)?;
        // Nobody is there to answer a question, or to use a terminal.
        command.args(["-T", "-e", "none", "-o", "BatchMode=yes", "-o", "RemoteCommand=none"]);
        // The user's own connections must not depend on one that we end.
        command.args(["-o", "ControlMaster=no"]);
        command.args(self.options.iter());
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command.arg("--").arg(&self.destination).arg(script(agent));
        Ok(command)
    }
}

/// The script that runs there, in one line and one pair of quotes, so that every login shell passes it on as it is.
fn script(agent: &AgentFile) -> String {
    format!("exec sh -c '{}'", DELIVERY.script(agent))
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
