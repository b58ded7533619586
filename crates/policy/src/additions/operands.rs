//! What an operand is, as far as its text tells.

use crate::names::Names;
use crate::script::Word;
use crate::variables::is_inert;

/// The endings of files with code.
const CODE: Names = Names("js jsx ts tsx mjs cjs py rb go rs java kt cs php ex exs");

/// Whether an operand is a file with tests, or a folder of them.
pub fn is_test(word: &Word) -> bool {
    word.text().is_some_and(|text| is_test_file(&text))
}

pub fn is_test_file(text: &str) -> bool {
    const WORDS: Names = Names("test tests spec specs Test Tests Spec");
    // `tests/test_a.py::TestA::test_one`
    let path = text.split("::").next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || "_-./*".contains(c);
    let is_plain_name = |c: char| is_plain(c) || ":[]".contains(c);
    let file = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_code = file.rsplit_once('.').is_none_or(|(_, end)| CODE.has(end));
    let folder = path.strip_suffix(file).unwrap_or(path);
    let is_folder = |part: &str| WORDS.has(part) || part == "__tests__";
    let in_folder = folder.split('/').any(is_folder) || is_folder(file);
    let is_named = file.contains('.') && file.split(['.', '_', '-']).any(|part| WORDS.has(part));
    path.chars().all(is_plain)
        && text.chars().all(is_plain_name)
        && is_code
        && (in_folder || is_named)
}

/// Whether a path ends like that of a file with code.
pub fn has_ending(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && CODE.has(end))
}

/// Whether it names a test module, class or method in Python, and nothing that these import.
pub fn is_test_name(text: &str) -> bool {
    let is_test = |part: &str| {
        part == "tests"
            || part.starts_with("test_")
            || part.starts_with("Test")
            || ["Test", "Tests", "TestCase"].iter().any(|end| part.ends_with(end))
    };
    let path = text.trim_end_matches('/').trim_end_matches(".py").replace('/', ".");
    let is_pattern = |c: char| c.is_alphanumeric() || "_.*".contains(c);
    let (first, last) = (path.split('.').next(), path.rsplit('.').next());
    // `tests.unit.test_a`, `test_a.Case.test_b`: no other function has such a name.
    let is_below_tests =
        first.is_some_and(is_test) && last.is_some_and(|it| it.starts_with("test_"));
    path.chars().all(is_pattern)
        && !path.contains("..")
        && (is_below_tests || path.split('.').all(is_test))
}

/// Whether it is one word in a command that it becomes part of.
pub fn is_goal(text: &str) -> bool {
    is_inert(text) && !text.contains(|c: char| c.is_whitespace() || "'\"\\*?[{~".contains(c))
}

/// Whether the value of a harmless option is neither an option nor a file outside of the working directory.
pub fn is_value(text: &str) -> bool {
    // `name @ /x` and `name@file:/x` are packages in other places.
    let is_elsewhere = |sign: &str| text.contains(sign);
    !text.starts_with(['-', '/', '~', '@'])
        && !text.contains('$')
        && !climbs(text)
        && ![":/", " /", "@/", "@ ", " @"].into_iter().any(is_elsewhere)
}

pub fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Whether an operand, if it names a file, names one in the working directory or below.
pub fn is_inside(word: &Word) -> bool {
    let Some(beginning) = word.text() else { return false };
    beginning.starts_with(|first: char| first.is_alphanumeric() || "._".contains(first))
        && !climbs(&beginning)
}

/// Whether a word certainly is not an option, nor becomes several of which one is.
pub fn is_operand(word: &Word) -> bool {
    // A pattern with a beginning of its own.
    let begins = |text: &str| !text.starts_with(['-', '{', '*', '?', '[', '~', '+', '@', '!']);
    word.is_operand() || word.text().is_some_and(|text| !text.is_empty() && begins(&text))
}
