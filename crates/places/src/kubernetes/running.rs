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

/// How long a node may take to tell why a pod has ended.
const REASON_TIME: Duration = Duration::from_secs(2);

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
    /// Returns what was said.
    pub async fn end(mut self) -> String {
        if let Some((cluster, pod)) = self.made.take() {
            // A task, as nobody may wait for us so long.
            let _ = tokio::spawn(async move { remove(&cluster, &pod).await }).await;
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
    fn reason(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(async {
            let why = match &self.made {
                Some((cluster, pod)) => timeout(REASON_TIME, why_ended(cluster, pod)).await,
                None => Ok(None),
            };
            let said = || explained(&self.agent, self.said.text());
            why.ok().flatten().or_else(|| Some(said()).filter(|said| !said.is_empty()))
        })
    }

    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = String> + Send>> {
        Box::pin((*self).end())
    }
}

/// Why a pod ends that nobody here has ended. None if it has completed, as it does when its agent ends.
async fn why_ended(cluster: &Cluster, pod: &str) -> Option<String> {
    const DELETED: &str = "somebody deleted the pod";
    let Some(found) = cluster.pods.get_opt(pod).await.ok()? else {
        return Some(DELETED.to_owned());
    };
    let seen = follow(cluster, found, |pod| {
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        is_deleted.then(|| DELETED.to_owned()).or_else(|| {
            let reason = ended(pod, CONTAINER)?;
            let is_usual = ["Completed", "Succeeded"].contains(&&reason[..]);
            Some(if is_usual { String::new() } else { format!("the pod has ended: {reason}") })
        })
    });
    let why = seen.await.ok()?.unwrap_or_else(|| DELETED.to_owned());
    Some(why).filter(|why| !why.is_empty())
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
