//! Text that cannot mislead a person who sees it on a terminal.
//!
//! Control characters move the cursor, direction marks reorder words, and some characters have no width. A command
//! must not hide behind them in the trail.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Writes JSON with escapes for all characters that are not visible as they are.
pub struct Escaping;

impl Formatter for Escaping {
    /// Called for the parts of a string that JSON itself does not escape.
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut written = 0;
        for (at, hidden) in fragment.char_indices().filter(|(_, found)| is_hidden(*found)) {
            writer.write_all(&fragment.as_bytes()[written..at])?;
            for unit in hidden.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            written = at + hidden.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }
}

/// Formats a text as one line in which every character is visible.
pub fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for found in text.chars() {
        match found {
            '\n' | '\t' | '\r' => seen.extend(found.escape_default()),
            hidden if is_hidden(hidden) => seen.extend(hidden.escape_unicode()),
            plain => seen.push(plain),
        }
    }
    seen
}

/// Whether a character is a control character, changes the direction of others, or has no width.
fn is_hidden(found: char) -> bool {
    // Fast path for most text.
    if matches!(found, ' '..='~') {
        return false;
    }
    matches!(
        found,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;

    use super::*;

    fn json(text: &str) -> String {
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Escaping);
        text.serialize(&mut serializer).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn hidden_characters_are_escaped() {
        for (text, expected) in [
            ("a\x1b[2Jb", r#""a\u001b[2Jb""#),
            ("a\nb\t\"\\", r#""a\nb\t\"\\""#),
            ("\x7f\u{85}\u{9b}", r#""\u007f\u0085\u009b""#),
            ("\u{202e}fdp.exe\u{2066}\u{61c}\u{200f}", r#""\u202efdp.exe\u2066\u061c\u200f""#),
            ("r\u{200b}m\u{2060}\u{feff}\u{2028}", r#""r\u200bm\u2060\ufeff\u2028""#),
            ("\u{e0041}", r#""\udb40\udc41""#),
            ("grün 🦀", r#""grün 🦀""#),
        ] {
            assert_eq!(json(text), expected);
        }
        assert_eq!(visible("a\n\x1b\u{202e}b"), "a\\n\\u{1b}\\u{202e}b");
    }

    proptest! {
        #[test]
        fn escaped_json_reads_back_unchanged(text in any::<String>()) {
            let json = json(&text);
            prop_assert!(!json.chars().any(is_hidden), "{json}");
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
