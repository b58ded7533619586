//! Where commands can run, other than on this machine.
//!
//!     Place ─ open ─▶ a byte stream to `mcpz agent --stream` in there ─▶ Opened: a link, facts, how to end it
//!
//! Each kind has a file, which makes a place, gets a byte stream to an agent inside, and ends it. Everything else is
//! the same for all of them, and happens on the two ends of the stream (`agent/src/stream.rs`).
//!
//!     process.rs     an agent on this machine, behind a stream  for tests and measurements
//!     ssh.rs         another host, by the user's own `ssh`
//!     slurm.rs       a step of a batch job
//!     container.rs   a container of Docker or podman            with the cargo feature `container`
//!     kubernetes.rs  a pod of Kubernetes                        with the cargo feature `kubernetes`
//!
//!     child.rs       the child process that the first three talk through
//!     delivery.rs    brings the agent to where a shell runs
//!     said.rs        what a place says on stderr
//!     agent_file.rs  the program that becomes the agent
//!     libraries.rs   what is said of one that lacks its libraries

mod agent_file;
mod child;
mod container;
mod container_error;
mod delivery;
mod error;
mod kubernetes;
mod kubernetes_error;
mod libraries;
mod made;
mod opening;
mod place;
mod process;
mod said;
mod slurm;
mod ssh;

pub use child::SUPERVISE;
pub use container::{Access, Base, Container, InvalidMount, Mount, Pull};
pub use container_error::ContainerError;
pub use error::PlaceError;
pub use kubernetes::{
    InvalidPodMount, InvalidUser, Kubernetes, MountSource, PodMount, PodSource, UserNumbers,
};
pub use kubernetes_error::KubernetesError;
pub use made::Ending;
pub use opening::Opening;
pub use place::{Kind, Opened, Per, Place};
pub use slurm::Slurm;
pub use ssh::{InvalidHost, Ssh};
