//! Makes a pod, or uses one that runs, and starts the agent in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use mcpz_runtime::random_name;
use tokio::time::timeout;

use super::Kubernetes;
use super::cluster::{Cluster, is_missing};
use super::exec::Exec;
use super::pod::{self, CONTAINER, FOLDER, HOLD};
use super::progress::{Progress, Watched, progress, until_running};
use super::running::{Running, remove};
use crate::agent_file::AgentFile;
use crate::delivery::{Delivery, deliver};
use crate::error::PlaceError;
use crate::kubernetes_error::KubernetesError;
use crate::made::Made;
use crate::opening::Opening;
use crate::said::Said;

/// The part of the time to start in which a pod has to run, so that there is time left to tell why it does not.
const TIME_TO_RUN: f64 = 0.9;

/// The annotation that tells which container `kubectl` uses.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// In a pod that was made, which is held by the agent.
const MADE: Delivery<'_> = Delivery { folder: FOLDER, check: "[ -d \"$d\" ]", start: HOLD };

/// In a pod that was there. Nobody else may be able to replace the agent.
const JOINED: Delivery<'_> = Delivery {
    folder: "${TMPDIR:-/tmp}/.mcpz-$(id -u)",
    check: "[ -O \"$d\" ] && [ ! -L \"$d\" ]",
    start: "exec \"$f\" agent --stream",
};

pub async fn make(
    kubernetes: &Kubernetes,
    image: &str,
    cluster: Cluster,
    agent: &Path,
    start_time: Duration,
    opening: &Opening<'_>,
) -> Result<Made, PlaceError> {
    let agent_file = AgentFile::read(agent).await?;
    let name = format!("mcpz-{}", random_name()?);
    let (owner, limits) = (cluster.owner().await, opening.limits);
    let pod =
        pod::pod(kubernetes, &pod::Making { name: name.clone(), image, limits, start_time, owner });
    let making = Making {
        cluster,
        name,
        image: image.to_owned(),
        pod,
        time: start_time,
        agent: agent.to_owned(),
        agent_file,
    };
    // What was created must be removed.
    opening.finish(making.make()).await?
}

/// All it takes to make one pod.
struct Making {
    cluster: Cluster,
    name: String,
    image: String,
    pod: Pod,
    /// How long it may take until the agent runs. Nobody waits longer, and a pod whose container has ended may never
    /// read what is sent to it.
    time: Duration,
    agent: PathBuf,
    agent_file: Arc<AgentFile>,
}

impl Making {
    async fn make(self) -> Result<Made, PlaceError> {
        let created = self.cluster.pods.create(&PostParams::default(), &self.pod).await;
        let created = created.map_err(|error| self.cluster.refused("create the pod", error))?;
        let started = match timeout(self.time, self.start(created)).await {
            Ok(started) => started,
            Err(_) => {
                let said = "the agent was not there in time".to_owned();
                Err(KubernetesError::Slow { seconds: self.time.as_secs(), said }.into())
            }
        };
        if started.is_err() {
            remove(&self.cluster, &self.name).await;
        }
        started
    }

    async fn start(&self, created: Pod) -> Result<Made, PlaceError> {
        let watched = Watched { container: CONTAINER, image: &self.image };
        let time_to_run = self.time.mul_f64(TIME_TO_RUN);
        until_running(&self.cluster, created, watched, time_to_run).await?;
        let (said, script) = (Said::default(), MADE.script(&self.agent_file));
        let exec = Exec::start(&self.cluster, &self.name, CONTAINER, script, said.clone()).await?;
        let exec = delivered(exec, &self.image, &self.agent, &self.agent_file, &said).await?;
        let running =
            Running::made(self.cluster.clone(), self.name.clone(), said, self.agent.clone());
        Ok(Made { stream: Box::new(exec), ending: Box::new(running) })
    }
}

/// Starts the agent in a pod that runs.
pub async fn join(
    cluster: Cluster,
    name: &str,
    container: Option<&str>,
    agent: &Path,
) -> Result<Made, PlaceError> {
    let agent_file = AgentFile::read(agent).await?;
    let found = match cluster.pods.get(name).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => {
            let (name, namespace) = (name.to_owned(), cluster.namespace.clone());
            return Err(KubernetesError::NoPod { name, namespace }.into());
        }
        Err(error) => return Err(cluster.refused("look for the pod", error).into()),
    };
    let (container, image) = chosen(&found, container);
    let not_running = |said| KubernetesError::NotRunning { name: name.to_owned(), said };
    match progress(&found, Watched { container: &container, image: &image }) {
        Progress::Running => {}
        Progress::Waiting(said) => return Err(not_running(said).into()),
        Progress::Failed(error) => return Err(not_running(error.to_string()).into()),
    }
    let (said, script) = (Said::default(), JOINED.script(&agent_file));
    let exec = Exec::start(&cluster, name, &container, script, said.clone()).await?;
    let exec = delivered(exec, &image, agent, &agent_file, &said).await?;
    Ok(Made { stream: Box::new(exec), ending: Box::new(Running::joined(said, agent.to_owned())) })
}

/// The container to use, and its image: the one that is named, that `kubectl` would use, or the first one.
fn chosen(pod: &Pod, named: Option<&str>) -> (String, String) {
    let annotations = pod.metadata.annotations.as_ref();
    let usual = annotations.and_then(|all| all.get(DEFAULT_CONTAINER)).map(String::as_str);
    let containers = pod.spec.as_ref().map(|spec| &spec.containers[..]).unwrap_or_default();
    let first = containers.first().map(|container| &container.name[..]);
    let name = named.or(usual).or(first).unwrap_or_default();
    let found = containers.iter().find(|container| container.name == name);
    let image = found.and_then(|container| container.image.clone());
    (name.to_owned(), image.unwrap_or_default())
}

/// Copies the agent if it is wanted. If that fails, what the pod said tells why.
async fn delivered(
    mut exec: Exec,
    image: &str,
    path: &Path,
    agent: &AgentFile,
    said: &Said,
) -> Result<Exec, PlaceError> {
    let image = image.to_owned();
    match deliver(&mut exec, path, agent).await {
        Ok(()) => Ok(exec),
        Err(PlaceError::Copy { .. }) => Err(PlaceError::Copy { said: said.text() }),
        Err(PlaceError::Connection(error)) => match said.text() {
            said if said.is_empty() => Err(error.into()),
            said if said.contains("not found") => {
                Err(KubernetesError::NoShell { image, said }.into())
            }
            said => {
                Err(KubernetesError::Refused { action: "start the agent in the pod", said }.into())
            }
        },
        Err(error) => Err(error),
    }
}
