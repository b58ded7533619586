//! Commands that the shell of a session carries out.

use std::sync::Arc;
use std::time::Instant;

use mcpz_agent::Spawn;
use tokio::sync::oneshot;

use super::Engine;
use crate::client::Client;
use crate::error::Error;
use crate::request::{Command, Origin, RunRequest};
use crate::run::{Accounting, Backing, Run};
use crate::sessions::{Dialect, Queued, Session, SessionCommand};

impl Engine {
    /// Has a command carried out by the shell of a session, which is started if there is none of that name.
    pub(super) async fn start_in_session(
        &self,
        client: &Client,
        origin: &Origin,
        name: &str,
        request: RunRequest,
    ) -> Result<Run, Error> {
        let asked = Instant::now();
        let (session, queued) = self.session(client, origin, name, &request).await?;
        let _use = session.job.begin_use();
        let Command::Script { text, .. } = &request.command else { return Err(Error::Closed) };
        let (text, shown) = (text.clone(), self.shown(&request.command));
        let request = self.resolve(request);
        let logged = self.line(client, origin, &request, &shown);
        // Requests that come at the same time are judged behind this one.
        let mut said = session.said().await;
        let request = request.behind(said.text());
        let cleared = self.gate().clear(&client.owner, origin, request).await;
        let cleared = self.logged(logged, cleared)?;
        if self.settings().policy.restricts() {
            said.add(&text);
        }
        drop(said);
        let turn = self.turn(client, &cleared).await;
        let (_, plan, recorded) = cleared.into_parts();
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
        let observer = self.observer(origin, &shown);
        let accounting = Accounting::open(self.shared.stats.clone(), turn, asked, observer);
        let (output, later) = (client.new_output(), self.shared.later.clone());
        let command =
            SessionCommand { session, _use, text, plan, recorded, output, accounting, later };
        Ok(command.start(queued, shown))
    }

    /// The session of a name, started if there is none, and a place in its queue.
    async fn session(
        &self,
        client: &Client,
        origin: &Origin,
        name: &str,
        request: &RunRequest,
    ) -> Result<(Arc<Session>, Queued), Error> {
        let begins = request.directory.is_some() || !request.environment.is_empty();
        let found = |session, queued| match begins {
            true => Err(Error::SessionRuns { name: name.to_owned() }),
            false => Ok((session, queued)),
        };
        let slot = client.sessions.slot(name, self.settings().runs.sessions)?;
        let queued = slot.queue();
        if let Some(session) = slot.session() {
            return found(session, queued);
        }
        // Another call may be about to start it.
        let turn = queued.turn().await?;
        if let Some(session) = slot.session() {
            return found(session, turn.into());
        }
        let session = self.begin_session(client, origin, name, request).await?;
        slot.set_session(session.clone());
        Ok((session, turn.into()))
    }

    /// Starts the shell of a session. What it is told is judged; that it runs is recorded.
    async fn begin_session(
        &self,
        client: &Client,
        origin: &Origin,
        name: &str,
        request: &RunRequest,
    ) -> Result<Arc<Session>, Error> {
        let Command::Script { shell, .. } = &request.command else { return Err(Error::Closed) };
        let shell = shell.as_ref().unwrap_or(&self.environment().shell);
        let dialect = Dialect::of(shell);
        let begun = RunRequest {
            directory: request.directory.clone(),
            environment: request.environment.clone(),
            lasting: true,
            ..RunRequest::new(Command::Argv(dialect.command(shell)))
        };
        let begun = self.resolve(begun);
        let cleared = self.gate().clear_own(&client.owner, origin, begun).await?;
        let (spawn, plan, recorded) = cleared.into_parts();
        let spawn = Spawn { controlled: true, ..spawn };
        let (process, backing) = match self.spawn(client, spawn, recorded.id()).await {
            Ok(spawned) => spawned,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
        let (directing, directed) = oneshot::channel();
        let sandbox = backing.sandbox.clone();
        let backing = Backing { directing: Some(directing), ..backing };
        let command = format!("session {name}: {}", shell.display());
        let output = client.new_output();
        let mut run = Run::start(process, command, plan, recorded, output, backing);
        if run.started().await.is_none() {
            let failed = run.outcome().await;
            return Err(failed.err().unwrap_or(Error::Closed));
        }
        let ends = directed.await.map_err(|_| Error::Closed)?;
        self.open_control();
        let before = client.jobs.last_of_session(name);
        let job = client.jobs.add_session(run, name.to_owned());
        let session = Session::new(name.to_owned(), job, dialect, ends, sandbox)?;
        let session = Arc::new(session.in_place_of(before.as_deref()));
        session.greet().await;
        Ok(session)
    }
}
