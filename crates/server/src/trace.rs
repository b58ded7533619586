//! Traces: a span for each call, and one below it for each command that it runs.
//!
//!     tools/call ─▶ CallSpan ────────────┬─▶ Spans ─▶ exporter
//!                     └─ observer ─▶ run ─┘
//!
//! The engine knows nothing of traces: a call names an observer for its runs, which learns once how each of them ended,
//! even if that is a job that ends long after the call (detached ones are not traced). Names and attributes follow
//! OpenTelemetry's conventions for the Model Context Protocol where there are any.

mod ids;
mod run;
mod spans;

use std::sync::Arc;
use std::time::SystemTime;

use mcpz_engine::Observer;
use mcpz_output::Secrets;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData};
use rmcp::service::RequestContext;

pub use ids::{HttpOrigin, SpanIds};
pub use spans::{Attribute, Kind, Span, Spans};

use crate::tool::Tool;

const METHOD: &str = "tools/call";

/// The span of a call. It is recorded when the call is answered or dropped.
pub struct CallSpan {
    spans: Arc<Spans>,
    secrets: Secrets,
    span: Option<Span>,
}

impl CallSpan {
    /// Begins a span, unless the caller does not want the call traced.
    pub fn begin(
        spans: &Arc<Spans>,
        context: &RequestContext<RoleServer>,
        (name, tool): (&str, Option<&Tool>),
        secrets: Secrets,
    ) -> Option<Self> {
        let origin = context.extensions.get::<HttpOrigin>();
        let meta = context.meta.get_traceparent().map(|parent| {
            let state = context.meta.get_tracestate().unwrap_or_default();
            SpanIds::read(parent, state)
        });
        let caller = meta.unwrap_or_else(|| origin.and_then(|origin| origin.caller.clone()));
        if caller.as_ref().is_some_and(|caller| !caller.sampled) {
            return None;
        }
        let name = secrets.mask(name);
        let mut span = Span::begin(Kind::Server, caller.as_ref())?;
        // A name that a client made up must not become the name of a span: backends group by it.
        span.name = tool.map_or(METHOD.into(), |tool| format!("{METHOD} {}", tool.name).into());
        span.add("mcp.method.name", METHOD);
        span.add("gen_ai.operation.name", "execute_tool");
        span.add("gen_ai.tool.name", &*name);
        span.add("jsonrpc.request.id", context.id.to_string());
        if let Some(version) = context.protocol_version() {
            span.add("mcp.protocol.version", version.as_str());
        }
        if let Some(session) = origin.and_then(|origin| origin.session.as_deref()) {
            span.add("mcp.session.id", session);
        }
        match origin {
            Some(_) => {
                span.add("network.transport", "tcp");
                span.add("network.protocol.name", "http");
            }
            None => span.add("network.transport", "pipe"),
        }
        Some(Self { spans: spans.clone(), secrets, span: Some(span) })
    }

    /// Records the commands of the call, also those that end after it.
    pub fn observer(&self) -> Option<Observer> {
        let (spans, ids) = (self.spans.clone(), self.span.as_ref()?.ids.clone());
        Some(Arc::new(move |account| {
            if let Some(span) = run::span(&ids, account) {
                spans.add(span);
            }
        }))
    }

    pub fn answered(mut self, answer: &Result<CallToolResponse, ErrorData>) {
        let Some(mut span) = self.span.take() else { return };
        match answer {
            Err(error) => {
                let code = error.code.0.to_string();
                span.add("rpc.response.status_code", code.as_str());
                span.fail(code, &self.secrets.mask(&error.message));
            }
            Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
                span.fail("tool_error", "");
            }
            Ok(_) => {}
        }
        span.end = SystemTime::now();
        self.spans.add(span);
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            span.fail("cancelled", "");
            span.end = SystemTime::now();
            self.spans.add(span);
        }
    }
}
