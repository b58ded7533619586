//! How a tool is asked to wait for something to happen to a job.

use std::time::Duration;

use mcpz_engine::{Condition, Settings};
use mcpz_runtime::spawn_blocking;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::error::ToolError;
use crate::blocking::BlockingError;

/// Seconds to wait if the call does not say.
const DEFAULT_WAIT: f64 = 30.0;

/// Milliseconds without output after which a job counts as quiet, if the call does not say.
const DEFAULT_QUIET: u64 = 500;

// What a call may wait for. A doc comment would be a description in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitFor {
    Exit,
    Output,
    Quiet,
    Text,
    Port,
}

/// How to wait, as part of a tool's arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct WaitParams {
    pub wait_for: Option<WaitFor>,
    /// Regex to wait for
    pub pattern: Option<String>,
    pub port: Option<u16>,
    /// [default: 500]
    pub quiet_ms: Option<u64>,
    /// Seconds to wait [default: 30]
    pub timeout: Option<f64>,
}

#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`timeout` must be more than 0 and at most a day")]
    Timeout,
    #[error("this `wait_for` needs `{0}`")]
    Missing(&'static str),
}

impl WaitParams {
    /// What to wait for, if anything, and how long.
    pub async fn condition(&self) -> Result<Option<(Condition, Duration)>, ToolError> {
        let seconds = self.timeout.unwrap_or(DEFAULT_WAIT);
        if !(seconds > 0.0 && seconds <= Settings::MAX_TIMEOUT.as_secs_f64()) {
            return Err(ToolError::arguments(Invalid::Timeout));
        }
        let missing = |name| ToolError::arguments(Invalid::Missing(name));
        let condition = match self.wait_for {
            None => return Ok(None),
            Some(WaitFor::Exit) => Condition::Exit,
            Some(WaitFor::Output) => Condition::Output,
            Some(WaitFor::Quiet) => {
                Condition::Quiet(Duration::from_millis(self.quiet_ms.unwrap_or(DEFAULT_QUIET)))
            }
            Some(WaitFor::Text) => {
                let pattern = self.pattern.clone().ok_or_else(|| missing("pattern"))?;
                // A pattern can take a tenth of a second to compile.
                spawn_blocking(move || Condition::text(&pattern))
                    .await
                    .map_err(BlockingError::Thread)??
            }
            Some(WaitFor::Port) => Condition::Port(self.port.ok_or_else(|| missing("port"))?),
        };
        Ok(Some((condition, Duration::from_secs_f64(seconds))))
    }
}
