//! Where a container engine may be: what the settings say, or else what Docker's and podman's own clients would use.
//!
//!     `engine` ─▶ DOCKER_HOST ─▶ CONTAINER_HOST ─▶ the current context of Docker ─▶ the usual sockets
//!
//! The first of these that is there is used, and must work. Of the usual sockets, the first that answers is used.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use tokio::net::{TcpStream, UnixStream};

use crate::agent_file::hexadecimal;
use crate::container_error::ContainerError;
use crate::made::ByteStream;

/// A connection to an engine.
pub type Socket = Pin<Box<dyn ByteStream>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String),
}

/// The addresses to try.
#[derive(Debug, PartialEq, Eq)]
pub enum Addresses {
    Only(Address),
    AnyOf(Vec<Address>),
}

impl Address {
    pub async fn connect(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Unix(path) => Box::pin(UnixStream::connect(path).await?),
            Self::Tcp(host) => {
                let stream = TcpStream::connect(host).await?;
                stream.set_nodelay(true)?;
                Box::pin(stream)
            }
        })
    }
}

impl FromStr for Address {
    type Err = ContainerError;

    fn from_str(text: &str) -> Result<Self, ContainerError> {
        let path = |path: &str| path.starts_with('/').then(|| Self::Unix(path.into()));
        let address = match text.split_once("://") {
            Some(("unix", rest)) => path(rest),
            Some(("tcp" | "http", rest)) => {
                let host = rest.trim_end_matches('/');
                let has_port =
                    host.rsplit_once(':').is_some_and(|(_, it)| it.parse::<u16>().is_ok());
                has_port.then(|| Self::Tcp(host.to_owned()))
            }
            Some(_) => None,
            None => path(text),
        };
        address.ok_or_else(|| ContainerError::Address { address: text.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(host) => write!(f, "tcp://{host}"),
        }
    }
}

impl Addresses {
    /// Reads files of Docker's client, if nothing else is said.
    pub fn find(
        setting: Option<&str>,
        variables: &[(OsString, OsString)],
    ) -> Result<Self, ContainerError> {
        let variable = |name: &str| {
            let found = variables.iter().rev().find(|(it, _)| it == name)?;
            found.1.to_str().filter(|value| !value.is_empty())
        };
        let said = setting.or(variable("DOCKER_HOST")).or(variable("CONTAINER_HOST"));
        if let Some(said) = said {
            // With this set, clients of Docker encrypt.
            let encrypted = setting.is_none() && variable("DOCKER_TLS_VERIFY").is_some();
            return match said.parse()? {
                Address::Tcp(_) if encrypted => {
                    Err(ContainerError::Address { address: said.to_owned() })
                }
                address => Ok(Self::Only(address)),
            };
        }
        let home = variable("HOME").map(|home| Path::new(home).join(".docker"));
        let settings = variable("DOCKER_CONFIG").map(PathBuf::from).or(home);
        if let Some(settings) = settings
            && let Some(host) = context_host(&settings, variable("DOCKER_CONTEXT"))?
        {
            return host.parse().map(Self::Only);
        }
        let own = variable("XDG_RUNTIME_DIR").map(|it| Path::new(it).join("podman/podman.sock"));
        let usual =
            [Some("/var/run/docker.sock".into()), own, Some("/run/podman/podman.sock".into())];
        Ok(Self::AnyOf(usual.into_iter().flatten().map(Address::Unix).collect()))
    }
}

/// The address in the current context of Docker's client, if it has one.
fn context_host(settings: &Path, context: Option<&str>) -> Result<Option<String>, ContainerError> {
    let current = || {
        let settings = std::fs::read(settings.join("config.json")).ok()?;
        let settings: serde_json::Value = serde_json::from_slice(&settings).ok()?;
        Some(settings["currentContext"].as_str()?.to_owned())
    };
    let Some(name) = context.map(str::to_owned).or_else(current) else { return Ok(None) };
    if name.is_empty() || name == "default" {
        return Ok(None);
    }
    let folder = hexadecimal(digest(&SHA256, name.as_bytes()).as_ref());
    let path = settings.join("contexts/meta").join(folder).join("meta.json");
    let failed =
        |reason: String| ContainerError::Context { name: name.clone(), path: path.clone(), reason };
    let context = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
    let context: serde_json::Value =
        serde_json::from_slice(&context).map_err(|error| failed(error.to_string()))?;
    let host = context["Endpoints"]["docker"]["Host"].as_str();
    host.map(|host| Some(host.to_owned())).ok_or_else(|| failed("it has no address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(path: &str) -> Address {
        Address::Unix(path.into())
    }

    fn find(
        setting: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Addresses, ContainerError> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Addresses::find(setting, &variables)
    }

    #[test]
    fn addresses_are_written_as_for_docker() {
        let parsed = |text: &str| text.parse::<Address>().ok();
        assert_eq!(parsed("unix:///run/x.sock"), Some(unix("/run/x.sock")));
        assert_eq!(parsed("/run/x.sock"), Some(unix("/run/x.sock")));
        assert_eq!(parsed("tcp://build:2375"), Some(Address::Tcp("build:2375".to_owned())));
        assert_eq!(parsed("http://[::1]:2375/"), Some(Address::Tcp("[::1]:2375".to_owned())));
        for wrong in
            ["", "x.sock", "unix://x", "tcp://build", "ssh://build", "npipe:////./x", "fd://"]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn settings_come_before_variables_and_those_before_the_usual_sockets() {
        let docker = ("DOCKER_HOST", "unix:///d");
        let podman = ("CONTAINER_HOST", "unix:///p");
        let only = |path| Addresses::Only(unix(path));
        assert_eq!(find(Some("unix:///s"), &[docker, podman]).unwrap(), only("/s"));
        assert_eq!(find(None, &[podman, docker]).unwrap(), only("/d"));
        assert_eq!(find(None, &[podman, ("DOCKER_HOST", "")]).unwrap(), only("/p"));
        let usual =
            ["/var/run/docker.sock", "/run/user/7/podman/podman.sock", "/run/podman/podman.sock"];
        let found =
            find(None, &[("XDG_RUNTIME_DIR", "/run/user/7"), ("HOME", "/nowhere")]).unwrap();
        assert_eq!(found, Addresses::AnyOf(usual.map(unix).to_vec()));
        assert!(find(None, &[("DOCKER_HOST", "ssh://build")]).is_err());
        assert!(
            find(None, &[("DOCKER_HOST", "tcp://b:2376"), ("DOCKER_TLS_VERIFY", "1")]).is_err()
        );
    }

    #[test]
    fn the_current_context_of_docker_has_an_address() {
        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join(".docker");
        // Named after the SHA-256 of `abc`.
        let folder = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let meta = settings.join("contexts/meta").join(folder);
        std::fs::create_dir_all(&meta).unwrap();
        std::fs::write(settings.join("config.json"), r#"{"currentContext": "abc"}"#).unwrap();
        let context = r#"{"Name": "abc", "Endpoints": {"docker": {"Host": "unix:///w"}}}"#;
        std::fs::write(meta.join("meta.json"), context).unwrap();
        let home = ("HOME", home.path().to_str().unwrap());
        assert_eq!(find(None, &[home]).unwrap(), Addresses::Only(unix("/w")));
        let usual = find(None, &[home, ("DOCKER_CONTEXT", "default")]).unwrap();
        assert!(matches!(usual, Addresses::AnyOf(_)));
        assert!(find(None, &[home, ("DOCKER_CONTEXT", "gone")]).is_err());
        std::fs::write(meta.join("meta.json"), "{}").unwrap();
        assert!(find(None, &[home]).is_err());
    }
}
