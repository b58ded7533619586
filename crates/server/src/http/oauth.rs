//! Verifies tokens of an authorization server: signed with one of its keys, issued for this server, not expired.
//!
//! The keys come from a source that is fetched again when a token names an unknown key, but not often: made-up key
//! names must not make us fetch without end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Value, json};

/// The least time between two fetches.
const FETCH_INTERVAL: Duration = Duration::from_secs(10);

/// How long fetched keys are used.
const FRESH: Duration = Duration::from_secs(600);

/// How many seconds the clocks may differ.
const LEEWAY: u64 = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthSettings {
    pub issuer: String,
    /// The URL of this server as clients know it, for which tokens are issued.
    pub audience: String,
    /// The scopes a token must have.
    pub scopes: Vec<String>,
}

/// Fetches the current keys, as JSON.
pub type Source = Box<dyn Fn() -> Fetching + Send + Sync>;
pub type Fetching = std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<u8>>> + Send>>;

pub struct OAuth {
    settings: OAuthSettings,
    source: Source,
    keys: Arc<Mutex<CachedKeys>>,
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct CachedKeys {
    keys: Arc<Vec<Jwk>>,
    fetched: Option<Instant>,
    /// When the last fetch began.
    asked: Option<Instant>,
}

impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token is not valid for this server")]
    Invalid,
    #[error("the token lacks a required scope")]
    InsufficientScope,
}

impl TokenError {
    /// The error code of OAuth.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
        }
    }
}

#[derive(Deserialize)]
struct Claims {
    /// A text: the library would also accept a list that contains our issuer, and others.
    iss: String,
    sub: String,
    #[serde(default)]
    scope: String,
}

impl OAuth {
    pub fn new(settings: OAuthSettings, source: Source) -> Self {
        Self { settings, source, keys: Arc::default(), fetching: Arc::default() }
    }

    /// The path where clients read how to get a token.
    pub const METADATA: &str = "/.well-known/oauth-protected-resource";

    /// The document at that path.
    pub fn metadata(&self) -> Value {
        json!({
            "resource": self.settings.audience,
            "authorization_servers": [self.settings.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": self.settings.scopes,
        })
    }

    /// The part of a challenge that says how to get a token.
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

    /// The name of the token's subject. If no cached key fits, there may be new ones.
    pub async fn identify(&self, token: &str) -> Result<Arc<str>, TokenError> {
        let known = self.lock().fresh();
        match self.verify(token, &known) {
            Err(TokenError::Invalid) => self.verify(token, &self.fetch().await),
            verified => verified,
        }
    }

    fn verify(&self, token: &str, keys: &[Jwk]) -> Result<Arc<str>, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Invalid)?;
        // It has extensions that must be understood, and we know none.
        if header.crit.is_some() {
            return Err(TokenError::Invalid);
        }
        let signs =
            |key: &&Jwk| !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption));
        let mut keys = keys.iter().filter(signs);
        let key = match &header.kid {
            Some(id) => keys.find(|key| key.common.key_id.as_ref() == Some(id)),
            None => keys.next().filter(|_| keys.next().is_none()),
        };
        let key = key.ok_or(TokenError::Invalid)?;
        // The key decides the algorithm; a token that names another is a forgery.
        let algorithm = algorithm_of(key).ok_or(TokenError::Invalid)?;
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY;
        let key = DecodingKey::from_jwk(key).map_err(|_| TokenError::Invalid)?;
        let claims =
            decode::<Claims>(token, &key, &validation).map_err(|_| TokenError::Invalid)?.claims;
        // All subjects without a name would be the same principal.
        if claims.iss != self.settings.issuer || claims.sub.trim().is_empty() {
            return Err(TokenError::Invalid);
        }
        let granted: HashSet<_> = claims.scope.split(' ').collect();
        match self.settings.scopes.iter().all(|scope| granted.contains(scope.as_str())) {
            true => Ok(format!("{} {}", self.settings.issuer, claims.sub).into()),
            false => Err(TokenError::InsufficientScope),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CachedKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current keys, unless they were fetched a moment ago.
    async fn fetch(&self) -> Arc<Vec<Jwk>> {
        let only_one = self.fetching.clone().lock_owned().await;
        {
            let mut known = self.lock();
            if known.asked.is_some_and(|asked| asked.elapsed() < FETCH_INTERVAL) {
                return known.fresh();
            }
            known.asked = Some(Instant::now());
        }
        // In a task of its own: the request that made us fetch may be gone before there is an answer.
        let (fetching, keys) = ((self.source)(), self.keys.clone());
        let task = tokio::spawn(async move {
            let _only_one = only_one;
            let read = |bytes: Vec<u8>| {
                serde_json::from_slice::<JwkSet>(&bytes).map(|set| set.keys).map_err(Into::into)
            };
            let fetched = fetching.await.and_then(read);
            let mut known = keys.lock().unwrap_or_else(PoisonError::into_inner);
            match fetched {
                Ok(keys) => {
                    known.keys = Arc::new(keys);
                    known.fetched = Some(Instant::now());
                }
                Err(error) => {
                    tracing::warn!("cannot fetch the keys of the authorization server: {error}")
                }
            }
        });
        let _ = task.await;
        self.lock().fresh()
    }
}

impl CachedKeys {
    /// The keys, unless they are too old: one may have been revoked.
    fn fresh(&self) -> Arc<Vec<Jwk>> {
        match self.fetched.is_some_and(|fetched| fetched.elapsed() < FRESH) {
            true => self.keys.clone(),
            false => Arc::default(),
        }
    }
}

/// The algorithm of a public key. Keys that both sides know are refused.
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
