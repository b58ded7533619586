//! Secret values, and masking them in output.
//!
//! A command can print whatever its environment holds, and whatever it reads. Every secret is replaced by its name in
//! brackets before a byte of output is kept, so neither memory nor a spill file ever contains one, and nothing that
//! reads output has to care.
//!
//!     pipe ─▶ values we know ─▶ tokens we recognise ─▶ Output
//!
//! A secret is found even if it arrives in several pieces, but only verbatim: not as base64, nor with escapes or
//! colours in it. That keeps secrets out of conversations and logs; it cannot stop a command that means to give one
//! away.

mod private_key;
mod stage;
#[cfg(test)]
mod tests;
mod tokens;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use stage::{End, Stage};
use tokens::{TokenFinder, TokenMask};
use values::{ValueFinder, ValueMask};

/// What is secret. Clones share it, and its replacement.
#[derive(Clone, Default)]
pub struct Secrets {
    kinds: Kinds,
    /// What is used instead, once set.
    replaced: Arc<OnceLock<Kinds>>,
}

#[derive(Clone, Default)]
struct Kinds {
    values: Option<Arc<ValueFinder>>,
    tokens: Option<Arc<TokenFinder>>,
}

impl Secrets {
    /// Takes names and values. Whitespace around a value is not part of it; of several names with the same value,
    /// the first one counts.
    pub fn new<N: Into<String>, V: AsRef<[u8]>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let values = ValueFinder::new(values).map(Arc::new);
        Self { kinds: Kinds { values, tokens: None }, replaced: Arc::default() }
    }

    /// The same, and everything that looks like a token or a private key.
    pub fn with_tokens(mut self) -> Self {
        self.kinds.tokens = Some(Arc::new(TokenFinder::new()));
        self
    }

    /// Replaces what is secret, for all clones. Works once.
    pub fn replace(&self, others: &Self) {
        let _ = self.replaced.set(others.kinds().clone());
    }

    fn kinds(&self) -> &Kinds {
        self.replaced.get().unwrap_or(&self.kinds)
    }

    /// The names and values.
    pub fn values(&self) -> Vec<(String, Vec<u8>)> {
        self.kinds().values.as_ref().map_or_else(Vec::new, |values| values.all())
    }

    /// Whether tokens are recognised.
    pub fn has_tokens(&self) -> bool {
        self.kinds().tokens.is_some()
    }

    /// Replaces the secrets in a text.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masker = self.masker();
        masker.put(text.as_bytes(), End::Here);
        match masker.shown(text.as_bytes()) {
            same if same == text.as_bytes() => Cow::Borrowed(text),
            masked => Cow::Owned(String::from_utf8_lossy(masked).into_owned()),
        }
    }

    /// Returns a masker for one stream.
    pub fn masker(&self) -> Masker {
        let Kinds { values, tokens } = self.kinds().clone();
        Masker {
            values: values.map(|finder| Box::new(Stage::new(ValueMask(finder)))),
            tokens: tokens.map(|finder| Box::new(Stage::new(TokenMask::new(finder)))),
        }
    }
}

/// Names only: printed settings must not reveal the values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values().into_iter().map(|(name, _)| name)).finish()
    }
}

/// Masks one stream, piece by piece.
///
/// Bytes that may be the start of a secret are held back until more arrive or the stream ends: fewer than the longest
/// value has, or a few for a token. Showing them earlier, when the command is answered, would leak a secret that a
/// process it left is still printing.
#[derive(Default)]
pub struct Masker {
    // Boxed, because a masker is moved to a thread and back.
    values: Option<Box<Stage<ValueMask>>>,
    tokens: Option<Box<Stage<TokenMask>>>,
}

impl Masker {
    /// Takes in the next piece of the stream.
    pub fn take(&mut self, piece: &[u8]) {
        self.put(piece, End::Unknown);
    }

    /// Ends the stream: what was held back is not a secret.
    pub fn finish(&mut self) {
        self.put(&[], End::Here);
    }

    fn put(&mut self, piece: &[u8], end: End) {
        if let Some(values) = &mut self.values {
            values.take(piece, end);
        }
        if let Some(tokens) = &mut self.tokens {
            tokens.take(self.values.as_ref().map_or(piece, |values| values.shown(piece)), end);
        }
    }

    /// The masked output of the last call. `piece` is what that call was given.
    pub fn shown<'a>(&'a self, piece: &'a [u8]) -> &'a [u8] {
        let without_values = self.values.as_ref().map_or(piece, |values| values.shown(piece));
        self.tokens.as_ref().map_or(without_values, |tokens| tokens.shown(without_values))
    }
}
