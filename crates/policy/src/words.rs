//! A list of words that is written down in the source.

/// Words with blanks between them: tables of names stay readable that way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Words(pub &'static str);

impl Words {
    pub fn has(self, word: &str) -> bool {
        let first = word.as_bytes().first();
        // Most words differ in the first letter, which is cheaper to see than to call for.
        self.iter().any(|known| known.as_bytes().first() == first && known == word)
    }

    pub fn iter(self) -> std::str::SplitAsciiWhitespace<'static> {
        self.0.split_ascii_whitespace()
    }

    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }
}
