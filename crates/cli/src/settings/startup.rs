//! Settings that a configuration file cannot have: they lead to it, or only make sense when the program starts.

use std::path::PathBuf;

use mcpz_server::ExecuteSettings;

use super::flag::HelpPosition::{Http, Options};
use super::flag::{Flag, Scope};
use super::section::section;

/// The variable with the token of an HTTP server. No command gets to see it.
pub const TOKEN_VARIABLE: &str = "MCP_HTTP_TOKEN";

/// The help of `--config`, for every command that has the flag.
pub const CONFIG_HELP: &str = "Config file [default: $MCPZ_CONFIG, or ~/.config/mcpz/config.toml]";

section! {
    /// How the program is started.
    pub struct Startup {
        /// The configuration file.
        config: Option<PathBuf> = None,
            variable: "MCPZ_CONFIG",
            flag: Flag {
                value: Some("FILE"),
                ..Flag::new("config", Options(2), CONFIG_HELP)
            };

        /// Whether clients reach the server over HTTP.
        http: bool = false,
            flag: Flag {
                scope: Scope::Server,
                ..Flag::new(
                    "http",
                    Http(1),
                    "Serve over streamable HTTP instead of standard input and output",
                )
            };

        /// The token that HTTP clients must send; commands never receive it.
        token: Option<String> = None, variable: TOKEN_VARIABLE;
    }
}

section! {
    /// The tool `execute`.
    pub struct Execute {
        /// The most bytes in an answer of the tool `execute`.
        max_output_bytes: usize = ExecuteSettings::default().max_output_bytes,
            variable: "MCP_EXEC_MAX_OUTPUT_BYTES";

        /// With `-v`: `1` to log complete answers of the tool `execute`.
        log_full_output: bool = ExecuteSettings::default().log_full_output,
            variable: "MCP_EXEC_LOG_FULL_OUTPUT";

        /// With `-v`: how many bytes to log of an answer of the tool `execute`.
        log_output_bytes: usize = ExecuteSettings::default().log_output_bytes,
            variable: "MCP_EXEC_LOG_OUTPUT_BYTES";
    }
}
