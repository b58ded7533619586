//! Starts sessions, and commands in them.

use std::sync::Arc;
use std::time::Instant;

use mcpz_agent::{Spawn, Stdin};
use tokio::sync::oneshot;

use super::Engine;
use crate::error::Error;
use crate::owner::Owner;
use crate::places::Venue;
use crate::request::{Command, Origin, RunRequest};
use crate::run::{Accounting, Backing, Run};
use crate::sessions::{Dialect, Queued, Session, SessionCommand};

impl Engine {
    /// Runs a command in the shell of a session. Starts the shell if the session has none.
    pub(super) async fn start_in_session(
        &self,
        owner: &Owner,
        origin: &Origin,
        name: &str,
        mut request: RunRequest,
    ) -> Result<Run, Error> {
        let asked = Instant::now();
        request.place = request.place.or_else(|| owner.sessions.place(name));
        let venue = self.venue(owner, &request).await?;
        let (session, queued) = self.session(owner, origin, name, (&venue, &request)).await?;
        // What is judged and recorded must be where it runs.
        let wanted = venue.place.as_ref().map(|place| &*place.name);
        if session.job.place() != wanted {
            let place = session.job.place();
            let where_it_is =
                place.map_or("on this machine".to_owned(), |it| format!("in the place `{it}`"));
            return Err(Error::SessionElsewhere { name: name.to_owned(), where_it_is });
        }
        let _in_use = session.job.begin_use();
        let Command::Script { text, .. } = &request.command else { return Err(Error::Closed) };
        let (text, shown) = (text.clone(), self.masked_command(&request.command));
        let request = self.resolve(&venue, request);
        let entry = self.log_entry(owner, origin, &request, &shown);
        // Held while judging: concurrent requests wait, and are judged with this one in their history.
        let mut history = session.history().await;
        let request = request.behind(history.known());
        let cleared = self.gate(&venue).clear(&owner.identity, origin, request).await;
        let cleared = self.log_start(entry, cleared)?;
        if self.settings().policy.restricts() {
            history.add(&text, cleared.traces());
        }
        drop(history);
        let turn = self.turn(owner, &cleared).await;
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
        let output = owner.new_output().with_secrets(plan.secrets.clone());
        let later = self.shared.later.clone();
        let command = SessionCommand {
            session,
            venue,
            _in_use,
            text,
            shown,
            plan,
            recorded,
            output,
            accounting,
            later,
        };
        Ok(command.start(queued))
    }

    /// A session, started if necessary, and a place in its queue.
    async fn session(
        &self,
        owner: &Owner,
        origin: &Origin,
        name: &str,
        (venue, request): (&Venue, &RunRequest),
    ) -> Result<(Arc<Session>, Queued), Error> {
        let begins = request.directory.is_some() || !request.environment.is_empty();
        let found = |session, queued| match begins {
            true => Err(Error::SessionAlreadyRuns { name: name.to_owned() }),
            false => Ok((session, queued)),
        };
        let slot = owner.sessions.slot(name, self.settings().runs.sessions)?;
        let queued = slot.queue();
        if let Some(session) = slot.session() {
            return found(session, queued);
        }
        // Another call may be starting it.
        let permit = queued.permit().await?;
        if let Some(session) = slot.session() {
            return found(session, permit.into());
        }
        let session = self.start_session(owner, origin, name, (venue, request)).await?;
        slot.set_session(session.clone());
        Ok((session, permit.into()))
    }

    /// Starts the shell of a session. The start is recorded; each command is judged later.
    async fn start_session(
        &self,
        owner: &Owner,
        origin: &Origin,
        name: &str,
        (venue, request): (&Venue, &RunRequest),
    ) -> Result<Arc<Session>, Error> {
        let Command::Script { shell, .. } = &request.command else { return Err(Error::Closed) };
        let shell = shell.as_ref().unwrap_or(&self.environment_of(venue).shell);
        let dialect = Dialect::of(shell);
        // The shell gets the variables when it starts, so they are judged before.
        let first = self.resolve(venue, request.clone());
        self.gate(venue).check(&owner.identity, origin, &first).await?;
        let begun = RunRequest {
            directory: request.directory.clone(),
            environment: request.environment.clone(),
            lasting: true,
            ..RunRequest::new(Command::Argv(dialect.command(shell)))
        };
        let begun = self.resolve(venue, begun);
        let cleared = self.gate(venue).clear_own(&owner.identity, origin, begun).await?;
        let (spawn, plan, recorded) = cleared.into_parts();
        let spawn = Spawn { stdin: Stdin::Orders, replies: true, ..spawn };
        let (process, backing) = match self.spawn(owner, venue, spawn, recorded.id()).await {
            Ok(spawned) => spawned,
            Err(error) => {
                recorded.end(Err(error.reason()));
                return Err(error);
            }
        };
        let (send_channel, channel) = oneshot::channel();
        let sandbox = backing.sandbox.as_ref().map(|it| it.sandbox().clone());
        let backing = Backing { channel: Some(send_channel), ..backing };
        let command = format!("session {name}: {}", shell.display());
        let output = owner.new_output().with_secrets(plan.secrets.clone());
        let mut run = Run::start(process, command, plan, recorded, output, backing);
        if run.started().await.is_none() {
            let failed = run.outcome().await;
            return Err(failed.err().unwrap_or(Error::Closed));
        }
        let channel = channel.await.map_err(|_| Error::Closed)?;
        self.open_control();
        let before = owner.jobs.last_of_session(name);
        let job = owner.jobs.add_session(run, name.to_owned());
        let session = Session::new(name.to_owned(), job, dialect, channel, sandbox)?;
        Ok(Arc::new(session.begun(first.beginning()).replacing(before.as_deref())))
    }
}
