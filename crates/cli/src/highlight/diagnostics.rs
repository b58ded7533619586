//! What compilers and other programs complain about: the word that says so, and the place.

use super::{Span, words};

const ERROR: &str = "1;31";
const WARNING: &str = "1;33";
const PLACE: &str = "36";

pub fn spans(line: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = words(line)
        .filter_map(|word| {
            let length = place(&line[word.clone()])?;
            Some((word.start..word.start + length, PLACE))
        })
        .collect();
    if let Some(word) = mcpz_view::trouble(line.as_bytes()) {
        let is_warning = line.get(word.clone()).is_some_and(|word| {
            let start = word.get(..4).unwrap_or_default();
            start.eq_ignore_ascii_case("warn") || word.ends_with("Warning")
        });
        spans.push((word, if is_warning { WARNING } else { ERROR }));
    }
    spans
}

/// The length of `file:line:column` or `file:line` at the start of a word.
fn place(word: &str) -> Option<usize> {
    let (file, rest) = word.split_once(':')?;
    let is_address = file.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_file = file.contains(['.', '/']) && !is_address && !rest.starts_with('/');
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let line = digits(rest);
    if !is_file || line == 0 {
        return None;
    }
    let column = rest[line..].strip_prefix(':').map_or(0, digits);
    let rest = &rest[line + if column > 0 { column + 1 } else { 0 }..];
    // `example.org:443` does not name a place in a file.
    let ends = rest.is_empty() && (column > 0 || file.contains('/')) || rest.starts_with(':');
    ends.then_some(word.len() - rest.len())
}
