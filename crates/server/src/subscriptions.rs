//! Notifies clients when an output they follow has grown or ended, and when a task has ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_engine::Owner;
use mcpz_output::Output;
use rmcp::RoleServer;
use rmcp::model::{
    GetMeta, RequestId, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification, SubscriptionFilter, TaskStatusNotification,
};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::output_uri::OutputUri;
use crate::tasks::Task;

/// The least time between two notifications about the same output.
const INTERVAL: Duration = Duration::from_millis(500);

/// The most outputs a client may follow at once.
pub const MAX_FOLLOWED: usize = 64;

/// The output a URI names, if it belongs to the owner.
pub fn find(owner: &Owner, uri: &str) -> Option<Output> {
    let uri: OutputUri = uri.parse().ok()?;
    Some(owner.find(&uri.id)?.output)
}

/// An output that a client follows.
pub struct FollowedOutput {
    output: Output,
    arrived: watch::Receiver<u64>,
    seen: u64,
    ended: bool,
}

impl FollowedOutput {
    pub fn new(output: Output) -> Self {
        let (arrived, seen, ended) = (output.watch(), output.length(), output.is_finished());
        Self { output, arrived, seen, ended }
    }

    /// Waits until there is more, or the output has ended. `None` when nothing will change any more.
    pub async fn changed(&mut self) -> Option<()> {
        loop {
            if self.ended {
                return None;
            }
            if self.arrived.changed().await.is_err() {
                return None;
            }
            sleep(INTERVAL).await;
            self.arrived.mark_unchanged();
            let length = self.output.length();
            self.ended = self.output.is_finished();
            if length > self.seen || self.ended {
                self.seen = length;
                return Some(());
            }
        }
    }
}

/// The part of a filter that names outputs of the owner.
pub fn accepted_filter(owner: &Owner, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let exists = |uri: &&String| find(owner, uri).is_some();
    let uris = requested.resource_subscriptions.iter().flatten().filter(exists);
    let mut accepted = SubscriptionFilter::new();
    accepted.resource_subscriptions = Some(uris.take(MAX_FOLLOWED).cloned().collect());
    requested.intersection(&accepted)
}

/// Notifies of changes to outputs and tasks until the client stops listening.
pub async fn listen(
    context: &RequestContext<RoleServer>,
    owner: &Owner,
    uris: Vec<String>,
    tasks: Vec<Arc<Task>>,
) {
    let listener = Listener { peer: context.peer.clone(), id: context.id.clone() };
    let mut followers = JoinSet::new();
    for uri in uris {
        let Some(output) = find(owner, &uri) else { continue };
        followers.spawn(listener.clone().follow_output(uri, output));
    }
    for task in tasks {
        followers.spawn(listener.clone().follow_task(task));
    }
    context.ct.cancelled().await;
}

/// A client that listens, and the request it listens with.
#[derive(Clone)]
struct Listener {
    peer: Peer<RoleServer>,
    id: RequestId,
}

impl Listener {
    async fn follow_output(self, uri: String, output: Output) {
        let mut followed = FollowedOutput::new(output);
        while let Some(()) = followed.changed().await {
            let params = ResourceUpdatedNotificationParam::new(&*uri);
            let updated = ResourceUpdatedNotification::new(params);
            if !self.notify(ServerNotification::ResourceUpdatedNotification(updated)).await {
                return;
            }
        }
    }

    async fn follow_task(self, task: Arc<Task>) {
        let ended = TaskStatusNotification::new(task.ended().await.into());
        self.notify(ServerNotification::TaskStatusNotification(ended)).await;
    }

    /// False if the client has left.
    async fn notify(&self, mut notification: ServerNotification) -> bool {
        notification.get_meta_mut().set_subscription_id(self.id.clone());
        self.peer.send_notification(notification).await.is_ok()
    }
}

/// The outputs that a client in a session follows, by URI.
#[derive(Default)]
pub struct Subscriptions {
    by_uri: Mutex<HashMap<String, DropGuard>>,
}

impl Subscriptions {
    /// Adds a URI. Returns a token that is cancelled when it is removed, or nothing if there are too many.
    pub fn add(self: &Arc<Self>, uri: &str) -> Option<CancellationToken> {
        let mut by_uri = self.by_uri.lock().unwrap_or_else(PoisonError::into_inner);
        if by_uri.len() >= MAX_FOLLOWED && !by_uri.contains_key(uri) {
            return None;
        }
        let over = CancellationToken::new();
        by_uri.insert(uri.to_owned(), over.clone().drop_guard());
        Some(over)
    }

    pub fn remove(&self, uri: &str) {
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}
