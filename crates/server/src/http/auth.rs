//! Who may use the server: the tokens it accepts, and the principals behind them.
//!
//! Everything that belongs to a client hangs on its principal's name: sessions and streams here, outputs, jobs and
//! turns in the engine. What belongs to somebody else gets the same answer as what does not exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::oauth::{OAuth, TokenError};
use super::refusal::Refusal;
use crate::memory::{Memory, MemoryAccount};

/// A client that may use the server. Its sessions, outputs and jobs belong to its name.
#[derive(Debug)]
pub struct Principal {
    pub name: Arc<str>,
    /// The memory its messages may take.
    pub(crate) account: Arc<MemoryAccount>,
}

/// The name of every client where no token is needed.
const ANYBODY: &str = "anybody";

/// The most principals that are kept while they are not in use.
const MAX_PRINCIPALS: usize = 10_000;

#[derive(Debug)]
pub enum Auth {
    /// Every client that can reach the server may use it.
    Open,
    Closed(Keys),
}

/// The tokens that are accepted.
#[derive(Debug, Default)]
pub struct Keys {
    tokens: Vec<(Arc<str>, Vec<u8>)>,
    oauth: Option<OAuth>,
}

impl Keys {
    /// Accepts a token. Its bearer has this name.
    pub fn with_token(mut self, name: &str, token: &str) -> Self {
        self.tokens.push((name.into(), fingerprint(token)));
        self
    }

    /// Accepts the tokens of an authorization server.
    pub fn with_oauth(self, oauth: OAuth) -> Self {
        Self { oauth: Some(oauth), ..self }
    }
}

fn fingerprint(token: &str) -> Vec<u8> {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}

impl Auth {
    /// The authorization server, which clients can find out by themselves.
    pub fn oauth(&self) -> Option<&OAuth> {
        match self {
            Self::Open => None,
            Self::Closed(keys) => keys.oauth.as_ref(),
        }
    }

    /// Whether clients have names of their own.
    pub fn tells_apart(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// The name of the client that sent a request with these headers.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Arc<str>, Refusal> {
        let keys = match self {
            Self::Open => return Ok(ANYBODY.into()),
            Self::Closed(keys) => keys,
        };
        let Some(token) = bearer(headers) else {
            return Err(Refusal::Unauthorized { challenge: keys.challenge(None) });
        };
        // All are compared, and by fingerprint, so that the time this takes reveals nothing.
        let presented = fingerprint(token);
        let mut found = None;
        for (name, known) in &keys.tokens {
            if verify_slices_are_equal(known, &presented).is_ok() {
                found = Some(name.clone());
            }
        }
        match (found, &keys.oauth) {
            (Some(name), _) => Ok(name),
            (None, Some(oauth)) => oauth.identify(token).await.map_err(|error| keys.refuse(&error)),
            (None, None) => Err(keys.refuse(&TokenError::Invalid)),
        }
    }
}

impl Keys {
    fn refuse(&self, error: &TokenError) -> Refusal {
        let challenge = self.challenge(Some(error));
        match error {
            TokenError::Invalid => Refusal::Unauthorized { challenge },
            TokenError::InsufficientScope => Refusal::InsufficientScope { challenge },
        }
    }

    /// The challenge of a refusal: which token is needed, and what is wrong with this one.
    fn challenge(&self, error: Option<&TokenError>) -> String {
        let mut challenge = "Bearer realm=\"mcpz\"".to_owned();
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{}\"", error.code()));
        }
        if let Some(oauth) = &self.oauth {
            challenge.push_str(&oauth.challenge());
        }
        challenge
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// All principals by name, so that a name always means the same one.
pub struct Principals {
    memory: Arc<Memory>,
    by_name: Mutex<HashMap<Arc<str>, Arc<Principal>>>,
}

impl Principals {
    pub fn new(memory: Arc<Memory>) -> Self {
        Self { memory, by_name: Mutex::default() }
    }

    pub fn get(&self, name: Arc<str>) -> Arc<Principal> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if by_name.len() >= MAX_PRINCIPALS && !by_name.contains_key(&name) {
            by_name.retain(|_, principal| Arc::strong_count(principal) > 1);
        }
        let new = || Arc::new(Principal { name: name.clone(), account: self.memory.account() });
        by_name.entry(name.clone()).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identify(auth: &Auth, header: &str) -> Result<String, (u16, String)> {
        let mut headers = HeaderMap::new();
        if !header.is_empty() {
            headers.insert(AUTHORIZATION, header.parse().unwrap());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(auth.identify(&headers)).map(|name| name.to_string()).map_err(|refusal| {
            let response = refusal.into_response();
            let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
            (response.status().as_u16(), challenge)
        })
    }

    #[test]
    fn each_token_opens_the_door_under_its_own_name() {
        let keys = Keys::default().with_token("ada", "first").with_token("bob", "second");
        let auth = Auth::Closed(keys);
        assert_eq!(identify(&auth, "Bearer first").unwrap(), "ada");
        assert_eq!(identify(&auth, "bearer second").unwrap(), "bob");
        for wrong in ["Bearer third", "Bearer", "Bearer ", "Basic first", "first", "Bearer first x"]
        {
            assert_eq!(identify(&auth, wrong).unwrap_err().0, 401, "{wrong}");
        }
        assert_eq!(identify(&auth, "").unwrap_err(), (401, "Bearer realm=\"mcpz\"".into()));
        assert!(identify(&auth, "Bearer x").unwrap_err().1.contains("error=\"invalid_token\""));
    }
}
