//! A pattern for a command's name: letters as they are, `*` for any number of any but a slash.

use crate::words::base_name;

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

    /// Whether the word, path and all, is one the pattern stands for.
    pub fn matches(&self, word: &str) -> bool {
        let (pattern, word) = (self.0.to_lowercase(), word.to_lowercase());
        let (pattern, word): (Vec<_>, Vec<_>) =
            (pattern.split('/').collect(), word.split('/').collect());
        pattern.len() == word.len()
            && pattern.iter().zip(word).all(|(pattern, part)| part_matches(pattern, part))
    }

    /// Whether the word names a program the pattern stands for, wherever it is.
    pub fn covers(&self, word: &str) -> bool {
        self.matches(word) || Self(base_name(&self.0).to_owned()).matches(base_name(word))
    }

    /// Whether there is more to it than stars.
    pub fn names_something(&self) -> bool {
        self.0.chars().any(|c| c != '*')
    }
}

fn part_matches(pattern: &str, part: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == part;
    };
    let Some(mut part) = part.strip_prefix(start) else {
        return false;
    };
    let mut middle: Vec<_> = rest.split('*').collect();
    let end = middle.pop().unwrap_or_default();
    for piece in middle {
        match part.find(piece) {
            Some(at) => part = &part[at + piece.len()..],
            None => return false,
        }
    }
    part.ends_with(end)
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
            ("ls*", "ls/../rm", false),
            ("/usr/bin/*", "/usr/bin/ls", true),
            ("/usr/bin/*", "/usr/bin/x/ls", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(word), expected, "{pattern} {word}");
        }
    }

    #[test]
    fn a_list_is_separated_by_commas_and_may_have_spaces() {
        assert_eq!(Pattern::list(" a, b*,,"), [Pattern::new("a"), Pattern::new("b*")]);
    }
}
