//! Words that may tell of trouble, and where they are in a line.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Beginnings of words. Other letters before or after them may make harmless words.
#[rustfmt::skip]
const STEMS: &[&str] = &[
    "error", "fail", "panic", "warn", "fatal", "exception", "traceback", "assert", "abort", "critical", "severe",
    "segfault", "killed", "denied", "unresolved", "cannot", "refused", "deadlock", "corrupt",
];

/// Words and signs that mean trouble wherever they are.
#[rustfmt::skip]
const PHRASES: &[&str] = &[
    "segmentation fault", "core dumped", "not found", "no such file", "undefined reference", "undefined symbol",
    "undefined:", "unbound variable", "no module named", "no rule to make", "unable to", "timed out",
    "out of memory", "stack overflow", "caused by",
    "not ok", "err!", "crashloopbackoff", "imagepullbackoff", "oomkilled", "✗", "✘", "✖", "✕", "❌",
];

/// How long the longest of them is.
pub const LONGEST_PHRASE: usize = {
    let (mut longest, mut at) = (0, 0);
    while at < PHRASES.len() {
        if PHRASES[at].len() > longest {
            longest = PHRASES[at].len();
        }
        at += 1;
    }
    longest
};

static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA));
    builder.build(STEMS.iter().chain(PHRASES)).ok()
});

/// A word that may tell of trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Stem(Range<usize>),
    Phrase(Range<usize>),
}

/// Whether a text has any such word, also as a part of another one.
pub fn mentions_trouble(text: &[u8]) -> bool {
    WORDS.as_ref().is_none_or(|words| words.is_match(text))
}

/// All such words in a text.
pub fn troubling_words(text: &[u8]) -> impl Iterator<Item = Word> {
    let found = WORDS.as_ref().map(|words| words.find_iter(text));
    found.into_iter().flatten().map(|found| {
        let is_stem = found.pattern().as_usize() < STEMS.len();
        if is_stem { Word::Stem(found.range()) } else { Word::Phrase(found.range()) }
    })
}
