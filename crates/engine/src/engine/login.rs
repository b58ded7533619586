//! Asks a login shell for the environment of commands.
//!
//! The shell starts as a terminal would start it (`-l -i`), because nobody can know which of its startup files set
//! `PATH`. It runs at home: in the working directory a model could have left files for it to load. It then executes a
//! program of ours, which reports the variables on descriptor 62. `tcsh` closes descriptors it does not know, and
//! cannot report.
//!
//! The shell has an agent of its own. That agent ends, with everything the shell started, before the agent for commands
//! starts with the new variables.

use mcpz_agent::{FIRST_OWNER, LinkError, MAX_FRAME, Spawn, decode};
use mcpz_output::Output;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use super::Engine;
use crate::environment::Login;
use crate::error::Error;
use crate::places::Venue;
use crate::run::{Backing, Channel, Run};
use crate::variables::Variables;

impl Engine {
    /// Waits until the environment of commands is known, and with it the secrets to mask.
    pub async fn ready(&self) {
        if self.ask_login() {
            self.shared.environment.wait().await;
        }
    }

    /// Asks the login shell once. Returns false if there is none to ask.
    pub(super) fn ask_login(&self) -> bool {
        let Some(login) = self.shared.settings.login.clone() else { return false };
        self.shared.asking_login.call_once(|| {
            let engine = self.clone();
            // Not in the call that needs it: that may be cancelled while others wait.
            tokio::spawn(async move { engine.resolve_login(&login).await });
        });
        true
    }

    async fn resolve_login(&self, login: &Login) {
        let environment = (login.resolve)(self.login_variables(login).await);
        self.shared.settings.environment.secrets.replace(&environment.secrets);
        let _ = self.shared.environment.set(environment);
        if self.runs_here() {
            // If this fails, the first command reports why.
            let _ = self.link();
        }
    }

    async fn login_variables(&self, login: &Login) -> Result<Variables, Error> {
        let (spawn, plan, recorded) = self.gate(&Venue::default()).clear_login(login)?.into_parts();
        let (send_channel, channel) = oneshot::channel();
        let spawned = self.link_for_login().and_then(|link| {
            let process = link.spawn(FIRST_OWNER, Spawn { replies: true, ..spawn })?;
            Ok((link, process))
        });
        let (link, process) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
        let output = Output::new(self.shared.spill.account().quota(Some(0)));
        let backing = Backing {
            channel: Some(send_channel),
            closing: self.shared.closing.clone(),
            later: self.shared.later.clone(),
            ..Backing::default()
        };
        let shell = login.command.first().cloned().unwrap_or_default();
        let mut run = Run::start(process, shell.clone(), plan, recorded, output, backing);
        let listening = async {
            let mut reported = Vec::new();
            if let Ok(Channel { replies, .. }) = channel.await {
                let reports = Receiver::from_owned_fd_unchecked(replies)?;
                reports.take(2 * MAX_FRAME as u64).read_to_end(&mut reported).await?;
            }
            Ok(reported)
        };
        // Closing the agent ends every process that could still write, so that reading ends too.
        let ending = async {
            let outcome = run.outcome().await;
            // If the agent died, so did programs the startup files ran, and the variables may be incomplete.
            let disturbed = link.is_closed();
            link.close().await;
            if disturbed { Err(LinkError::Gone.into()) } else { outcome }
        };
        let (reported, outcome) = tokio::join!(listening, ending);
        self.end_login()?;
        let end = outcome?.end;
        match decode(&reported.map_err(Error::Resources)?) {
            Ok(Some((variables, _))) => Ok(variables),
            _ => Err(Error::Login { shell, end }),
        }
    }
}
