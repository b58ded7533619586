//! JSON, line by line: a line is coloured if there is nothing but JSON on it.

use super::Span;

const KEY: &str = "34";
const STRING: &str = "32";
const VALUE: &str = "36";

/// The parts of a line to colour, if all of it is JSON, and more than a word.
pub fn spans(line: &str) -> Option<Vec<Span>> {
    let bytes = line.as_bytes();
    let (mut spans, mut at, mut signs) = (Vec::new(), 0, false);
    while let Some(byte) = bytes.get(at) {
        let length = match byte {
            b' ' | b'\t' => 1,
            b'{' | b'}' | b'[' | b']' | b',' | b':' => {
                signs = true;
                1
            }
            b'"' => {
                let length = string(&bytes[at..])?;
                let is_key = bytes[at + length..].trim_ascii_start().starts_with(b":");
                spans.push((at..at + length, if is_key { KEY } else { STRING }));
                length
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let length = value(&line[at..])?;
                spans.push((at..at + length, VALUE));
                length
            }
            _ => return None,
        };
        at += length;
    }
    (signs && !spans.is_empty()).then_some(spans)
}

/// The length of the string at the start.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let end = bytes.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map(|end| end + 2)
}

/// The length of the number or the literal at the start.
fn value(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let is_number = |word: &str| word.parse::<f64>().is_ok_and(f64::is_finite);
    let word = &text[..end];
    (["true", "false", "null"].contains(&word) || is_number(word)).then_some(end)
}
