//! What can be set for the tools, together and one by one.

use mcpz_server::{ExecuteSettings, FaceSettings, MaxAnswer, ShellSettings};

use super::{SetupError, seconds};
use crate::settings::{self, Seconds, Settings};

/// A `timeout` that is set is that of all tools.
pub fn faces(settings: &Settings) -> Result<FaceSettings, SetupError> {
    let (tool, default) = (&settings.shell_tool, FaceSettings::default());
    let time = |name, time: Option<Seconds<1>>| time.map(|time| seconds(name, time.0)).transpose();
    let timeout = time("timeout", tool.timeout())?;
    Ok(FaceSettings {
        shell: shell(tool)?,
        execute: execute(&settings.execute),
        timeout: timeout.unwrap_or(default.timeout),
        long_timeout: timeout.unwrap_or(default.long_timeout),
        background_after: time("background_after", tool.background_after())?,
        max_answer: max_answer(tool.max_answer())?,
        places: default.places,
    })
}

/// The timeout of the tool `shell`: its own, or that of all tools as far as `max_timeout` lets it.
fn shell(tool: &settings::ShellTool) -> Result<ShellSettings, SetupError> {
    let max_timeout = seconds("max_timeout", tool.max_timeout())?;
    let all_tools = match tool.timeout() {
        Some(timeout) => seconds("timeout", timeout.0)?,
        None => ShellSettings::default().default_timeout,
    };
    let default_timeout = match tool.default_timeout() {
        Some(timeout) => seconds("default_timeout", timeout)?,
        None => all_tools.min(max_timeout),
    };
    if default_timeout > max_timeout {
        let (default, max) = (default_timeout, max_timeout);
        return Err(SetupError::TimeoutOrder { default, max });
    }
    match tool.max_output_size().in_memory() {
        0 => Err(SetupError::Zero { name: "max_output_size" }),
        max_output => Ok(ShellSettings { default_timeout, max_timeout, max_output }),
    }
}

fn execute(settings: &settings::Execute) -> ExecuteSettings {
    ExecuteSettings {
        max_output_bytes: settings.max_output_bytes(),
        log_full_output: settings.log_full_output(),
        log_output_bytes: settings.log_output_bytes(),
    }
}

fn max_answer(chosen: Option<usize>) -> Result<MaxAnswer, SetupError> {
    match chosen {
        None => Ok(MaxAnswer::default()),
        Some(characters) if (MaxAnswer::LEAST..=MaxAnswer::MOST).contains(&characters) => {
            Ok(MaxAnswer::chosen(characters))
        }
        Some(characters) => Err(SetupError::MaxAnswer { characters }),
    }
}
