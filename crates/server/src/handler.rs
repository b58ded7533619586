//! What the server answers to each kind of request.

use std::sync::Arc;

use mcpz_engine::{Engine, Owner, Stream};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomNotification, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};

use crate::message;
use crate::progress::Watcher;
use crate::resources;
use crate::tool::{Call, FaceSettings, ToolSet};

/// The shell server. Clones share everything.
#[derive(Clone)]
pub struct Shell {
    engine: Engine,
    owner: Arc<Owner>,
    tools: Arc<ToolSet>,
    faces: Arc<FaceSettings>,
    streams: &'static [Stream],
}

impl Shell {
    /// Must be called within a tokio runtime.
    pub fn new(engine: Engine, tools: ToolSet, faces: FaceSettings) -> Self {
        Self {
            owner: Arc::new(engine.owner()),
            engine,
            tools: Arc::new(tools),
            faces: Arc::new(faces),
            streams: &[Stream::Stdout, Stream::Stderr],
        }
    }

    /// Leaves out of all answers what commands write to stderr.
    pub fn without_stderr(self) -> Self {
        Self { streams: &[Stream::Stdout], ..self }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl ServerHandler for Shell {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(Implementation::new("mcpz-shell", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.tools().iter().map(|tool| tool.definition(&self.faces)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        self.tools.find(name).map(|tool| tool.definition(&self.faces))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.find(&request.name) else {
            let message = format!("Unknown tool: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let call = Call {
            engine: &self.engine,
            owner: &self.owner,
            faces: &self.faces,
            arguments: request.arguments.unwrap_or_default(),
            watcher: Watcher::new(&context, self.streams),
        };
        Ok(tool.call(call).await.into())
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
        self.engine.warm_up();
    }

    /// Some clients leave the prefix off: `initialized`.
    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleServer>,
    ) {
        if notification.method == "initialized" {
            self.engine.warm_up();
        }
    }

    /// Requests that fit no known form: of a method there is not, or with parameters it does not
    /// take.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
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
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(&self.owner)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::read(&self.owner, &request.uri, &context.ct).await?.into())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }
}
