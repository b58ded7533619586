//! A pattern for a command: its name, in letters and `*` for any number of any but a slash, and
//! words that have to follow.

use crate::words::base_name;

/// Matches without regard to case, as some file systems do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    name: String,
    rest: Vec<String>,
}

impl Pattern {
    /// Reads a comma-separated list; empty entries are passed over.
    pub fn list(text: &str) -> Vec<Self> {
        text.split(',').filter_map(Self::new).collect()
    }

    /// Reads one pattern; `None` if there is nothing in it.
    pub fn new(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().map(str::to_owned);
        Some(Self { name: words.next()?, rest: words.collect() })
    }

    /// Whether the command, path and all, begins as the pattern does.
    pub fn matches(&self, words: &[String]) -> bool {
        let Some((name, arguments)) = words.split_first() else { return false };
        name_matches(&self.name, name) && arguments.starts_with(&self.rest)
    }

    /// Whether the command could be one the pattern stands for: wherever the program is, and
    /// wherever the words are among its arguments.
    pub fn covers(&self, words: &[String]) -> bool {
        let Some((name, arguments)) = words.split_first() else { return false };
        let named =
            name_matches(&self.name, name) || name_matches(base_name(&self.name), base_name(name));
        named && self.rest.iter().all(|word| is_among(word, arguments))
    }

    /// Whether there is more to it than stars.
    pub fn names_something(&self) -> bool {
        self.name.chars().any(|c| c != '*')
    }
}

/// Short options are letters that can stand together or apart, in any order.
fn is_among(word: &str, arguments: &[String]) -> bool {
    let letters = |word: &str| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.map(str::to_owned)
    };
    match letters(word) {
        Some(wanted) => {
            let given: String = arguments.iter().filter_map(|argument| letters(argument)).collect();
            wanted.chars().all(|letter| given.contains(letter))
        }
        None => arguments.iter().any(|argument| argument == word),
    }
}

fn name_matches(pattern: &str, word: &str) -> bool {
    let (pattern, word) = (pattern.to_lowercase(), word.to_lowercase());
    let (pattern, word): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), word.split('/').collect());
    pattern.len() == word.len()
        && pattern.iter().zip(word).all(|(pattern, part)| part_matches(pattern, part))
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
        f.write_str(&self.name)?;
        self.rest.iter().try_for_each(|word| write!(f, " {word}"))
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
            assert_eq!(name_matches(pattern, word), expected, "{pattern} {word}");
        }
    }

    #[test]
    fn a_list_is_separated_by_commas_and_may_have_spaces() {
        let shown: Vec<_> = Pattern::list(" a, b* -x,,").iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a", "b* -x"]);
    }
}
