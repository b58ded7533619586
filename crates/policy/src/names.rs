//! Sets of names written down in the source: programs, options, variables.

/// Names separated by blanks, which keeps long tables readable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Names(pub &'static str);

impl Names {
    pub fn has(self, word: &str) -> bool {
        let (table, word) = (self.0.as_bytes(), word.as_bytes());
        let Some(first) = word.first() else { return false };
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        memchr::memchr_iter(*first, table).any(|at| {
            table[at..].starts_with(word)
                && table[..at].last().is_none_or(is_blank)
                && table.get(at + word.len()).is_none_or(is_blank)
                && !word.iter().any(is_blank)
        })
    }

    pub fn iter(self) -> std::str::SplitAsciiWhitespace<'static> {
        self.0.split_ascii_whitespace()
    }

    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_there_only_as_a_whole() {
        let words = Names("cat dog \n  wildcat x");
        assert!(words.iter().all(|word| words.has(word)));
        for other in ["", "ca", "at", "card", "cat dog", "x ", " x", "dog \n", "X"] {
            assert!(!words.has(other), "{other:?}");
        }
    }
}
