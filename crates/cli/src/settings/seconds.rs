//! Times as people write them: whole seconds.

use clap::builder::ValueParser;
use serde::Deserialize;

use super::flag::FromFlag;
use super::value::Value;

/// The longest timeout, in seconds.
pub const MAX_TIMEOUT: u64 = mcpz_engine::Settings::MAX_TIMEOUT.as_secs();

/// A number of seconds. A flag takes no fewer than `LEAST`; what a file says, its user checks.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub struct Seconds<const LEAST: u64>(pub u64);

#[derive(Debug, thiserror::Error)]
#[error("it must be a whole number of seconds from {least} to {MAX_TIMEOUT}")]
pub struct InvalidSeconds {
    least: u64,
}

impl<const LEAST: u64> FromFlag for Seconds<LEAST> {
    fn parser() -> ValueParser {
        ValueParser::new(|text: &str| match text.parse() {
            Ok(seconds @ ..=MAX_TIMEOUT) if seconds >= LEAST => Ok(Self(seconds)),
            _ => Err(InvalidSeconds { least: LEAST }),
        })
    }
}

impl<const LEAST: u64> Value for Seconds<LEAST> {
    fn kind() -> String {
        u64::kind()
    }

    fn toml(&self) -> Option<String> {
        self.0.toml()
    }
}
