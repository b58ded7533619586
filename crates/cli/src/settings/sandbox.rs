//! `[sandbox]`: what commands can reach.

use std::path::PathBuf;

use clap::builder::ValueParser;
use mcpz_sandbox::{Mode, View};
use serde::Deserialize;

use super::choice::SandboxMode;
use super::flag::HelpPosition::Bounds;
use super::flag::{Flag, FromFlag};
use super::section::section;
use super::size::Size;
use super::value::Value;

section! {
    /// What commands can see, change and connect to.
    pub struct Sandbox {
        /// What commands can write; `"off"` for no sandbox.
        mode: SandboxMode = SandboxMode::Off,
            flag: Flag {
                value: Some("MODE"),
                ..Flag::new(
                    "sandbox",
                    Bounds(4),
                    "Sandbox for commands: off, workspace or read-only",
                )
            };

        /// Where commands can connect to: `"off"`, `"on"`, a host or a list of hosts.
        net: Net = Net::One("off".to_owned()),
            flag: Flag {
                value: Some("HOSTS"),
                ..Flag::new(
                    "net",
                    Bounds(5),
                    "Hosts the sandbox can reach, such as *.example.org, or on",
                )
            };

        /// More paths to hide.
        deny_read: Vec<PathBuf> = Vec::new();

        /// More folders that commands can write.
        write_dirs: Vec<PathBuf> = Vec::new();

        /// Names in writable folders that stay writable although they configure other programs.
        unprotected: Vec<PathBuf> = Vec::new();

        /// The size of each private folder, such as `/tmp`.
        tmp_size: Size = Size(View::new(Mode::Workspace, "/".into()).tmp_bytes);
    }
}

/// Where commands may connect to: `"off"`, `"on"`, a host, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Net {
    One(String),
    List(Vec<String>),
    /// As `--net` says it: hosts with commas between them.
    #[serde(skip)]
    Flag(String),
}

impl FromFlag for Net {
    fn parser() -> ValueParser {
        ValueParser::new(|text: &str| {
            Ok::<_, std::convert::Infallible>(Self::Flag(text.to_owned()))
        })
    }
}

impl Value for Net {
    fn kind() -> String {
        format!("{} or {}", String::kind(), Vec::<String>::kind())
    }

    fn toml(&self) -> Option<String> {
        match self {
            Self::One(text) | Self::Flag(text) => text.toml(),
            Self::List(hosts) => hosts.toml(),
        }
    }
}
