//! The MCP clients that `mcpz install` can configure.

use clap::ValueEnum;

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
