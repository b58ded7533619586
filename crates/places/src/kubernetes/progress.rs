//! Waits until a pod runs, by watching it, or tells why it does not.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::Error;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::timeout;

use super::cluster::Cluster;
use crate::kubernetes_error::KubernetesError;

/// How a pod is coming along.
#[derive(Debug)]
pub enum Progress {
    Running,
    /// Why it does not run yet.
    Waiting(String),
    Failed(KubernetesError),
}

/// A container of a pod, which may have others too.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    pub container: &'a str,
    pub image: &'a str,
}

/// Returns when a container of a pod runs, or the time is over.
pub async fn until_running(
    cluster: &Cluster,
    pod: Pod,
    watched: Watched<'_>,
    time: Duration,
) -> Result<(), KubernetesError> {
    let mut why = String::new();
    match timeout(time, watch(cluster, pod, watched, &mut why)).await {
        Ok(watched) => watched,
        Err(_) if why.is_empty() => Err(KubernetesError::Slow {
            seconds: time.as_secs(),
            said: "no node has taken it".to_owned(),
        }),
        Err(_) => Err(KubernetesError::Slow { seconds: time.as_secs(), said: why }),
    }
}

async fn watch(
    cluster: &Cluster,
    pod: Pod,
    watched: Watched<'_>,
    why: &mut String,
) -> Result<(), KubernetesError> {
    let look = |pod: &Pod| match progress(pod, watched) {
        Progress::Running => Some(Ok(())),
        Progress::Failed(error) => Some(Err(error)),
        Progress::Waiting(reason) => {
            *why = reason;
            None
        }
    };
    match follow(cluster, pod, look).await {
        Ok(Some(seen)) => seen,
        Ok(None) => Err(KubernetesError::Ended { said: "it was deleted".to_owned() }),
        Err(error) => Err(cluster.refused("watch the pod", error)),
    }
}

/// Looks at a pod whenever it changes, until something is seen, or the pod is gone.
pub async fn follow<T>(
    cluster: &Cluster,
    mut pod: Pod,
    mut look: impl FnMut(&Pod) -> Option<T>,
) -> Result<Option<T>, Error> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
    loop {
        if let Some(seen) = look(&pod) {
            return Ok(Some(seen));
        }
        let version = pod.metadata.resource_version.clone().unwrap_or_default();
        let mut events = Box::pin(cluster.pods.watch(&parameters, &version).await?);
        while let Some(event) = next(events.as_mut()).await {
            let changed = match event {
                Ok(WatchEvent::Added(changed) | WatchEvent::Modified(changed)) => changed,
                Ok(WatchEvent::Deleted(_)) => return Ok(None),
                Ok(WatchEvent::Bookmark(_)) => continue,
                Ok(WatchEvent::Error(_)) | Err(_) => break,
            };
            if let Some(seen) = look(&changed) {
                return Ok(Some(seen));
            }
        }
        // The cluster ends every watch after some time.
        match cluster.pods.get_opt(&name).await? {
            Some(found) => pod = found,
            None => return Ok(None),
        }
    }
}

async fn next<S: Stream>(mut stream: Pin<&mut S>) -> Option<S::Item> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

pub fn progress(pod: &Pod, Watched { container, image }: Watched<'_>) -> Progress {
    if let Some(reason) = ended(pod, container) {
        return Progress::Failed(match reason.contains("executable file not found") {
            true => KubernetesError::NoShell { image: image.to_owned(), said: reason },
            false => KubernetesError::Ended { said: reason },
        });
    }
    match state(pod, container) {
        Some(ContainerState { running: Some(_), .. }) => Progress::Running,
        Some(ContainerState { waiting: Some(waiting), .. }) => {
            let reason = waiting.reason.unwrap_or_default();
            let said = told(&reason, waiting.message.as_deref());
            match &reason[..] {
                "ErrImagePull"
                | "ImagePullBackOff"
                | "ErrImageNeverPull"
                | "InvalidImageName"
                | "ImageInspectError"
                | "RegistryUnavailable" => {
                    Progress::Failed(KubernetesError::Image { image: image.to_owned(), said })
                }
                "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                    Progress::Failed(KubernetesError::Refused { action: "start the pod", said })
                }
                _ => Progress::Waiting(said),
            }
        }
        _ => Progress::Waiting(unscheduled(pod).unwrap_or_default()),
    }
}

/// Why a container of a pod has ended, if it has.
pub fn ended(pod: &Pod, container: &str) -> Option<String> {
    let status = pod.status.as_ref()?;
    let phase = status.phase.as_deref().filter(|phase| ["Succeeded", "Failed"].contains(phase));
    // Such as Evicted or DeadlineExceeded.
    if let (Some(_), Some(reason)) = (phase, &status.reason) {
        return Some(told(reason, status.message.as_deref()));
    }
    let Some(terminated) = state(pod, container).and_then(|state| state.terminated) else {
        return phase.map(str::to_owned);
    };
    let reason = terminated.reason.unwrap_or_else(|| format!("exit code {}", terminated.exit_code));
    Some(told(&reason, terminated.message.as_deref()))
}

pub fn state(pod: &Pod, container: &str) -> Option<ContainerState> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == container)?.state.clone()
}

/// Why no node has taken a pod.
fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled =
        conditions.iter().find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    Some(told(scheduled.reason.as_deref()?, scheduled.message.as_deref()))
}

fn told(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {}", message.trim()),
        _ => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{
        ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
        PodCondition, PodStatus,
    };

    use super::*;

    const WATCHED: Watched<'_> = Watched { container: "place", image: "image" };

    fn of(phase: &str, state: ContainerState) -> Pod {
        let name = "place".to_owned();
        let status = ContainerStatus { name, state: Some(state), ..Default::default() };
        // One that somebody else adds to every pod, and that goes on.
        let running = Some(ContainerStateRunning::default());
        let running = Some(ContainerState { running, ..Default::default() });
        let other = ContainerStatus { state: running, ..Default::default() };
        let (phase, container_statuses) = (Some(phase.to_owned()), Some(vec![other, status]));
        let status = PodStatus { phase, container_statuses, ..Default::default() };
        Pod { status: Some(status), ..Default::default() }
    }

    fn waiting(reason: &str, message: &str) -> ContainerState {
        let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
        let waiting = Some(ContainerStateWaiting { reason, message });
        ContainerState { waiting, ..Default::default() }
    }

    fn error(pod: &Pod) -> String {
        match progress(pod, WATCHED) {
            Progress::Failed(error) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pod_runs_when_its_container_does() {
        let running = Some(ContainerStateRunning::default());
        let running = of("Running", ContainerState { running, ..Default::default() });
        assert!(matches!(progress(&running, WATCHED), Progress::Running));
        assert!(matches!(progress(&Pod::default(), WATCHED), Progress::Waiting(_)));
        let creating = of("Pending", waiting("ContainerCreating", ""));
        assert!(matches!(progress(&creating, WATCHED), Progress::Waiting(_)));
    }

    #[test]
    fn what_keeps_a_pod_from_running_is_told() {
        for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"] {
            let error = error(&of("Pending", waiting(reason, "not found")));
            let told = format!("cannot get the image `image` ({reason}: not found); is its name");
            assert!(error.starts_with(&told), "{error}");
        }
        let never = error(&of("Pending", waiting("ErrImageNeverPull", "")));
        assert!(never.contains("load it on the nodes"), "{never}");
        let config = error(&of("Pending", waiting("CreateContainerConfigError", "no user")));
        assert_eq!(
            config,
            "the cluster could not start the pod: CreateContainerConfigError: no user"
        );

        let terminated = |reason: &str, message: &str| {
            let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
            let terminated =
                Some(ContainerStateTerminated { reason, message, ..Default::default() });
            of("Running", ContainerState { terminated, ..Default::default() })
        };
        let killed = error(&terminated("OOMKilled", ""));
        assert_eq!(killed, "the pod ended before the agent started in it: OOMKilled");
        let no_shell =
            error(&terminated("StartError", "exec: \"sh\": executable file not found in $PATH"));
        assert!(no_shell.contains("it needs `sh`"), "{no_shell}");

        let status = PodStatus {
            phase: Some("Failed".to_owned()),
            reason: Some("Evicted".to_owned()),
            message: Some("The node was low on resource: memory.".to_owned()),
            ..Default::default()
        };
        let evicted = Pod { status: Some(status), ..Default::default() };
        assert!(error(&evicted).contains("Evicted: The node was low"));

        let condition = PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            message: Some("0/3 nodes are available".to_owned()),
            ..Default::default()
        };
        let status = PodStatus { conditions: Some(vec![condition]), ..Default::default() };
        let pending = Pod { status: Some(status), ..Default::default() };
        let Progress::Waiting(why) = progress(&pending, WATCHED) else { panic!() };
        assert_eq!(why, "Unschedulable: 0/3 nodes are available");
    }
}
