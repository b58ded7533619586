//! An engine that answers.
//!
//! Connections are our own, one for each request, so that the raw one can be had when a request turns into a stream.
//! Which version of the API to speak is in the answer to a ping: to ask for more takes podman 300 ms.

use std::ffi::OsString;
use std::io;

use bollard::{API_DEFAULT_VERSION, BollardRequest, ClientVersion, Docker};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use mcpz_runtime::spawn_blocking;

use super::address::{Address, Addresses};
use crate::container_error::ContainerError;

/// The longest time that an answer may take, in seconds. A place has its own time to start.
const MAX_SECONDS: u64 = 600;

#[derive(Clone)]
pub struct Engine {
    pub docker: Docker,
    address: Address,
    pub is_podman: bool,
}

impl Engine {
    /// Finds an engine that answers.
    pub async fn find(
        setting: Option<&str>,
        variables: &[(OsString, OsString)],
    ) -> Result<Self, ContainerError> {
        let (setting, variables) = (setting.map(str::to_owned), variables.to_vec());
        let found = spawn_blocking(move || Addresses::find(setting.as_deref(), &variables)).await;
        let nothing = || ContainerError::NoEngine { tried: String::new() };
        let addresses = match found.map_err(|_| nothing())?? {
            Addresses::Only(address) => {
                let shown = address.to_string();
                let failed = |error| ContainerError::Unreachable { address: shown, error };
                return Self::new(address).await.map_err(failed);
            }
            Addresses::AnyOf(addresses) => addresses,
        };
        let mut tried = Vec::new();
        for address in addresses {
            let shown = address.to_string();
            match Self::new(address).await {
                Ok(engine) => return Ok(engine),
                Err(error) => tried.push(format!("{shown}: {error}")),
            }
        }
        Err(ContainerError::NoEngine { tried: tried.join(", ") })
    }

    async fn new(address: Address) -> io::Result<Self> {
        let ping = Request::get("/_ping").body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
        let answer = send(&address, ping).await?;
        if answer.status() != StatusCode::OK {
            return Err(io::Error::other(format!("it answers {}", answer.status())));
        }
        let version = version(answer.headers());
        let is_podman = answer.headers().contains_key("libpod-api-version");
        let to = address.clone();
        let transport = move |request: BollardRequest| {
            let to = to.clone();
            async move { send(&to, request).await.map_err(Into::into) }
        };
        let docker = Docker::connect_with_custom_transport(
            transport,
            Some("http://engine"),
            MAX_SECONDS,
            &version,
        )
        .map_err(io::Error::other)?;
        Ok(Self { docker, address, is_podman })
    }

    /// Its address, if it may be on this machine.
    pub fn local_address(&self) -> Option<String> {
        matches!(self.address, Address::Unix(_)).then(|| self.address.to_string())
    }

    /// Sends a request that is answered by more than the API's types describe.
    pub async fn send<B>(&self, request: Request<B>) -> io::Result<Response<Incoming>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        send(&self.address, request).await
    }

    /// The runtime of a container of podman, which the API of Docker does not tell.
    pub async fn podman_runtime(&self, id: &str) -> io::Result<String> {
        let path = format!("/v4.0.0/libpod/containers/{id}/json");
        let request = Request::get(path).body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
        let answer = self.send(request).await?.into_body().collect().await;
        let answer = answer.map_err(io::Error::other)?.to_bytes();
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        Ok(answer["OCIRuntime"].as_str().unwrap_or("its own").to_owned())
    }
}

/// The newest version that both speak.
fn version(headers: &HeaderMap) -> ClientVersion {
    let theirs = headers.get("api-version").and_then(|value| value.to_str().ok());
    let numbers = theirs.and_then(|text| text.split_once('.'));
    let parsed =
        numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let ours = (API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version);
    let (major_version, minor_version) = parsed.unwrap_or(ours).min(ours);
    ClientVersion { major_version, minor_version }
}

async fn send<B>(address: &Address, mut request: Request<B>) -> io::Result<Response<Incoming>>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let socket = TokioIo::new(address.connect().await?);
    let (mut sender, connection) = http1::handshake(socket).await.map_err(io::Error::other)?;
    tokio::spawn(connection.with_upgrades());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>().map_err(io::Error::other)?;
    request.headers_mut().insert(HOST, HeaderValue::from_static("engine"));
    sender.send_request(request).await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_version_is_spoken() {
        let spoken = |theirs: &str| {
            let headers = [("api-version".parse().unwrap(), theirs.parse().unwrap())];
            let version = version(&headers.into_iter().collect());
            (version.major_version, version.minor_version)
        };
        let ours = (API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version);
        assert_eq!(spoken("1.41"), (1, 41));
        assert_eq!(spoken("9.1"), ours);
        assert_eq!(spoken("new"), ours);
    }
}
