//! Tokens of an authorization server: signed by one of its keys, for us, and still good.
//!
//! The keys come from a file, or from an address that is asked again when a token names a key we do
//! not know; not often, so that made-up names do not make us ask without end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Value, json};

/// The least time between two questions for keys.
const PACE: Duration = Duration::from_secs(10);

/// How far the clocks may be apart.
const LEEWAY: u64 = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthSettings {
    pub issuer: String,
    /// What tokens for this server are issued for: its address, as clients know it.
    pub audience: String,
    /// Scopes a token must have.
    pub scopes: Vec<String>,
}

/// Brings the keys there are now, as JSON.
pub type Source = Box<dyn Fn() -> Fetching + Send + Sync>;
pub type Fetching = std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<u8>>> + Send>>;

pub struct OAuth {
    settings: OAuthSettings,
    source: Source,
    keys: Mutex<Known>,
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    keys: Arc<Vec<Jwk>>,
    asked: Option<Instant>,
}

impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why a token does not open the door.
#[derive(Debug, PartialEq, Eq)]
pub enum Denial {
    Invalid,
    /// It is good, but not for this.
    Scope,
}

impl Denial {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::UNAUTHORIZED,
            Self::Scope => StatusCode::FORBIDDEN,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid => "invalid_token",
            Self::Scope => "insufficient_scope",
        }
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: String,
}

impl OAuth {
    pub fn new(settings: OAuthSettings, source: Source) -> Self {
        Self { settings, source, keys: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    /// Where clients read how to get a token, relative to our address.
    pub const METADATA: &str = "/.well-known/oauth-protected-resource";

    /// What is there to read.
    pub fn metadata(&self) -> Value {
        json!({
            "resource": self.settings.audience,
            "authorization_servers": [self.settings.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": self.settings.scopes,
        })
    }

    /// What a refusal adds to its challenge.
    pub fn challenge(&self) -> String {
        let base = match self.settings.audience.parse::<http::Uri>() {
            Ok(uri) => match (uri.scheme_str(), uri.authority()) {
                (Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
                _ => String::new(),
            },
            Err(_) => String::new(),
        };
        let mut text = format!(", resource_metadata=\"{base}{}\"", Self::METADATA);
        if !self.settings.scopes.is_empty() {
            text.push_str(&format!(", scope=\"{}\"", self.settings.scopes.join(" ")));
        }
        text
    }

    /// Whom a token is for.
    pub async fn identify(&self, token: &str) -> Result<Arc<str>, Denial> {
        let header = decode_header(token).map_err(|_| Denial::Invalid)?;
        let find = |keys: &[Jwk]| {
            let named = |key: &&Jwk| match &header.kid {
                Some(id) => key.common.key_id.as_ref() == Some(id),
                None => keys.len() == 1,
            };
            keys.iter().find(named).cloned()
        };
        let key = match find(&self.known()) {
            Some(key) => key,
            None => find(&self.ask().await).ok_or(Denial::Invalid)?,
        };
        // The key says what it is for; a token that says otherwise is a forgery.
        let algorithm = algorithm_of(&key).ok_or(Denial::Invalid)?;
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY;
        let key = DecodingKey::from_jwk(&key).map_err(|_| Denial::Invalid)?;
        let claims =
            decode::<Claims>(token, &key, &validation).map_err(|_| Denial::Invalid)?.claims;
        let granted: HashSet<_> = claims.scope.split(' ').collect();
        match self.settings.scopes.iter().all(|scope| granted.contains(scope.as_str())) {
            true => Ok(format!("{} {}", self.settings.issuer, claims.sub).into()),
            false => Err(Denial::Scope),
        }
    }

    fn known(&self) -> Arc<Vec<Jwk>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }

    /// The keys there are now, unless they were asked for a moment ago.
    async fn ask(&self) -> Arc<Vec<Jwk>> {
        let _alone = self.asking.lock().await;
        let recently = |known: &Known| known.asked.is_some_and(|asked| asked.elapsed() < PACE);
        if recently(&self.keys.lock().unwrap_or_else(PoisonError::into_inner)) {
            return self.known();
        }
        let fetched = (self.source)().await;
        let read = |bytes: Vec<u8>| {
            serde_json::from_slice::<JwkSet>(&bytes).map(|set| set.keys).map_err(Into::into)
        };
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked = Some(Instant::now());
        match fetched.and_then(read) {
            Ok(keys) => known.keys = Arc::new(keys),
            Err(error) => tracing::warn!("cannot get the authorization server's keys: {error}"),
        }
        known.keys.clone()
    }
}

/// What a public key signs with. Secrets that both sides know are none.
fn algorithm_of(key: &Jwk) -> Option<Algorithm> {
    match (&key.algorithm, key.common.key_algorithm) {
        (AlgorithmParameters::RSA(_), algorithm) => match algorithm {
            None | Some(KeyAlgorithm::RS256) => Some(Algorithm::RS256),
            Some(KeyAlgorithm::RS384) => Some(Algorithm::RS384),
            Some(KeyAlgorithm::RS512) => Some(Algorithm::RS512),
            Some(KeyAlgorithm::PS256) => Some(Algorithm::PS256),
            _ => None,
        },
        (AlgorithmParameters::EllipticCurve(curve), _) => match curve.curve {
            EllipticCurve::P256 => Some(Algorithm::ES256),
            EllipticCurve::P384 => Some(Algorithm::ES384),
            _ => None,
        },
        (AlgorithmParameters::OctetKeyPair(_), _) => Some(Algorithm::EdDSA),
        _ => None,
    }
}
