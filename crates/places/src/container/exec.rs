//! Uses a container that runs already. The agent is copied into it each time, as somebody there may have changed it.

use std::path::Path;

use bollard::models::ExecConfig;
use bollard::query_parameters::InspectContainerOptions;
use serde_json::json;

use super::Container;
use super::attach::attach;
use super::body::AgentPath;
use super::create::{check_machine, copy_agent};
use super::engine::Engine;
use super::running::{Running, is_missing, refused};
use crate::agent_file::AgentFile;
use crate::container_error::ContainerError;
use crate::error::PlaceError;
use crate::made::Made;
use crate::said::Said;

/// How much of the hash is in the name.
const DIGITS: usize = 16;

pub async fn start(
    container: &Container,
    name: &str,
    engine: &Engine,
    agent: &Path,
) -> Result<Made, PlaceError> {
    let (docker, agent_file) = (&engine.docker, AgentFile::read(agent).await?);
    let found = match docker.inspect_container(name, None::<InspectContainerOptions>).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => {
            return Err(ContainerError::NoContainer { name: name.to_owned() }.into());
        }
        Err(error) => return Err(refused("look for the container", error).into()),
    };
    if found.state.and_then(|state| state.running) != Some(true) {
        return Err(ContainerError::NotRunning { name: name.to_owned() }.into());
    }
    let id = found.id.unwrap_or_else(|| name.to_owned());
    let digits = &agent_file.sha256[..DIGITS];
    let agent_path = AgentPath { folder: "/", name: format!(".mcpz-agent-{digits}") };
    if let Ok(image) = docker.inspect_image(found.image.as_deref().unwrap_or_default()).await {
        check_machine(&image, agent, &agent_file)?;
    }
    copy_agent(engine, &id, &agent_path, &agent_file).await?;
    let config = ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        cmd: Some(agent_path.command()),
        user: container.user.clone(),
        ..Default::default()
    };
    let failed = |error| refused("start the agent in the container", error);
    let exec = docker.create_exec(&id, config).await.map_err(failed)?.id;
    let said = Said::default();
    let (path, body) = (format!("/exec/{exec}/start"), json!({"Detach": false, "Tty": false}));
    let stream = attach(engine, &path, Some(&body), said.clone()).await?;
    let running = Running::exec(engine.clone(), exec, said, agent.to_owned());
    Ok(Made { stream: Box::new(stream), ending: Box::new(running) })
}
