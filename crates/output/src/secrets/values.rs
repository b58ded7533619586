//! Finds values of which we know that they are secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::stage::{End, Mask, Text, is_word};

/// Shorter values are not masked: `dev` or `12345` occurs in ordinary text.
const MIN_LENGTH: usize = 6;

/// Shorter values are masked only where they are whole words.
const MIN_INSIDE_WORDS: usize = 8;

/// Longer values are not ordinary words.
const MAX_WORD: usize = 16;

pub struct ValueFinder {
    automaton: AhoCorasick,
    /// The text that replaces each value.
    names: Vec<String>,
    /// Sorted, so that values with a common prefix are neighbours.
    values: Vec<Vec<u8>>,
    /// The bytes that a value can start with.
    firsts: [bool; 256],
    longest: usize,
}

/// Whether a value occurs inside other words although nobody printed it: `postgres` is a password for many, and part
/// of `postgresql` for all.
fn is_ordinary(value: &[u8]) -> bool {
    let same = value.iter().all(u8::is_ascii_alphabetic) || value.iter().all(u8::is_ascii_digit);
    value.len() < MIN_INSIDE_WORDS || (value.len() <= MAX_WORD && same)
}

impl ValueFinder {
    pub fn new<N: Into<String>, V: AsRef<[u8]>>(
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Option<Self> {
        let mut sorted = BTreeMap::new();
        for (name, value) in values {
            let value = value.as_ref().trim_ascii();
            if value.len() >= MIN_LENGTH {
                sorted.entry(value.to_vec()).or_insert_with(|| format!("[{}]", name.into()));
            }
        }
        let longest = sorted.keys().map(Vec::len).max()?;
        let (values, names): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The faster kind takes hundreds of bytes for each byte of a private key.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&values)
            .ok()?;
        let mut firsts = [false; 256];
        values.iter().for_each(|value| firsts[usize::from(value[0])] = true);
        Some(Self { automaton, names, values, firsts, longest })
    }

    /// The names and values.
    pub fn all(&self) -> Vec<(String, Vec<u8>)> {
        let bare = |name: &str| name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let all = self.names.iter().zip(&self.values);
        all.map(|(name, value)| (bare(name), value.clone())).collect()
    }

    /// The longest value that begins at a place where one is found and counts there.
    fn value_at(&self, text: &Text<'_>, at: usize, found: usize) -> Option<usize> {
        // Of values that begin alike, the longest is the last one.
        let mut alike = (0..=found).rev();
        alike.find(|number| {
            text.bytes[at..].starts_with(&self.values[*number]) && self.counts(text, at, *number)
        })
    }

    /// Whether a value that stands at this place is meant to be one.
    fn counts(&self, text: &Text<'_>, at: usize, number: usize) -> bool {
        let value = &self.values[number];
        let next = text.bytes.get(at + value.len());
        let ends_word = !value.last().is_some_and(|last| is_word(*last))
            || !next.is_some_and(|next| is_word(*next));
        !is_ordinary(value) || (ends_word && (!is_word(value[0]) || text.can_begin_word(at)))
    }

    /// The first place, at or after `from`, where `bytes` may end in the middle of a value.
    fn beginning(&self, bytes: &[u8], from: usize) -> usize {
        let from = from.max(bytes.len().saturating_sub(self.longest));
        (from..bytes.len()).find(|at| self.begins_with(&bytes[*at..])).unwrap_or(bytes.len())
    }

    /// Whether some value starts with `part` and is longer, or is a word that may go on.
    fn begins_with(&self, part: &[u8]) -> bool {
        if !self.firsts[usize::from(part[0])] {
            return false;
        }
        let next = self.values.partition_point(|value| value.as_slice() < part);
        let mut candidates = self.values[next..].iter();
        let is_part = |value: &Vec<u8>| value.as_slice() == part;
        candidates.next().is_some_and(|first| match is_part(first) {
            true if is_ordinary(first) => true,
            true => candidates.next().is_some_and(|second| second.starts_with(part)),
            false => first.starts_with(part),
        })
    }
}

/// Replaces the values in a stream.
pub struct ValueMask(pub Arc<ValueFinder>);

impl Mask for ValueMask {
    fn is_clean(&self, text: &Text<'_>) -> bool {
        let (finder, bytes) = (&self.0, text.bytes);
        !finder.automaton.is_match(bytes) && finder.beginning(bytes, 0) == bytes.len()
    }

    fn replace(&mut self, text: &Text<'_>, end: End, out: &mut Vec<u8>) -> usize {
        let (finder, bytes) = (&self.0, text.bytes);
        let open_from = |from| match end {
            End::Here => bytes.len(),
            End::Unknown => finder.beginning(bytes, from),
        };
        let (mut from, mut searched, mut open) = (0, 0, open_from(0));
        while let Some(found) = finder.automaton.find(Input::new(bytes).range(searched..)) {
            // A value that starts earlier, or that starts here and is longer, would win.
            if open <= found.start() {
                break;
            }
            let Some(value) = finder.value_at(text, found.start(), found.pattern().as_usize())
            else {
                searched = found.start() + 1;
                continue;
            };
            out.extend_from_slice(&bytes[from..found.start()]);
            out.extend_from_slice(finder.names[value].as_bytes());
            from = found.start() + finder.values[value].len();
            searched = from;
            if open < from {
                open = open_from(from);
            }
        }
        out.extend_from_slice(&bytes[from..open]);
        open
    }
}
