//! Words that tell of trouble.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Beginnings of words, and what stands for them.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "error", "fail", "panic", "warn", "fatal", "exception", "traceback", "assert", "abort", "critical", "severe",
    "segfault", "segmentation fault", "core dumped", "killed", "denied", "not found", "no such file", "undefined",
    "unresolved", "cannot", "unable to", "refused", "timed out", "out of memory", "stack overflow", "deadlock",
    "corrupt", "caused by", "not ok", "err!", "backoff", "✗", "✘", "✖", "✕", "❌",
];

static TROUBLE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(WORDS).ok()
});

/// Whether a text has any word that may tell of trouble, also as a part of another word.
pub fn mentions_trouble(text: &[u8]) -> bool {
    TROUBLE.as_ref().is_none_or(|words| words.is_match(text))
}
