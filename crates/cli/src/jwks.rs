//! The keys of an authorization server (JWKS): read from a file, or fetched from an address.

use std::io;

use hyper::Uri;
use mcpz_server::Source;

use crate::fetch::fetch;

/// The most bytes the keys may have.
const MAX_KEYS: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
#[error("`jwks` is `{0}`, but must be a file or an https URL")]
pub struct InvalidSource(String);

/// Reads the keys again each time they are needed.
pub fn source(place: &str) -> Result<Source, InvalidSource> {
    let uri = place.parse::<Uri>().ok().filter(|uri| uri.scheme().is_some());
    let Some(uri) = uri else {
        let path = std::path::PathBuf::from(place);
        return Ok(Box::new(move || {
            let path = path.clone();
            Box::pin(async move {
                let read = tokio::task::spawn_blocking(move || std::fs::read(path));
                read.await.map_err(io::Error::other)?
            })
        }));
    };
    let host = uri.host().unwrap_or_default();
    let is_local = host == "localhost" || host == "127.0.0.1";
    match uri.scheme_str() {
        Some("https") => {}
        // Anybody on the network could replace keys that are not encrypted on the way.
        Some("http") if is_local => {}
        _ => return Err(InvalidSource(place.to_owned())),
    }
    Ok(Box::new(move || Box::pin(fetch(uri.clone(), MAX_KEYS))))
}
