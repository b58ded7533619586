//! `mcpz call`: a client and a server in one process, for one call.

mod arguments;
mod reply;

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use mcpz_engine::Closing;
use mcpz_runtime::Later;
use mcpz_server::ShellServer;
use reply::Reply;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;

use crate::args::CallFlags;
use crate::log::Detail;
use crate::settings::Settings;
use crate::setup::Setup;
use crate::{colours, process};

/// The bytes that fit between client and server.
const PIPE: usize = 64 << 10;

/// The exit code of an interrupted call, as in shells.
const INTERRUPTED: u8 = 130;

#[derive(Debug, thiserror::Error)]
#[error("there is no tool `{name}` here; available: {}; `--tools` offers others", tools.join(", "))]
struct UnknownTool {
    name: String,
    tools: Vec<String>,
}

pub fn run(flags: &CallFlags) -> Result<ExitCode, Box<dyn Error>> {
    let settings = Settings::load(&flags.shell.settings)?;
    let mut setup = Setup::new(&settings, None)?.confined()?;
    // A job would end with this process, before anybody could read it.
    setup.faces.background_after = None;
    if setup.verbose {
        setup.log.start(Detail::Everything);
    }
    process::hide();
    let later = Later::default();
    let runtime = process::runtime(&later)?;
    runtime.block_on(async {
        let shell = setup.shell(later);
        let engine = shell.engine().clone();
        let interrupted = process::shutdown()?;
        let code = tokio::select! {
            code = call(shell, flags) => code,
            () = interrupted => Ok(INTERRUPTED),
        };
        engine.close(Closing::ClientLeft).await;
        code.map(ExitCode::from)
    })
}

async fn call(shell: ShellServer, flags: &CallFlags) -> Result<u8, Box<dyn Error>> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let server = tokio::spawn(async move { mcpz_server::serve(shell, theirs).await });
    let client = Terminal::new().serve(ours).await?;
    let _server = server.await??;
    let arguments = parse_arguments(&client, flags).await?;
    let request = CallToolRequestParams::new(flags.tool.clone()).with_arguments(arguments);
    let result = client.call_tool(request).await?;
    client.service().clear();
    print(&result, flags.json)?;
    Ok(Reply(&result).exit_code())
}

/// The arguments, converted by the schema of the tool.
async fn parse_arguments(
    client: &RunningService<RoleClient, Terminal>,
    flags: &CallFlags,
) -> Result<serde_json::Map<String, Value>, Box<dyn Error>> {
    let tools = client.list_all_tools().await?;
    let Some(tool) = tools.iter().find(|tool| tool.name == flags.tool) else {
        let tools = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        return Err(UnknownTool { name: flags.tool.clone(), tools }.into());
    };
    Ok(arguments::parse(&flags.arguments, &tool.input_schema)?)
}

/// Prints the command's stdout and stderr to ours, or the whole answer as JSON.
fn print(result: &CallToolResult, json: bool) -> Result<(), Box<dyn Error>> {
    if json {
        return Ok(write(std::io::stdout().lock(), &serde_json::to_string_pretty(result)?)?);
    }
    let reply = Reply(result);
    write(std::io::stdout().lock(), &reply.stdout())?;
    write(std::io::stderr().lock(), reply.stderr())?;
    for remark in reply.remarks() {
        writeln!(std::io::stderr(), "mcpz: {remark}")?;
    }
    Ok(())
}

/// Writes a text, and ends its last line.
fn write(mut to: impl Write, text: &str) -> std::io::Result<()> {
    to.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// A client that shows the newest line of a running command on the terminal.
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
