//! Removes what servers left behind that were killed while they made a container. What was started ends by itself.
//!
//! Other servers may use the same engine, on this machine or another one. So a container is only removed if the server
//! that made it is known to be gone, or if it is not known, but the container does not run and was not made just now.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};
use bollard::query_parameters::ListContainersOptionsBuilder;
use mcpz_agent::{Maker, MakerState};

use super::body::SERVER_LABEL;
use super::engine::Engine;
use super::running::{refused, remove};
use crate::container_error::ContainerError;

/// After this time no server is still about to start a container.
const OLD: Duration = Duration::from_secs(60 * 60);

pub async fn sweep(engine: &Engine) -> Result<usize, ContainerError> {
    let filters: HashMap<_, _> = [("label", vec![SERVER_LABEL])].into_iter().collect();
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = engine.docker.list_containers(Some(options)).await;
    let listed = listed.map_err(|error| refused("list containers", error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = listed.iter().filter(|container| is_left(container, now));
    let mut swept = 0;
    for id in left.filter_map(|container| container.id.as_deref()) {
        swept += usize::from(remove(engine, id).await);
    }
    Ok(swept)
}

/// Whether nobody will use a container again.
fn is_left(container: &ContainerSummary, now: Duration) -> bool {
    let label = container.labels.as_ref().and_then(|labels| labels.get(SERVER_LABEL));
    let maker = label.and_then(|label| label.parse::<Maker>().ok());
    match maker.map_or(MakerState::Elsewhere, |maker| maker.state()) {
        MakerState::Alive => false,
        MakerState::Gone => true,
        MakerState::Elsewhere => {
            let created = container.created.and_then(|seconds| u64::try_from(seconds).ok());
            let is_old = created.is_some_and(|it| Duration::from_secs(it) + OLD < now);
            is_old && matches!(container.state, Some(State::CREATED | State::EXITED | State::DEAD))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_use_again_is_left() {
        let now = Duration::from_secs(1_000_000);
        let is_left = |server: &str, state, seconds: i64| {
            let labels = [(SERVER_LABEL.to_owned(), server.to_owned())].into_iter().collect();
            let (state, created) = (Some(state), Some(1_000_000 - seconds));
            let container =
                ContainerSummary { labels: Some(labels), state, created, ..Default::default() };
            is_left(&container, now)
        };
        let own = Maker::own().unwrap().to_string();
        let (before, _) = own.rsplit_once('.').unwrap();
        let gone = format!("{before}.1");
        assert!(!is_left(&own, State::CREATED, 90_000));
        assert!(is_left(&gone, State::CREATED, 1));
        assert!(is_left(&gone, State::RUNNING, 1));
        for elsewhere in ["another boot.1.2.3", "not written by us", ""] {
            assert!(!is_left(elsewhere, State::RUNNING, 90_000));
            assert!(!is_left(elsewhere, State::CREATED, 60));
            assert!(is_left(elsewhere, State::CREATED, 90_000));
        }
    }
}
