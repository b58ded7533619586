//! `mcpz call`: a client and a server in one process, for one call.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use mcpz_engine::{Closing, Later};
use mcpz_server::Shell;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;

use crate::args::CallFlags;
use crate::log::Detail;
use crate::settings::Settings;
use crate::{colours, config, pairs, server};

/// How much may be under way between client and server.
const PIPE: usize = 64 << 10;

/// Exit codes for calls whose command has none, as `timeout` and shells use them.
const TIMED_OUT: u8 = 124;
const BY_SIGNAL: u8 = 128;
const INTERRUPTED: u8 = 130;

#[derive(Debug, thiserror::Error)]
#[error("there is no tool `{name}` here; there are: {}", tools.join(", "))]
struct NoSuchTool {
    name: String,
    tools: Vec<String>,
}

pub fn run(flags: &CallFlags) -> Result<ExitCode, Box<dyn Error>> {
    let config = config::load(flags.shell.config.as_deref())?;
    let settings = Settings::load(&flags.shell, config, None)?.confined()?;
    if settings.verbose {
        settings.log.start(Detail::Everything);
    }
    server::hide();
    let later = Later::default();
    let runtime = server::runtime(&later)?;
    runtime.block_on(async {
        let shell = settings.shell(later);
        let engine = shell.engine().clone();
        let interrupted = server::shutdown()?;
        let code = tokio::select! {
            code = call(shell, flags) => code,
            () = interrupted => Ok(INTERRUPTED),
        };
        engine.close(Closing::ClientLeft).await;
        code.map(ExitCode::from)
    })
}

async fn call(shell: Shell, flags: &CallFlags) -> Result<u8, Box<dyn Error>> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let server = tokio::spawn(async move { mcpz_server::serve(shell, theirs).await });
    let client = Terminal::new().serve(ours).await?;
    let _server = server.await??;
    let arguments = read_arguments(&client, flags).await?;
    let request = CallToolRequestParams::new(flags.tool.clone()).with_arguments(arguments);
    let result = client.call_tool(request).await?;
    client.service().clear();
    print(&result, flags.json)?;
    Ok(exit_code(&result))
}

/// The arguments, by the schema of the tool.
async fn read_arguments(
    client: &RunningService<RoleClient, Terminal>,
    flags: &CallFlags,
) -> Result<serde_json::Map<String, Value>, Box<dyn Error>> {
    let tools = client.list_all_tools().await?;
    let Some(tool) = tools.iter().find(|tool| tool.name == flags.tool) else {
        let tools = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        return Err(NoSuchTool { name: flags.tool.clone(), tools }.into());
    };
    Ok(pairs::read(&flags.arguments, &tool.input_schema)?)
}

/// Prints what the command printed, or the text of the answer where there is no command's output.
fn print(result: &CallToolResult, json: bool) -> Result<(), Box<dyn Error>> {
    let mut text = match result.structured_content.as_ref().and_then(|reply| reply.get("output")) {
        _ if json => serde_json::to_string_pretty(result)?,
        Some(Value::String(output)) => output.clone(),
        _ => {
            result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect()
        }
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    let message = result.structured_content.as_ref().and_then(|reply| reply.get("message"));
    if let Some(Value::String(message)) = message
        && !json
    {
        writeln!(std::io::stderr(), "mcpz: {message}")?;
    }
    Ok(())
}

fn exit_code(result: &CallToolResult) -> u8 {
    let field = |name| result.structured_content.as_ref().and_then(|reply| reply.get(name));
    let code = field("return_code").and_then(Value::as_i64);
    let signal = field("signal").and_then(Value::as_str);
    let timed_out = field("timed_out") == Some(&Value::Bool(true));
    match (code.map(u8::try_from), signal) {
        _ if timed_out => TIMED_OUT,
        (_, Some(signal)) => BY_SIGNAL + mcpz_engine::signal_number(signal).unwrap_or(0),
        (Some(Ok(code)), _) => code,
        _ => result.is_error.unwrap_or(false).into(),
    }
}

/// Shows on a terminal what a command says while it runs: its newest line, on one line.
struct Terminal {
    shows: bool,
}

impl Terminal {
    fn new() -> Self {
        Self { shows: std::io::stderr().is_terminal() && !colours::is_dumb() }
    }

    fn show(&self, line: &str) {
        if self.shows {
            let line: String = line.chars().take(70).collect();
            let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
    }

    fn clear(&self) {
        self.show("");
    }
}

impl ClientHandler for Terminal {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("mcpz-call", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn on_progress(
        &self,
        news: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let message = news.message.unwrap_or_default();
        self.show(message.lines().next_back().unwrap_or("…"));
    }
}
