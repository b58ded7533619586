//! Where the commands of this test run are: on this machine, or in the place of the file that `MCPZ_TEST_CONFIG` names.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Server, open_folder};

/// A place that commands run in.
pub struct Place {
    pub name: String,
    pub kind: String,
}

/// The place of this test run. None on this machine.
pub fn place() -> Option<Place> {
    let config: toml::Table = shared_config().parse().unwrap();
    let name = config.get("shell_tool")?.get("place")?.as_str()?;
    let kind = config["places"][name]["kind"].as_str().unwrap().to_owned();
    Some(Place { name: name.to_owned(), kind })
}

fn shared_config() -> String {
    let file = std::env::var_os("MCPZ_TEST_CONFIG");
    file.map(|file| std::fs::read_to_string(file).unwrap()).unwrap_or_default()
}

/// Writes a configuration that has more keys in `[shell_tool]`, and more tables, than that of the test run.
pub fn config(folder: &Path, keys: &str, tables: &str) -> PathBuf {
    let (file, shared) = (folder.join("config.toml"), shared_config());
    let rest = shared.strip_prefix("[shell_tool]\n").unwrap_or(&shared);
    std::fs::write(&file, format!("[shell_tool]\n{keys}\n{rest}\n{tables}\n")).unwrap();
    file
}

/// Starts a server with such a configuration, and all tools.
pub fn configured(keys: &str, tables: &str) -> (Server, TempDir) {
    let folder = open_folder();
    let file = config(folder.path(), keys, tables);
    let server = Server::start(&["--tools", "all", "--config", file.to_str().unwrap()]);
    (server, folder)
}

/// Starts a server whose place is made: what follows is about commands, not about how long that takes.
pub fn prepared() -> Server {
    let mut server = Server::start(&["--tools", "all"]);
    assert_eq!(server.run("true")["return_code"], 0);
    server
}

/// The structure of a tool's answer.
pub fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

/// Starts a job, and returns its id.
pub fn job(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "background": true}))["job_id"].clone()
}
