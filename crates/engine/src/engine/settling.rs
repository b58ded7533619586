//! Asking a login shell what is to be around commands.
//!
//! It has an agent of its own, which is gone with everything the shell has started before the first
//! command runs.

use mcpz_agent::{FIRST_OWNER, Link, LinkError, MAX_FRAME, Spawn, decode};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use super::{Agent, Engine, Settings};
use crate::error::Error;
use crate::run::Run;
use crate::surroundings::{Login, Surroundings};
use crate::variables::Variables;
use mcpz_output::Output;

impl Engine {
    /// Waits until it is known what is around commands, and what is secret of that.
    pub async fn settled(&self) {
        if self.begin_settling() {
            self.shared.settled.wait().await;
        }
    }

    /// Has the login shell asked, unless it has been. False if there is nobody to ask.
    pub(super) fn begin_settling(&self) -> bool {
        let Some(login) = self.shared.settings.login.clone() else { return false };
        self.shared.settling.call_once(|| {
            let engine = self.clone();
            // Not within a call: that may be cancelled, and others wait, too.
            tokio::spawn(async move { engine.settle(&login).await });
        });
        true
    }

    async fn settle(&self, login: &Login) {
        let told = self.ask(login).await;
        let Surroundings { variables, shell, secrets } = (login.settle)(told);
        let before = &self.shared.settings;
        before.secrets.replace(&secrets);
        let _ = self.shared.settled.set(Settings { variables, shell, ..before.clone() });
        if self.settings().confining.is_none() {
            // What stands in the way will be told to whoever runs something.
            let _ = self.link();
        }
    }

    async fn ask(&self, login: &Login) -> Result<Variables, Error> {
        let (spawn, mut pending, recorded) = self.gate().clear_login(login)?.into_parts();
        let (directing, directed) = oneshot::channel();
        pending.directing = Some(directing);
        pending.closing = self.shared.closing.clone();
        let link = self.link_for_login()?;
        let process = link.spawn(FIRST_OWNER, Spawn { controlled: true, ..spawn })?;
        let output = Output::new(self.shared.spill.account().quota(Some(0)));
        let later = self.shared.later.clone();
        let mut run = Run::start(process, pending, recorded, output, None, later);
        let listening = async {
            let mut told = Vec::new();
            if let Ok((_, answers)) = directed.await {
                let answers = Receiver::from_owned_fd_unchecked(answers)?;
                answers.take(2 * MAX_FRAME as u64).read_to_end(&mut told).await?;
            }
            Ok(told)
        };
        // Until all are gone who could write, there may be more to read.
        let ending = async {
            let outcome = run.outcome().await;
            // Without its agent what the shell ran was ended, and it may have gone on without it.
            let disturbed = link.is_closed();
            link.close().await;
            if disturbed { Err(LinkError::Gone.into()) } else { outcome }
        };
        let (told, outcome) = tokio::join!(listening, ending);
        self.lock().end_login()?;
        let end = outcome?.end;
        match decode(&told.map_err(Error::Resources)?) {
            Ok(Some((variables, _))) => Ok(variables),
            _ => {
                Err(Error::Login { shell: login.command.first().cloned().unwrap_or_default(), end })
            }
        }
    }

    fn link_for_login(&self) -> Result<Link, Error> {
        let mut agent = self.lock();
        if let Agent::Closed = *agent {
            return Err(Error::Closed);
        }
        let Settings { agent: program, variables, limits, .. } = &self.shared.settings;
        let link = Link::start(program, variables.all(), *limits)?;
        *agent = Agent::ForLogin(link.clone());
        Ok(link)
    }
}

impl Agent {
    /// Makes room for the agent that is for commands, unless everything ends.
    fn end_login(&mut self) -> Result<(), Error> {
        if let Self::Closed = self {
            return Err(Error::Closed);
        }
        *self = Self::NotNeededYet;
        Ok(())
    }
}
