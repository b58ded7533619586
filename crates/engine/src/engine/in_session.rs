//! Commands that the shell of a session carries out.

use std::sync::Arc;
use std::time::Instant;

use mcpz_agent::Spawn;
use tokio::sync::oneshot;

use super::Engine;
use crate::error::Error;
use crate::request::{Command, Origin, RunRequest};
use crate::run::{Books, Run};
use crate::sessions::{Dialect, Order, Queued, Session};
use crate::store::Owner;

impl Engine {
    /// Has a command carried out by the shell of a session, which is begun if there is none of that
    /// name.
    pub(super) async fn start_in_session(
        &self,
        owner: &Owner,
        origin: &Origin,
        name: &str,
        request: RunRequest,
    ) -> Result<Run, Error> {
        let asked = Instant::now();
        let logged = self.line(owner, origin, &request);
        let (session, queued) = self.session(owner, origin, name, &request).await?;
        let _use = session.job.begin_use();
        let Command::Script { text, .. } = &request.command else { return Err(Error::Closed) };
        let text = text.clone();
        let witness = self.witness(origin, &request);
        // Whatever comes at the same time is judged behind this.
        let mut said = session.said().await;
        let request = RunRequest { before: Some(said.text().to_owned()), ..request };
        let cleared = self.gate().clear(owner, origin, request).await;
        let cleared = self.logged(logged, cleared)?;
        if self.settings().policy.restricts() {
            said.add(&text);
        }
        drop(said);
        let turn = self.turn(owner, &cleared).await;
        let (_, pending, recorded) = cleared.into_parts();
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
        let books = Books::open(self.shared.stats.clone(), turn, asked, witness);
        let output = owner.new_output();
        let later = self.shared.later.clone();
        let order = Order { session, _use, text, pending, recorded, output, books, later };
        Ok(Run::in_session(order, queued))
    }

    /// The session of a name, begun if there is none, and a place in its queue.
    async fn session(
        &self,
        owner: &Owner,
        origin: &Origin,
        name: &str,
        request: &RunRequest,
    ) -> Result<(Arc<Session>, Queued), Error> {
        let begins = request.directory.is_some() || !request.environment.is_empty();
        let found = |session, queued| match begins {
            true => Err(Error::SessionRuns { name: name.to_owned() }),
            false => Ok((session, queued)),
        };
        let slot = owner.sessions.slot(name, self.settings().runs.sessions)?;
        let queued = slot.queue();
        if let Some(session) = slot.session() {
            return found(session, queued);
        }
        // Somebody else may be about to begin it.
        let turn = queued.turn().await?;
        if let Some(session) = slot.session() {
            return found(session, turn.into());
        }
        let session = self.begin_session(owner, origin, name, request).await?;
        slot.set_session(session.clone());
        Ok((session, turn.into()))
    }

    /// Starts the shell of a session. What it is told is judged; that it runs is recorded.
    async fn begin_session(
        &self,
        owner: &Owner,
        origin: &Origin,
        name: &str,
        request: &RunRequest,
    ) -> Result<Arc<Session>, Error> {
        let Command::Script { shell, .. } = &request.command else { return Err(Error::Closed) };
        let shell = shell.as_ref().unwrap_or(&self.settings().shell);
        let dialect = Dialect::of(shell);
        let begun = RunRequest {
            directory: request.directory.clone(),
            environment: request.environment.clone(),
            lasting: true,
            ..RunRequest::new(Command::Argv(dialect.command(shell)))
        };
        let cleared = self.gate().clear_own(owner, origin, begun).await?;
        let (spawn, mut pending, recorded) = cleared.into_parts();
        let (directing, directed) = oneshot::channel();
        pending.directing = Some(directing);
        let spawn = Spawn { controlled: true, ..spawn };
        let process = self.spawn(owner, spawn, &mut pending, recorded.id()).await?;
        let (output, later) = (owner.new_output(), self.shared.later.clone());
        let enclosure = pending.enclosure.clone();
        let mut run = Run::start(process, pending, recorded, output, None, later);
        if run.started().await.is_none() {
            let failed = run.outcome().await;
            return Err(failed.err().unwrap_or(Error::Closed));
        }
        let ends = directed.await.map_err(|_| Error::Closed)?;
        let command = format!("session {name}: {}", shell.display());
        self.open_desk();
        let before = owner.jobs.last_of_session(name);
        let job = owner.jobs.add_session(run, command, name.to_owned());
        let session = Session::new(name.to_owned(), job, dialect, ends, enclosure)?;
        let session = Arc::new(session.in_place_of(before.as_deref()));
        session.greet().await;
        Ok(session)
    }
}
