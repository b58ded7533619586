//! Settings that are one of a few words, spelled alike in flags and in the file.

use clap::ValueEnum;
use clap::builder::{EnumValueParser, ValueParser};
use serde::Deserialize;

use super::flag::FromFlag;
use super::value::Value;
use crate::log::Format;

/// What commands can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    Off,
    ReadOnly,
    Workspace,
}

/// How clients authenticate over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthKind {
    Token,
    None,
}

/// What to do with commands that are only known at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unresolved {
    Deny,
    Allow,
}

/// What to do with commands that look like an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Threats {
    Off,
    Warn,
    Deny,
}

/// What kind of place commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceKind {
    Container,
    Kubernetes,
    Ssh,
    Slurm,
    /// For tests and measurements.
    #[value(hide = true)]
    Process,
}

/// Who shares a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlacePer {
    Server,
    Owner,
    Session,
}

/// When to get an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PullPolicy {
    Never,
    Missing,
    Always,
}

/// How the working directory is mounted in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryMount {
    ReadWrite,
    ReadOnly,
    Off,
}

macro_rules! choices {
    ($($choice:ty),+) => {
        $(
            impl FromFlag for $choice {
                fn parser() -> ValueParser {
                    EnumValueParser::<Self>::new().into()
                }
            }

            impl Value for $choice {
                fn kind() -> String {
                    let all: Vec<_> = Self::value_variants()
                        .iter()
                        .filter(|it| it.to_possible_value().is_some_and(|it| !it.is_hide_set()))
                        .filter_map(Self::toml)
                        .collect();
                    format!("`{}`", all.join("`, `"))
                }

                fn toml(&self) -> Option<String> {
                    Some(format!("\"{}\"", self.to_possible_value()?.get_name()))
                }
            }
        )+
    };
}

choices!(
    AuthKind,
    DirectoryMount,
    Format,
    PlaceKind,
    PlacePer,
    PullPolicy,
    SandboxMode,
    Threats,
    Unresolved
);
