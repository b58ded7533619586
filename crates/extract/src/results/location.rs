//! Where in the source a message points to.

/// The first place in `text` that is of the project itself, as a file and a line.
pub(super) fn location(text: &str) -> Option<(String, u64)> {
    text.lines().filter(|line| !is_foreign(line)).find_map(of_line)
}

/// Frames of libraries and of the runner itself.
fn is_foreign(line: &str) -> bool {
    const FOREIGN: &[&str] = &[
        "node_modules/",
        "node:",
        "site-packages/",
        "/rustc/",
        "lib/python",
        "<frozen",
        "/usr/lib/go",
        "/libexec/",
    ];
    FOREIGN.iter().any(|part| line.contains(part))
}

fn of_line(line: &str) -> Option<(String, u64)> {
    // Python: File "a.py", line 3, in f
    if let Some((_, rest)) = line.split_once("File \"") {
        let (file, rest) = rest.split_once("\", line ")?;
        return Some((file.to_owned(), super::number(rest)?.0));
    }
    // Perl: at a.t line 3.
    if let Some((before, rest)) = line.split_once(" line ")
        && let Some((_, file)) = before.rsplit_once("at ")
        && let Some((number, ".")) = super::number(rest.trim_end())
    {
        return Some((file.to_owned(), number));
    }
    line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '\'' | '"' | '`' | ','))
        .find_map(of_word)
}

/// `src/lib.rs:20:9:` or `file:///a.js:3`.
fn of_word(word: &str) -> Option<(String, u64)> {
    let word = word.strip_prefix("file://").unwrap_or(word);
    let (file, rest) = word.match_indices(':').find_map(|(at, _)| {
        let rest = &word[at + 1..];
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some((&word[..at], rest))
    })?;
    let (line, rest) = super::number(rest)?;
    // A time of day, a version or a port on a host is not a place: a file has an extension.
    let name = file.rsplit('/').next()?;
    let extension = name.rsplit_once('.')?.1;
    let fits = !extension.is_empty()
        && extension.len() <= 5
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && (rest.is_empty() || rest.starts_with(':'))
        && line > 0;
    fits.then(|| (file.to_owned(), line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_and_others_code_is_not() {
        let found = |text| location(text).map(|(file, line)| format!("{file} {line}"));
        assert_eq!(found("thread 'x' panicked at src/lib.rs:20:9:").unwrap(), "src/lib.rs 20");
        assert_eq!(found("  File \"/tmp/a.py\", line 3, in f").unwrap(), "/tmp/a.py 3");
        assert_eq!(
            found("at f (node:internal/x.js:3:1)\n at g (/p/a.test.js:6:12)").unwrap(),
            "/p/a.test.js 6"
        );
        assert_eq!(found("    a_test.go:7: got 2").unwrap(), "a_test.go 7");
        assert_eq!(found("#   at test.t line 3.").unwrap(), "test.t 3");
        assert_eq!(found("at 12:30:00 on 127.0.0.1:80 v1.2.3:4"), None);
    }
}
