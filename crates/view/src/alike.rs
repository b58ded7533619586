//! Whether two lines are alike: the same but for numbers, hashes, times and the last part of paths.
//!
//! That is an equivalence: each line has a form, and alike lines have the same. Forms are not computed, as most lines
//! differ from the one before early, or only in a few digits: the lines are compared eight bytes at a time, and only
//! words that differ in more than digits are taken apart. A digit in the place of a digit never changes a form.
//!
//! The form of a line that mentions trouble keeps its paths as they are: which file failed is worth a line.

use memchr::memrchr;

use crate::words::mentions_trouble_early;

/// Whether two lines have the same form. `is_trouble` tells whether the second one mentions trouble, if that matters.
pub fn alike(a: &[u8], b: &[u8], is_trouble: impl Fn() -> bool) -> bool {
    let (a, b) = (without_last_spaces(a), without_last_spaces(b));
    // How far they have the same form, at the end of a part.
    let (mut done_a, mut done_b) = (0, 0);
    loop {
        let (rest_a, rest_b) =
            (a.get(done_a..).unwrap_or_default(), b.get(done_b..).unwrap_or_default());
        let same = same_but_digits(rest_a, rest_b);
        if same == rest_a.len() && same == rest_b.len() {
            return true;
        }
        let same_names = || same_names(rest_a, rest_b, same, &is_trouble);
        if let Some((len_a, len_b)) = same_parts(rest_a, rest_b, same).or_else(same_names) {
            (done_a, done_b) = (done_a + len_a, done_b + len_b);
            continue;
        }
        let (at_a, at_b) = (done_a + same, done_b + same);
        let Some(end) = same_words(a, b, (at_a, at_b), &is_trouble) else {
            return false;
        };
        (done_a, done_b) = end;
        // Both end before what differs: it is not in a word.
        if done_a <= at_a && done_b <= at_b {
            return false;
        }
    }
}

fn without_last_spaces(line: &[u8]) -> &[u8] {
    let spaces = line.iter().rev().take_while(|byte| is(**byte, SPACE)).count();
    line.get(..line.len() - spaces).unwrap_or_default()
}

/// Where the parts of both texts end that a place is in, if they are the same: most often they are numbers of other
/// lengths, or hashes.
fn same_parts(a: &[u8], b: &[u8], at: usize) -> Option<(usize, usize)> {
    let begin = begin_of_part(a.get(..at)?);
    let (from_a, from_b) = (a.get(begin..)?, b.get(begin..)?);
    let before = from_a.get(..at - begin)?;
    let is_plain = !before.iter().any(|byte| is(*byte, CHANGING));
    if is_plain && differ_plainly(a.get(at), b.get(at)) {
        return None;
    }
    // Most often, both are.
    if let Some(len_a) = simple_number(from_a)
        && let Some(len_b) = simple_number(from_b)
        && len_a.min(len_b) >= before.len()
        && len_a.max(len_b) > before.len()
    {
        return Some((begin + len_a, begin + len_b));
    }
    let (mut rest_a, mut rest_b) = (from_a, from_b);
    loop {
        let ((part_a, after_a), (part_b, after_b)) = (Part::first(rest_a)?, Part::first(rest_b)?);
        if part_a != part_b {
            return None;
        }
        (rest_a, rest_b) = (after_a, after_b);
        let (len_a, len_b) = (a.len() - rest_a.len(), b.len() - rest_b.len());
        if len_a >= at && len_b >= at && len_a.max(len_b) > at {
            return Some((len_a, len_b));
        }
    }
}

/// Where a part begins for certain, not long before the end of a text. A point may be within a number, and a dash
/// within a UUID.
fn begin_of_part(text: &[u8]) -> usize {
    let mut begin = text.len();
    while let Some((before, [last])) = text.get(..begin).and_then(|text| text.split_last_chunk()) {
        let may_join = || before.last().is_some_and(u8::is_ascii_hexdigit);
        if !(is(*last, ALPHANUMERIC) || matches!(last, b'.' | b'-') && may_join()) {
            break;
        }
        begin -= 1;
    }
    begin
}

/// Where the words of both texts end that a place is in, if these are names of files in the same folder. As
/// [`same_words`] would find, but without taking the words apart.
fn same_names(
    a: &[u8],
    b: &[u8],
    at: usize,
    is_trouble: impl Fn() -> bool,
) -> Option<(usize, usize)> {
    let begin = a.get(..at)?.iter().rposition(|byte| is(*byte, BETWEEN | FOLDER))?;
    let end = |text: &[u8]| {
        let rest = text.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| is(*byte, BETWEEN | FOLDER)).unwrap_or(rest.len())
    };
    let (end_a, end_b) = (end(a), end(b));
    let are_names = a.get(begin) == Some(&b'/')
        && a.get(end_a) != Some(&b'/')
        && b.get(end_b) != Some(&b'/')
        && end_a.max(end_b) > at;
    (are_names && !mentions_trouble_early(a.get(begin..)?, end_a - begin) && !is_trouble())
        .then_some((end_a, end_b))
}

/// Where the words of both lines end that two places are in, if they are the same.
fn same_words(
    a: &[u8],
    b: &[u8],
    at: (usize, usize),
    is_trouble: impl Fn() -> bool,
) -> Option<(usize, usize)> {
    let (begin_a, is_plain) = begin_of_word(a.get(..at.0)?);
    if is_plain && differ_plainly(a.get(at.0), b.get(at.1)) {
        return None;
    }
    let (begin_b, _) = begin_of_word(b.get(..at.1)?);
    let (unit_a, unit_b) = (Unit::first(a.get(begin_a..)?), Unit::first(b.get(begin_b..)?));
    unit_a.is_alike(&unit_b, is_trouble).then_some((begin_a + unit_a.len, begin_b + unit_b.len))
}

/// Where the last word of a text begins, with the spaces before it, and whether it has only letters and signs.
fn begin_of_word(text: &[u8]) -> (usize, bool) {
    let mut begin = text.len();
    let mut is_plain = true;
    while let Some((before, [last])) = text.get(..begin).and_then(|text| text.split_last_chunk()) {
        if is(*last, BETWEEN) {
            let spaces = before.iter().rev().take_while(|byte| is(**byte, SPACE)).count();
            begin -= if is(*last, SPACE) { 1 + spaces } else { 0 };
            break;
        }
        is_plain &= !is(*last, CHANGING);
        begin -= 1;
    }
    (begin, is_plain)
}

/// For how many bytes two texts are the same, but for digits in the place of digits.
fn same_but_digits(a: &[u8], b: &[u8]) -> usize {
    let shorter = a.len().min(b.len());
    let (Some(a), Some(b)) = (a.get(..shorter), b.get(..shorter)) else { return 0 };
    let mut same = 0;
    for (a, b) in a.as_chunks().0.iter().zip(b.as_chunks().0) {
        match different(*a, *b) {
            None => same += STEP,
            Some(at) => return same + at,
        }
    }
    // The last bytes, with some that were compared before.
    if let (Some(last_a), Some(last_b)) = (a.last_chunk(), b.last_chunk()) {
        return different(*last_a, *last_b).map_or(shorter, |at| shorter - STEP + at);
    }
    let is_same = |a: u8, b: u8| a == b || a.is_ascii_digit() && b.is_ascii_digit();
    a.iter().zip(b).take_while(|(a, b)| is_same(**a, **b)).count()
}

/// How many bytes are compared at once.
const STEP: usize = 8;

/// The first byte that differs and is not a digit in both, found in all bytes at once: each has a mark in its
/// highest bit.
fn different(a: [u8; STEP], b: [u8; STEP]) -> Option<usize> {
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; STEP]);
    const OTHERS: u64 = !HIGHEST;
    // Added to the lower bits of a byte, these reach the highest from `0` on, and from what follows `9`.
    const TO_DIGITS: u64 = u64::from_ne_bytes([0x80 - b'0'; STEP]);
    const BEYOND_DIGITS: u64 = u64::from_ne_bytes([0x7f - b'9'; STEP]);
    let (a, b) = (u64::from_le_bytes(a), u64::from_le_bytes(b));
    let differing = a ^ b;
    if differing == 0 {
        return None;
    }
    let digits = |bytes: u64| {
        let low = bytes & OTHERS;
        (low + TO_DIGITS) & !(low + BEYOND_DIGITS) & !bytes
    };
    let differing = ((differing & OTHERS) + OTHERS) | differing;
    let marks = differing & !(digits(a) & digits(b)) & HIGHEST;
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Whether two bytes cannot be in words of the same form, after the same letters.
fn differ_plainly(a: Option<&u8>, b: Option<&u8>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    let both = KINDS[usize::from(*a)] | KINDS[usize::from(*b)];
    both & OTHER_LETTER != 0 && both & SPACE == 0
}

const SPACE: u8 = 1;
/// Between words, and not part of a path.
const BETWEEN: u8 = 2;
/// Between the names in a path.
const FOLDER: u8 = 4;
/// After this, a word may have the same form though it has other letters.
const CHANGING: u8 = 8;
const DIGIT: u8 = 16;
const HEX_LETTER: u8 = 32;
const OTHER_LETTER: u8 = 64;
const ALPHANUMERIC: u8 = DIGIT | HEX_LETTER | OTHER_LETTER;

const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b' ' | b'\t' => SPACE | BETWEEN,
            b'"' | b'\'' | b'`' | b'(' | b')' | b'[' | b']' | b'{' | b'}' => BETWEEN,
            b'<' | b'>' | b',' | b';' | b'|' => BETWEEN,
            b'0'..=b'9' => CHANGING | DIGIT,
            b'a'..=b'f' | b'A'..=b'F' => HEX_LETTER,
            b'g'..=b'z' | b'G'..=b'Z' => OTHER_LETTER,
            b'/' => CHANGING | FOLDER,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

fn is(byte: u8, kind: u8) -> bool {
    KINDS[usize::from(byte)] & kind != 0
}

/// A word and the spaces before it; either may be missing.
struct Unit<'a> {
    has_space: bool,
    word: &'a [u8],
    len: usize,
    /// The text from the word on.
    from_word: &'a [u8],
}

impl<'a> Unit<'a> {
    fn first(text: &'a [u8]) -> Self {
        let spaces = text.iter().take_while(|byte| is(**byte, SPACE)).count();
        let rest = text.get(spaces..).unwrap_or_default();
        let end = rest.iter().position(|byte| is(*byte, BETWEEN)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        // Spaces before a number align it.
        let is_number = || matches!(Part::first(rest), Some((Part::Number | Part::Duration, _)));
        let has_space = spaces > 0 && !is_number();
        Self { has_space, word, len: spaces + end, from_word: rest }
    }

    fn is_alike(&self, other: &Self, is_trouble: impl Fn() -> bool) -> bool {
        if self.has_space != other.has_space {
            return false;
        }
        if have_same_form(self.word, other.word) {
            return true;
        }
        let (Some(ours), Some(theirs)) = (memrchr(b'/', self.word), memrchr(b'/', other.word))
        else {
            return false;
        };
        let (folder, other_folder) = (self.word.get(..ours), other.word.get(..theirs));
        // The rest of both lines is the same, so that one of them can be asked for both.
        have_same_form(folder.unwrap_or_default(), other_folder.unwrap_or_default())
            && !self.mentions_trouble_after(ours)
            && !is_trouble()
    }

    /// Whether words of trouble begin after a place in the word. They may go on after it, as in `/usr/bin/not found`.
    fn mentions_trouble_after(&self, at: usize) -> bool {
        let name = self.from_word.get(at..).unwrap_or_default();
        mentions_trouble_early(name, self.word.len() - at)
    }
}

fn have_same_form(a: &[u8], b: &[u8]) -> bool {
    // Most words, and most folders in paths, are the same or begin alike.
    let same = same_but_digits(a, b);
    if same == a.len() && same == b.len() {
        return true;
    }
    let begin = begin_of_part(a.get(..same).unwrap_or_default());
    let (mut a, mut b) = (a.get(begin..).unwrap_or_default(), b.get(begin..).unwrap_or_default());
    while let (Some((part_a, rest_a)), Some((part_b, rest_b))) = (Part::first(a), Part::first(b)) {
        if part_a != part_b {
            return false;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.is_empty() && b.is_empty()
}

/// A part of a word's form.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Number,
    Duration,
    Literal(&'a [u8]),
}

/// Shorter ones may as well be names, such as `b2`.
const SHORTEST_HEX: usize = 4;

/// What is this long, without a digit, is not a word of any language.
const SHORTEST_HEX_OF_LETTERS: usize = 8;

impl<'a> Part<'a> {
    /// The first part of a word, and the rest.
    #[inline]
    fn first(word: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (len, kinds) = alphanumeric(word);
        let (part, len) = if len == 0 {
            (Part::Literal(word.get(..1)?), 1)
        } else if let Some(len) = hex(word, len, kinds) {
            (Part::Number, len)
        } else if !word.first()?.is_ascii_digit() {
            let letters = count(word, u8::is_ascii_alphabetic);
            (Part::Literal(word.get(..letters)?), letters)
        } else {
            let number = number(word);
            match word.get(number).is_some_and(u8::is_ascii_alphabetic).then(|| duration(word)) {
                Some(Some(len)) => (Part::Duration, len),
                _ => (Part::Number, number),
            }
        };
        Some((part, word.get(len..)?))
    }
}

/// The length of a number that a text begins with, if it is one that is told by its letters and digits alone.
fn simple_number(text: &[u8]) -> Option<usize> {
    let (len, kinds) = alphanumeric(text);
    let is_simple = match kinds {
        DIGIT => text.get(len) != Some(&b'.'),
        _ if kinds & OTHER_LETTER != 0 => false,
        _ => len >= shortest_hex(kinds),
    };
    let may_be_uuid = len == 8 && text.get(len) == Some(&b'-');
    (is_simple && !may_be_uuid).then_some(len)
}

fn shortest_hex(kinds: u8) -> usize {
    if kinds & DIGIT != 0 { SHORTEST_HEX } else { SHORTEST_HEX_OF_LETTERS }
}

/// How many letters and digits a text begins with, and of what kinds they are.
fn alphanumeric(text: &[u8]) -> (usize, u8) {
    let mut kinds = 0;
    for (at, byte) in text.iter().enumerate() {
        let kind = KINDS[usize::from(*byte)] & ALPHANUMERIC;
        if kind == 0 {
            return (at, kinds);
        }
        kinds |= kind;
    }
    (text.len(), kinds)
}

fn count(text: &[u8], is_wanted: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_wanted(byte)).count()
}

/// The length of a number with its fraction, or a version or an address.
fn number(text: &[u8]) -> usize {
    let mut len = count(text, u8::is_ascii_digit);
    while let Some((b'.', rest)) = text.get(len..).and_then(|rest| rest.split_first()) {
        match count(rest, u8::is_ascii_digit) {
            0 => break,
            digits => len += 1 + digits,
        }
    }
    len
}

/// The length of a duration such as `1m2.5s`.
fn duration(text: &[u8]) -> Option<usize> {
    let mut len = 0;
    loop {
        len += number(text.get(len..)?);
        let unit = text.get(len..)?;
        let letters = count(unit, u8::is_ascii_alphabetic);
        if !matches!(
            unit.get(..letters)?,
            b"ns" | b"us" | b"ms" | b"s" | b"m" | b"h" | b"sec" | b"min"
        ) {
            return None;
        }
        len += letters;
        if !text.get(len).is_some_and(u8::is_ascii_digit) {
            return Some(len);
        }
    }
}

/// The length of a hexadecimal number, a hash or a UUID, of a text that begins with some letters and digits.
fn hex(text: &[u8], len: usize, kinds: u8) -> Option<usize> {
    // Any digit, as one in the place of another must not matter.
    if let [b'0'..=b'9', b'x', digits @ ..] = text {
        return (whole_hex(digits) > 0).then_some(len);
    }
    if kinds & OTHER_LETTER != 0 {
        return None;
    }
    if len == 8
        && let Some(uuid) = uuid(text)
    {
        return Some(uuid);
    }
    (kinds & HEX_LETTER != 0 && len >= shortest_hex(kinds)).then_some(len)
}

/// How many letters and digits a text begins with, if all are hexadecimal.
fn whole_hex(text: &[u8]) -> usize {
    let (len, kinds) = alphanumeric(text);
    if kinds & OTHER_LETTER == 0 { len } else { 0 }
}

fn uuid(text: &[u8]) -> Option<usize> {
    let mut len = 8;
    for group in [4, 4, 4, 12] {
        let digits = text.get(len..)?.strip_prefix(b"-")?;
        if whole_hex(digits) != group {
            return None;
        }
        len += 1 + group;
    }
    Some(len)
}

#[cfg(test)]
mod tests;
