//! A pod of Kubernetes, by its API: one that is made for us, or one that runs already.
//!
//!     create ─▶ watch until it runs ─▶ exec: copy the agent in, start it ─▶ a stream to `agent --stream`
//!     a pod that runs:                 exec: the same
//!
//! The agent is not the first process of its pod, although that process is what a pod lives by: what a first process
//! prints goes to the logs of the cluster, and everything a command prints would with it. So the first process is a
//! shell that waits. It reads from a FIFO that the agent's shell has open for writing, so it ends when the agent does,
//! for whatever reason, and everything in the pod ends with it. It also ends if no agent has come in time.
//!
//! What is left then is the entry of a pod that has ended. The server removes it; if the server was killed, the next
//! one does; and if the server is in a pod of the same namespace, it is removed with that one.
//!
//!     cluster.rs   finds the cluster, and tells what its refusals mean
//!     pod.rs       what a pod is made with
//!     progress.rs  waits until it runs, or tells why it does not
//!     exec.rs      the byte stream to a process in it
//!     create.rs    makes a pod, or uses one that runs
//!     running.rs   the end of both
//!     sweep.rs     removes what servers that were killed left behind

#[cfg(feature = "kubernetes")]
mod cluster;
#[cfg(feature = "kubernetes")]
mod create;
#[cfg(feature = "kubernetes")]
mod exec;
#[cfg(feature = "kubernetes")]
mod pod;
#[cfg(feature = "kubernetes")]
mod progress;
#[cfg(feature = "kubernetes")]
mod running;
#[cfg(feature = "kubernetes")]
mod sweep;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::container::{Access, Pull};
use crate::error::PlaceError;
#[cfg(not(feature = "kubernetes"))]
use crate::kubernetes_error::KubernetesError;
use crate::made::Made;
use crate::opening::Opening;

/// How to get a pod. Only a new pod needs more than the first three fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubernetes {
    pub source: PodSource,
    /// The context of the kubeconfig, if it is not the current one.
    pub context: Option<String>,
    /// By default that of the context, or of the pod that the server runs in.
    pub namespace: Option<String>,
    /// By default the image's.
    pub user: Option<UserNumbers>,
    pub mounts: Vec<PodMount>,
    /// Whether only mounts can be written to, and `/tmp`, which is in memory then.
    pub read_only: bool,
    /// The capabilities that its root has, such as `CHOWN`; by default none.
    pub capabilities: Vec<String>,
    /// How it is isolated, such as a class that stands for gVisor.
    pub runtime_class: Option<String>,
    /// Who the pod is for the cluster. It never has a token of it.
    pub service_account: Option<String>,
    pub pull: Pull,
    /// The secret that has the login of the image's registry.
    pub image_pull_secret: Option<String>,
    /// The labels of nodes that it may run on.
    pub node_selector: Vec<(String, String)>,
    /// How long it may run at most.
    pub deadline: Option<Duration>,
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodSource {
    /// A pod is made from this image, and removed at the end.
    Image(String),
    /// A pod that runs already. It is left as it is. Without a container, its default one is used.
    Pod { name: String, container: Option<String> },
}

/// A user, and perhaps a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserNumbers {
    pub user: u32,
    pub group: Option<u32>,
}

/// Files from elsewhere that are in the pod too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodMount {
    pub source: MountSource,
    pub target: PathBuf,
    pub access: Access,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSource {
    /// A PersistentVolumeClaim.
    Claim(String),
    /// A path on the node.
    Node(PathBuf),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a mount of a pod; write CLAIM:TARGET or CLAIM:TARGET:ro, or a path on the node instead of the name \
     of a PersistentVolumeClaim"
)]
pub struct InvalidPodMount(String);

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a user of a pod; write its number, or UID:GID")]
pub struct InvalidUser(String);

impl FromStr for PodMount {
    type Err = InvalidPodMount;

    fn from_str(text: &str) -> Result<Self, InvalidPodMount> {
        let invalid = || InvalidPodMount(text.to_owned());
        let parts: Vec<_> = text.split(':').collect();
        let (source, target, access) = match parts[..] {
            [source, target] | [source, target, "rw"] => (source, target, Access::ReadWrite),
            [source, target, "ro"] => (source, target, Access::ReadOnly),
            _ => return Err(invalid()),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        let source = match source {
            path if path.starts_with('/') => MountSource::Node(path.into()),
            name if !name.is_empty() && name.chars().all(is_name) => {
                MountSource::Claim(name.to_owned())
            }
            _ => return Err(invalid()),
        };
        let target = PathBuf::from(target);
        target.is_absolute().then_some(Self { source, target, access }).ok_or_else(invalid)
    }
}

impl FromStr for UserNumbers {
    type Err = InvalidUser;

    fn from_str(text: &str) -> Result<Self, InvalidUser> {
        let number = |part: &str| part.parse().map_err(|_| InvalidUser(text.to_owned()));
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(number(group)?)),
            None => (text, None),
        };
        Ok(Self { user: number(user)?, group })
    }
}

impl Kubernetes {
    pub fn new(source: PodSource) -> Self {
        Self {
            source,
            context: None,
            namespace: None,
            user: None,
            mounts: Vec::new(),
            read_only: false,
            capabilities: Vec::new(),
            runtime_class: None,
            service_account: None,
            pull: Pull::default(),
            image_pull_secret: None,
            node_selector: Vec::new(),
            deadline: None,
            labels: Vec::new(),
        }
    }

    /// Starts the agent, in a pod that is made for it or in one that runs.
    #[cfg(feature = "kubernetes")]
    pub async fn start(
        &self,
        agent: &Path,
        start_time: Duration,
        opening: &Opening<'_>,
    ) -> Result<Made, PlaceError> {
        let cluster = cluster::Cluster::find(self, opening.variables).await?;
        match &self.source {
            PodSource::Image(image) => {
                create::make(self, image, cluster, agent, start_time, opening).await
            }
            PodSource::Pod { name, container } => {
                create::join(cluster, name, container.as_deref(), agent).await
            }
        }
    }

    #[cfg(not(feature = "kubernetes"))]
    pub async fn start(&self, _: &Path, _: Duration, _: &Opening<'_>) -> Result<Made, PlaceError> {
        Err(KubernetesError::NotBuilt.into())
    }

    /// Removes the pods that servers left behind when they were killed, and returns how many those were.
    #[cfg(feature = "kubernetes")]
    pub async fn sweep(&self, opening: &Opening<'_>) -> Result<usize, PlaceError> {
        match self.source {
            PodSource::Image(_) => {
                let cluster = cluster::Cluster::find(self, opening.variables).await?;
                Ok(sweep::sweep(&cluster).await?)
            }
            PodSource::Pod { .. } => Ok(0),
        }
    }

    #[cfg(not(feature = "kubernetes"))]
    pub async fn sweep(&self, _: &Opening<'_>) -> Result<usize, PlaceError> {
        Err(KubernetesError::NotBuilt.into())
    }

    pub fn description(&self) -> String {
        match &self.source {
            PodSource::Image(image) => format!("pod of {image}"),
            PodSource::Pod { name, .. } => format!("pod {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_claims_or_paths_on_the_node() {
        let mount =
            |source, target: &str, access| Some(PodMount { source, target: target.into(), access });
        let parsed = |text: &str| text.parse::<PodMount>().ok();
        let (claim, node) =
            (MountSource::Claim("work".to_owned()), MountSource::Node("/usr".into()));
        assert_eq!(parsed("work:/w"), mount(claim.clone(), "/w", Access::ReadWrite));
        assert_eq!(parsed("work:/w:ro"), mount(claim, "/w", Access::ReadOnly));
        assert_eq!(parsed("/usr:/usr:ro"), mount(node, "/usr", Access::ReadOnly));
        for wrong in ["", "work", "work:", ":/w", "work:w", "a b:/w", "a/b:/w", "work:/w:z"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn users_are_numbers() {
        let parsed = |text: &str| text.parse::<UserNumbers>().ok().map(|it| (it.user, it.group));
        assert_eq!(parsed("1000"), Some((1000, None)));
        assert_eq!(parsed("1000:100"), Some((1000, Some(100))));
        for wrong in ["", "dev", "1000:", ":1", "-1", "1:2:3"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
