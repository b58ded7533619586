//! The tools a server offers: what a tool is ([`Tool`]), which there are ([`TOOLS`]) and how they are chosen.
//!
//!     --tools ─▶ ToolSet ─▶ Tool ─┬─ definition ─▶ tools/list
//!                                 └─ call ─▶ the tool's own file ─▶ engine
//!
//! A tool is one row of [`TOOLS`] and one file. Nothing else in the program lists tools by name.
//!
//! The tools that run commands are faces of the engine: each has its own parameters and its own wording, and makes one
//! call. What the settings say means the same in all of them (`cli/tests/faces.rs` checks that): the default timeout,
//! when a long command becomes a job, where commands may run.

mod advice;
mod answer;
mod call;
mod changes;
mod ending;
mod error;
mod excerpt;
mod execute;
mod execute_command;
mod extract;
mod handover;
mod jobs;
mod list_jobs;
mod paging;
mod places;
mod read_file_chunk;
mod read_job;
mod run_shell_command;
mod shell;
mod shell_exec;
mod shown;
mod stop_job;
mod table;
mod timeout;
mod view;
mod write_job;

use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, ToolAnnotations};

pub(crate) use call::Call;
pub use execute::ExecuteSettings;
pub use shell::ShellSettings;
pub use table::TOOLS;

use self::answer::Answer;
use crate::budget::MaxAnswer;

/// How much of a long answer clients are asked to pass on, in characters.
const LONGEST: u32 = 500_000;

/// A tool: one row of [`TOOLS`].
pub struct Tool {
    pub name: &'static str,
    description: &'static str,
    offered: Offered,
    /// Tools that are offered with it, by name.
    requires: &'static [&'static str],
    /// What answers of other tools may tell clients to use it for.
    provides: Option<Ability>,
    effect: Effect,
    /// Which default limits the time of its commands; nothing for a tool that starts none.
    pub timeout: Option<Timeout>,
    answers: Answers,
    input: fn() -> Arc<JsonObject>,
    /// Left out where answers speak for themselves: a model reads every byte of the list.
    output: Option<fn() -> Arc<JsonObject>>,
    /// Puts what the settings say into the definition.
    adapt: Option<Adapt>,
    call: for<'a> fn(Call<'a>) -> Answering<'a>,
}

type Adapt = fn(rmcp::model::Tool, Duration, &FaceSettings) -> rmcp::model::Tool;
type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offered {
    ByDefault,
    /// If its name, or `all`, is on the list.
    OnRequest,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It runs commands, which can do anything.
    Runs,
    /// It only reads kept output and the state of jobs.
    Reads,
}

/// What a client can do only while some tool for it is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    ReadOutput,
    ReadJobs,
    StopJobs,
}

/// Which setting is a tool's default timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// [`FaceSettings::timeout`]
    Short,
    /// [`FaceSettings::long_timeout`]
    Long,
    /// The one of `shell` alone.
    Own,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Short,
    /// A caller may ask for long ones, so clients are asked not to cut them.
    Long,
}

impl Timeout {
    fn of(self, faces: &FaceSettings) -> Duration {
        match self {
            Self::Short => faces.timeout,
            Self::Long => faces.long_timeout,
            Self::Own => faces.shell.default_timeout,
        }
    }
}

impl Tool {
    /// The tool as `tools/list` describes it.
    pub fn definition(&self, faces: &FaceSettings) -> rmcp::model::Tool {
        // Clients assume the hints that are left out.
        let hints = match self.effect {
            Effect::Runs => ToolAnnotations::from_raw(None, Some(false), Some(true), None, None),
            Effect::Reads => ToolAnnotations::from_raw(None, Some(true), None, None, Some(false)),
        };
        let mut definition = rmcp::model::Tool::new(self.name, self.description, (self.input)());
        definition = definition.with_annotations(hints);
        if let Some(output) = self.output {
            definition = definition.with_raw_output_schema(output());
        }
        if self.answers == Answers::Long || faces.max_answer.is_cut_by_clients() {
            let mut meta = MetaObject::new();
            meta.insert("anthropic/maxResultSizeChars".to_owned(), LONGEST.into());
            definition = definition.with_meta(meta);
        }
        match self.adapt {
            Some(adapt) => adapt(definition, self.default_timeout(faces), faces),
            None => definition,
        }
    }

    /// How long a command may take if its call does not say.
    fn default_timeout(&self, faces: &FaceSettings) -> Duration {
        self.timeout.unwrap_or(Timeout::Short).of(faces)
    }

    /// Carries out a call.
    pub(crate) async fn call(&self, call: Call<'_>) -> CallToolResult {
        // Before that the engine does not know all secrets, which the answer must not have.
        tokio::select! {
            () = call.engine.ready() => {}
            () = call.watcher.cancelled.cancelled() => {}
        }
        let secrets = call.engine.environment().secrets.clone();
        let max_answer = call.faces.max_answer.of(true);
        let answer = (self.call)(call).await;
        answer.unwrap_or_else(|error| {
            let text = max_answer.shorten(&secrets.mask(&error.to_string()));
            CallToolResult::error(vec![ContentBlock::text(text)])
        })
    }
}

/// Names are unique.
impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Tool {}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The settings of the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceSettings {
    pub shell: ShellSettings,
    pub execute: ExecuteSettings,
    /// The default of [`Timeout::Short`].
    pub timeout: Duration,
    /// The default of [`Timeout::Long`], for tools that run builds as well.
    pub long_timeout: Duration,
    /// When a long command becomes a job, if the tools for jobs are offered.
    pub background_after: Option<Duration>,
    pub max_answer: MaxAnswer,
    /// The places that a call can choose from.
    pub places: Vec<String>,
}

impl Default for FaceSettings {
    fn default() -> Self {
        Self {
            shell: ShellSettings::default(),
            execute: ExecuteSettings::default(),
            timeout: Duration::from_secs(30),
            long_timeout: Duration::from_secs(600),
            background_after: None,
            max_answer: MaxAnswer::default(),
            places: Vec::new(),
        }
    }
}

/// The tools that are listed and can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSet(Vec<&'static Tool>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`; available: {}", ToolSet::choices().collect::<Vec<_>>().join(", "))]
pub struct UnknownTool {
    name: String,
}

/// The choices that stand for several tools.
const DEFAULT: &str = "default";
const ALL: &str = "all";

impl ToolSet {
    /// What a list of tools may name.
    pub fn choices() -> impl Iterator<Item = &'static str> {
        [DEFAULT, ALL].into_iter().chain(TOOLS.iter().map(|tool| tool.name))
    }

    pub fn tools(&self) -> &[&'static Tool] {
        &self.0
    }

    /// Whether a client can read a job and end it. Otherwise no command may become one unasked.
    pub fn has_jobs(&self) -> bool {
        self.can(Ability::ReadJobs) && self.can(Ability::StopJobs)
    }

    pub(crate) fn can(&self, ability: Ability) -> bool {
        self.0.iter().any(|tool| tool.provides == Some(ability))
    }

    pub fn find(&self, name: &str) -> Option<&'static Tool> {
        self.0.iter().copied().find(|tool| tool.name == name)
    }

    /// The tools that are meant, in the order of the table.
    fn of(is_meant: impl Fn(&Tool) -> bool) -> Self {
        Self(TOOLS.iter().filter(|tool| is_meant(tool)).collect())
    }
}

impl Default for ToolSet {
    fn default() -> Self {
        Self::of(|tool| tool.offered == Offered::ByDefault)
    }
}

/// Reads a comma-separated list of choices.
impl FromStr for ToolSet {
    type Err = UnknownTool;

    fn from_str(list: &str) -> Result<Self, UnknownTool> {
        let mut wanted: Vec<&str> = Vec::new();
        for choice in list.split(',').map(str::trim) {
            match choice {
                DEFAULT => wanted.extend(Self::default().0.iter().map(|tool| tool.name)),
                ALL => wanted.extend(TOOLS.iter().map(|tool| tool.name)),
                name => match TOOLS.iter().find(|tool| tool.name == name) {
                    Some(tool) => {
                        wanted.push(tool.name);
                        wanted.extend(tool.requires);
                    }
                    None => return Err(UnknownTool { name: name.to_owned() }),
                },
            }
        }
        Ok(Self::of(|tool| wanted.contains(&tool.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tools_names_them_or_a_group() {
        assert_eq!("default".parse(), Ok(ToolSet::default()));
        assert_eq!(" execute_command , all".parse(), Ok(ToolSet::of(|_| true)));
    }

    #[test]
    fn a_tool_brings_the_tools_its_answers_point_to() {
        let set: ToolSet = "shell_exec".parse().unwrap();
        let names: Vec<_> = set.tools().iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["read_file_chunk", "shell_exec"]);
        for name in TOOLS.iter().flat_map(|tool| tool.requires) {
            assert!(TOOLS.iter().any(|tool| tool.name == *name), "{name}");
        }
    }

    #[test]
    fn an_unknown_tool_is_named_with_those_there_are() {
        let error = "execute_comand".parse::<ToolSet>().unwrap_err();
        let expected = "there is no tool `execute_comand`; available: default, all, execute_command, \
                        read_file_chunk, list_jobs, read_job, write_job, stop_job, shell, execute, \
                        run_shell_command, shell_exec";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_definitions_of_all_tools_are_as_recorded() {
        for tool in TOOLS {
            let definition = tool.definition(&FaceSettings::default());
            insta::assert_json_snapshot!(tool.name, definition);
        }
    }
}
