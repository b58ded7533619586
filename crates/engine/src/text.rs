//! Output as text a model can read.
//!
//! A model gets what a terminal would show when all is done: colours and other control sequences
//! are gone, a progress bar that redraws its line is seen once, in its last state, and bytes that
//! are no UTF-8 show as U+FFFD.

use vte::{Params, Parser, Perform};

/// Closes a string within a control sequence; by itself it does nothing.
const STRING_END: &[u8] = b"\x1b\\";

/// No line is padded further than this: a program may move its cursor anywhere.
const MAX_COLUMN: usize = 4096;

/// The text of some output.
pub fn plain(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
    {
        return text.to_owned();
    }
    let mut screen = Screen { text: String::with_capacity(bytes.len()), ..Screen::default() };
    let mut parser = Parser::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (text, end) = match line.strip_suffix(b"\n") {
            Some(text) => (text, b"\n".as_slice()),
            None => (line, b"".as_slice()),
        };
        parser.advance(&mut screen, text);
        // A title or another string that was not closed ends with its line, or it would swallow
        // all that follows.
        parser.advance(&mut screen, STRING_END);
        parser.advance(&mut screen, end);
    }
    screen.flush();
    screen.text
}

/// How far from a cut a line's end is looked for: a piece of a long line is worth more than none.
const NEAR: usize = 1024;

/// What remains of a piece whose end was cut off somewhere: whole lines if one ends nearby, else
/// whole characters.
pub fn before_cut(bytes: &[u8]) -> &[u8] {
    let near = bytes.len().saturating_sub(NEAR);
    if let Some(line) = bytes[near..].iter().rposition(|byte| *byte == b'\n') {
        return &bytes[..=near + line];
    }
    // A character has at most three bytes after its first.
    let tail = bytes.len().saturating_sub(3)..bytes.len();
    match tail.rev().find(|at| !is_continuation(bytes[*at])) {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err() => &bytes[..at],
        _ => bytes,
    }
}

/// What remains of a piece whose beginning was cut off somewhere.
pub fn after_cut(bytes: &[u8]) -> &[u8] {
    if let Some(line) = bytes.iter().take(NEAR).position(|byte| *byte == b'\n')
        && line + 1 < bytes.len()
    {
        return &bytes[line + 1..];
    }
    let start = bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    &bytes[start..]
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// One line that can be written over, and the text of those before it.
#[derive(Default)]
struct Screen {
    text: String,
    line: Vec<char>,
    column: usize,
}

impl Screen {
    fn flush(&mut self) {
        self.text.extend(self.line.drain(..));
        self.column = 0;
    }

    fn put(&mut self, c: char) {
        if self.column < self.line.len() {
            self.line[self.column] = c;
        } else {
            self.line.resize(self.column, ' ');
            self.line.push(c);
        }
        self.column += 1;
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        if !c.is_control() {
            self.put(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.flush();
                self.text.push('\n');
            }
            b'\r' => self.column = 0,
            b'\t' => self.put('\t'),
            b'\x08' => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|param| param.first().copied()).unwrap_or(0);
        let count = usize::from(first.max(1));
        match (action, first) {
            ('K', 0) => self.line.truncate(self.column),
            ('K', 1) => {
                let end = self.line.len().min(self.column + 1);
                self.line[..end].fill(' ');
            }
            ('K', 2) => self.line.clear(),
            ('G', _) => self.column = (count - 1).min(MAX_COLUMN),
            ('C', _) => self.column = (self.column + count).min(self.column.max(MAX_COLUMN)),
            ('D', _) => self.column = self.column.saturating_sub(count),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_progress_bar_is_seen_in_its_last_state() {
        assert_eq!(plain(b"  0%\r 50%\r100%\ndone\n"), "100%\ndone\n");
        assert_eq!(plain(b"downloading\r\x1b[Kok\n"), "ok\n");
        assert_eq!(plain(b"|\x08/\x08-\n"), "-\n");
    }

    #[test]
    fn colours_titles_and_links_are_gone() {
        assert_eq!(plain(b"\x1b[1;31merror\x1b[0m: x\n"), "error: x\n");
        assert_eq!(plain(b"\x1b]0;title\x07text"), "text");
        assert_eq!(plain(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link");
    }

    #[test]
    fn a_title_without_an_end_hides_only_its_own_line() {
        assert_eq!(plain(b"a\x1b]0;title\nimportant\n"), "a\nimportant\n");
        assert_eq!(plain(b"\x1bP1;2|x\nimportant\n"), "\nimportant\n");
    }

    #[test]
    fn windows_line_ends_become_plain_ones() {
        assert_eq!(plain(b"a\r\nb\r\n"), "a\nb\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_nothing_else_is_lost() {
        assert_eq!(plain(b"a\xffb\n"), "a\u{fffd}b\n");
        assert_eq!(plain("häß 日本\n".as_bytes()), "häß 日本\n");
    }

    #[test]
    fn a_cursor_sent_far_away_does_not_fill_the_memory() {
        let far = b"\x1b[65535Cx\x1b[65535Cy\x1b[65535Gz".repeat(100);
        assert!(plain(&far).len() < 10 * MAX_COLUMN);
    }

    #[test]
    fn a_cut_leaves_whole_lines_or_whole_characters() {
        assert_eq!(before_cut(b"one\ntwo\nthr"), b"one\ntwo\n");
        assert_eq!(after_cut(b"ne\ntwo\nthree"), b"two\nthree");
        let text = "日本".as_bytes();
        assert_eq!(before_cut(&text[..4]), "日".as_bytes());
        assert_eq!(before_cut(text), text);
        assert_eq!(after_cut(&text[1..]), "本".as_bytes());
    }

    proptest! {
        #[test]
        fn text_has_no_control_characters_but_newlines_and_tabs(
            bytes in proptest::collection::vec(any::<u8>(), 0..300)
        ) {
            let text = plain(&bytes);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }

        #[test]
        fn plain_text_stays_as_it_is(text in "[a-zäß日\n\t ]{0,200}") {
            prop_assert_eq!(plain(text.as_bytes()), text);
        }
    }
}
