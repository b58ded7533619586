//! One call of a tool: what it was given, and how it runs commands and speaks of them.

use std::time::Duration;

use mcpz_engine::{Engine, Error, Owner, RunRequest};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ToolError;
use super::{FaceSettings, Tool, ToolSet};
use crate::arguments::{Mistake, find_mistake, make_whole};
use crate::watcher::{CallOutcome, Watcher};

pub struct Call<'a> {
    pub engine: &'a Engine,
    pub owner: &'a Owner,
    pub faces: &'a FaceSettings,
    pub tool: &'static Tool,
    /// The tools the client can call.
    pub tools: &'a ToolSet,
    /// How long the call waits for a command before the command becomes a job, if it ever does.
    pub background_after: Option<Duration>,
    pub arguments: JsonObject,
    pub watcher: Watcher,
}

impl Call<'_> {
    /// Takes the arguments and reads them as the tool's parameters.
    pub fn parse<T: DeserializeOwned>(&mut self) -> Result<T, ToolError> {
        let mut arguments = Value::from(std::mem::take(&mut self.arguments));
        make_whole(&mut arguments);
        T::deserialize(&arguments).map_err(|error| match self.mistake(&arguments) {
            Some(mistake) => ToolError::arguments(mistake),
            None => ToolError::arguments(error),
        })
    }

    /// Which argument is wrong, if the schema tells.
    fn mistake(&self, arguments: &Value) -> Option<Mistake> {
        find_mistake(arguments.as_object()?, &self.tool.definition(self.faces).input_schema)
    }

    /// How long a command may take if the arguments do not say.
    pub fn default_timeout(&self) -> Duration {
        self.tool.default_timeout(self.faces)
    }

    /// Runs a command until it ends or becomes a job.
    pub async fn run(&self, request: RunRequest) -> Result<CallOutcome, Error> {
        let Self { engine, owner, watcher, .. } = self;
        match self.background_after {
            None => watcher.run(engine, owner, request).await.map(CallOutcome::Ended),
            after => watcher.run_or_hand_over(engine, owner, request, after).await,
        }
    }

    /// A text of the client as an answer repeats it: secrets masked, and shortened.
    pub fn echo(&self, text: &str) -> String {
        self.faces.max_answer.of(true).echo(&self.masked(text))
    }

    pub fn masked(&self, text: &str) -> String {
        self.engine.mask(text)
    }
}
