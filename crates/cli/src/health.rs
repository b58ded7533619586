//! `mcpz health`: whether an HTTP server responds, for images that have no `curl`.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use hyper::Uri;
use tokio::runtime::Builder;

use crate::fetch::fetch;
use crate::settings::{Http, InvalidVariable};

/// The most bytes of a response. A healthy server sends three.
const MAX_ANSWER: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    #[error("`{0}` is not a URL such as http://127.0.0.1:8000/healthz")]
    Url(String),
    #[error("the server at {url} is not healthy")]
    Unhealthy { url: Uri, source: io::Error },
}

pub fn run(url: Option<&str>) -> Result<ExitCode, Box<dyn Error>> {
    let url = url.map_or_else(own, |url| Ok(url.to_owned()))?;
    let http = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https"));
    let url: Uri = url.parse().ok().filter(http).ok_or(HealthError::Url(url))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(fetch(url.clone(), MAX_ANSWER)) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(source) => Err(HealthError::Unhealthy { url, source }.into()),
    }
}

/// The address of a server that has our variables, and no configuration file.
fn own() -> Result<String, InvalidVariable> {
    let bind = Http::from_variables()?.bind();
    let here = bind.parse().map(|mut address: SocketAddr| {
        // A server on all addresses is on this one, too.
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address.to_string()
    });
    Ok(format!("http://{}/healthz", here.unwrap_or(bind)))
}
