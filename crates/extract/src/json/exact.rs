//! What a parsed value does not have of its text: digits of large integers, and values whose key came again.
//!
//! Integers are kept up to 64 bits, and everything else as binary fractions, as most programs do. An integer that would
//! change, such as an id, is told as a text. Of entries with the same key, the last one counts.

use std::borrow::Cow;
use std::collections::HashSet;

/// How many keys are named that occur more than once.
const NAMED: usize = 5;

/// A text that is valid JSON, looked through.
#[derive(Debug, Default)]
pub struct Exact {
    /// The same with quotes around integers that would change, if there are any.
    pub quoted: Option<String>,
    integers: usize,
    fractions: usize,
    /// Keys that occur more than once in an object.
    repeated: Vec<String>,
    more_repeated: bool,
}

/// What is open: the keys of an object, or an array.
enum Open<'a> {
    Object { keys: HashSet<Cow<'a, str>>, at_key: bool },
    Array,
}

impl Exact {
    pub fn of(text: &str) -> Self {
        let mut exact = Self::default();
        let (mut open, mut at, mut copied) = (Vec::new(), 0, 0);
        let mut quoted = String::new();
        while let Some(byte) = text.as_bytes().get(at) {
            let end = match byte {
                b'"' => end_of_string(text, at),
                b'-' | b'0'..=b'9' => end_of_number(text, at),
                _ => at + 1,
            };
            let token = text.get(at..end).unwrap_or_default();
            match (byte, open.last_mut()) {
                (b'{', _) => open.push(Open::Object { keys: HashSet::new(), at_key: true }),
                (b'[', _) => open.push(Open::Array),
                (b'}' | b']', _) => drop(open.pop()),
                (b',', Some(Open::Object { at_key, .. })) => *at_key = true,
                (b'"', Some(Open::Object { keys, at_key })) if *at_key => {
                    *at_key = false;
                    let key = unescaped(token);
                    if !keys.insert(key.clone()) {
                        exact.repeat(&key);
                    }
                }
                (b'-' | b'0'..=b'9', _) if would_change(token) => {
                    if token.contains(['.', 'e', 'E']) {
                        exact.fractions += 1;
                    } else {
                        exact.integers += 1;
                        quoted.extend([&text[copied..at], "\"", token, "\""]);
                        copied = end;
                    }
                }
                _ => {}
            }
            at = end;
        }
        exact.quoted = (copied > 0).then(|| quoted + &text[copied..]);
        exact
    }

    fn repeat(&mut self, key: &str) {
        let key = crate::room::cut(key, 80);
        if self.repeated.contains(&key) {
            return;
        }
        match self.repeated.len() < NAMED {
            true => self.repeated.push(key),
            false => self.more_repeated = true,
        }
    }

    /// What has to be said about the value.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.repeated.is_empty() {
            let keys: Vec<_> = self.repeated.iter().map(|key| format!("`{key}`")).collect();
            let more = if self.more_repeated { " and others" } else { "" };
            let keys = keys.join(", ") + more;
            notes.push(format!("repeated keys: {keys} (the last value counts)"));
        }
        match self.integers {
            0 => {}
            1 => notes.push("1 integer is a string, to keep its digits".to_owned()),
            many => notes.push(format!("{many} integers are strings, to keep their digits")),
        }
        match self.fractions {
            0 => {}
            1 => notes.push("1 number was rounded".to_owned()),
            many => notes.push(format!("{many} numbers were rounded")),
        }
        notes
    }
}

fn end_of_string(text: &str, at: usize) -> usize {
    let mut escaped = false;
    let end = text.as_bytes()[at + 1..].iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| at + 1 + end + 1)
}

fn end_of_number(text: &str, at: usize) -> usize {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.as_bytes()[at..].iter().position(|byte| !is_part(*byte)).map_or(text.len(), |end| at + end)
}

/// The text of a key, of which a string with its quotes is given.
fn unescaped(string: &str) -> Cow<'_, str> {
    if string.contains('\\')
        && let Ok(text) = serde_json::from_str(string)
    {
        return Cow::Owned(text);
    }
    Cow::Borrowed(string.trim_matches('"'))
}

/// Whether a number is another one when it was parsed.
fn would_change(token: &str) -> bool {
    // So many digits are always kept.
    if token.len() <= 15 {
        return false;
    }
    let parsed = serde_json::from_str::<serde_json::Number>(token);
    parsed.is_ok_and(|parsed| digits(&parsed.to_string()) != digits(token))
}

/// The digits of a number without zeros at either end, and where its point is.
fn digits(number: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = whole.trim_start_matches('-').to_owned() + fraction;
    let digits = all.trim_start_matches('0');
    if digits.is_empty() {
        return Some((String::new(), 0));
    }
    let shift = digits.len() as i64 - fraction.len() as i64;
    let point = exponent.parse::<i64>().ok()?.checked_add(shift)?;
    Some((digits.trim_end_matches('0').to_owned(), point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_would_change_are_quoted() {
        let same = "[12345678901234567890, -9223372036854775808, 1.10, 0.30000000000000004, \
                    100000000000000000000, \"98765432109876543210987\", 1.000000000000000000000]";
        let exact = Exact::of(same);
        assert_eq!((exact.quoted.as_deref(), exact.notes()), (None, vec![]));
        let exact = Exact::of("{\"id\": 123456789012345678901, \"ü\": [-99999999999999999999, 1]}");
        let quoted = "{\"id\": \"123456789012345678901\", \"ü\": [\"-99999999999999999999\", 1]}";
        assert_eq!(exact.quoted.as_deref(), Some(quoted));
        assert_eq!(exact.notes(), ["2 integers are strings, to keep their digits"]);
        let exact = Exact::of("3.14159265358979323846");
        assert_eq!(exact.quoted, None);
        assert_eq!(exact.notes(), ["1 number was rounded"]);
        assert_eq!(Exact::of("[0.0000000000000000, 0e99999999999999999999]").notes(), [""; 0]);
        assert_eq!(Exact::of("0.001e-9223372036854775808").notes(), ["1 number was rounded"]);
    }

    #[test]
    fn keys_that_come_again_in_the_same_object_are_named() {
        let text = r#"{"a": {"a": 1, "b": "a", "b": 2}, "c": [{"a": 1}, {"a": 2}], "\u0061": 3}"#;
        let said = "repeated keys: `b`, `a` (the last value counts)";
        assert_eq!(Exact::of(text).notes(), [said]);
        assert_eq!(Exact::of(r#"{"a\"": 1, "a": "\\", "b": 1} {"a": 2}"#).notes(), [""; 0]);
    }
}
