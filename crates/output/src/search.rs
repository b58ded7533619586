//! Searching kept output without loading it.
//!
//! Each search makes one pass over the output, in blocks of complete lines, and stops when the call is cancelled.

use std::io;
use std::ops::{Add, Range};

use memchr::{memchr, memrchr};
use regex::bytes::{Regex, RegexBuilder};

use crate::error::Error;
use crate::json::JsonPath;
use crate::page::{Page, PageBuilder, PageRequest, Reader};
use crate::text::whole_characters;
use crate::view::View;

/// A longer line is searched in parts.
const MAX_LINE: usize = 32 << 20;

/// The most memory a compiled pattern may take.
const MAX_PATTERN: usize = 10 << 20;

/// The words that make a line an error or a warning.
const ERRORS: Keywords = Keywords {
    nouns: "error|exception|panic",
    others: "fatal|panicked|failed",
    suffixes: "Error|Exception",
};
const WARNINGS: Keywords =
    Keywords { nouns: "warning", others: "warn|deprecated", suffixes: "Warning" };

/// The words allowed between "0" and "errors". Any other word might start something new, as in "exit code 0 with
/// errors".
const QUALIFIERS: &str = "any|build|compile|compiler|compilation|critical|fatal|lint|linter|new|runtime|\
    syntax|test|type|unexpected|validation";

/// A pattern that selects lines.
#[derive(Debug, Clone)]
pub struct Grep(Regex);

/// The number of lines, and how many of them mention errors and warnings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    pub lines: u64,
    pub errors: u64,
    pub warnings: u64,
}

impl Add for Summary {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            errors: self.errors + other.errors,
            warnings: self.warnings + other.warnings,
        }
    }
}

/// Words that identify a line. Only nouns are preceded by counts.
struct Keywords {
    nouns: &'static str,
    others: &'static str,
    /// Endings of identifiers, as in `ValueError`.
    suffixes: &'static str,
}

impl Keywords {
    /// Matches lines with one of the words.
    fn mention(&self) -> Grep {
        let Self { nouns, others, suffixes } = self;
        let pattern = format!(r"(?i)\b((?:{nouns})s?|{others}|(?-i:\w+(?:{suffixes})))\b");
        Grep::new(&pattern).expect("the pattern is ours")
    }

    /// Matches phrases that say there are none. The zeros in "1,000" and "2.0" do not.
    fn denial(&self) -> Regex {
        let Self { nouns, others, .. } = self;
        let none = r"(?:^|[^\w.,]|\D[.,])(?:0+|no|zero|without)";
        let kinds = format!(r"(?:{QUALIFIERS})\s+(?:{nouns})s");
        let counted = format!(r"(?:{kinds}|(?:{nouns})s?|(?:tests?\s+)?(?:{others}))");
        let count = r#""?(?:\s+(?:count|found|total))?\s*[:=]\s*0+"#;
        let count = format!(r"\b(?:(?:{nouns})s?|{others}){count}");
        Regex::new(&format!(r"(?i)(?:{none}\s+{counted}|{count})\b")).expect("the pattern is ours")
    }
}

impl Grep {
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let regex = RegexBuilder::new(pattern).multi_line(true).size_limit(MAX_PATTERN).build();
        regex.map(Self).map_err(|error| Error::Pattern(error.to_string()))
    }

    /// Where a text matches first.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.0.find(text.as_bytes()).map(|found| found.range())
    }

    /// Calls `found` with each matching line, including its newline.
    ///
    /// The block is searched as a whole, for speed, but only for the shortest end of a match: searching for the
    /// longest could cost a pass over the block for every line.
    fn lines<'a>(&self, block: &'a [u8], mut found: impl FnMut(&'a [u8])) {
        let mut at = 0;
        while at < block.len()
            && let Some(end) = self.0.shortest_match_at(block, at)
        {
            let near = end.saturating_sub(1).max(at);
            let mut start = memrchr(b'\n', &block[at..near]).map_or(at, |line| at + line + 1);
            // The match may be empty, at the start of the next line.
            while start < block.len() && start <= end {
                let next =
                    memchr(b'\n', &block[start..]).map_or(block.len(), |line| start + line + 1);
                let line = &block[start..next];
                if self.0.is_match(without_newline(line)) {
                    found(line);
                }
                start = next;
            }
            at = start;
        }
    }
}

/// Which part of an output to read.
pub enum Filter {
    Everything,
    Grep(Grep),
    JsonPath(JsonPath),
    View(View),
}

impl Filter {
    /// What a path finds or, without one, the lines that match a pattern or, without either, everything.
    pub fn new(grep: Option<&str>, json_path: Option<&str>) -> Result<Self, Error> {
        let grep = grep.map(Grep::new).transpose()?;
        let json_path = json_path.map(JsonPath::new).transpose()?;
        Ok(match (json_path, grep) {
            (Some(path), _) => Self::JsonPath(path),
            (None, Some(grep)) => Self::Grep(grep),
            (None, None) => Self::Everything,
        })
    }

    /// A page of that part. Offsets count only what is in it, but for views.
    pub fn page(&self, reader: &Reader, request: PageRequest) -> Result<Page, Error> {
        match self {
            Self::Grep(_) | Self::JsonPath(_) | Self::View(_) if reader.is_binary() => {
                Err(Error::Binary)
            }
            Self::Everything => reader.page(request).map_err(Error::Read),
            Self::Grep(grep) => reader.grep(grep, request).map_err(Error::Read),
            Self::JsonPath(path) => reader.json_path(path, request),
            Self::View(view) => reader.view(*view, request).map_err(Error::Read),
        }
    }
}

fn without_newline(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl Reader {
    /// A page of the matching lines. Offsets count only those lines.
    pub fn grep(&self, grep: &Grep, request: PageRequest) -> io::Result<Page> {
        let mut builder = PageBuilder::new(request);
        let in_parts = self.visit_lines(&mut |block| {
            grep.lines(block, |line| builder.feed(&String::from_utf8_lossy(line)));
        })?;
        if let Some(mut tail) = self.tail() {
            tail.lines.retain(|line| grep.0.is_match(without_newline(line.text.as_bytes())));
            tail.lost = 0;
            builder.feed_tail(&tail);
        }
        Ok(Page { in_parts, running: self.is_running(), ..builder.finish() })
    }

    pub fn summary(&self) -> io::Result<Summary> {
        let (errors, no_errors) = (ERRORS.mention(), ERRORS.denial());
        let (warnings, no_warnings) = (WARNINGS.mention(), WARNINGS.denial());
        let mut summary = Summary::default();
        let mut count = |block: &[u8]| {
            summary.lines += memchr::memchr_iter(b'\n', block).count() as u64;
            summary.lines += u64::from(!block.ends_with(b"\n"));
            errors.lines(block, |line| {
                summary.errors +=
                    u64::from(errors.0.is_match(&no_errors.replace_all(line, &b""[..])));
            });
            warnings.lines(block, |line| {
                let rest = no_warnings.replace_all(line, &b""[..]);
                summary.warnings += u64::from(warnings.0.is_match(&rest));
            });
        };
        self.visit_lines(&mut count)?;
        let tail = self.tail().unwrap_or_default();
        tail.lines.iter().for_each(|line| count(line.text.as_bytes()));
        Ok(summary)
    }

    /// Calls `visit` with the kept text in blocks of complete lines. Returns whether a line was too long and was
    /// visited in parts.
    fn visit_lines(&self, visit: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut in_parts = false;
        let mut rest = Vec::new();
        let mut blocks = self.blocks();
        while let Some(block) = blocks.next()? {
            in_parts |= visit_whole_lines(&mut rest, block, visit);
        }
        if !rest.is_empty() {
            visit(&rest);
        }
        Ok(in_parts)
    }
}

/// Visits the complete lines in `rest` followed by `bytes`, and leaves the remainder in `rest`. Returns whether
/// that became too long and was visited as well.
fn visit_whole_lines(rest: &mut Vec<u8>, bytes: &[u8], visit: &mut dyn FnMut(&[u8])) -> bool {
    let Some(end) = memrchr(b'\n', bytes).map(|end| end + 1) else {
        rest.extend_from_slice(bytes);
        if rest.len() <= MAX_LINE {
            return false;
        }
        let whole = whole_characters(rest).len();
        visit(&rest[..whole]);
        rest.drain(..whole);
        return true;
    };
    let mut lines = &bytes[..end];
    if !rest.is_empty() {
        let first = memchr(b'\n', lines).map_or(end, |end| end + 1);
        rest.extend_from_slice(&lines[..first]);
        visit(rest);
        rest.clear();
        lines = &lines[first..];
    }
    if !lines.is_empty() {
        visit(lines);
    }
    rest.extend_from_slice(&bytes[end..]);
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::output::Output;
    use crate::page::Data;
    use crate::render::Rendering;
    use crate::spill::{Spill, SpillSettings};
    use crate::stream::Stream;

    fn reader(bytes: &[u8]) -> (Reader, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let spill = Arc::new(Spill::new(SpillSettings::new(folder.path())));
        let output = Output::new(spill.account().quota(None));
        output.append(Stream::Stdout, bytes);
        output.finish();
        (Reader::new(output, Stream::Stdout, Rendering::default()), folder)
    }

    fn all(offset: u64) -> PageRequest {
        PageRequest::bytes(offset, 1 << 20)
    }

    fn grep(bytes: &[u8], pattern: &str) -> String {
        let page = reader(bytes).0.grep(&Grep::new(pattern).unwrap(), all(0)).unwrap();
        match page.data {
            Data::Text(text) => text,
            Data::Binary(_) => panic!("text"),
        }
    }

    #[test]
    fn matching_lines_are_found_and_no_match_spans_two() {
        let text = b"one two\nthree\ntwo three\nfour";
        assert_eq!(grep(text, "two"), "one two\ntwo three\n");
        assert_eq!(grep(text, "^t"), "three\ntwo three\n");
        assert_eq!(grep(text, "r$"), "four");
        assert_eq!(grep(text, r"two\s+three"), "two three\n");
        assert_eq!(grep(text, r"one[^x]*three"), "");
        assert_eq!(grep(b"\x1b[31mred\x1b[0m herring\n", "^red h"), "red herring\n");
    }

    #[test]
    fn a_pattern_that_matches_across_lines_is_not_slow() {
        let text = b"error here \n".repeat(200_000);
        assert_eq!(grep(&text, "error[^\"]*").len(), 1 << 20, "a page of them");
        assert_eq!(grep(b"a\n\nb\n", "^$"), "\n");
    }

    #[test]
    fn an_invalid_pattern_is_an_error() {
        assert!(matches!(Grep::new("("), Err(Error::Pattern(_))));
        assert!(matches!(Grep::new("(a{1000}){1000}"), Err(Error::Pattern(_))));
    }

    #[test]
    fn pages_of_matches_return_each_once() {
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let (reader, _folder) = reader(text.as_bytes());
        let grep = Grep::new("7$").unwrap();
        let mut found = String::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let request = PageRequest { limit_lines: 7, ..PageRequest::bytes(offset, 100) };
            let page = reader.grep(&grep, request).unwrap();
            next = page.next();
            let Data::Text(text) = page.data else { panic!("text") };
            found.push_str(&text);
        }
        let expected: String =
            text.split_inclusive('\n').filter(|line| line.ends_with("7\n")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_summary_counts_lines_errors_and_warnings() {
        let text = b"ok\nerror: bad\nWARNING: odd\nno terror\nError and warning\nlast";
        let summary = reader(text).0.summary().unwrap();
        assert_eq!(summary, Summary { lines: 6, errors: 2, warnings: 2 });
        assert_eq!(reader(b"").0.summary().unwrap(), Summary::default());
        let fine = b"12 passed; 0 failed\n0 errors, 0 warnings\nno errors\nerrors: 0, warnings=0\n";
        assert_eq!(reader(fine).0.summary().unwrap(), Summary { lines: 4, errors: 0, warnings: 0 });
        for none in [
            "Error count: 0",
            "0 compile errors",
            "00 errors",
            "Errors found: 0",
            "0 type errors and 0 exceptions",
            "no fatal errors",
            "finished without any errors",
            "0 tests failed",
            r#"{"errors":0,"warnings": 0}"#,
            "warnings,0 errors",
        ] {
            assert_eq!(reader(none.as_bytes()).0.summary().unwrap().errors, 0, "{none}");
        }
        for one in [
            "1,000 errors",
            "100 errors",
            "2.0 errors a second",
            "exit code 0 with errors",
            "line 0 syntax error",
            "step 0 build failed",
            "error: 0x80070005",
            "Error count: 10",
            "0 compile errors, 1 link error",
            "ValueError: x",
            "java.lang.NullPointerException",
        ] {
            assert_eq!(reader(one.as_bytes()).0.summary().unwrap().errors, 1, "{one}");
        }
        let mixed = b"0 warnings, 2 errors\n10 errors\n";
        assert_eq!(
            reader(mixed).0.summary().unwrap(),
            Summary { lines: 2, errors: 2, warnings: 0 }
        );
    }

    proptest! {
        #[test]
        fn grep_finds_the_lines_that_match_one_by_one(
            text in "([ab]{0,5}\n){0,30}[ab]{0,5}",
            pattern in prop_oneof![
                Just("^a".to_owned()), Just("b$".to_owned()), Just("a*b".to_owned()), "[ab]{1,3}"
            ],
        ) {
            let regex = Regex::new(&pattern).unwrap();
            let lines = text.split_inclusive('\n');
            let expected: String =
                lines.filter(|line| regex.is_match(line.trim_end_matches('\n').as_bytes())).collect();
            prop_assert_eq!(grep(text.as_bytes(), &pattern), expected);
        }
    }
}
