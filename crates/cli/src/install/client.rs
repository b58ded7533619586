//! The clients that mcpz knows: which file each reads its servers from, and what an entry looks like there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::InstallError;
use super::document::Format;
use super::transport::{Token, Transport};
use crate::client::Client;
use crate::environment::{find_file, path_folders, variable};

/// How many seconds Goose waits for an answer. Its entries have to say it.
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

    pub fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
            _ => Format::Json,
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

    /// The folder of the client's configuration, which also shows that the client is installed.
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

    /// The user's file.
    pub fn file(self) -> Result<PathBuf, InstallError> {
        let folder = self.folder()?;
        Ok(match self {
            Self::ClaudeDesktop => folder.join("claude_desktop_config.json"),
            // It is next to the default folder, but inside a folder that the user chose.
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

    /// The file of a project, if the client reads one.
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

    /// Fails if neither the client's folder, nor its file, nor one of its programs exists.
    pub fn check_installed(self) -> Result<(), InstallError> {
        let (folder, file) = (self.folder()?, self.file()?);
        let path = path_folders();
        let on_path = |name: &&str| find_file(name, &path).is_some();
        if folder.exists() || file.exists() || self.programs().iter().any(on_path) {
            return Ok(());
        }
        let programs = self.programs().join("` or `");
        Err(InstallError::NotInstalled { label: self.label(), folder, programs })
    }

    /// The server's entry in the client's file.
    pub fn entry(self, name: &str, transport: &Transport) -> Result<Value, InstallError> {
        match transport {
            Transport::Stdio { command, args } => Ok(self.stdio_entry(name, command, args)),
            Transport::Http { url, token } => self.http_entry(name, url, token),
        }
    }

    fn stdio_entry(self, name: &str, command: &str, args: &[String]) -> Value {
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

    fn http_entry(self, name: &str, url: &str, token: &Token) -> Result<Value, InstallError> {
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

    /// What the user has to do once the file has changed.
    pub fn next_step(self, project: bool) -> &'static str {
        match self {
            Self::ClaudeCode if project => {
                "Claude Code will ask you to approve it when you next start it there."
            }
            Self::ClaudeCode => {
                "Restart Claude Code. If it was running, it may overwrite the file; check with \
                 `mcpz install --list`."
            }
            Self::Codex if project => {
                "Codex only reads it in folders that you trust. Restart Codex if it is running."
            }
            Self::VsCode => "VS Code will ask you before it starts the server.",
            Self::Zed => "Zed will use it immediately.",
            Self::ClaudeDesktop => "Quit and restart Claude Desktop.",
            _ => "Restart the client if it is running.",
        }
    }
}
