//! The patterns of rules and settings.

/// Whether a text matches a pattern in which `*` stands for any number of characters.
pub fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut middle: Vec<_> = rest.split('*').collect();
    let end = middle.pop().unwrap_or_default();
    for piece in middle {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}

/// The same for paths. A `*` stands for one part of a path, or for characters in it.
pub fn glob_path(pattern: &str, path: &str) -> bool {
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(|(pattern, part)| glob(pattern, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_path_stands_for_no_folder() {
        assert!(glob_path("/usr/lib*/git-core/*", "/usr/lib/git-core/git"));
        assert!(glob_path("/usr/lib*/git-core/*", "/usr/lib64/git-core/git"));
        assert!(!glob_path("/usr/lib*/git-core/*", "/usr/lib/x/git-core/git"));
        assert!(!glob_path("/usr/lib*/git-core/*", "/usr/lib/git-core/x/git"));
        assert!(glob_path("l*", "less") && !glob_path("l*", "l/s"));
    }
}
