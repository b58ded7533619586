//! Prompts: ways to begin a conversation, which people choose from a list.

use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::Value;

/// A prompt. Its text has `{}` where the argument goes.
struct Template {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    argument: &'static str,
    about_argument: &'static str,
    text: &'static str,
}

const TEMPLATES: [Template; 3] = [
    Template {
        name: "find_out_why",
        title: "Find out why a command fails",
        description: "Runs a command, reads what it prints and finds the cause of its failure",
        argument: "command",
        about_argument: "The command that fails",
        text: "Run this command and find out why it fails:\n\n    {}\n\nRead all of its output; if it \
               was cut, look through the rest with grep before you run anything again. Name the \
               cause, show the lines that prove it, and say what would fix it. Change nothing \
               without asking.",
    },
    Template {
        name: "watch_log",
        title: "Watch a log",
        description: "Follows a log file for a while and reports what is unusual in it",
        argument: "path",
        about_argument: "The log file",
        text: "Look at the log file {} and watch it for a minute. First say how long it is and what \
               its newest lines are about; then report errors, warnings and anything that repeats or \
               stops, with the time of each. Use tail and grep rather than reading the whole file.",
    },
    Template {
        name: "free_space",
        title: "Find what fills the disk",
        description: "Finds the largest files and folders below a directory, and removes nothing",
        argument: "directory",
        about_argument: "Where to look",
        text: "Find out what takes the most space below {}. Stay on its file system. List the \
               largest folders and files with their sizes, say what each seems to be for and which \
               could be removed without harm. Remove nothing.",
    },
];

pub fn list() -> Vec<Prompt> {
    let prompt = |template: &Template| {
        let argument = PromptArgument::new(template.argument)
            .with_description(template.about_argument)
            .with_required(true);
        Prompt::new(template.name, Some(template.description), Some(vec![argument]))
            .with_title(template.title)
    };
    TEMPLATES.iter().map(prompt).collect()
}

pub fn get(name: &str, arguments: Option<&JsonObject>) -> Result<GetPromptResult, ErrorData> {
    let Some(template) = TEMPLATES.iter().find(|template| template.name == name) else {
        return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None));
    };
    let argument = arguments.and_then(|arguments| arguments.get(template.argument));
    let Some(argument) = argument.and_then(Value::as_str) else {
        let text = format!("the prompt `{name}` needs the argument `{}`", template.argument);
        return Err(ErrorData::invalid_params(text, None));
    };
    let text = template.text.replace("{}", argument);
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(template.description))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_says_what_it_was_asked_about() {
        for prompt in list() {
            let argument = prompt.arguments.unwrap().remove(0).name;
            let arguments = serde_json::json!({argument: "make test"});
            let filled = get(&prompt.name, arguments.as_object()).unwrap();
            let text = filled.messages[0].content.as_text().unwrap().text.clone();
            assert!(text.contains("make test") && !text.contains("{}"), "{text}");
            assert!(get(&prompt.name, None).is_err());
        }
        assert!(get("nonsense", None).is_err());
    }
}
