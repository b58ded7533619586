//! How long a command may take: what schemas and answers say of it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::Tool;
use serde_json::Value;

/// What an answer says of a command that ran into its timeout.
pub fn timed_out(after: Duration) -> String {
    format!("timed out after {}", in_seconds(after))
}

/// A time as people say it.
pub fn in_seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        1.0 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// Adds the default of an argument to its description.
pub fn describe_default(tool: Tool, argument: &str, default: impl std::fmt::Display) -> Tool {
    let mut tool = tool;
    let argument = &mut Arc::make_mut(&mut tool.input_schema)["properties"][argument];
    let text = argument["description"].as_str().unwrap_or_default();
    argument["description"] = Value::from(format!("{text} [default: {default}]"));
    tool
}

/// Adds the timeout to the description of a tool that has no argument for it.
pub fn describe_timeout(tool: Tool, time: Duration) -> Tool {
    let mut tool = tool;
    let text = tool.description.as_deref().unwrap_or_default();
    tool.description =
        Some(format!("{text} Commands are killed after {}.", in_seconds(time)).into());
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_as_people_say_it() {
        let said = |millis| timed_out(Duration::from_millis(millis));
        assert_eq!(said(500), "timed out after 0.5 seconds");
        assert_eq!(said(1000), "timed out after 1 second");
        assert_eq!(said(30_000), "timed out after 30 seconds");
    }
}
