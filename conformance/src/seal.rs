//! What the server asks a client to carry for it, sealed: a client can bring back what it was given,
//! and nothing else.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use aws_lc_rs::rand::SystemRandom;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rmcp::model::ErrorData;

pub struct Seal(Key);

impl Seal {
    pub fn new() -> Result<Self, Unspecified> {
        Ok(Self(Key::generate(HMAC_SHA256, &SystemRandom::new())?))
    }

    pub fn close(&self, state: &str) -> String {
        let tag = BASE64_URL_SAFE_NO_PAD.encode(sign(&self.0, state.as_bytes()));
        format!("{state}.{tag}")
    }

    pub fn open<'a>(&self, sealed: Option<&'a str>) -> Result<&'a str, ErrorData> {
        let opened = sealed.and_then(|sealed| {
            let (state, tag) = sealed.split_once('.')?;
            let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
            verify(&self.0, state.as_bytes(), &tag).ok().map(|()| state)
        });
        opened.ok_or_else(|| ErrorData::invalid_params("requestState is not what was given", None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened() {
        let seal = Seal::new().unwrap();
        let sealed = seal.close("state");
        assert_eq!(seal.open(Some(&sealed)), Ok("state"));
        assert!(seal.open(Some(&format!("{sealed}-TAMPERED"))).is_err());
        assert!(seal.open(Some(&sealed.replace("state", "other"))).is_err());
        assert!(Seal::new().unwrap().open(Some(&sealed)).is_err());
        assert!(seal.open(None).is_err());
    }
}
