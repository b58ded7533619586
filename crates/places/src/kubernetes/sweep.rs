//! Removes the pods that servers left behind when they were killed.
//!
//! Servers on other machines may use the same namespace. So a pod is only removed if the server that made it is known
//! to be gone, or if nothing runs in the pod, and its server has had the time to see that. A server that was started
//! again in its pod does not know the one before, but their pods have the same owner.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ListParams};
use mcpz_agent::{Maker, MakerState};

use super::cluster::Cluster;
use super::pod::{CONTAINER, MADE_LABEL, SERVER_ANNOTATION};
use super::progress::{ended, state};
use super::running::delete;
use crate::kubernetes_error::KubernetesError;

/// After this time no server is still waiting for a pod to run.
const OLD: Duration = Duration::from_secs(60 * 60);

/// After this time a server has seen that its pod has ended, and why.
const SEEN: Duration = Duration::from_secs(60);

pub async fn sweep(cluster: &Cluster) -> Result<usize, KubernetesError> {
    let (key, value) = MADE_LABEL;
    let made = ListParams::default().labels(&format!("{key}={value}"));
    let listed = cluster.pods.list(&made).await;
    let listed = listed.map_err(|error| cluster.refused("list pods", error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut swept = 0;
    let own = cluster.own_pod.as_deref();
    for pod in listed.items.iter().filter(|pod| is_left(pod, own, now)) {
        if let Some(name) = &pod.metadata.name {
            // What has ended has no more to do.
            let is_over = ended(pod, CONTAINER).is_some();
            let grace_period_seconds = is_over.then_some(0);
            let how = DeleteParams { grace_period_seconds, ..Default::default() };
            delete(cluster, name, &how).await;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Whether nobody will use a pod again. `own` is the pod that we run in.
fn is_left(pod: &Pod, own: Option<&str>, now: Duration) -> bool {
    if pod.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let annotations = pod.metadata.annotations.as_ref();
    let Some(server) = annotations.and_then(|all| all.get(SERVER_ANNOTATION)) else {
        // The label alone may be anybody's.
        return false;
    };
    let is_over = ended(pod, CONTAINER).is_some();
    if is_over && ended_at(pod).is_some_and(|at| at + SEEN < now) {
        return true;
    }
    let maker = server.parse::<Maker>().ok();
    match maker.map_or(MakerState::Elsewhere, |maker| maker.state()) {
        MakerState::Alive => false,
        MakerState::Gone => true,
        MakerState::Elsewhere if is_over && own.is_some_and(|own| is_owned_by(pod, own)) => true,
        MakerState::Elsewhere => {
            let created = pod.metadata.creation_timestamp.as_ref().and_then(since_epoch);
            let is_old = created.is_some_and(|at| at + OLD < now);
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            is_old && (phase == Some("Pending") || is_over)
        }
    }
}

fn is_owned_by(pod: &Pod, owner: &str) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|it| it.kind == "Pod" && it.name == owner)
}

/// When the container of a pod ended, if its node has told.
fn ended_at(pod: &Pod) -> Option<Duration> {
    let terminated = state(pod, CONTAINER)?.terminated?;
    since_epoch(&terminated.finished_at?)
}

fn since_epoch(time: &Time) -> Option<Duration> {
    u64::try_from(time.0.as_second()).ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{
        ContainerState, ContainerStateTerminated, ContainerStatus, PodStatus,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

    use super::*;

    const NOW: Duration = Duration::from_secs(1_000_000);

    fn ago(seconds: i64) -> Option<Time> {
        Some(Time(k8s_openapi::jiff::Timestamp::from_second(1_000_000 - seconds).unwrap()))
    }

    fn made_by(server: Option<&str>, phase: &str, seconds: i64) -> Pod {
        let annotation = |server: &str| (SERVER_ANNOTATION.to_owned(), server.to_owned());
        let metadata = ObjectMeta {
            annotations: Some(server.map(annotation).into_iter().collect()),
            creation_timestamp: ago(seconds),
            ..Default::default()
        };
        let status = PodStatus { phase: Some(phase.to_owned()), ..Default::default() };
        Pod { metadata, status: Some(status), ..Default::default() }
    }

    fn own() -> String {
        Maker::own().unwrap().to_string()
    }

    #[test]
    fn only_what_nobody_can_use_again_is_left() {
        let is_left = |server, phase, seconds| is_left(&made_by(server, phase, seconds), None, NOW);
        let own = own();
        let (before, _) = own.rsplit_once('.').unwrap();
        let gone = format!("{before}.1");
        assert!(!is_left(Some(&own), "Succeeded", 90_000));
        assert!(is_left(Some(&gone), "Pending", 1));
        assert!(is_left(Some(&gone), "Running", 1));
        assert!(!is_left(None, "Succeeded", 90_000));
        for elsewhere in ["another boot.1.2.3", "not written by us", ""] {
            assert!(!is_left(Some(elsewhere), "Running", 90_000));
            for phase in ["Pending", "Succeeded", "Failed"] {
                assert!(!is_left(Some(elsewhere), phase, 60));
                assert!(is_left(Some(elsewhere), phase, 90_000));
            }
        }
    }

    #[test]
    fn what_ended_is_left_once_its_server_must_have_seen_that() {
        let own = own();
        for (server, seconds, expected) in
            [(&own[..], 59, false), (&own, 61, true), ("another.1.2.3", 59, false), ("x", 61, true)]
        {
            let finished_at = ago(seconds);
            let terminated = Some(ContainerStateTerminated { finished_at, ..Default::default() });
            let status = ContainerStatus {
                name: CONTAINER.to_owned(),
                state: Some(ContainerState { terminated, ..Default::default() }),
                ..Default::default()
            };
            let mut pod = made_by(Some(server), "Succeeded", 90);
            pod.status.as_mut().unwrap().container_statuses = Some(vec![status]);
            assert_eq!(is_left(&pod, None, NOW), expected, "{server} {seconds}");
        }
    }

    #[test]
    fn what_the_server_before_in_the_same_pod_made_is_left_once_it_has_ended() {
        let owner = OwnerReference {
            kind: "Pod".to_owned(),
            name: "server-0".to_owned(),
            ..Default::default()
        };
        let made = |phase| {
            let mut pod = made_by(Some("boot.1.2.3"), phase, 1);
            pod.metadata.owner_references = Some(vec![owner.clone()]);
            pod
        };
        assert!(is_left(&made("Succeeded"), Some("server-0"), NOW));
        assert!(!is_left(&made("Running"), Some("server-0"), NOW));
        assert!(!is_left(&made("Succeeded"), Some("server-1"), NOW));
        assert!(!is_left(&made("Succeeded"), None, NOW));
    }
}
