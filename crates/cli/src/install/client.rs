//! The clients we know: where each keeps its servers, and how it writes one down.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::InstallError;
use super::document::Form;
use crate::config::variable;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Codex,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Zed,
    #[value(alias = "gemini-cli")]
    Gemini,
    #[value(alias = "qwen-code")]
    Qwen,
    Goose,
}

/// How a client gets to a server.
#[derive(Debug)]
pub enum Reach {
    Start { command: String, args: Vec<String> },
    Connect { url: String, token: Token },
}

#[derive(Debug)]
pub enum Token {
    Plain(String),
    /// The name of a variable in the client's environment.
    Variable(String),
    None,
}

/// What an entry says about how to get there. Other keys in it are the user's.
pub const OWN_KEYS: &[&str] = &[
    "type",
    "command",
    "cmd",
    "args",
    "url",
    "httpUrl",
    "uri",
    "headers",
    "http_headers",
    "bearer_token_env_var",
    "env_keys",
];

/// Seconds Goose waits for an answer. It wants to be told.
const GOOSE_TIMEOUT: u64 = 300;

impl Client {
    pub fn label(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Goose => "Goose",
        }
    }

    pub fn form(self) -> Form {
        match self {
            Self::Codex => Form::Toml,
            Self::Goose => Form::Yaml,
            _ => Form::Json,
        }
    }

    pub fn table(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Goose => "extensions",
            _ => "mcpServers",
        }
    }

    /// What shows that the client is here, besides its programs.
    fn folder(self) -> Result<PathBuf, InstallError> {
        let home = || variable("HOME").map(PathBuf::from).ok_or(InstallError::NoHome);
        let named = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = || match named("XDG_CONFIG_HOME") {
            Some(config) => Ok(config),
            None => Ok::<_, InstallError>(home()?.join(".config")),
        };
        let below_home = |name: &str| Ok(home()?.join(name));
        match self {
            Self::ClaudeDesktop => Ok(config()?.join("Claude")),
            Self::ClaudeCode => {
                named("CLAUDE_CONFIG_DIR").map_or_else(|| below_home(".claude"), Ok)
            }
            Self::Codex => named("CODEX_HOME").map_or_else(|| below_home(".codex"), Ok),
            Self::Cursor => below_home(".cursor"),
            Self::VsCode => Ok(config()?.join("Code")),
            Self::Zed => Ok(config()?.join("zed")),
            Self::Gemini => Ok(named("GEMINI_CLI_HOME").map_or_else(home, Ok)?.join(".gemini")),
            Self::Qwen => named("QWEN_HOME").map_or_else(|| below_home(".qwen"), Ok),
            Self::Goose => match named("GOOSE_PATH_ROOT") {
                Some(root) => Ok(root.join("config")),
                None => Ok(config()?.join("goose")),
            },
        }
    }

    /// The file for everything the user does.
    pub fn file(self) -> Result<PathBuf, InstallError> {
        let folder = self.folder()?;
        Ok(match self {
            Self::ClaudeDesktop => folder.join("claude_desktop_config.json"),
            // Beside the folder, unless the folder is somewhere else.
            Self::ClaudeCode if variable("CLAUDE_CONFIG_DIR").is_none() => {
                folder.with_file_name(".claude.json")
            }
            Self::ClaudeCode => folder.join(".claude.json"),
            Self::Codex => folder.join("config.toml"),
            Self::Cursor => folder.join("mcp.json"),
            Self::VsCode => folder.join("User/mcp.json"),
            Self::Zed | Self::Gemini | Self::Qwen => folder.join("settings.json"),
            Self::Goose => folder.join("config.yaml"),
        })
    }

    /// The file for a project alone.
    pub fn project_file(self, project: &Path) -> Option<PathBuf> {
        let name = match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Qwen => ".qwen/settings.json",
            Self::ClaudeDesktop | Self::Goose => return None,
        };
        Some(project.join(name))
    }

    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeDesktop => &["claude-desktop"],
            Self::ClaudeCode => &["claude"],
            Self::Codex => &["codex"],
            Self::Cursor => &["cursor", "cursor-agent"],
            Self::VsCode => &["code"],
            Self::Zed => &["zed", "zeditor"],
            Self::Gemini => &["gemini"],
            Self::Qwen => &["qwen"],
            Self::Goose => &["goose"],
        }
    }

    /// Whether the client is here, or else where it was looked for.
    pub fn look(self) -> Result<(), InstallError> {
        let (folder, file) = (self.folder()?, self.file()?);
        let path = variable("PATH").unwrap_or_default();
        let on_path =
            |name: &&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        if folder.exists() || file.exists() || self.programs().iter().any(on_path) {
            return Ok(());
        }
        let programs = self.programs().join("` or `");
        Err(InstallError::NotThere { label: self.label(), folder, programs })
    }

    /// What the client's file says of a server.
    pub fn entry(self, name: &str, reach: &Reach) -> Result<Value, InstallError> {
        match reach {
            Reach::Start { command, args } => Ok(self.start(name, command, args)),
            Reach::Connect { url, token } => self.connect(name, url, token),
        }
    }

    fn start(self, name: &str, command: &str, args: &[String]) -> Value {
        match self {
            Self::ClaudeCode | Self::Cursor | Self::VsCode => {
                json!({"type": "stdio", "command": command, "args": args})
            }
            Self::Goose => json!({
                "enabled": true, "type": "stdio", "name": name, "description": "Runs commands",
                "cmd": command, "args": args, "timeout": GOOSE_TIMEOUT,
            }),
            _ => json!({"command": command, "args": args}),
        }
    }

    fn connect(self, name: &str, url: &str, token: &Token) -> Result<Value, InstallError> {
        let mut entry = match self {
            Self::ClaudeDesktop => return Err(InstallError::NoHttp),
            Self::ClaudeCode | Self::VsCode => json!({"type": "http", "url": url}),
            Self::Codex | Self::Cursor | Self::Zed => json!({"url": url}),
            Self::Gemini | Self::Qwen => json!({"httpUrl": url}),
            Self::Goose => json!({
                "enabled": true, "type": "streamable_http", "name": name,
                "description": "Runs commands", "uri": url, "timeout": GOOSE_TIMEOUT,
            }),
        };
        let bearer = match (self, token) {
            (_, Token::None) => return Ok(entry),
            (_, Token::Plain(token)) => token.clone(),
            (Self::Codex, Token::Variable(name)) => {
                entry["bearer_token_env_var"] = name.as_str().into();
                return Ok(entry);
            }
            (Self::Zed, Token::Variable(_)) => return Err(InstallError::NoVariables),
            (Self::Cursor | Self::VsCode, Token::Variable(name)) => format!("${{env:{name}}}"),
            (Self::Goose, Token::Variable(name)) => {
                entry["env_keys"] = json!([name]);
                format!("${{{name}}}")
            }
            (_, Token::Variable(name)) => format!("${{{name}}}"),
        };
        let headers = if self == Self::Codex { "http_headers" } else { "headers" };
        entry[headers] = json!({"Authorization": format!("Bearer {bearer}")});
        Ok(entry)
    }

    /// What is left to do when the file has changed.
    pub fn advice(self, project: bool) -> &'static str {
        match self {
            Self::ClaudeCode if project => {
                "Claude Code asks about it when it is next started there."
            }
            Self::ClaudeCode => {
                "Restart Claude Code. One that runs now may write the file anew: look again then."
            }
            Self::Codex if project => "Codex reads it in folders you trust; start it again.",
            Self::VsCode => "VS Code asks about it before it starts it.",
            Self::Zed => "Zed sees it at once.",
            Self::ClaudeDesktop => "Quit Claude Desktop and start it again.",
            _ => "Restart the client if it is running.",
        }
    }
}
