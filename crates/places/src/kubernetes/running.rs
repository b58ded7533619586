//! An agent that runs in a pod, and how both end.

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::cluster::{Cluster, is_missing};
use super::pod::CONTAINER;
use super::progress::{ended, follow};
use crate::libraries::explained;
use crate::made::Ending;
use crate::said::Said;

/// How long the cluster may take to answer.
const END_TIME: Duration = Duration::from_secs(3);

pub struct Running {
    /// The pod that was made, until it is removed. One that was there stays.
    made: Option<(Cluster, String)>,
    said: Said,
    /// The program that became the agent.
    agent: PathBuf,
}

impl Running {
    pub fn made(cluster: Cluster, pod: String, said: Said, agent: PathBuf) -> Self {
        Self { made: Some((cluster, pod)), said, agent }
    }

    pub fn joined(said: Said, agent: PathBuf) -> Self {
        Self { made: None, said, agent }
    }

    /// Removes a pod that was made. What ran in it ends with the stream, also if the cluster does not answer now.
    /// Returns what was said, and why the pod had ended already.
    pub async fn end(mut self) -> String {
        if let Some((cluster, pod)) = self.made.take() {
            // A task, as nobody may wait for us so long.
            let said = self.said.clone();
            let _ = tokio::spawn(async move { end(&cluster, &pod, &said).await }).await;
        }
        explained(&self.agent, self.said.text())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((cluster, pod)) = self.made.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { remove(&cluster, &pod).await });
        }
    }
}

impl Ending for Running {
    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = String> + Send>> {
        Box::pin((*self).end())
    }
}

async fn end(cluster: &Cluster, pod: &str, said: &Said) {
    match timeout(END_TIME, cluster.pods.get_opt(pod)).await {
        Ok(Ok(Some(found))) => {
            // It completes when its agent has ended, as it should.
            let reason = ended(&found, CONTAINER).filter(|reason| reason != "Completed");
            if let Some(reason) = reason {
                said.add(format!("\nthe pod has ended: {reason}\n").as_bytes());
            } else if found.metadata.deletion_timestamp.is_some() {
                said.add(b"\nsomebody deleted the pod\n");
            }
        }
        Ok(Ok(None)) => said.add(b"\nsomebody deleted the pod\n"),
        Ok(Err(_)) | Err(_) => {}
    }
    remove(cluster, pod).await;
}

/// Ends a pod with everything in it, and removes it. A slow node may take long to confirm that. Once everything in the
/// pod has ended, there is nothing to wait for.
pub async fn remove(cluster: &Cluster, pod: &str) {
    let Some(found) = delete(cluster, pod, &DeleteParams::default()).await else { return };
    let has_ended = follow(cluster, found, |pod| ended(pod, CONTAINER));
    if let Ok(Ok(Some(_))) = timeout(END_TIME, has_ended).await {
        delete(cluster, pod, &DeleteParams::default().grace_period(0)).await;
    }
}

/// Removes a pod. Returns it if that takes time.
pub async fn delete(cluster: &Cluster, pod: &str, how: &DeleteParams) -> Option<Pod> {
    match timeout(END_TIME, cluster.pods.delete(pod, how)).await {
        Ok(Ok(deleted)) => return deleted.left(),
        Ok(Err(error)) if is_missing(&error) => {}
        Ok(Err(error)) => tracing::warn!("the pod {pod} cannot be removed: {error}"),
        Err(_) => tracing::warn!("the pod {pod} was not removed: the cluster does not answer"),
    }
    None
}
