//! Makes a container from an image, and starts the agent in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ImageInspect};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, CreateImageOptionsBuilder, StartContainerOptions,
    UploadToContainerOptionsBuilder,
};
use mcpz_runtime::random_name;

use super::archive::Archive;
use super::attach::{Attached, attach};
use super::body::{AgentPath, body, with_socket};
use super::direct::SharedSocket;
use super::engine::Engine;
use super::running::{Running, each, is_missing, message, refused, remove};
use super::{Container, Pull};
use crate::agent_file::AgentFile;
use crate::container_error::ContainerError;
use crate::error::PlaceError;
use crate::libraries::lacks_libraries;
use crate::made::Made;
use crate::opening::Opening;
use crate::said::Said;

/// The processors of images, as `uname -m` calls them.
const PROCESSORS: [(&str, &str); 5] = [
    ("amd64", "x86_64"),
    ("arm64", "aarch64"),
    ("riscv64", "riscv64"),
    ("ppc64le", "ppc64le"),
    ("s390x", "s390x"),
];

/// How often an attempt to connect is repeated, and after which pause.
const RETRIES: usize = 5;
const RETRY_PAUSE: Duration = Duration::from_millis(200);

pub async fn start(
    container: &Container,
    image: &str,
    engine: &Engine,
    agent: &Path,
    opening: &Opening<'_>,
) -> Result<Made, PlaceError> {
    let agent_file = AgentFile::read(agent).await?;
    let found = get_image(engine, image, container.pull).await?;
    check_machine(&found, agent, &agent_file)?;
    let making = Making {
        engine: engine.clone(),
        name: format!("mcpz-{}", random_name()?),
        image: image.to_owned(),
        runtime: container.runtime.clone(),
        body: body(container, image, opening),
        agent: agent.to_owned(),
        agent_path: AgentPath::new(container),
        agent_file,
        socket: match engine.local_address() {
            Some(address) => {
                let way = (address, container.runtime.clone());
                SharedSocket::open(&opening.runtime_folder(), way).ok()
            }
            None => None,
        },
    };
    // What was created must be started, so that it ends with its stream, or be removed.
    Ok(opening.finish(making.make()).await??)
}

/// Has the engine get an image, if it may.
async fn get_image(
    engine: &Engine,
    image: &str,
    pull: Pull,
) -> Result<ImageInspect, ContainerError> {
    let look = || engine.docker.inspect_image(image);
    match pull {
        Pull::Always => {}
        Pull::Missing | Pull::Never => match look().await {
            Ok(found) => return Ok(found),
            Err(error) if is_missing(&error) && pull == Pull::Missing => {}
            Err(error) if is_missing(&error) => {
                return Err(ContainerError::NoImage { image: image.to_owned() });
            }
            Err(error) => return Err(refused("look for the image", error)),
        },
    }
    let failed =
        |error: Error| ContainerError::Pull { image: image.to_owned(), said: message(error) };
    let options = CreateImageOptionsBuilder::default().from_image(&with_tag(image)).build();
    each(engine.docker.create_image(Some(options), None, None)).await.map_err(failed)?;
    look().await.map_err(failed)
}

/// Without a tag, an engine may pull all images of that name.
fn with_tag(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") }
}

/// Whether the agent can run on the processor that an image is for.
pub fn check_machine(
    image: &ImageInspect,
    path: &Path,
    agent: &AgentFile,
) -> Result<(), PlaceError> {
    let theirs = PROCESSORS.iter().find(|(name, _)| image.architecture.as_deref() == Some(name));
    match theirs {
        Some((_, theirs)) if *theirs != agent.machine => Err(PlaceError::Architecture {
            path: path.to_owned(),
            ours: agent.machine.clone(),
            theirs: (*theirs).to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Copies the agent into a container.
pub async fn copy_agent(
    engine: &Engine,
    container: &str,
    to: &AgentPath,
    agent: &Arc<AgentFile>,
) -> Result<(), ContainerError> {
    let action = "copy the agent into the container";
    let too_long = || ContainerError::Refused { action, said: "it is too long".to_owned() };
    let archive = Archive::new(&to.name, agent.clone()).ok_or_else(too_long)?;
    let options = UploadToContainerOptionsBuilder::default().path(to.folder).build();
    let body = bollard::body_stream(archive);
    let copied = engine.docker.upload_to_container(container, Some(options), body).await;
    copied.map_err(|error| refused(action, error))
}

/// All it takes to make one container.
struct Making {
    engine: Engine,
    name: String,
    image: String,
    runtime: Option<String>,
    body: ContainerCreateBody,
    agent: PathBuf,
    agent_path: AgentPath,
    agent_file: Arc<AgentFile>,
    socket: Option<SharedSocket>,
}

impl Making {
    async fn make(mut self) -> Result<Made, ContainerError> {
        let id = self.create().await?;
        let started = self.start(&id).await;
        if started.is_err() {
            remove(&self.engine, &id).await;
        }
        started
    }

    async fn create(&mut self) -> Result<String, ContainerError> {
        if let Some(socket) = &self.socket {
            let with_socket = with_socket(self.body.clone(), socket);
            match self.ask(with_socket).await {
                Ok(id) => return Ok(id),
                // Perhaps only the folder is not where the engine is. If not, it will say the same again.
                Err(_) => self.socket.take().into_iter().for_each(SharedSocket::give_up),
            }
        }
        self.ask(self.body.clone()).await.map_err(|error| self.not_created(error))
    }

    async fn ask(&self, body: ContainerCreateBody) -> Result<String, Error> {
        let options = CreateContainerOptionsBuilder::default().name(&self.name).build();
        Ok(self.engine.docker.create_container(Some(options), body).await?.id)
    }

    async fn start(&mut self, id: &str) -> Result<Made, ContainerError> {
        self.check_runtime(id).await?;
        copy_agent(&self.engine, id, &self.agent_path, &self.agent_file).await?;
        let said = Said::default();
        let stream = self.attach(id, &said).await?;
        let started = self.engine.docker.start_container(id, None::<StartContainerOptions>).await;
        started.map_err(|error| self.not_started(error))?;
        let stream = match self.socket.take() {
            Some(socket) => socket.stream(stream).await,
            None => Box::new(stream),
        };
        let running =
            Running::container(self.engine.clone(), id.to_owned(), said, self.agent.clone());
        Ok(Made { stream, ending: Box::new(running) })
    }

    /// Connects to the container before it starts. Where many are made at once, podman sometimes fails to mount one,
    /// and succeeds a moment later.
    async fn attach(&self, id: &str, said: &Said) -> Result<Attached, ContainerError> {
        let path = format!("/containers/{id}/attach?stream=1&stdin=1&stdout=1&stderr=1");
        let mut attached = attach(&self.engine, &path, None, said.clone()).await;
        for _ in 0..RETRIES {
            if attached.is_ok() || !self.engine.is_podman {
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            attached = attach(&self.engine, &path, None, said.clone()).await;
        }
        attached
    }

    fn not_created(&self, error: Error) -> ContainerError {
        // Other things may be missing too, such as a network.
        match is_missing(&error) && error.to_string().contains("image") {
            true => ContainerError::NoImage { image: self.image.clone() },
            false => refused("create the container", error),
        }
    }

    fn not_started(&self, error: Error) -> ContainerError {
        let said = message(error);
        match lacks_libraries(&said) && said.contains(&self.agent_path.name) {
            true => ContainerError::Agent { path: self.agent.clone(), said },
            false => ContainerError::Refused { action: "start the container", said },
        }
    }

    /// Podman takes a runtime, but does not use it. What commands run in must be what the settings say.
    async fn check_runtime(&self, id: &str) -> Result<(), ContainerError> {
        let Some(wanted) = self.runtime.clone().filter(|_| self.engine.is_podman) else {
            return Ok(());
        };
        let used = self.engine.podman_runtime(id).await;
        let used = used.map_err(|error| ContainerError::Refused {
            action: "tell the runtime of the container",
            said: error.to_string(),
        })?;
        match used == wanted {
            true => Ok(()),
            false => Err(ContainerError::Runtime { wanted, used }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pulled_with_a_tag() {
        for (image, pulled) in [
            ("debian", "debian:latest"),
            ("host:5000/debian", "host:5000/debian:latest"),
            ("host:5000/debian:12", "host:5000/debian:12"),
            ("debian@sha256:abc", "debian@sha256:abc"),
        ] {
            assert_eq!(with_tag(image), pulled);
        }
    }

    #[tokio::test]
    async fn an_image_for_another_processor_is_refused() {
        let path = Path::new("/proc/self/exe");
        let agent = AgentFile::read(path).await.unwrap();
        let image =
            |name: &str| ImageInspect { architecture: Some(name.to_owned()), ..Default::default() };
        let own = PROCESSORS.iter().find(|(_, name)| *name == agent.machine).unwrap().0;
        assert!(check_machine(&image(own), path, &agent).is_ok());
        assert!(check_machine(&image("unheard of"), path, &agent).is_ok());
        let other = if own == "arm64" { "amd64" } else { "arm64" };
        assert!(check_machine(&image(other), path, &agent).is_err());
    }
}
