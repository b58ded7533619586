//! Tells clients that an output they follow has grown or come to its end, or a task to its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpz_engine::Client;
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

/// The least time between two words about the same output.
const PACE: Duration = Duration::from_millis(500);

/// The most outputs a client may follow at once.
pub const MAX_FOLLOWED: usize = 64;

/// The output a URI names, if it is the owner's.
pub fn find(owner: &Client, uri: &str) -> Option<Output> {
    let uri: OutputUri = uri.parse().ok()?;
    Some(owner.find(&uri.id)?.output)
}

/// One output that is followed.
pub struct Followed {
    output: Output,
    arrived: watch::Receiver<u64>,
    seen: u64,
    ended: bool,
}

impl Followed {
    pub fn new(output: Output) -> Self {
        let (arrived, seen, ended) = (output.watch(), output.length(), output.is_finished());
        Self { output, arrived, seen, ended }
    }

    /// Waits until there is more, or it has ended. `None` when nothing will change any more.
    pub async fn changed(&mut self) -> Option<()> {
        loop {
            if self.ended {
                return None;
            }
            if self.arrived.changed().await.is_err() {
                return None;
            }
            sleep(PACE).await;
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

/// What of what somebody wants to listen to can be listened to.
pub fn accept(owner: &Client, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let there = |uri: &&String| find(owner, uri).is_some();
    let uris = requested.resource_subscriptions.iter().flatten().filter(there);
    let mut accepted = SubscriptionFilter::new();
    accepted.resource_subscriptions = Some(uris.take(MAX_FOLLOWED).cloned().collect());
    requested.intersection(&accepted)
}

/// Tells what happens to outputs and tasks until nobody listens any more.
pub async fn listen(
    context: &RequestContext<RoleServer>,
    owner: &Client,
    uris: Vec<String>,
    tasks: Vec<Arc<Task>>,
) {
    let listener = Listener { peer: context.peer.clone(), id: context.id.clone() };
    let mut followers = JoinSet::new();
    for uri in uris {
        let Some(output) = find(owner, &uri) else { continue };
        followers.spawn(listener.clone().tell_of_output(uri, output));
    }
    for task in tasks {
        followers.spawn(listener.clone().tell_of_task(task));
    }
    context.ct.cancelled().await;
}

/// Whoever listens, by the request they do it with.
#[derive(Clone)]
struct Listener {
    peer: Peer<RoleServer>,
    id: RequestId,
}

impl Listener {
    async fn tell_of_output(self, uri: String, output: Output) {
        let mut followed = Followed::new(output);
        while let Some(()) = followed.changed().await {
            let news = ResourceUpdatedNotificationParam::new(&*uri);
            let news = ResourceUpdatedNotification::new(news);
            if !self.tell(ServerNotification::ResourceUpdatedNotification(news)).await {
                return;
            }
        }
    }

    async fn tell_of_task(self, task: Arc<Task>) {
        let news = TaskStatusNotification::new(task.ended().await.into());
        self.tell(ServerNotification::TaskStatusNotification(news)).await;
    }

    async fn tell(&self, mut news: ServerNotification) -> bool {
        news.get_meta_mut().set_subscription_id(self.id.clone());
        self.peer.send_notification(news).await.is_ok()
    }
}

/// What a client in a session follows, by URI.
#[derive(Default)]
pub struct Subscriptions {
    by_uri: Mutex<HashMap<String, DropGuard>>,
}

impl Subscriptions {
    /// Notes that a URI is followed; returns what tells when it is not any more, or nothing if too
    /// many are.
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
