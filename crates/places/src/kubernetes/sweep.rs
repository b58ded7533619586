//! Removes the pods that servers left behind when they were killed.
//!
//! Servers on other machines may use the same namespace. So a pod is only removed if the server that made it is known
//! to be gone, or if it is not known, but nothing runs in the pod and it was not made just now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use mcpz_agent::{Maker, MakerState};

use super::cluster::Cluster;
use super::pod::{CONTAINER, MADE_LABEL, SERVER_ANNOTATION};
use super::progress::ended;
use super::running::delete;
use crate::kubernetes_error::KubernetesError;

/// After this time no server is still waiting for a pod to run.
const OLD: Duration = Duration::from_secs(60 * 60);

pub async fn sweep(cluster: &Cluster) -> Result<usize, KubernetesError> {
    let (key, value) = MADE_LABEL;
    let made = ListParams::default().labels(&format!("{key}={value}"));
    let listed = cluster.pods.list(&made).await;
    let listed = listed.map_err(|error| cluster.refused("list pods", error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut swept = 0;
    for pod in listed.items.iter().filter(|pod| is_left(pod, now)) {
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

/// Whether nobody will use a pod again.
fn is_left(pod: &Pod, now: Duration) -> bool {
    if pod.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let annotations = pod.metadata.annotations.as_ref();
    let Some(server) = annotations.and_then(|all| all.get(SERVER_ANNOTATION)) else {
        // The label alone may be anybody's.
        return false;
    };
    let maker = server.parse::<Maker>().ok();
    match maker.map_or(MakerState::Elsewhere, |maker| maker.state()) {
        MakerState::Alive => false,
        MakerState::Gone => true,
        MakerState::Elsewhere => {
            let created = pod.metadata.creation_timestamp.as_ref();
            let created = created.and_then(|time| u64::try_from(time.0.as_second()).ok());
            let is_old = created.is_some_and(|it| Duration::from_secs(it) + OLD < now);
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            is_old && (phase == Some("Pending") || ended(pod, CONTAINER).is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

    use super::*;

    #[test]
    fn only_what_nobody_can_use_again_is_left() {
        let now = Duration::from_secs(1_000_000);
        let made_by = |server: Option<&str>, phase: &str, seconds: i64| {
            let created = k8s_openapi::jiff::Timestamp::from_second(1_000_000 - seconds).unwrap();
            let annotation = |server: &str| (SERVER_ANNOTATION.to_owned(), server.to_owned());
            let metadata = ObjectMeta {
                annotations: Some(server.map(annotation).into_iter().collect()),
                creation_timestamp: Some(Time(created)),
                ..Default::default()
            };
            let status = PodStatus { phase: Some(phase.to_owned()), ..Default::default() };
            is_left(&Pod { metadata, status: Some(status), ..Default::default() }, now)
        };
        let own = Maker::own().unwrap().to_string();
        let (before, _) = own.rsplit_once('.').unwrap();
        let gone = format!("{before}.1");
        assert!(!made_by(Some(&own), "Succeeded", 90_000));
        assert!(made_by(Some(&gone), "Pending", 1));
        assert!(made_by(Some(&gone), "Running", 1));
        assert!(!made_by(None, "Succeeded", 90_000));
        for elsewhere in ["another boot.1.2.3", "not written by us", ""] {
            assert!(!made_by(Some(elsewhere), "Running", 90_000));
            for phase in ["Pending", "Succeeded", "Failed"] {
                assert!(!made_by(Some(elsewhere), phase, 60));
                assert!(made_by(Some(elsewhere), phase, 90_000));
            }
        }
    }
}
