//! Output as text, cut so that no line or character breaks.

use crate::render::{Renderer, Rendering};

/// Renders output as plain text, in the default rendering.
pub fn plain(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
    {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    let mut renderer = Renderer::new(Rendering::default());
    renderer.feed(bytes, &mut text);
    renderer.finish(&mut text);
    text
}

/// Like [`plain`], but truncated if the text is much longer than the output was.
pub fn plain_within(bytes: &[u8], limit: usize) -> String {
    let mut text = plain(bytes);
    let most = 2 * limit.max(bytes.len());
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
    text
}

/// How far from a cut to look for a line end. Beyond that, part of a long line is better than nothing.
pub const NEAR: usize = 1024;

/// Drops the partial line or character at the start of a piece that was cut there.
pub fn after_cut(bytes: &[u8]) -> &[u8] {
    if let Some(line) = bytes.iter().take(NEAR).position(|byte| *byte == b'\n')
        && line + 1 < bytes.len()
    {
        return &bytes[line + 1..];
    }
    &bytes[partial_character(bytes)..]
}

/// The piece without an incomplete character at its end.
pub fn whole_characters(bytes: &[u8]) -> &[u8] {
    // A character has at most three continuation bytes.
    let tail = bytes.len().saturating_sub(3)..bytes.len();
    match tail.rev().find(|at| !is_continuation(bytes[*at])) {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err() => &bytes[..at],
        _ => bytes,
    }
}

/// How many bytes at the start belong to a character that began earlier.
pub fn partial_character(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_leaves_whole_lines_or_whole_characters() {
        assert_eq!(after_cut(b"ne\ntwo\nthree"), b"two\nthree");
        let text = "日本".as_bytes();
        assert_eq!(whole_characters(&text[..4]), "日".as_bytes());
        assert_eq!(after_cut(&text[1..]), "本".as_bytes());
    }

    proptest! {
        #[test]
        fn plain_text_stays_unchanged(text in "[a-zäß日\n\t ]{0,200}") {
            prop_assert_eq!(plain(text.as_bytes()), text);
        }
    }
}
