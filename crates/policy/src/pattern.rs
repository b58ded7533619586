//! A pattern for a command's name: letters as they are, `*` for any number of any.

/// Matches without regard to case, as some file systems do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Reads a comma-separated list; empty entries are passed over.
    pub fn list(text: &str) -> Vec<Self> {
        text.split(',').map(Self::new).filter(|pattern| !pattern.0.is_empty()).collect()
    }

    pub fn matches(&self, word: &str) -> bool {
        let (pattern, word) = (self.0.to_lowercase(), word.to_lowercase());
        let Some((start, rest)) = pattern.split_once('*') else {
            return pattern == word;
        };
        let Some(mut word) = word.strip_prefix(start) else {
            return false;
        };
        let mut parts: Vec<_> = rest.split('*').collect();
        let end = parts.pop().unwrap_or_default();
        for part in parts {
            match word.find(part) {
                Some(at) => word = &word[at + part.len()..],
                None => return false,
            }
        }
        word.ends_with(end)
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_number_of_letters() {
        for (pattern, word, expected) in [
            ("ls*", "ls", true),
            ("ls*", "lsblk", true),
            ("ls*", "als", false),
            ("*fs", "mkfs", true),
            ("mk*.ext*", "mkfs.ext4", true),
            ("mk*.ext*", "mkfs.xfs", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("rm", "RM", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(word), expected, "{pattern} {word}");
        }
    }

    #[test]
    fn a_list_is_separated_by_commas_and_may_have_spaces() {
        assert_eq!(Pattern::list(" a, b*,,"), [Pattern::new("a"), Pattern::new("b*")]);
    }
}
