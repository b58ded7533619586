//! An agent that runs in a container, and how both end.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder};
use futures_core::Stream;
use tokio::time::{sleep, timeout};

use super::engine::Engine;
use crate::container_error::ContainerError;
use crate::libraries::explained;
use crate::made::Ending;
use crate::said::Said;

/// How long it may take to end by itself, and then to be ended.
const END_TIME: Duration = Duration::from_secs(3);

/// How often to ask whether a process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub struct Running {
    engine: Engine,
    what: What,
    said: Said,
    /// The program that became the agent.
    agent: PathBuf,
}

/// What ends when the stream closes, by its id.
enum What {
    Container(String),
    /// A process in a container that stays.
    Exec(String),
}

impl Running {
    pub fn container(engine: Engine, id: String, said: Said, agent: PathBuf) -> Self {
        Self { engine, what: What::Container(id), said, agent }
    }

    pub fn exec(engine: Engine, id: String, said: Said, agent: PathBuf) -> Self {
        Self { engine, what: What::Exec(id), said, agent }
    }

    /// Waits until it has ended, which it does when the stream is closed. If it does not, a container that was made is
    /// removed; in another one nothing may be killed. Returns what was said, with advice.
    pub async fn end(self) -> String {
        match &self.what {
            What::Container(id) => {
                let _ = timeout(END_TIME, removed(&self.engine, id)).await;
                remove(&self.engine, id).await;
            }
            What::Exec(id) => {
                let _ = timeout(END_TIME, exited(&self.engine, id)).await;
            }
        }
        explained(&self.agent, self.said.text())
    }
}

impl Ending for Running {
    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = String> + Send>> {
        Box::pin((*self).end())
    }
}

/// Completes when the engine has removed a container.
async fn removed(engine: &Engine, id: &str) {
    let options = WaitContainerOptionsBuilder::default().condition("removed").build();
    let _ = each(engine.docker.wait_container(id, Some(options))).await;
}

async fn exited(engine: &Engine, id: &str) {
    let runs = async || {
        let found = engine.docker.inspect_exec(id).await;
        found.is_ok_and(|found| found.running == Some(true))
    };
    while runs().await {
        sleep(LOOK_AGAIN).await;
    }
}

/// Removes a container with everything in it, if it is still there. False if that failed.
pub async fn remove(engine: &Engine, id: &str) -> bool {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match timeout(END_TIME, engine.docker.remove_container(id, Some(options))).await {
        Ok(Err(error)) if !is_missing(&error) => {
            tracing::debug!("a container cannot be removed: {error}");
            false
        }
        removed => removed.is_ok(),
    }
}

/// Waits for the end of what an engine reports, or its first error.
pub async fn each<T>(stream: impl Stream<Item = Result<T, Error>>) -> Result<(), Error> {
    let mut stream = pin!(stream);
    while let Some(item) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        item?;
    }
    Ok(())
}

/// Whether the engine does not know what it was asked about.
pub fn is_missing(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// What the engine says.
pub fn message(error: Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        other => mcpz_runtime::with_causes(&other),
    }
}

pub fn refused(action: &'static str, error: Error) -> ContainerError {
    ContainerError::Refused { action, said: message(error) }
}
