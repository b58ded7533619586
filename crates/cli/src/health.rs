//! `mcpz health`: whether a server over HTTP is well, for images that have no `curl`.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use hyper::Uri;
use tokio::runtime::Builder;

use crate::environment;
use crate::fetch::fetch;
use crate::http::DEFAULT_BIND;

/// The most bytes an answer may have; ours has three.
const MAX_ANSWER: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    #[error("`{0}` is not a URL such as http://127.0.0.1:8000/healthz")]
    Url(String),
    #[error("the server at {url} is not well")]
    Unwell { url: Uri, source: io::Error },
}

pub fn run(url: Option<&str>) -> Result<ExitCode, Box<dyn Error>> {
    let url = url.map_or_else(own, str::to_owned);
    let http = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https"));
    let url: Uri = url.parse().ok().filter(http).ok_or(HealthError::Url(url))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(fetch(url.clone(), MAX_ANSWER)) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(source) => Err(HealthError::Unwell { url, source }.into()),
    }
}

/// Where a server with our environment would be asked.
fn own() -> String {
    let bind = environment::text("MCP_HTTP_BIND");
    let bind = bind.unwrap_or_else(|| DEFAULT_BIND.to_owned());
    let here = bind.parse().map(|mut address: SocketAddr| {
        // What listens everywhere listens here.
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address.to_string()
    });
    format!("http://{}/healthz", here.unwrap_or(bind))
}
