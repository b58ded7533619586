//! Prompts with each kind of content.

use rmcp::model::{
    ContentBlock, ErrorData, GetPromptResponse, GetPromptResult, InputRequest, JsonObject, Prompt,
    PromptArgument, PromptMessage, Role,
};
use serde_json::json;

use crate::arguments;
use crate::content::{image, resource};
use crate::input::{Retry, need};
use crate::requests::elicitation;

pub fn list() -> Vec<Prompt> {
    let prompt = |name, description, arguments: &[&str]| {
        let argument = |name: &&str| PromptArgument::new(*name).with_required(true);
        Prompt::new(name, Some(description), Some(arguments.iter().map(argument).collect()))
    };
    vec![
        prompt("test_simple_prompt", "Says one thing", &[]),
        prompt("test_prompt_with_arguments", "Says what it was given", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", "Has a resource in it", &["resourceUri"]),
        prompt("test_prompt_with_image", "Has a picture in it", &[]),
        prompt("test_input_required_result_prompt", "Asks for what it is to be about", &[]),
    ]
}

pub fn get(
    name: &str,
    arguments: &JsonObject,
    retry: &Retry<'_>,
) -> Result<GetPromptResponse, ErrorData> {
    let contents = match name {
        "test_simple_prompt" => vec![ContentBlock::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (arg1, arg2) =
                (arguments::text(arguments, "arg1")?, arguments::text(arguments, "arg2")?);
            let text = format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'");
            vec![ContentBlock::text(text)]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = arguments::text(arguments, "resourceUri")?;
            let embedded = "Embedded resource content for testing.";
            let text = "Please process the embedded resource above.";
            vec![resource(uri, "text/plain", embedded), ContentBlock::text(text)]
        }
        "test_prompt_with_image" => {
            vec![image(), ContentBlock::text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => match retry.answer("user_context") {
            Some(answer) => vec![ContentBlock::text(format!("About {}", answer["content"]))],
            None => {
                let message = "What context should the prompt use?";
                let properties = json!({"context": {"type": "string"}});
                let form = elicitation(message, properties, &["context"])?;
                return Ok(need([("user_context", InputRequest::Elicitation(form))], None).into());
            }
        },
        _ => return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)),
    };
    let message = |content| PromptMessage::new(Role::User, content);
    Ok(GetPromptResult::new(contents.into_iter().map(message).collect()).into())
}
