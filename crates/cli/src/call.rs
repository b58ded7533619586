//! `mcpz call`: a client and a server in one process, for one call.

mod arguments;
mod progress;
mod reply;
mod stdin;
mod wording;

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use mcpz_engine::Closing;
use mcpz_runtime::Later;
use mcpz_server::ShellServer;
use progress::Progress;
use reply::Reply;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, Implementation, JsonObject,
};
use rmcp::service::RunningService;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;

use crate::args::CallFlags;
use crate::highlight::Highlighter;
use crate::log::Detail;
use crate::process;
use crate::settings::Settings;
use crate::setup::Setup;

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
    let directory = local_directory(&setup);
    let later = Later::default();
    let runtime = process::runtime(&later)?;
    runtime.block_on(async {
        let shell = setup.shell(later);
        let engine = shell.engine().clone();
        let interrupted = process::shutdown()?;
        let code = tokio::select! {
            code = call(shell, flags, directory) => code,
            () = interrupted => Ok(INTERRUPTED),
        };
        engine.close(Closing::ClientLeft).await;
        code.map(ExitCode::from)
    })
}

/// The directory of commands that name none, if that is on this machine.
fn local_directory(setup: &Setup) -> Option<PathBuf> {
    let in_place = setup.engine.places.as_ref().is_some_and(|places| places.default.is_some());
    (!in_place).then(|| setup.engine.working_directory.clone())
}

/// `directory` is where commands run that name none.
async fn call(
    shell: ShellServer,
    flags: &CallFlags,
    directory: Option<PathBuf>,
) -> Result<u8, Box<dyn Error>> {
    let output = Arc::new(OnceLock::new());
    let (shell, progress) = (shell.watched(output.clone()), Progress::new(output));
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let server = tokio::spawn(async move { mcpz_server::serve(shell, theirs).await });
    let client = Client.serve(ours).await?;
    let _server = server.await??;
    let schema = schema_of(&client, &flags.tool).await?;
    let mut arguments = arguments::parse(&flags.arguments, &schema)?;
    let unused = stdin::is_unused(&schema, &arguments);
    stdin::read(&schema, &mut arguments).await?;
    let named = |name: &str| arguments.get(name).and_then(Value::as_str);
    let own = ["working_directory", "directory", "cwd"].into_iter().find_map(named);
    let directory = match own {
        _ if named("place").is_some() => None,
        Some(own) => directory.map(|directory| directory.join(own)),
        None => directory,
    };
    let request = CallToolRequestParams::new(flags.tool.clone()).with_arguments(arguments);
    // The progress is gone when this is over.
    let result = tokio::select! {
        result = client.call_tool(request) => result?,
        never = progress.run() => match never {},
    };
    print(&result, flags.json, directory)?;
    if unused && stdin::is_waiting() {
        writeln!(
            std::io::stderr(),
            "mcpz: standard input was not read; `stdin=-` passes it to the command"
        )?;
    }
    Ok(Reply(&result).exit_code())
}

/// The schema of a tool's arguments.
async fn schema_of(
    client: &RunningService<RoleClient, Client>,
    name: &str,
) -> Result<Arc<JsonObject>, Box<dyn Error>> {
    let tools = client.list_all_tools().await?;
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        let tools = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        return Err(UnknownTool { name: name.to_owned(), tools }.into());
    };
    Ok(tool.input_schema.clone())
}

/// Prints the command's stdout and stderr to ours, or the whole answer as JSON.
fn print(
    result: &CallToolResult,
    json: bool,
    directory: Option<PathBuf>,
) -> Result<(), Box<dyn Error>> {
    let (stdout, stderr) = (std::io::stdout().lock(), std::io::stderr().lock());
    if json {
        return Ok(write(stdout, &serde_json::to_string_pretty(result)?, None)?);
    }
    let reply = Reply(result);
    write(stdout, &reply.stdout(), directory.clone())?;
    write(stderr, reply.stderr(), directory)?;
    for remark in reply.remarks() {
        writeln!(std::io::stderr(), "mcpz: {remark}")?;
    }
    Ok(())
}

/// Writes a text, in colours where there are any, and ends its last line.
fn write(
    mut to: impl Write + IsTerminal,
    text: &str,
    directory: Option<PathBuf>,
) -> std::io::Result<()> {
    match Highlighter::on(&to, directory) {
        Some(mut highlighter) => to.write_all(highlighter.text(text).as_bytes())?,
        None => to.write_all(text.as_bytes())?,
    }
    if !text.is_empty() && !text.ends_with('\n') {
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// The client of the call.
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("mcpz-call", env!("CARGO_PKG_VERSION"));
        config
    }
}
