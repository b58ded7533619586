//! Answers each kind of request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use mcpz_engine::{Engine, Observer, Origin, Owner};
use mcpz_output::{Output, Stream};
#[expect(
    deprecated,
    reason = "clients of all revisions but the newest log and subscribe this way"
)]
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, CustomNotification, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use crate::catch_panic::{CatchPanic, FAILED};
use crate::memory::{PAGE, RequestMemory};
use crate::message;
use crate::notifications::{LogThreshold, Notifier};
use crate::subscriptions::{self, FollowedOutput, MAX_FOLLOWED, Subscriptions};
use crate::tasks::{self, Answered, DEFAULT_WAIT, Tasks, Work};
use crate::tool::{Call, FaceSettings, Tool, ToolSet};
use crate::trace::{CallSpan, Spans};
use crate::watcher::Watcher;
use crate::{prompts, resources, task_methods};

/// The name of the client on standard input.
const STDIO: &str = "stdio";

/// The shell server. Clones share everything.
#[derive(Clone)]
pub struct ShellServer {
    engine: Engine,
    owner: Arc<Owner>,
    tasks: Arc<Tasks>,
    tools: Arc<ToolSet>,
    faces: Arc<FaceSettings>,
    streams: &'static [Stream],
    /// The list of tools, made when a client first asks for it.
    definitions: Arc<OnceLock<Vec<rmcp::model::Tool>>>,
    calls: Arc<AtomicU64>,
    log_threshold: LogThreshold,
    subscriptions: Arc<Subscriptions>,
    /// Receives what the first command prints, if somebody here watches it.
    watched: Option<Arc<OnceLock<Output>>>,
    /// Where calls are traced, if they are.
    spans: Option<Arc<Spans>>,
}

impl ShellServer {
    /// Must be called within a tokio runtime.
    pub fn new(engine: Engine, tools: ToolSet, faces: FaceSettings) -> Self {
        Self {
            owner: Arc::new(engine.owner("local", STDIO)),
            tasks: Arc::new(Tasks::new(engine.settings().keep_time)),
            engine,
            tools: Arc::new(tools),
            faces: Arc::new(faces),
            streams: &[Stream::Stdout, Stream::Stderr],
            definitions: Arc::default(),
            calls: Arc::default(),
            log_threshold: LogThreshold::default(),
            subscriptions: Arc::default(),
            watched: None,
            spans: None,
        }
    }

    /// The same shell for another owner.
    pub fn for_owner(&self, owner: Arc<Owner>, tasks: Arc<Tasks>) -> Self {
        let (log_threshold, subscriptions) = (LogThreshold::default(), Arc::default());
        Self { owner, tasks, log_threshold, subscriptions, ..self.clone() }
    }

    /// How many calls all clones have answered.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Leaves stderr out of all answers.
    pub fn without_stderr(self) -> Self {
        Self { streams: &[Stream::Stdout], ..self }
    }

    /// Lets this process watch what its only call prints.
    pub fn watched(self, output: Arc<OnceLock<Output>>) -> Self {
        Self { watched: Some(output), ..self }
    }

    /// Traces all calls.
    pub fn traced(self, spans: Arc<Spans>) -> Self {
        Self { spans: Some(spans), ..self }
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.spans.is_some()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    fn watcher(
        &self,
        tool: &Tool,
        context: &RequestContext<RoleServer>,
        observer: Option<Observer>,
    ) -> Watcher {
        let origin = Origin { tool: tool.name.to_owned(), client: client(context), observer };
        let (notifier, secrets) =
            (Notifier::new(context), self.engine.environment().secrets.clone());
        let log = self.log_threshold.log(context, notifier.clone(), secrets);
        let max_answer = self.faces.max_answer;
        let mut watcher = Watcher::new(context, origin, (notifier, log), self.streams, max_answer);
        if let Some(watched) = &self.watched {
            watcher.output = watched.clone();
        }
        watcher
    }

    /// A call that can continue as a task. Its command need not become a job then.
    fn work(&self, tool: &'static Tool, arguments: JsonObject, mut watcher: Watcher) -> Work {
        let (cancelled, output) = (CancellationToken::new(), watcher.output.clone());
        watcher.cancelled = cancelled.clone();
        let (engine, owner) = (self.engine.clone(), self.owner.clone());
        let (faces, tools) = (self.faces.clone(), self.tools.clone());
        let call = Box::pin(async move {
            let (engine, owner, faces, tools) = (&engine, &*owner, &*faces, &tools);
            let call = Call {
                engine,
                owner,
                faces,
                tool,
                tools,
                background_after: None,
                arguments,
                watcher,
            };
            let answered = CatchPanic::new(tool.call(call)).await;
            answered.unwrap_or_else(|_| CallToolResult::error(vec![ContentBlock::text(FAILED)]))
        });
        Work { call, cancelled, output, streams: self.streams }
    }

    async fn answer_traced(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(spans) = &self.spans else { return self.answer(request, context, None).await };
        let tool = (&*request.name, self.tools.find(&request.name));
        let secrets = self.engine.environment().secrets.clone();
        let span = CallSpan::begin(spans, &context, tool, secrets);
        let observer = span.as_ref().and_then(CallSpan::observer);
        let answer = self.answer(request, context, observer).await;
        if let Some(span) = span {
            span.answered(&answer);
        }
        answer
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        observer: Option<Observer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.find(&request.name) else {
            let message = format!("Unknown tool: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        self.calls.fetch_add(1, Ordering::Relaxed);
        let arguments = request.arguments.unwrap_or_default();
        let watcher = self.watcher(tool, &context, observer);
        if tasks::declares(&context.meta)
            && let Some(slot) = self.tasks.slot()
        {
            let time = self.faces.background_after.unwrap_or(DEFAULT_WAIT);
            let notifier = watcher.notifier.clone();
            let work = self.work(tool, arguments, watcher);
            return Ok(match self.tasks.answer(slot, work, &context.ct, time).await {
                Answered::Now(answer) => answer.into(),
                Answered::Later(task) => {
                    // Nothing about a call may follow its answer.
                    notifier.silence().await;
                    task.handle().into()
                }
            });
        }
        let Self { engine, owner, faces, tools, .. } = self;
        let background_after = faces.background_after.filter(|_| tools.has_jobs());
        let call = Call { engine, owner, faces, tool, tools, background_after, arguments, watcher };
        Ok(tool.call(call).await.into())
    }

    fn definitions(&self) -> &[rmcp::model::Tool] {
        let tools = self.tools.tools().iter();
        self.definitions.get_or_init(|| tools.map(|tool| tool.definition(&self.faces)).collect())
    }
}

#[expect(deprecated, reason = "clients of all revisions but the newest log and subscribe this way")]
impl ServerHandler for ShellServer {
    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        if tasks::declares(&context.meta) {
            info.capabilities.extensions =
                ServerCapabilities::builder().enable_tasks().build().extensions;
        }
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("mcpz-shell", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.definitions().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        self.definitions().iter().find(|tool| tool.name == name).cloned()
    }

    /// Boxed (in `CatchPanic`), because the future is large and would be moved several times before and after it runs.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> {
        let answer = CatchPanic::new(self.answer_traced(request, context));
        async { answer.await? }
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
        self.engine.warm_up_for(&self.owner);
    }

    /// Some clients send `initialized` without its prefix.
    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleServer>,
    ) {
        if notification.method == "initialized" {
            self.engine.warm_up_for(&self.owner);
        }
    }

    /// Answers requests about tasks, and those the library cannot read: an unknown method, or wrong parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if task_methods::is_about_tasks(&request, &context.meta) {
            return CatchPanic::new(task_methods::answer(
                request,
                context,
                &self.tasks,
                &self.owner,
            ))
            .await?;
        }
        let method = request.method;
        Err(match message::is_known_method(&method) {
            true => ErrorData::invalid_params(format!("Invalid params for {method}"), None),
            false => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("Method not found: {method}"),
                None,
            ),
        })
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&request.name, request.arguments.as_ref())?.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.log_threshold.set(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let uri = request.uri;
        let Some(output) = subscriptions::find(&self.owner, &uri) else {
            return Err(resources::not_found(&uri));
        };
        let Some(over) = self.subscriptions.add(&uri) else {
            let text = format!("at most {MAX_FOLLOWED} outputs can be followed at once");
            return Err(ErrorData::invalid_request(text, None));
        };
        let (peer, subscriptions) = (context.peer, Arc::downgrade(&self.subscriptions));
        tokio::spawn(over.run_until_cancelled_owned(async move {
            let mut followed = FollowedOutput::new(output);
            while let Some(()) = followed.changed().await {
                let updated = ResourceUpdatedNotificationParam::new(&*uri);
                if peer.notify_resource_updated(updated).await.is_err() {
                    break;
                }
            }
            if let Some(subscriptions) = subscriptions.upgrade() {
                subscriptions.remove(&uri);
            }
        }));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted_filter(&self.owner, requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        subscriptions::listen(context.request_context(), &self.owner, uris, Vec::new()).await;
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(&self.owner).await))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = async {
            if let Some(memory) = context.extensions.get::<RequestMemory>() {
                memory.wait_for_room(PAGE, &context.ct).await;
            }
            resources::read(&self.owner, &request.uri, &context.ct).await
        };
        Ok(CatchPanic::new(read).await??.into())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }
}

/// The name and version of the client, from the request or from the handshake.
fn client(context: &RequestContext<RoleServer>) -> Option<String> {
    let in_handshake = || Some(context.peer.peer_info()?.client_info.clone());
    let client = context.meta.client_info().or_else(in_handshake)?;
    (!client.name.is_empty()).then(|| format!("{}/{}", client.name, client.version))
}
