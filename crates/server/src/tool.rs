//! The tools there are, and which of them are offered.

mod advice;
mod answer;
mod budget;
mod deadline;
pub mod execute;
pub mod execute_command;
mod handed_over;
mod jobs;
mod list_jobs;
mod paging;
pub mod read_file_chunk;
mod read_job;
pub mod run_shell_command;
pub mod shell;
pub mod shell_exec;
mod shown;
mod stop_job;
mod write_job;

use std::str::FromStr;
use std::time::Duration;

use mcpz_engine::{Engine, Error, Owner, RunRequest};
use rmcp::model::{CallToolResult, JsonObject};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use answer::{Complaint, off_thread};
pub use budget::MaxAnswer;

use self::budget::passed_on_whole;
use crate::arguments::{make_whole, mistake};
use crate::progress::{Ran, Watcher};

/// A tool, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    ExecuteCommand,
    ReadFileChunk,
    ListJobs,
    ReadJob,
    WriteJob,
    StopJob,
    Shell,
    Execute,
    RunShellCommand,
    ShellExec,
}

impl Tool {
    pub const ALL: &[Self] = &[
        Self::ExecuteCommand,
        Self::ReadFileChunk,
        Self::ListJobs,
        Self::ReadJob,
        Self::WriteJob,
        Self::StopJob,
        Self::Shell,
        Self::Execute,
        Self::RunShellCommand,
        Self::ShellExec,
    ];

    /// The native ones come first.
    const DEFAULT: &[Self] = Self::ALL.split_at(6).0;

    pub fn name(self) -> &'static str {
        match self {
            Self::ExecuteCommand => execute_command::NAME,
            Self::ReadFileChunk => read_file_chunk::NAME,
            Self::ListJobs => list_jobs::NAME,
            Self::ReadJob => read_job::NAME,
            Self::WriteJob => write_job::NAME,
            Self::StopJob => stop_job::NAME,
            Self::Shell => shell::NAME,
            Self::Execute => execute::NAME,
            Self::RunShellCommand => run_shell_command::NAME,
            Self::ShellExec => shell_exec::NAME,
        }
    }

    /// What a client is told about the tool.
    pub fn definition(self, faces: &FaceSettings) -> rmcp::model::Tool {
        let definition = match self {
            Self::ExecuteCommand => execute_command::definition(faces),
            Self::ReadFileChunk => read_file_chunk::definition(),
            Self::ListJobs => list_jobs::definition(),
            Self::ReadJob => read_job::definition(),
            Self::WriteJob => write_job::definition(),
            Self::StopJob => stop_job::definition(),
            Self::Shell => shell::definition(&faces.shell),
            Self::Execute => execute::definition(faces),
            Self::RunShellCommand => run_shell_command::definition(faces),
            Self::ShellExec => shell_exec::definition(faces),
        };
        // Those that are short otherwise are then long, too.
        match faces.max_answer.is_cut_by_clients() {
            true => passed_on_whole(definition),
            false => definition,
        }
    }

    /// Carries out a call.
    pub(crate) async fn call(self, call: Call<'_>) -> CallToolResult {
        // Until then nobody knows what is secret.
        tokio::select! {
            () = call.engine.settled() => {}
            () = call.watcher.cancelled.cancelled() => {}
        }
        let secrets = call.engine.settings().secrets.clone();
        let max_answer = call.faces.max_answer.of(true);
        let answer = match self {
            Self::ExecuteCommand => execute_command::call(call).await,
            Self::ReadFileChunk => read_file_chunk::call(call).await,
            Self::ListJobs => list_jobs::call(call).await,
            Self::ReadJob => read_job::call(call).await,
            Self::WriteJob => write_job::call(call).await,
            Self::StopJob => stop_job::call(call).await,
            Self::Shell => shell::call(call).await,
            Self::Execute => execute::call(call).await,
            Self::RunShellCommand => run_shell_command::call(call).await,
            Self::ShellExec => shell_exec::call(call).await,
        };
        answer.unwrap_or_else(|Complaint(text)| {
            Complaint(max_answer.most(&secrets.mask(&text))).into()
        })
    }
}

/// What can be set for single tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceSettings {
    pub shell: shell::ShellSettings,
    pub execute: execute::ExecuteSettings,
    /// The timeout of `execute_command`, if a call has none.
    pub timeout: Duration,
    /// The same of `execute`, `run_shell_command` and `shell_exec`, which are for builds as well.
    pub long_timeout: Duration,
    /// When a command that takes long becomes a job, if there are tools for jobs.
    pub background_after: Option<Duration>,
    pub max_answer: MaxAnswer,
}

impl Default for FaceSettings {
    fn default() -> Self {
        Self {
            shell: shell::ShellSettings::default(),
            execute: execute::ExecuteSettings::default(),
            timeout: Duration::from_secs(30),
            long_timeout: Duration::from_secs(600),
            background_after: None,
            max_answer: MaxAnswer::default(),
        }
    }
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub engine: &'a Engine,
    pub owner: &'a Owner,
    pub faces: &'a FaceSettings,
    /// What else can be called.
    pub tools: &'a ToolSet,
    /// How long a command is waited for before it is handed over as a job, if it ever is.
    pub patience: Option<Duration>,
    pub arguments: JsonObject,
    pub watcher: Watcher,
}

impl Call<'_> {
    /// The arguments as the tool knows them, or the answer that says what is wrong with them.
    pub fn parse<T: DeserializeOwned>(&mut self) -> Result<T, Complaint> {
        let mut arguments = Value::from(std::mem::take(&mut self.arguments));
        make_whole(&mut arguments);
        T::deserialize(&arguments).map_err(|error| {
            let mistake = self.mistake(&arguments);
            Complaint::invalid(mistake.unwrap_or_else(|| error.to_string()))
        })
    }

    /// Which of the arguments is wrong, if that can be told.
    fn mistake(&self, arguments: &Value) -> Option<String> {
        let named = |tool: &&Tool| tool.name() == self.watcher.origin.tool;
        let definition = Tool::ALL.iter().find(named)?.definition(self.faces);
        mistake(arguments.as_object()?, &definition.input_schema)
    }

    /// Runs a command to its end, or until nobody waits for it any longer and it is a job.
    pub async fn run(&self, request: RunRequest) -> Result<Ran, Error> {
        let Self { engine, owner, watcher, .. } = self;
        match self.patience {
            None => watcher.run(engine, owner, request).await.map(Ran::Ended),
            patience => watcher.run_or_hand_over(engine, owner, request, patience).await,
        }
    }

    /// A text of the client's own as it is told back: what is secret is not told at all, and what is
    /// long not as a whole.
    pub fn echo(&self, text: &str) -> String {
        self.faces.max_answer.of(true).echo(&self.masked(text))
    }

    /// A text without what is secret.
    pub fn masked(&self, text: &str) -> String {
        self.engine.settings().secrets.mask(text).into()
    }
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

    /// Whether a job can be asked for and ended. Otherwise nothing may become one unasked.
    pub fn has_jobs(&self) -> bool {
        self.has(Tool::ReadJob) && self.has(Tool::StopJob)
    }

    pub(crate) fn has(&self, tool: Tool) -> bool {
        self.0.contains(&tool)
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
                // Its answers point to what only the other can read.
                shell_exec::NAME => wanted.extend([Tool::ReadFileChunk, Tool::ShellExec]),
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
                        read_file_chunk, list_jobs, read_job, write_job, stop_job, shell, execute, \
                        run_shell_command, shell_exec";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_definitions_of_all_tools_are_as_recorded() {
        for tool in Tool::ALL {
            let definition = tool.definition(&FaceSettings::default());
            insta::assert_json_snapshot!(tool.name(), definition);
        }
    }
}
