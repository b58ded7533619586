//! Colours in what commands print, for people at a terminal.
//!
//!     line ─┬─ in a hunk, or the head of one ─▶ diff
//!           ├─ nothing but JSON ──────────────▶ json
//!           └─ anything else ─────────────────▶ diagnostics, and paths that exist
//!
//! Colours are all that is added: without them, the text is what the command printed. Output that has control
//! sequences of its own is not touched, as ours would end its colours.

mod diagnostics;
mod diff;
mod json;
mod paths;
mod written;

use std::io::IsTerminal;
use std::ops::Range;
use std::path::PathBuf;

pub use written::Highlighted;

use crate::colours::{self, paint};
use diff::Diff;
use paths::Paths;

/// A longer line stays as it is.
const MAX_LINE: usize = 4 << 10;

/// A part of a line, and its colour.
type Span = (Range<usize>, &'static str);

/// Colours the lines of one output.
pub struct Highlighter {
    diff: Diff,
    paths: Option<Paths>,
    /// Whether the command prints control sequences.
    has_own: bool,
}

impl Highlighter {
    /// With a directory, paths are looked up from there; without one, no file is looked for.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { diff: Diff::default(), paths: directory.map(Paths::new), has_own: false }
    }

    /// The same, if this stream is a terminal with colours.
    pub fn on(stream: &impl IsTerminal, directory: Option<PathBuf>) -> Option<Self> {
        // Not even where colours are forced: whatever reads a pipe expects what the command printed.
        (stream.is_terminal() && colours::enabled(stream)).then(|| Self::new(directory))
    }

    /// A text of complete lines, in colour.
    pub fn text(&mut self, text: &str) -> String {
        text.split_inclusive('\n').map(|line| self.line(line)).collect()
    }

    /// A line, with or without its end.
    fn line(&mut self, whole: &str) -> String {
        let line = whole.trim_end_matches(['\r', '\n']);
        self.has_own |= line.contains(|c: char| c.is_control() && c != '\t');
        if self.has_own || line.is_empty() || line.len() > MAX_LINE {
            return whole.to_owned();
        }
        let spans = match (self.diff.spans(line), json::spans(line)) {
            (Some(spans), _) | (None, Some(spans)) => spans,
            (None, None) => {
                let mut spans = diagnostics::spans(line);
                spans.extend(self.paths.iter_mut().flat_map(|paths| paths.spans(line)));
                spans
            }
        };
        coloured(line, spans) + &whole[line.len()..]
    }
}

/// Of parts that overlap, the first one counts.
fn coloured(line: &str, mut spans: Vec<Span>) -> String {
    spans.sort_by_key(|(range, _)| range.start);
    let (mut text, mut at) = (String::new(), 0);
    for (range, code) in spans {
        if range.start < at || range.is_empty() {
            continue;
        }
        let (Some(before), Some(part)) = (line.get(at..range.start), line.get(range.clone()))
        else {
            continue;
        };
        text.push_str(before);
        text.push_str(&paint(code, part));
        at = range.end;
    }
    text + &line[at..]
}

/// The words of a line, without the quotes and brackets around them.
fn words(line: &str) -> impl Iterator<Item = Range<usize>> {
    let ends = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;=".contains(c);
    line.split(ends).filter(|word| !word.is_empty()).map(move |word| {
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        start..start + word.len()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Colours by their names, in brackets.
    fn shown(text: &str) -> String {
        let text = Highlighter::new(None).text(text);
        let names = [
            ("\x1b[1;31m", "<error "),
            ("\x1b[1;33m", "<warning "),
            ("\x1b[31m", "<red "),
            ("\x1b[32m", "<green "),
            ("\x1b[34m", "<blue "),
            ("\x1b[36m", "<cyan "),
            ("\x1b[1m", "<bold "),
            ("\x1b[0m", ">"),
        ];
        names.iter().fold(text, |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn diagnostics_have_a_level_and_a_place() {
        for (line, expected) in [
            ("error[E0425]: no x", "<error error>[E0425]: no x"),
            ("  --> src/main.rs:2:5", "  --> <cyan src/main.rs:2:5>"),
            ("a.c:3:1: warning: unused", "<cyan a.c:3:1>: <warning warning>: unused"),
            ("ValueError: bad", "<error ValueError>: bad"),
            ("0 errors, see errors.rs", "0 errors, see errors.rs"),
            ("at main (/srv/app.js:10:7)", "at main (<cyan /srv/app.js:10:7>)"),
            ("12:30:45 on http://localhost:8080/", "12:30:45 on http://localhost:8080/"),
            ("listening on 127.0.0.1:8000", "listening on 127.0.0.1:8000"),
        ] {
            assert_eq!(shown(line), expected);
        }
    }

    #[test]
    fn a_hunk_is_as_long_as_its_head_says() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn\n same\n-old\n+new\n- a list\n+ too\n";
        let expected = "<bold --- a/x>\n<bold +++ b/x>\n<cyan @@ -1,2 +1,2 @@> fn\n same\n\
                        <red -old>\n<green +new>\n- a list\n+ too\n";
        assert_eq!(shown(diff), expected);
        assert_eq!(
            shown("@@ -1 +1 @@\n-a\n\\ No newline\n+b\n+c\n"),
            "<cyan @@ -1 +1 @@>\n<red -a>\n\\ No newline\n<green +b>\n+c\n"
        );
    }

    #[test]
    fn json_is_coloured_line_by_line() {
        for (line, expected) in [
            (
                r#"{"a": "b\"c", "n": -1.5e3}"#,
                r#"{<blue "a">: <green "b\"c">, <blue "n">: <cyan -1.5e3>}"#,
            ),
            (r#"  "on": true,"#, r#"  <blue "on">: <cyan true>,"#),
            (r#"[1, null]"#, "[<cyan 1>, <cyan null>]"),
            ("[INFO] started", "[INFO] started"),
            ("42", "42"),
            (r#"say "hi""#, r#"say "hi""#),
        ] {
            assert_eq!(shown(line), expected);
        }
    }

    #[test]
    fn output_with_its_own_colours_stays_as_it_is() {
        let text = "error: a\n\x1b[32merror: b\nerror: c\x1b[0m\n";
        assert_eq!(shown(text), "<error error>: a\n<green error: b\nerror: c>\n");
    }

    #[test]
    fn paths_that_exist_are_underlined_and_only_a_few_are_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        let mut highlighter = Highlighter::new(Some(folder.path().to_owned()));
        let text = highlighter.text("changed src/lib.rs, ./src and src/none.rs\n");
        assert_eq!(text, "changed \x1b[4msrc/lib.rs\x1b[0m, \x1b[4m./src\x1b[0m and src/none.rs\n");
        (0..1000).for_each(|n| drop(highlighter.text(&format!("x/{n}\n"))));
        assert_eq!(highlighter.text("src/../src\n"), "src/../src\n");
        assert_eq!(highlighter.text("src/lib.rs\n"), "\x1b[4msrc/lib.rs\x1b[0m\n");
    }

    proptest! {
        #[test]
        fn nothing_but_colours_is_added(text in "[-+@ :./a-z0-9\"{}\\[\\],é\n]{0,120}") {
            let coloured = Highlighter::new(None).text(&text);
            let mut plain = String::new();
            for (n, part) in coloured.split("\x1b[").enumerate() {
                plain += if n == 0 { part } else { part.split_once('m').unwrap().1 };
            }
            prop_assert_eq!(plain, text);
        }
    }
}
