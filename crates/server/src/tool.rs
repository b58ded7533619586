//! The tools there are, and which of them are offered.

pub mod execute;
pub mod execute_command;
pub mod read_file_chunk;
pub mod run_shell_command;
pub mod shell;
pub mod shell_exec;

use std::str::FromStr;
use std::time::Duration;

use mcpz_engine::{Engine, Error, Outcome, Output, Owner, RunRequest, Stream, mime};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kept::OutputUri;
use crate::progress::Watcher;
use crate::schema::schema;

/// A tool, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    ExecuteCommand,
    ReadFileChunk,
    Shell,
    Execute,
    RunShellCommand,
    ShellExec,
}

impl Tool {
    pub const ALL: &[Self] = &[
        Self::ExecuteCommand,
        Self::ReadFileChunk,
        Self::Shell,
        Self::Execute,
        Self::RunShellCommand,
        Self::ShellExec,
    ];

    const DEFAULT: &[Self] = &[Self::ExecuteCommand, Self::ReadFileChunk];

    pub fn name(self) -> &'static str {
        match self {
            Self::ExecuteCommand => execute_command::NAME,
            Self::ReadFileChunk => read_file_chunk::NAME,
            Self::Shell => shell::NAME,
            Self::Execute => execute::NAME,
            Self::RunShellCommand => run_shell_command::NAME,
            Self::ShellExec => shell_exec::NAME,
        }
    }

    /// What a client is told about the tool.
    pub fn definition(self) -> rmcp::model::Tool {
        match self {
            Self::ExecuteCommand => execute_command::definition(),
            Self::ReadFileChunk => read_file_chunk::definition(),
            Self::Shell => shell::definition(),
            Self::Execute => execute::definition(),
            Self::RunShellCommand => run_shell_command::definition(),
            Self::ShellExec => shell_exec::definition(),
        }
    }

    /// Carries out a call.
    pub(crate) async fn call(self, call: Call<'_>) -> CallToolResult {
        match self {
            Self::ExecuteCommand => execute_command::call(call).await,
            Self::ReadFileChunk => read_file_chunk::call(call).await,
            Self::Shell => shell::call(call).await,
            Self::Execute => execute::call(call).await,
            Self::RunShellCommand => run_shell_command::call(call).await,
            Self::ShellExec => shell_exec::call(call).await,
        }
    }
}

/// What can be set for single tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceSettings {
    pub shell: shell::ShellSettings,
    pub execute: execute::ExecuteSettings,
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub engine: &'a Engine,
    pub owner: &'a Owner,
    pub faces: &'a FaceSettings,
    pub arguments: JsonObject,
    pub watcher: Watcher,
}

impl Call<'_> {
    /// The arguments as the tool knows them, or the answer that says what is wrong with them.
    pub fn parse<T: DeserializeOwned>(&mut self) -> Result<T, CallToolResult> {
        let arguments = std::mem::take(&mut self.arguments);
        serde_json::from_value(arguments.into())
            .map_err(|error| complaint(format!("Invalid arguments: {error}")))
    }
}

/// What a tool does to the world.
pub(crate) enum Effect {
    /// It runs commands, which can do anything.
    Runs,
    /// It only reads what was kept.
    Reads,
}

/// What a client is told about a tool that takes `P` and answers `R`.
pub(crate) fn define<P: JsonSchema, R: JsonSchema>(
    name: &'static str,
    description: &'static str,
    effect: Effect,
) -> rmcp::model::Tool {
    let reads = matches!(effect, Effect::Reads);
    let hints =
        ToolAnnotations::from_raw(None, Some(reads), Some(!reads), Some(reads), Some(!reads));
    rmcp::model::Tool::new(name, description, schema::<P>())
        .with_raw_output_schema(schema::<R>())
        .with_annotations(hints)
}

/// What a command used; part of every answer to one that ran.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Used {
    duration_ms: u64,
    cpu_ms: u64,
    max_rss_bytes: u64,
    /// Processes still running
    #[serde(skip_serializing_if = "Option::is_none")]
    background_pids: Option<Vec<i32>>,
    /// Bytes of output that could not be kept
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
}

impl From<&Outcome> for Used {
    fn from(outcome: &Outcome) -> Self {
        Self {
            duration_ms: outcome.usage.wall.as_millis() as u64,
            cpu_ms: outcome.usage.cpu.as_millis() as u64,
            max_rss_bytes: outcome.usage.max_rss_bytes,
            background_pids: Some(outcome.background.clone()).filter(|pids| !pids.is_empty()),
            lost_bytes: Some(outcome.output.lost()).filter(|lost| *lost > 0),
        }
    }
}

/// An answer whose structure is `reply` and whose content says the same.
pub(crate) fn answer<R: Serialize>(
    reply: &R,
    content: Vec<ContentBlock>,
    is_error: bool,
) -> CallToolResult {
    let mut result = CallToolResult::success(content);
    result.structured_content = serde_json::to_value(reply).ok();
    result.is_error = Some(is_error);
    result
}

/// A reply as text.
pub(crate) fn json<R: Serialize>(reply: &R) -> ContentBlock {
    let text = serde_json::to_string(reply).expect("strings and numbers are always JSON");
    ContentBlock::text(text)
}

/// Why a command did not run, in words for whoever sent it.
pub(crate) fn refusal(error: &Error) -> String {
    match error {
        Error::Refused(denial) => format!("Command denied by security policy: {denial}"),
        error => format!("Failed to execute: {}", error.chain()),
    }
}

/// How a command that was stopped is spoken of.
pub(crate) fn timed_out(after: Duration) -> String {
    format!("timed out after {} seconds", after.as_secs_f64())
}

/// What a run that was lost is answered with.
pub(crate) const LOST: &str =
    "the process that minded this command was killed, and the command with it";

/// Does what may wait for the disk where nobody else waits for it.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| error.chain()),
        Err(error) => Err(error.to_string()),
    }
}

/// Keeps an output that is longer than its excerpt. Returns the name of its stdout and pointers to
/// what there is.
pub(crate) fn keep_rest(
    call: &Call<'_>,
    request: RunRequest,
    outcome: &Outcome,
    streams: &[Stream],
) -> Option<(String, Vec<ContentBlock>)> {
    if outcome.output.excerpt(streams).omitted == 0 {
        return None;
    }
    let id = call.owner.keep(request, outcome.clone()).ok()?;
    let links = streams.iter().filter(|stream| outcome.output.kept_length(**stream) > 0);
    let links = links.map(|stream| {
        resource_link(&OutputUri::new(&id, *stream).to_string(), &outcome.output, *stream)
    });
    Some((OutputUri::new(&id, Stream::Stdout).to_string(), links.collect()))
}

/// A pointer to kept output, for clients that can follow it.
pub(crate) fn resource_link(uri: &str, output: &Output, stream: Stream) -> ContentBlock {
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let resource = Resource::new(uri, name).with_mime_type(mime(output, stream));
    ContentBlock::resource_link(resource)
}

/// An answer that says what went wrong.
pub(crate) fn complaint(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The tools that are listed and can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSet(Vec<Tool>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`; there are: default, all, {}", names(Tool::ALL))]
pub struct UnknownTool {
    name: String,
}

impl ToolSet {
    pub fn tools(&self) -> &[Tool] {
        &self.0
    }

    pub fn find(&self, name: &str) -> Option<Tool> {
        self.0.iter().copied().find(|tool| tool.name() == name)
    }
}

impl Default for ToolSet {
    fn default() -> Self {
        Self(Tool::DEFAULT.to_vec())
    }
}

/// Reads a comma-separated list of names; `default` and `all` stand for several.
impl FromStr for ToolSet {
    type Err = UnknownTool;

    fn from_str(list: &str) -> Result<Self, UnknownTool> {
        let mut wanted = Vec::new();
        for name in list.split(',').map(str::trim) {
            match name {
                "default" => wanted.extend(Tool::DEFAULT),
                "all" => wanted.extend(Tool::ALL),
                name => match Tool::ALL.iter().find(|tool| tool.name() == name) {
                    Some(tool) => wanted.push(*tool),
                    None => return Err(UnknownTool { name: name.to_owned() }),
                },
            }
        }
        Ok(Self(Tool::ALL.iter().copied().filter(|tool| wanted.contains(tool)).collect()))
    }
}

fn names(tools: &[Tool]) -> String {
    tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tools_names_them_or_a_group() {
        assert_eq!("default".parse(), Ok(ToolSet::default()));
        assert_eq!(" execute_command , all".parse(), Ok(ToolSet(Tool::ALL.to_vec())));
    }

    #[test]
    fn an_unknown_tool_is_named_with_those_there_are() {
        let error = "execute_comand".parse::<ToolSet>().unwrap_err();
        let expected = "there is no tool `execute_comand`; there are: default, all, execute_command, \
                        read_file_chunk, shell, execute, run_shell_command, shell_exec";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_definitions_of_all_tools_are_as_recorded() {
        for tool in Tool::ALL {
            insta::assert_json_snapshot!(tool.name(), tool.definition());
        }
    }
}
