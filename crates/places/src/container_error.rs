//! What can go wrong with a container, and what to do then.

use std::io;
use std::path::PathBuf;

use crate::libraries::cannot_run;

#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    #[error("this build cannot use containers; build it with the cargo feature `container`")]
    NotBuilt,
    #[error(
        "found no container engine ({tried}); start Docker, or podman's service (`systemctl --user start \
         podman.socket`), or set DOCKER_HOST"
    )]
    NoEngine { tried: String },
    #[error("cannot reach the container engine at {address}: {error}; {}", advice(.error))]
    Unreachable { address: String, error: io::Error },
    #[error(
        "`{address}` is not the address of a container engine that can be reached; write unix:///PATH or \
         tcp://HOST:PORT, or forward its socket with `ssh -N -L /PATH:/var/run/docker.sock HOST`"
    )]
    Address { address: String },
    #[error("cannot use Docker's context `{name}`: {}: {reason}", path.display())]
    Context { name: String, path: PathBuf, reason: String },
    #[error(
        "the container engine has no image `{image}`; pull or load it, or allow it with `pull = \"missing\"`"
    )]
    NoImage { image: String },
    #[error(
        "cannot pull the image `{image}`: {said}; is its name right? If its registry needs a login, pull it yourself"
    )]
    Pull { image: String, said: String },
    #[error("there is no container `{name}`; `docker ps` or `podman ps` shows those that run")]
    NoContainer { name: String },
    #[error("the container `{name}` does not run; start it first")]
    NotRunning { name: String },
    #[error(
        "podman's service runs containers with `{used}`, and its API cannot choose `{wanted}`; set `runtime` in its \
         containers.conf"
    )]
    Runtime { wanted: String, used: String },
    #[error("{} {}", path.display(), cannot_run(.said))]
    Agent { path: PathBuf, said: String },
    #[error("the container engine could not {action}: {said}{}", hint(.said))]
    Refused { action: &'static str, said: String },
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "your user needs access to it, often by a group",
        _ => "is it running?",
    }
}

/// What to add to the message of an engine that does not say what to do.
fn hint(said: &str) -> &'static str {
    let said = said.to_lowercase();
    let says = |words: &str| said.contains(words);
    if says("runtime") && (says("unknown") || says("not found") || says("invalid")) {
        "; `runtime` must be one that the engine knows (`docker info` lists them)"
    } else if says("no space left") || says("quota") {
        "; make room: `docker system df` shows what takes it"
    } else if says("source path does not exist") || says("statfs ") {
        "; a mount must be a path on the engine's machine"
    } else if says("read-only") {
        "; the agent is copied into the container, which must be writable"
    } else if says("network") && says("not found") {
        "; `network` must be one that the engine knows (`docker network ls` lists them)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_that_say_no_more_than_no_get_advice() {
        for (said, about) in [
            ("Unknown runtime specified foo", "`runtime`"),
            ("invalid mount config: bind source path does not exist: /x", "a mount"),
            ("statfs /x: no such file or directory", "a mount"),
            ("write /a: no space left on device", "make room"),
            ("network foo not found", "`network`"),
            ("container rootfs is marked read-only", "writable"),
        ] {
            let error = ContainerError::Refused { action: "create it", said: said.to_owned() };
            assert!(error.to_string().contains(about), "{error}");
        }
    }
}
