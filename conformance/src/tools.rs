//! The tools: what they are called and take, and what each does.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData, JsonObject,
    ProgressNotificationParam, Tool, object,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::changes::{Change, Changes};
use crate::content::{audio, image, resource, text};
use crate::input::{self, Retry};
use crate::log::Log;
use crate::seal::Seal;
use crate::{arguments, asking};

/// How long the tools that report on their work seem to work before each report.
const WORK: Duration = Duration::from_millis(50);

/// Tools without parameters, with what they are for. The first must be one that always succeeds.
const SIMPLE: &[(&str, &str)] = &[
    ("test_simple_text", "Answers with text"),
    ("test_image_content", "Answers with a picture"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_multiple_content_types", "Answers with content of several kinds"),
    ("test_error_handling", "Always fails"),
    ("test_tool_with_logging", "Logs while it works"),
    ("test_tool_with_progress", "Tells its progress while it works"),
    ("test_reconnection", "Takes so long that its client may have to connect again"),
    ("test_elicitation_sep1034_defaults", "Asks people, with answers filled in"),
    ("test_elicitation_sep1330_enums", "Asks people to choose"),
    ("test_missing_capability", "Needs a client with a model"),
    ("test_streaming_elicitation", "Asks people for a name"),
    ("test_logging_tool", "Logs one thing"),
    ("test_trigger_tool_change", "Says that the tools have changed"),
    ("test_trigger_prompt_change", "Says that the prompts have changed"),
    ("test_input_required_result_elicitation", "Needs to know a name"),
    ("test_input_required_result_sampling", "Needs to ask a model"),
    ("test_input_required_result_list_roots", "Needs to know the client's roots"),
    ("test_input_required_result_request_state", "Needs a confirmation, and its state"),
    ("test_input_required_result_tampered_state", "Needs its state as it was"),
    ("test_input_required_result_multiple_inputs", "Needs several things at once"),
    ("test_input_required_result_multi_round", "Needs one thing after another"),
    ("test_input_required_result_capabilities", "Needs what the client can give"),
];

pub fn list() -> Vec<Tool> {
    let simple = SIMPLE
        .iter()
        .map(|(name, about)| tool(name, about, json!({"type": "object", "properties": {}})));
    let text = json!({"type": "string"});
    let with_parameters = [
        tool("test_sampling", "Asks the client's model", one_parameter("prompt", &text)),
        tool("test_elicitation", "Asks people", one_parameter("message", &text)),
        tool(
            "test_x_mcp_header",
            "Takes a parameter that is also in a header",
            one_parameter("region", &json!({"type": "string", "x-mcp-header": "Region"})),
        ),
        tool("json_schema_2020_12_tool", "Has a schema with many keywords", many_keywords()),
    ];
    simple.chain(with_parameters).collect()
}

fn tool(name: &'static str, about: &'static str, schema: Value) -> Tool {
    Tool::new(name, about, Arc::new(object(schema)))
}

fn one_parameter(name: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name]})
}

fn many_keywords() -> Value {
    let text = json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": text, "city": text},
            },
        },
        "properties": {
            "name": text,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": text,
            "email": text,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// One call of a tool.
pub struct Call<'a> {
    pub arguments: &'a JsonObject,
    pub retry: Retry<'a>,
    pub context: &'a RequestContext<RoleServer>,
    pub log: &'a Log,
    pub changes: &'a Changes,
    pub seal: &'a Seal,
}

impl Call<'_> {
    pub async fn run(&self, name: &str) -> Result<CallToolResponse, ErrorData> {
        let (peer, retry, seal) = (&self.context.peer, &self.retry, self.seal);
        match name {
            "test_simple_text" => Ok(text("This is a simple text response for testing.")),
            "test_image_content" => Ok(contents(vec![image()])),
            "test_audio_content" => Ok(contents(vec![audio()])),
            "test_embedded_resource" => Ok(contents(vec![embedded()])),
            "test_multiple_content_types" => Ok(contents(mixed())),
            "test_error_handling" => Ok(failed()),
            "test_tool_with_logging" => Ok(self.work_with_log().await),
            "test_tool_with_progress" => Ok(self.work_with_progress().await),
            "test_reconnection" => Ok(self.work_long().await),
            "test_sampling" => asking::sample(peer, self.arguments).await,
            "test_elicitation" => asking::elicit(peer, self.arguments).await,
            "test_elicitation_sep1034_defaults" => asking::elicit_defaults(peer).await,
            "test_elicitation_sep1330_enums" => asking::elicit_enums(peer).await,
            "test_x_mcp_header" => Ok(text(arguments::text(self.arguments, "region")?)),
            "json_schema_2020_12_tool" => Ok(text("Everything was as the schema says")),
            "test_missing_capability" => self.need_model(),
            "test_logging_tool" => Ok(self.log_once().await),
            "test_trigger_tool_change" => Ok(self.change(Change::Tools)),
            "test_trigger_prompt_change" => Ok(self.change(Change::Prompts)),
            "test_streaming_elicitation" | "test_input_required_result_elicitation" => {
                input::ask_for_name(retry)
            }
            "test_input_required_result_sampling" => input::ask_model(retry),
            "test_input_required_result_list_roots" => input::ask_for_roots(retry),
            "test_input_required_result_request_state"
            | "test_input_required_result_tampered_state" => input::ask_with_state(retry, seal),
            "test_input_required_result_multiple_inputs" => input::ask_for_several(retry, seal),
            "test_input_required_result_multi_round" => input::ask_twice(retry, seal),
            "test_input_required_result_capabilities" => input::ask_within(&self.capabilities()),
            _ => Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None)),
        }
    }

    fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    async fn work_with_log(&self) -> CallToolResponse {
        let reports =
            ["Tool execution started", "Tool processing data", "Tool execution completed"];
        for report in reports {
            self.log.inform(self.context, report).await;
            sleep(WORK).await;
        }
        text("The work is done")
    }

    async fn work_with_progress(&self) -> CallToolResponse {
        for progress in [0.0, 50.0, 100.0] {
            if let Some(token) = self.context.meta.get_progress_token() {
                let news = ProgressNotificationParam::new(token, progress).with_total(100.0);
                // A client that cannot be told has left.
                let _ = self.context.peer.notify_progress(news).await;
            }
            sleep(WORK).await;
        }
        text("The work is done")
    }

    async fn work_long(&self) -> CallToolResponse {
        sleep(10 * WORK).await;
        text("Reconnection test completed")
    }

    async fn log_once(&self) -> CallToolResponse {
        self.log.inform(self.context, "The tool was called").await;
        text("It is logged if that was wanted")
    }

    fn change(&self, change: Change) -> CallToolResponse {
        self.changes.tell(change);
        text("Whoever listens was told")
    }

    #[expect(deprecated, reason = "the suite still asks for sampling")]
    fn need_model(&self) -> Result<CallToolResponse, ErrorData> {
        if self.capabilities().sampling.is_none() {
            let needed = ClientCapabilities::builder().enable_sampling().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        Ok(text("The client has a model"))
    }
}

fn contents(blocks: Vec<ContentBlock>) -> CallToolResponse {
    CallToolResult::success(blocks).into()
}

fn embedded() -> ContentBlock {
    let text = "This is an embedded resource content.";
    resource("test://embedded-resource", "text/plain", text)
}

fn mixed() -> Vec<ContentBlock> {
    let data = r#"{"test":"data","value":123}"#;
    let data = resource("test://mixed-content-resource", "application/json", data);
    vec![ContentBlock::text("Multiple content types test:"), image(), data]
}

fn failed() -> CallToolResponse {
    let text = "This tool intentionally returns an error for testing";
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once() {
        let mut names: Vec<_> = list().into_iter().map(|tool| tool.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
