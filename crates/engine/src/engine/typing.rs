//! Types into jobs: the policy judges the input and the audit trail records it before it is written.

use mcpz_audit::TypedInput;
use mcpz_policy::Scene;

use super::Engine;
use crate::error::Error;
use crate::jobs::{Interpreters, Job, Typing};
use crate::owner::Owner;
use crate::request::Origin;
use crate::settings::Settings;

impl Engine {
    /// Types into a job, unless the program that reads it must not get that input.
    pub async fn write(
        &self,
        owner: &Owner,
        origin: &Origin,
        job: &Job,
        typing: &Typing,
    ) -> Result<(), Error> {
        let hidden = job.has_terminal() && job.controls().inspector().hides_input().await;
        let bytes = typing.bytes();
        let entered = TypedInput {
            source: origin.source(owner.name()),
            run: &job.run,
            job: job.id(),
            text: &typing.text,
            keys: &typing.keys,
            bytes: &bytes,
            eof: typing.eof,
            hidden,
        };
        match self.type_recorded(job, typing, &entered).await {
            Err(error) if !matches!(error, Error::Audit(_)) => {
                self.shared.audit.record_refused_input(&entered, &error.reason()).await?;
                Err(error)
            }
            done => done,
        }
    }

    async fn type_recorded(
        &self,
        job: &Job,
        typing: &Typing,
        entered: &TypedInput<'_>,
    ) -> Result<(), Error> {
        let Settings { policy, home, working_directory, .. } = self.settings();
        let home = home.as_ref().map(|home| home.to_string_lossy());
        let directory = working_directory.to_string_lossy();
        let scene = Scene { home: home.as_deref(), ..Scene::at(&directory) };
        let (controls, bytes) = (job.controls(), entered.bytes.to_vec());
        let interpreters = match policy.restricts() && !bytes.is_empty() {
            true => job.interpreters(typing).await?,
            false => Interpreters::none(),
        };
        let room = controls.reserve(bytes.len()).ok_or(Error::InputUnread)?;
        job.check_typing(policy, &scene, (typing, interpreters), |before, locks| {
            self.shared.audit.record_input(entered)?;
            if self.settings().lock {
                let path = self.environment().variables.get("PATH");
                let known = &self.shared.known_rules;
                locks.into_iter().for_each(|lock| controls.permit(known.of(lock, path)));
            }
            if !bytes.is_empty() {
                room.write(bytes, false, before);
            }
            if typing.eof {
                controls.close_input();
            }
            Ok(())
        })
    }
}
