//! Answers requests about tasks, which rmcp passes on as custom requests (`message.rs` says why).

use mcpz_engine::Owner;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, CustomNotification, CustomRequest, CustomResult, ErrorData, GetMeta,
    GetTaskResult, RequestMetaObject, ServerNotification, SubscriptionFilter,
    SubscriptionsListenResult, TaskAckResult,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::subscriptions::{self, MAX_FOLLOWED};
use crate::tasks::{Tasks, declares, is_newest};

/// Whether a request is about tasks, in a revision that has them.
pub fn is_about_tasks(request: &CustomRequest, meta: &RequestMetaObject) -> bool {
    let listens_to_tasks = |params: &Value| params.pointer("/notifications/taskIds").is_some();
    let about_tasks = match request.method.as_str() {
        "tasks/get" | "tasks/update" | "tasks/cancel" => true,
        "subscriptions/listen" => request.params.as_ref().is_some_and(listens_to_tasks),
        _ => false,
    };
    about_tasks && is_newest(meta)
}

/// Answers a request for which [`is_about_tasks`] holds.
pub async fn answer(
    request: CustomRequest,
    context: RequestContext<RoleServer>,
    tasks: &Tasks,
    owner: &Owner,
) -> Result<CustomResult, ErrorData> {
    if !declares(&context.meta) {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(needed));
    }
    if request.method == "subscriptions/listen" {
        return listen(params(&request)?, context, tasks, owner).await;
    }
    let TaskParams { task_id } = params(&request)?;
    let missing = || ErrorData::invalid_params(format!("there is no task {task_id}"), None);
    let task = tasks.find(&task_id).ok_or_else(missing)?;
    if request.method == "tasks/get" {
        return result(&GetTaskResult::new(task.status()));
    }
    // Tasks ask their client for nothing, so there is nothing that an update could answer.
    if request.method == "tasks/cancel" {
        task.cancel();
    }
    result(&TaskAckResult::new())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
}

#[derive(Deserialize)]
struct ListenParams {
    notifications: Filter,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    task_ids: Vec<String>,
    #[serde(flatten)]
    others: SubscriptionFilter,
}

/// Notifies of the ends of tasks, and of everything else the client listens to, until it stops listening.
async fn listen(
    ListenParams { notifications }: ListenParams,
    context: RequestContext<RoleServer>,
    tasks: &Tasks,
    owner: &Owner,
) -> Result<CustomResult, ErrorData> {
    let ids = notifications.task_ids.iter();
    let followed: Vec<_> = ids.filter_map(|id| tasks.find(id)).take(MAX_FOLLOWED).collect();
    let accepted = subscriptions::accepted_filter(owner, &notifications.others);
    let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
    let mut filter = json!(accepted);
    filter["taskIds"] = followed.iter().map(|task| task.id()).collect();
    let acknowledged = CustomNotification::new(
        "notifications/subscriptions/acknowledged",
        Some(json!({"notifications": filter})),
    );
    let mut acknowledged = ServerNotification::CustomNotification(acknowledged);
    acknowledged.get_meta_mut().set_subscription_id(context.id.clone());
    let sent = context.peer.send_notification(acknowledged).await;
    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    subscriptions::listen(&context, owner, uris, followed).await;
    result(&SubscriptionsListenResult::complete(context.id))
}

fn params<T: DeserializeOwned>(request: &CustomRequest) -> Result<T, ErrorData> {
    let wrong =
        || ErrorData::invalid_params(format!("Invalid params for {}", request.method), None);
    request.params_as().ok().flatten().ok_or_else(wrong)
}

fn result(value: &impl Serialize) -> Result<CustomResult, ErrorData> {
    let value = serde_json::to_value(value);
    value.map(CustomResult::new).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
