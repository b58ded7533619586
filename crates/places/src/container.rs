//! A container, by the API of Docker, which podman has too: one that is made for us, or one that is there already.
//!
//!     create ─▶ copy the agent in ─▶ attach ─▶ start ─▶ a stream to `agent --stream`, its first process,
//!     by way of the engine or, if that is here, by a socket in a mounted folder
//!     a container that runs: copy the agent in, unless it is there ─▶ exec ─▶ the same stream
//!
//! What is made for us lasts as long as the stream. If that closes, for whatever reason, the agent ends itself, and the
//! engine removes the container (`AutoRemove`). In a container that was there, only the agent and what it started end.
//!
//!     engine.rs   finds the engine, connects to it
//!     address.rs  where it may be
//!     attach.rs   the byte stream: output and errors come mixed
//!     create.rs   makes a container
//!     body.rs     what it is made with
//!     direct.rs   the socket of a new one
//!     exec.rs     uses one that is there
//!     running.rs  the end of both
//!     sweep.rs    removes what servers that were killed left behind
//!     archive.rs  the agent as the engine takes files

#[cfg(feature = "container")]
mod address;
#[cfg(feature = "container")]
mod archive;
#[cfg(feature = "container")]
mod attach;
#[cfg(feature = "container")]
mod body;
#[cfg(feature = "container")]
mod create;
#[cfg(feature = "container")]
mod direct;
#[cfg(feature = "container")]
mod engine;
#[cfg(feature = "container")]
mod exec;
#[cfg(feature = "container")]
mod running;
#[cfg(feature = "container")]
mod sweep;

use std::path::{Path, PathBuf};
use std::str::FromStr;

#[cfg(not(feature = "container"))]
use crate::container_error::ContainerError;
use crate::error::PlaceError;
use crate::made::Made;
use crate::opening::Opening;

/// How to get a container. Only a new container needs more than the first three fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub base: Base,
    /// The address of the engine, if it is not where Docker's or podman's own client would look.
    pub engine: Option<String>,
    /// A name or number, or both of a user and a group (`1000:1000`); by default the image's or the container's.
    pub user: Option<String>,
    /// How the working directory is mounted, at the same path; `None`: not at all.
    pub directory: Option<Access>,
    /// What else is mounted.
    pub mounts: Vec<Mount>,
    /// A network that the engine knows, such as `bridge`; by default there is none.
    pub network: Option<String>,
    /// Whether only mounts can be written to, and `/tmp`, which is in memory then.
    pub read_only: bool,
    /// The capabilities that its root has, such as `CHOWN`; by default none.
    pub capabilities: Vec<String>,
    /// More security options for the engine, such as `label=disable`.
    pub security: Vec<String>,
    /// A runtime that the engine knows, such as `runsc`, which is gVisor.
    pub runtime: Option<String>,
    pub pull: Pull,
    pub labels: Vec<(String, String)>,
}

/// What a container is made from, or which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// A container is made from this image, and removed at the end.
    Image(String),
    /// A container that runs already, by its name or id. It is left as it is.
    Container(String),
}

/// When to get the image from its registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pull {
    Never,
    /// If the engine does not have it.
    #[default]
    Missing,
    /// Whenever a container is made.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// A folder or file of the engine's machine that is in the container too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub source: PathBuf,
    pub target: PathBuf,
    pub access: Access,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a mount; write SOURCE:TARGET or SOURCE:TARGET:ro, with whole paths")]
pub struct InvalidMount(String);

impl FromStr for Mount {
    type Err = InvalidMount;

    fn from_str(text: &str) -> Result<Self, InvalidMount> {
        let parts: Vec<_> = text.split(':').collect();
        let (source, target, access) = match parts[..] {
            [source, target] | [source, target, "rw"] => (source, target, Access::ReadWrite),
            [source, target, "ro"] => (source, target, Access::ReadOnly),
            _ => return Err(InvalidMount(text.to_owned())),
        };
        let (source, target) = (PathBuf::from(source), PathBuf::from(target));
        if !source.is_absolute() || !target.is_absolute() {
            return Err(InvalidMount(text.to_owned()));
        }
        Ok(Self { source, target, access })
    }
}

impl Container {
    pub fn new(base: Base) -> Self {
        Self {
            base,
            engine: None,
            user: None,
            directory: Some(Access::ReadWrite),
            mounts: Vec::new(),
            network: None,
            read_only: false,
            capabilities: Vec::new(),
            security: Vec::new(),
            runtime: None,
            pull: Pull::default(),
            labels: Vec::new(),
        }
    }

    /// Starts the agent, in a container that is made for it or in one that is there.
    #[cfg(feature = "container")]
    pub async fn start(&self, agent: &Path, opening: &Opening<'_>) -> Result<Made, PlaceError> {
        let engine = engine::Engine::find(self.engine.as_deref(), opening.variables).await?;
        match &self.base {
            Base::Image(image) => create::start(self, image, &engine, agent, opening).await,
            Base::Container(name) => exec::start(self, name, &engine, agent).await,
        }
    }

    #[cfg(not(feature = "container"))]
    pub async fn start(&self, _: &Path, _: &Opening<'_>) -> Result<Made, PlaceError> {
        Err(ContainerError::NotBuilt.into())
    }

    /// Removes the containers that servers on this machine left behind when they were killed, and returns how many
    /// those were.
    #[cfg(feature = "container")]
    pub async fn sweep(&self, opening: &Opening<'_>) -> Result<usize, PlaceError> {
        let engine = engine::Engine::find(self.engine.as_deref(), opening.variables).await?;
        direct::sweep(&opening.runtime_folder());
        Ok(sweep::sweep(&engine).await?)
    }

    #[cfg(not(feature = "container"))]
    pub async fn sweep(&self, _: &Opening<'_>) -> Result<usize, PlaceError> {
        Err(ContainerError::NotBuilt.into())
    }

    pub fn description(&self) -> String {
        match &self.base {
            Base::Image(image) => format!("container of {image}"),
            Base::Container(name) => format!("container {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_have_two_whole_paths_and_perhaps_an_access() {
        let mount = |source: &str, target: &str, access| {
            Some(Mount { source: source.into(), target: target.into(), access })
        };
        let parsed = |text: &str| text.parse::<Mount>().ok();
        assert_eq!(parsed("/a b:/c"), mount("/a b", "/c", Access::ReadWrite));
        assert_eq!(parsed("/a:/c:ro"), mount("/a", "/c", Access::ReadOnly));
        assert_eq!(parsed("/a:/c:rw"), mount("/a", "/c", Access::ReadWrite));
        for wrong in ["", "/a", "/a:", ":/a", "a:/b", "/a:b", "/a:/b:", "/a:/b:z", "/a:/b:ro:x"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
