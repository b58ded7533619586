//! Asking a login shell for the environment of commands.
//!
//! The shell has an agent of its own, which ends with everything the shell has started before the first command runs.

use mcpz_agent::{FIRST_OWNER, LinkError, MAX_FRAME, Spawn, decode};
use mcpz_output::Output;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use super::Engine;
use crate::environment::Login;
use crate::error::Error;
use crate::run::{Backing, Run};
use crate::variables::Variables;

impl Engine {
    /// Waits until the environment of commands is known, and with it what is secret.
    pub async fn ready(&self) {
        if self.ask_login() {
            self.shared.environment.wait().await;
        }
    }

    /// Asks the login shell, unless it was asked. False if there is none to ask.
    pub(super) fn ask_login(&self) -> bool {
        let Some(login) = self.shared.settings.login.clone() else { return false };
        self.shared.asking_login.call_once(|| {
            let engine = self.clone();
            // Not within a call: that may be cancelled while others wait, too.
            tokio::spawn(async move { engine.resolve_login(&login).await });
        });
        true
    }

    async fn resolve_login(&self, login: &Login) {
        let environment = (login.resolve)(self.login_variables(login).await);
        self.shared.settings.environment.secrets.replace(&environment.secrets);
        let _ = self.shared.environment.set(environment);
        if self.settings().sandbox.is_none() {
            // The first command is told what stands in the way.
            let _ = self.link();
        }
    }

    async fn login_variables(&self, login: &Login) -> Result<Variables, Error> {
        let (spawn, plan, recorded) = self.gate().clear_login(login)?.into_parts();
        let (directing, directed) = oneshot::channel();
        let spawned = self.link_for_login().and_then(|link| {
            let process = link.spawn(FIRST_OWNER, Spawn { controlled: true, ..spawn })?;
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
            directing: Some(directing),
            closing: self.shared.closing.clone(),
            later: self.shared.later.clone(),
            ..Backing::default()
        };
        let shell = login.command.first().cloned().unwrap_or_default();
        let mut run = Run::start(process, shell.clone(), plan, recorded, output, backing);
        let listening = async {
            let mut told = Vec::new();
            if let Ok((_, answers)) = directed.await {
                let answers = Receiver::from_owned_fd_unchecked(answers)?;
                answers.take(2 * MAX_FRAME as u64).read_to_end(&mut told).await?;
            }
            Ok(told)
        };
        // As long as any process could write, there may be more to read.
        let ending = async {
            let outcome = run.outcome().await;
            // Without its agent, what the shell ran was ended, and it may have gone on without it.
            let disturbed = link.is_closed();
            link.close().await;
            if disturbed { Err(LinkError::Gone.into()) } else { outcome }
        };
        let (told, outcome) = tokio::join!(listening, ending);
        self.end_login()?;
        let end = outcome?.end;
        match decode(&told.map_err(Error::Resources)?) {
            Ok(Some((variables, _))) => Ok(variables),
            _ => Err(Error::Login { shell, end }),
        }
    }
}
