//! Secret values, and masking them in output.
//!
//! A command can print whatever its environment holds. Every secret value is replaced by its name in brackets
//! before a byte of output is kept, so neither memory nor a spill file ever contains one, and nothing that reads
//! output has to care.
//!
//!     pipe ─▶ Masker ─▶ Output
//!
//! A value is found even if it arrives in several pieces, but only verbatim: not as base64, nor with escapes or
//! colours in it. That keeps secrets out of conversations and logs; it cannot stop a command that means to give one
//! away.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

/// Shorter values are not masked: `dev` or `12345` occurs in ordinary text.
const MIN_LENGTH: usize = 6;

/// Secret values with their names. Clones share them, and their replacement.
#[derive(Clone, Default)]
pub struct Secrets {
    finder: Option<Arc<Finder>>,
    /// The values that are used instead, once set.
    replaced: Arc<OnceLock<Option<Arc<Finder>>>>,
}

struct Finder {
    automaton: AhoCorasick,
    /// The text that replaces each value.
    names: Vec<String>,
    /// Sorted, so that values with a common prefix are neighbours.
    values: Vec<Vec<u8>>,
    /// The bytes that a value can start with.
    firsts: [bool; 256],
    longest: usize,
}

impl Secrets {
    /// Takes names and values. Whitespace around a value is not part of it; of several names with the same value,
    /// the first one counts.
    pub fn new<N: Into<String>, V: AsRef<[u8]>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut sorted = BTreeMap::new();
        for (name, value) in values {
            let value = value.as_ref().trim_ascii();
            if value.len() >= MIN_LENGTH {
                sorted.entry(value.to_vec()).or_insert_with(|| format!("[{}]", name.into()));
            }
        }
        Self { finder: Finder::new(sorted).map(Arc::new), replaced: Arc::default() }
    }

    /// Replaces the values, for all clones. Works once.
    pub fn replace(&self, others: &Self) {
        let _ = self.replaced.set(others.finder().cloned());
    }

    fn finder(&self) -> Option<&Arc<Finder>> {
        self.replaced.get().unwrap_or(&self.finder).as_ref()
    }

    /// The names and values.
    pub fn values(&self) -> Vec<(String, Vec<u8>)> {
        let all = self.finder().into_iter();
        let all = all.flat_map(|finder| finder.names.iter().zip(&finder.values));
        let bare = |name: &str| name.trim_start_matches('[').trim_end_matches(']').to_owned();
        all.map(|(name, value)| (bare(name), value.clone())).collect()
    }

    /// Replaces the secrets in a text.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = self.finder() else { return Cow::Borrowed(text) };
        if !finder.automaton.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::new();
        finder.replace(text.as_bytes(), End::Here, &mut masked);
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Returns a masker for one stream.
    pub fn masker(&self) -> Masker {
        Masker { finder: self.finder().cloned(), ..Masker::default() }
    }
}

/// Names only: printed settings must not reveal the values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.finder().into_iter().flat_map(|finder| &finder.names);
        f.debug_list().entries(names).finish()
    }
}

/// Whether a text ends where its bytes do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Here,
    Unknown,
}

impl Finder {
    fn new(sorted: BTreeMap<Vec<u8>, String>) -> Option<Self> {
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

    /// Appends `bytes` to `out`, with names in place of values. Returns how many bytes are done; the remaining ones
    /// may be the start of a value.
    fn replace(&self, bytes: &[u8], end: End, out: &mut Vec<u8>) -> usize {
        let open_from = |from| match end {
            End::Here => bytes.len(),
            End::Unknown => self.beginning(bytes, from),
        };
        let (mut from, mut open) = (0, open_from(0));
        while let Some(found) = self.automaton.find(Input::new(bytes).range(from..)) {
            // A value that starts earlier, or that starts here and is longer, would win.
            if open <= found.start() {
                break;
            }
            out.extend_from_slice(&bytes[from..found.start()]);
            out.extend_from_slice(self.names[found.pattern()].as_bytes());
            from = found.end();
            if open < from {
                open = open_from(from);
            }
        }
        out.extend_from_slice(&bytes[from..open]);
        open
    }

    /// The first place, at or after `from`, where `bytes` may end in the middle of a value.
    fn beginning(&self, bytes: &[u8], from: usize) -> usize {
        let from = from.max((bytes.len() + 1).saturating_sub(self.longest));
        (from..bytes.len()).find(|at| self.begins_with(&bytes[*at..])).unwrap_or(bytes.len())
    }

    /// Whether some value starts with `part` and is longer.
    fn begins_with(&self, part: &[u8]) -> bool {
        if !self.firsts[usize::from(part[0])] {
            return false;
        }
        let next = self.values.partition_point(|value| value.as_slice() <= part);
        self.values.get(next).is_some_and(|value| value.starts_with(part))
    }
}

/// Masks one stream, piece by piece.
///
/// Bytes that may be the start of a value are held back until more arrive or the stream ends: fewer than the
/// longest value has. Showing them earlier, when the command is answered, would leak a value that a process it left
/// is still printing.
#[derive(Default)]
pub struct Masker {
    finder: Option<Arc<Finder>>,
    held: Vec<u8>,
    masked: Vec<u8>,
    /// Whether the last piece needs no masking.
    unchanged: bool,
}

impl Masker {
    /// Takes in the next piece of the stream.
    pub fn take(&mut self, piece: &[u8]) {
        let Some(finder) = &self.finder else {
            self.unchanged = true;
            return;
        };
        let clean =
            || !finder.automaton.is_match(piece) && finder.beginning(piece, 0) == piece.len();
        self.unchanged = self.held.is_empty() && clean();
        if !self.unchanged {
            self.held.extend_from_slice(piece);
            self.replace(End::Unknown);
        }
    }

    /// Ends the stream: what was held back is not a value.
    pub fn finish(&mut self) {
        self.unchanged = false;
        self.replace(End::Here);
    }

    /// The masked output of the last call. `piece` is what that call was given.
    pub fn shown<'a>(&'a self, piece: &'a [u8]) -> &'a [u8] {
        if self.unchanged { piece } else { &self.masked }
    }

    fn replace(&mut self, end: End) {
        self.masked.clear();
        if let Some(finder) = &self.finder {
            let done = finder.replace(&self.held, end, &mut self.masked);
            self.held.drain(..done);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets::new(values.iter().enumerate().map(|(number, value)| (number.to_string(), value)))
    }

    /// What is shown after each piece, and at the end.
    fn masked(secrets: &Secrets, pieces: &[&[u8]]) -> Vec<String> {
        let mut masker = secrets.masker();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut shown: Vec<_> = pieces
            .iter()
            .map(|piece| {
                masker.take(piece);
                text(masker.shown(piece))
            })
            .collect();
        masker.finish();
        shown.push(text(masker.shown(&[])));
        shown
    }

    #[test]
    fn a_value_is_replaced_by_its_name() {
        let secrets = Secrets::new([("FOO_TOKEN", "hunter22"), ("BAR_KEY", " swordfish\n")]);
        let text = "a hunter22, two hunter22hunter22 and a swordfish";
        let expected = "a [FOO_TOKEN], two [FOO_TOKEN][FOO_TOKEN] and a [BAR_KEY]";
        assert_eq!(secrets.mask(text), expected);
        assert!(matches!(secrets.mask("hunter2"), Cow::Borrowed("hunter2")));
        assert_eq!(format!("{secrets:?}"), r#"["[FOO_TOKEN]", "[BAR_KEY]"]"#);
    }

    #[test]
    fn clones_get_values_that_are_set_later() {
        let secrets = Secrets::default();
        let clone = secrets.clone();
        secrets.replace(&Secrets::new([("FOO_TOKEN", "hunter22")]));
        assert_eq!(clone.mask("a hunter22"), "a [FOO_TOKEN]");
    }

    #[test]
    fn short_values_are_not_masked_and_the_first_name_of_a_value_counts() {
        let secrets = Secrets::new([("PIN_KEY", "12345"), ("B", "123456"), ("A", "123456")]);
        assert_eq!(secrets.mask("12345 123456"), "12345 [B]");
        assert_eq!(format!("{:?}", Secrets::new([("PIN_KEY", "12345")])), "[]");
    }

    #[test]
    fn the_longest_value_wins_even_if_it_arrives_in_pieces() {
        let secrets = secrets(&["abcdef", "abcdefghi", "zabcdefghij"]);
        assert_eq!(masked(&secrets, &[b"abcdef", b"gh", b"i"]), ["", "", "[1]", ""]);
        assert_eq!(masked(&secrets, &[b"abcdef", b"gh", b"!"]), ["", "", "[0]gh!", ""]);
        assert_eq!(masked(&secrets, &[b"abcdef", b"gh"]), ["", "", "[0]gh"]);
        assert_eq!(masked(&secrets, &[b"zabcdefghi", b"j"]), ["", "[2]", ""]);
        assert_eq!(masked(&secrets, &[b"zabcdefghi", b"k"]), ["", "z[1]k", ""]);
    }

    #[test]
    fn only_the_possible_start_of_a_value_is_held_back() {
        let secrets = secrets(&["hunter22"]);
        assert_eq!(masked(&secrets, &[b"Token: "]), ["Token: ", ""]);
        assert_eq!(masked(&secrets, &[b"bah", b"!"]), ["ba", "h!", ""]);
        assert_eq!(masked(&secrets, &[b"the hunter", b"2", b"2."]), ["the ", "", "[0].", ""]);
        assert_eq!(masked(&secrets, &[b"the hunter2"]), ["the ", "hunter2"]);
    }

    #[test]
    fn values_need_not_be_text() {
        let secrets = Secrets::new([("RAW", b"\xff\xfe\n\r\x00\x80x")]);
        let pieces: [&[u8]; 3] = [b"a\xff\xfe\n\r", b"\x00\x80x", b"b"];
        assert_eq!(masked(&secrets, &pieces), ["a", "[RAW]", "b", ""]);
    }

    proptest! {
        #[test]
        fn a_stream_in_pieces_is_masked_like_the_whole(
            // With two letters, values overlap and contain each other.
            values in btree_set("[ab]{6,12}", 1..5),
            parts in vec(prop_oneof![
                3 => "[abc\n]{0,9}".prop_map(Ok), 2 => any::<prop::sample::Index>().prop_map(Err),
            ], 0..12),
            cuts in vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            let text: String = parts
                .iter()
                .map(|part| match part {
                    Ok(text) => text,
                    Err(index) => *index.get(&values),
                })
                .collect();
            let secrets = secrets(&values);
            let whole = secrets.mask(&text);
            for value in &values {
                prop_assert!(!whole.contains(value), "{value} is left in {whole}");
            }
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let bytes = text.as_bytes();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let shown = masked(&secrets, &pieces);
            prop_assert_eq!(shown.concat(), whole.as_ref());
            // Only the possible start of a value is held back.
            let mut masker = secrets.masker();
            for piece in &pieces {
                masker.take(piece);
                let held = std::str::from_utf8(&masker.held).unwrap();
                let begins = |value: &&str| value.starts_with(held) && value.len() > held.len();
                prop_assert!(held.is_empty() || values.iter().any(begins), "{held} is held back");
            }
        }
    }
}
