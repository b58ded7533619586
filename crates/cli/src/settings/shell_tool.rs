//! `[shell_tool]`: how commands are run, and by which tools.

use std::path::PathBuf;

use clap::builder::ValueParser;
use mcpz_server::{FaceSettings, MaxAnswer, ShellSettings, TOOLS, Timeout};
use serde::Deserialize;

use super::flag::HelpPosition::{Bounds, Options, Running};
use super::flag::{Flag, FromFlag, Scope};
use super::seconds::Seconds;
use super::section::section;
use super::size::Size;
use super::value::Value;
use crate::log::Format;

section! {
    /// How commands run, and through which tools.
    pub struct ShellTool {
        /// Commands start in this directory, and may start only in it, below it, or in `allowed_directories`.
        working_dir: Option<PathBuf> = None,
            words: "the server's; calls can name any other",
            flag: Flag {
                short: Some('w'),
                value: Some("PATH"),
                ..Flag::new(
                    "working-dir",
                    Running(1),
                    "Commands start in or below PATH [default: current, or any]",
                )
            };

        /// Seconds until a command and everything it started are killed, unless a call sets its own timeout.
        timeout: Option<Seconds<1>> = None,
            words: timeouts(),
            flag: Flag {
                short: Some('t'),
                value: Some("SECONDS"),
                ..Flag::new(
                    "timeout",
                    Running(2),
                    "Command timeout in seconds [default: 30 to 600, by tool]",
                )
            };

        /// The shell that runs commands.
        shell: PathBuf = "/bin/sh".into(),
            flag: Flag {
                short: Some('s'),
                value: Some("PATH"),
                ..Flag::new("shell", Running(3), "Shell to use for command execution")
            };

        /// Leaves the standard error of commands out of answers.
        no_stderr: bool = false,
            flag: Flag::new("no-stderr", Running(4), "Suppress stderr in command output");

        /// Seconds until a call that is still running becomes a job; needs the tools `read_job` and `stop_job`.
        background_after: Option<Seconds<1>> = None,
            words: "never",
            flag: Flag {
                value: Some("SECONDS"),
                ..Flag::new(
                    "background-after",
                    Running(5),
                    "Seconds until a call that is still running becomes a job",
                )
            };

        /// Seconds that calls have to finish after the client closes standard input; 0 ends them immediately.
        finish_time: Seconds<0> = Seconds(1),
            flag: Flag {
                value: Some("SECONDS"),
                // Other commands have no client that closes its input.
                scope: Scope::Stdio,
                hidden: true,
                ..Flag::new(
                    "finish-time",
                    Running(8),
                    "Seconds to finish calls after the input closes",
                )
            };

        /// The place that commands run in, by its name or in short.
        place: Option<String> = None,
            words: "this machine",
            flag: Flag {
                value: Some("PLACE"),
                ..Flag::new(
                    "place",
                    Running(7),
                    "In container:IMAGE, kubernetes:IMAGE, ssh:HOST, slurm or NAME",
                )
            };

        /// The program that becomes the agent in places that name none.
        place_agent: Option<PathBuf> = None,
            words: "this program",
            flag: Flag {
                value: Some("FILE"),
                hidden: true,
                ..Flag::new("place-agent", Running(9), "Program that becomes the agent in places")
            };

        /// The tools to offer: names, `default` or `all`.
        tools: ToolNames = ToolNames("default".to_owned()),
            flag: Flag {
                value: Some("LIST"),
                ..Flag::new("tools", Options(1), "Tools to offer, comma-separated, or default or all")
            };

        /// A settings file of Qwen Code or Gemini CLI that says which commands may run.
        settings: Option<PathBuf> = None,
            flag: Flag {
                value: Some("FILE"),
                hidden: true,
                ..Flag::new(
                    "settings",
                    Bounds(3),
                    "Settings file of Qwen Code or Gemini CLI with rules for commands",
                )
            };

        /// Logs each command, and problems with connections, to standard error.
        verbose: bool = false,
            flag: Flag {
                short: Some('v'),
                ..Flag::new("verbose", Options(3), "Enable verbose logging to stderr")
            };

        /// The format of log lines: `text` or `json`.
        log_format: Format = Format::default(),
            flag: Flag {
                value: Some("FORMAT"),
                hidden: true,
                ..Flag::new("log-format", Options(4), "Format of log lines on stderr: text or json")
            };

        /// The default timeout of the tool `shell`, in seconds; overrides `timeout`, but not `--timeout`.
        default_timeout: Option<u64> = None,
            like: ShellSettings::default().default_timeout.as_secs();

        /// The longest timeout that the tool `shell` accepts, in seconds.
        max_timeout: u64 = ShellSettings::default().max_timeout.as_secs();

        /// The most output in an answer of the tool `shell`; the rest is kept. `max_answer` sets a lower limit, unless
        /// a call passes `max_output_size`, which can be at most 256 KiB.
        max_output_size: Size = Size(ShellSettings::default().max_output as u64);

        /// The longest answer of a tool, in characters of JSON.
        max_answer: Option<usize> = None,
            like: MaxAnswer::default().characters(),
            flag: Flag {
                value: Some("CHARS"),
                hidden: true,
                ..Flag::new("max-answer", Running(6), "Longest answer of a tool, in characters of JSON")
            };

        /// More directories that commands may start in, or below, besides `working_dir`.
        allowed_directories: Vec<PathBuf> = Vec::new(), words: "all";

        /// More deny rules.
        blocked_commands: Vec<String> = Vec::new();

        /// Whether the log and the audit trail contain commands.
        log_commands: bool = true;

        /// Whether secrets are masked in answers, kept output, logs and records.
        mask_secrets: bool = true;

        /// Whether tokens and private keys that no variable holds are recognised by their form, and masked, too.
        mask_tokens: bool = true;

        /// Variables that hold secrets although their names do not suggest it.
        secrets: Vec<String> = Vec::new();

        /// Variables of the server that commands receive, besides those that most programs need; `*` matches any
        /// characters.
        env_pass: Option<Vec<String>> = None, words: "all";

        /// Variables of the server that commands do not receive, even if `env_pass` lists them.
        env_drop: Vec<String> = Vec::new();

        /// Whether commands receive the variables of your login shell.
        login_env: bool = false,
            flag: Flag::new(
                "login-env",
                Running(7),
                "Give commands the PATH and variables of your login shell",
            );
    }
}

fn timeouts() -> String {
    let default = FaceSettings::default();
    let (short, long) = (default.timeout.as_secs(), default.long_timeout.as_secs());
    let tools = TOOLS.iter().filter(|tool| tool.timeout == Some(Timeout::Long));
    let names: Vec<_> = tools.map(|tool| format!("`{}`", tool.name)).collect();
    let (last, others) = names.split_last().expect("some tools run builds");
    let shell = ShellSettings::default().default_timeout.as_secs();
    format!("`{short}`; `{shell}` in `shell`; `{long}` in {} and {last}", others.join(", "))
}

/// Names of tools, with commas between them. A file has them as a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct ToolNames(pub String);

impl From<Vec<String>> for ToolNames {
    fn from(names: Vec<String>) -> Self {
        Self(names.join(","))
    }
}

impl FromFlag for ToolNames {
    fn parser() -> ValueParser {
        ValueParser::new(|text: &str| Ok::<_, std::convert::Infallible>(Self(text.to_owned())))
    }
}

impl Value for ToolNames {
    fn kind() -> String {
        Vec::<String>::kind()
    }

    fn toml(&self) -> Option<String> {
        vec![self.0.clone()].toml()
    }
}
