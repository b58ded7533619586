//! What is typed into jobs is judged and put on record, and only then typed.

use mcpz_policy::Scene;

use super::{Engine, Settings};
use crate::audit::Entered;
use crate::error::Error;
use crate::jobs::{Job, Typing};
use crate::request::Origin;
use crate::store::Owner;

impl Engine {
    /// Has something typed into a job, unless whatever reads it must not be told that.
    pub async fn write(
        &self,
        owner: &Owner,
        origin: &Origin,
        job: &Job,
        typing: &Typing,
    ) -> Result<(), Error> {
        let hidden = job.has_terminal() && job.remote().inspector().hides_input().await;
        let entered = Entered { typing, hidden, job, origin, owner: owner.name() };
        match self.type_recorded(&entered).await {
            Err(error) if !matches!(error, Error::Audit { .. }) => {
                self.shared.audit.refuse_typing(&entered, &error).await?;
                Err(error)
            }
            done => done,
        }
    }

    async fn type_recorded(&self, entered: &Entered<'_>) -> Result<(), Error> {
        let Settings { policy, working_directory, home, .. } = self.settings();
        let home = home.as_ref().map(|home| home.to_string_lossy());
        let scene = Scene {
            directory: &working_directory.to_string_lossy(),
            home: home.as_deref(),
            variables: &[],
            typed: true,
        };
        let Entered { typing, job, .. } = *entered;
        let (remote, bytes) = (job.remote(), typing.bytes());
        let interpreters = match policy.restricts() && !bytes.is_empty() {
            true => job.interpreters().await?,
            false => Vec::new(),
        };
        let room = remote.reserve(bytes.len()).ok_or(Error::Unread)?;
        job.check_typing(policy, &scene, (typing, interpreters), |before| {
            self.shared.audit.start_typing(entered)?;
            if !bytes.is_empty() {
                room.write(bytes, false, before);
            }
            if typing.eof {
                remote.close_input();
            }
            Ok(())
        })
    }
}
