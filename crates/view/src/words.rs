//! Words that may tell of trouble, and where they are in a line.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;

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

static WORDS: LazyLock<Option<DFA>> = LazyLock::new(|| {
    DFA::builder().ascii_case_insensitive(true).build(STEMS.iter().chain(PHRASES)).ok()
});

/// A word that may tell of trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Stem(Range<usize>),
    Phrase(Range<usize>),
}

/// Whether a text has any such word, also as a part of another one.
pub fn mentions_trouble(text: &[u8]) -> bool {
    mentions_trouble_early(text, text.len())
}

/// Whether a text has any such word that begins in its first bytes. It may be longer than these.
pub fn mentions_trouble_early(text: &[u8], first: usize) -> bool {
    let Some(words) = WORDS.as_ref() else { return true };
    let Ok(start) = words.start_state(Anchored::No) else { return true };
    let mut state = start;
    for (at, byte) in text.iter().enumerate() {
        // Nothing has begun.
        if state == start && at >= first {
            break;
        }
        state = words.next_state(Anchored::No, state, *byte);
        if words.is_match(state) {
            return true;
        }
    }
    false
}

/// All such words in a text.
pub fn troubling_words(text: &[u8]) -> impl Iterator<Item = Word> {
    let found = WORDS.as_ref().and_then(|words| words.try_find_iter(text.into()).ok());
    found.into_iter().flatten().map(|found| {
        let is_stem = found.pattern().as_usize() < STEMS.len();
        if is_stem { Word::Stem(found.range()) } else { Word::Phrase(found.range()) }
    })
}
