//! `[sandbox]`: what commands can reach.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{ArgAction, ArgMatches};
use mcpz_sandbox::{Mode, View};
use serde::Deserialize;

use super::choice::SandboxMode;
use super::flag::HelpPosition::Bounds;
use super::flag::{Flag, FromFlag};
use super::ports::Ports;
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

        /// More paths to hide, besides those of the flag.
        deny_read: Added<PathBuf> = Added::from(Vec::new()),
            flag: Flag {
                value: Some("PATH"),
                ..Flag::new("hide", Bounds(7), "Path that the sandbox hides; repeatable")
            };

        /// More folders that commands can write, besides those of the flag.
        write_dirs: Added<PathBuf> = Added::from(Vec::new()),
            flag: Flag {
                value: Some("DIR"),
                ..Flag::new("write", Bounds(6), "Folder that the sandbox lets commands write; repeatable")
            };

        /// Names in writable folders that stay writable although they configure other programs, besides those of the
        /// flag.
        unprotected: Added<String> = Added::from(Vec::new()),
            flag: Flag {
                value: Some("NAME"),
                // Answers name it where it helps.
                hidden: true,
                ..Flag::new(
                    "unprotect",
                    Bounds(8),
                    "Protected name that commands may write, such as .vscode; repeatable",
                )
            };

        /// Ports of the sandbox that programs on this machine can connect to, at 127.0.0.1, besides those of the flag.
        publish: Added<Ports> = Added::from(Vec::new()),
            flag: Flag {
                value: Some("PORTS"),
                hidden: true,
                ..Flag::new(
                    "publish",
                    Bounds(9),
                    "Port of the sandbox, or range, that this machine can open; repeatable",
                )
            };

        /// How much commands may write to caches, such as `~/.npm`, in all sandboxes together; `"0"` for none.
        cache_size: Size = Size(10 << 30);

        /// The size of each private folder, such as `/tmp`.
        tmp_size: Size = Size(View::new(Mode::Workspace, "/".into()).tmp_bytes);
    }
}

/// A list to which a flag adds.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Vec<T>")]
pub struct Added<T> {
    pub items: Vec<T>,
    /// Whether the flag was given.
    pub by_flag: bool,
}

impl<T> From<Vec<T>> for Added<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, by_flag: false }
    }
}

impl<T: FromFlag> FromFlag for Added<T> {
    fn parser() -> ValueParser {
        T::parser()
    }

    fn action() -> ArgAction {
        ArgAction::Append
    }

    fn read(flags: &ArgMatches, name: &str) -> Option<Self> {
        let items = flags.get_many::<T>(name)?.cloned().collect();
        Some(Self { items, by_flag: true })
    }
}

impl<T: Value> Value for Added<T> {
    fn kind() -> String {
        Vec::<T>::kind()
    }

    fn toml(&self) -> Option<String> {
        self.items.toml()
    }

    fn with(mut self, other: Self) -> Self {
        self.items.extend(other.items);
        Self { by_flag: self.by_flag || other.by_flag, ..self }
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
