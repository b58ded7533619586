//! What a container is made with.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount as ApiMount,
    MountType,
};
use mcpz_agent::{CpuShare, Limits, Maker, Memory, OwnerLimits};

use super::direct::SharedSocket;
use super::{Access, Container, Mount};
use crate::opening::Opening;

/// The label that tells which server a container was made by.
pub const SERVER_LABEL: &str = "io.mcpz.server";

/// What the agent and its keepers need in addition to what commands may have.
const AGENT_PROCESSES: u64 = 64;

/// The share of a container that gets only what others leave. The default is 1024.
const LEAST_SHARES: i64 = 2;

/// Where the agent is copied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPath {
    /// A folder that is there.
    pub folder: &'static str,
    pub name: String,
}

impl AgentPath {
    /// In a container that is made. Nothing can be copied into a root that is read-only, so there is a volume then,
    /// which is removed with the container.
    pub fn new(container: &Container) -> Self {
        match container.read_only {
            true => Self { folder: "/.mcpz", name: "agent".to_owned() },
            false => Self { folder: "/", name: ".mcpz-agent".to_owned() },
        }
    }

    pub fn command(&self) -> Vec<String> {
        let path = Path::new(self.folder).join(&self.name);
        vec![path.display().to_string(), "agent".to_owned(), "--stream".to_owned()]
    }
}

/// A container of an image. It is removed when its first process ends, which it does when the stream closes.
pub fn body(container: &Container, image: &str, opening: &Opening<'_>) -> ContainerCreateBody {
    let agent = AgentPath::new(container);
    let maker = Maker::own().map(|maker| maker.to_string()).unwrap_or_default();
    let mut labels: HashMap<_, _> = container.labels.iter().cloned().collect();
    labels.insert(SERVER_LABEL.to_owned(), maker);
    let directory = opening.working_directory;
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(agent.command()),
        cmd: Some(Vec::new()),
        user: container.user.clone(),
        working_dir: container.directory.map(|_| directory.display().to_string()),
        labels: Some(labels),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..Default::default()
        }),
        host_config: Some(host_config(container, &agent, opening)),
        ..Default::default()
    }
}

/// Adds a socket of ours to what a container is made with.
pub fn with_socket(mut body: ContainerCreateBody, socket: &SharedSocket) -> ContainerCreateBody {
    body.entrypoint.get_or_insert_default().push(SharedSocket::path_inside());
    let host = body.host_config.get_or_insert_default();
    host.mounts.get_or_insert_default().push(socket.mount());
    body
}

fn host_config(container: &Container, agent: &AgentPath, opening: &Opening<'_>) -> HostConfig {
    let security = ["no-new-privileges".to_owned()].into_iter().chain(container.security.clone());
    let in_memory = || ("/tmp".to_owned(), "rw,exec,nosuid,nodev,mode=1777".to_owned());
    HostConfig {
        auto_remove: Some(true),
        // Else the engine would write every byte of the stream to a file.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        mounts: Some(mounts(container, agent, opening.working_directory)),
        network_mode: Some(container.network.clone().unwrap_or_else(|| "none".to_owned())),
        readonly_rootfs: Some(container.read_only),
        tmpfs: container.read_only.then(|| [in_memory()].into_iter().collect()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(container.capabilities.clone()).filter(|added| !added.is_empty()),
        security_opt: Some(security.collect()),
        runtime: container.runtime.clone(),
        ..limits(opening.limits)
    }
}

fn mounts(container: &Container, agent: &AgentPath, directory: &Path) -> Vec<ApiMount> {
    let (source, target) = (directory.to_owned(), directory.to_owned());
    let own = container.directory.map(|access| Mount { source, target, access });
    let bind = |mount: &Mount| ApiMount {
        typ: Some(MountType::BIND),
        source: Some(mount.source.display().to_string()),
        target: Some(mount.target.display().to_string()),
        read_only: Some(mount.access == Access::ReadOnly),
        ..Default::default()
    };
    let volume = container.read_only.then(|| ApiMount {
        typ: Some(MountType::VOLUME),
        target: Some(agent.folder.to_owned()),
        ..Default::default()
    });
    own.iter().chain(&container.mounts).map(bind).chain(volume).collect()
}

/// The limits of all commands in it together, which are those of an owner. The agent enforces those of one command.
fn limits(limits: &Limits) -> HostConfig {
    let OwnerLimits { memory, processes, cpu } = limits.per_owner;
    let most = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let memory = match memory {
        Memory::Bytes(bytes) => Some(most(bytes)),
        Memory::Most | Memory::Unlimited => None,
    };
    HostConfig {
        memory,
        // Memory and swap together, so there is no swap.
        memory_swap: memory,
        pids_limit: processes.map(|processes| most(processes.saturating_add(AGENT_PROCESSES))),
        cpu_shares: (cpu == CpuShare::Least).then_some(LEAST_SHARES),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Base;

    fn made(container: &Container, limits: Limits) -> (ContainerCreateBody, HostConfig) {
        let opening = Opening {
            program: Path::new("/usr/bin/mcpz"),
            variables: &[],
            limits: &limits,
            working_directory: Path::new("/work"),
            children: &tokio::sync::watch::Sender::default(),
        };
        let body = body(container, "image", &opening);
        let host = body.host_config.clone().unwrap();
        (body, host)
    }

    fn container() -> Container {
        Container::new(Base::Image("image".to_owned()))
    }

    #[test]
    fn a_container_is_closed_unless_it_is_opened() {
        let (body, host) = made(&container(), Limits::default());
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.cap_add, None);
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!(host.pids_limit, Some(8192 + 64));
        assert_eq!((host.memory, host.cpu_shares), (None, None));
        let mounts = host.mounts.unwrap();
        let [mount] = &mounts[..] else { panic!("{mounts:?}") };
        assert_eq!(
            (mount.source.as_deref(), mount.target.as_deref()),
            (Some("/work"), Some("/work"))
        );
        assert_eq!(mount.read_only, Some(false));
        assert_eq!(body.working_dir.as_deref(), Some("/work"));
        assert!(body.labels.unwrap()[SERVER_LABEL].parse::<Maker>().is_ok());
    }

    #[test]
    fn it_has_what_is_asked_for() {
        let per_owner =
            OwnerLimits { memory: Memory::Bytes(1 << 30), processes: None, cpu: CpuShare::Least };
        let container = Container {
            directory: None,
            mounts: vec!["/usr:/usr:ro".parse().unwrap()],
            network: Some("bridge".to_owned()),
            read_only: true,
            capabilities: vec!["CHOWN".to_owned()],
            labels: vec![(SERVER_LABEL.to_owned(), "mine".to_owned())],
            ..container()
        };
        let (body, host) = made(&container, Limits { per_owner, ..Limits::default() });
        assert_eq!((host.memory, host.memory_swap), (Some(1 << 30), Some(1 << 30)));
        assert_eq!((host.pids_limit, host.cpu_shares), (None, Some(2)));
        assert_eq!(host.network_mode.as_deref(), Some("bridge"));
        assert_eq!(host.cap_add, Some(vec!["CHOWN".to_owned()]));
        assert!(host.tmpfs.unwrap()["/tmp"].contains("exec"));
        let targets: Vec<_> =
            host.mounts.unwrap().into_iter().map(|it| it.target.unwrap()).collect();
        assert_eq!(targets, ["/usr", "/.mcpz"]);
        assert_eq!(body.entrypoint.unwrap(), ["/.mcpz/agent", "agent", "--stream"]);
        assert_eq!(body.working_dir, None);
        assert_ne!(body.labels.unwrap()[SERVER_LABEL], "mine");
    }
}
