//! Renders output piece by piece.
//!
//! A model gets what a terminal would show at the end: no colours or other control sequences, a progress bar once,
//! in its last state, and U+FFFD for bytes that are not UTF-8. After each newline the renderer is back in its
//! initial state, so reading can start at any line. The one exception is the [`DrawingState`], in renderings that leave
//! out what programs draw on a screen.

mod drawing;

use std::borrow::Cow;

use vte::{Params, Parser, Perform};

pub use drawing::DrawingState;

/// How output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rendering {
    /// Removes control sequences and shows each line in its last state.
    pub ansi_strip: bool,
    pub newline: Newline,
    /// The number of rows, if the reader also sees the screen of a terminal. The rendering then leaves out what
    /// programs draw on that screen instead of printing it in lines.
    pub screen_rows: Option<u16>,
}

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Newline {
    Lf,
    CrLf,
}

impl Default for Rendering {
    fn default() -> Self {
        Self { ansi_strip: true, newline: Newline::Lf, screen_rows: None }
    }
}

/// Terminates a string inside a control sequence. Elsewhere it does nothing.
const STRING_END: &[u8] = b"\x1b\\";

/// What stands for a NUL byte.
const NUL: char = '␀';

/// Lines are not padded beyond this: a program may move its cursor anywhere.
const MAX_COLUMN: usize = 256;

/// A longer line is passed on in parts, which cannot be overwritten any more.
const MAX_LINE: usize = 64 << 10;

/// Turns bytes into text. Back in its initial state after every newline.
pub struct Renderer {
    rendering: Rendering,
    parser: Parser,
    lines: LineBuffer,
    /// An incomplete character, or a `\r` that may be part of a line end.
    partial: Vec<u8>,
}

impl Renderer {
    pub fn new(rendering: Rendering) -> Self {
        Self::resumed(rendering, DrawingState::default())
    }

    /// A renderer that starts at a line where [`drawing_state`](Self::drawing_state) returned this.
    pub fn resumed(rendering: Rendering, drawing: DrawingState) -> Self {
        let lines = LineBuffer { rows: rendering.screen_rows, drawing, ..LineBuffer::default() };
        Self { rendering, parser: Parser::new(), lines, partial: Vec::new() }
    }

    /// The state needed to resume after this newline, or `None` if that would not be enough.
    pub fn drawing_state(&self) -> Option<DrawingState> {
        self.lines.line.is_empty().then_some(self.lines.drawing)
    }

    /// Whether the program is drawing, which is left out.
    pub fn is_drawing(&self) -> bool {
        self.lines.is_drawing()
    }

    /// Processes more bytes and appends the text that is final to `text`.
    pub fn feed(&mut self, bytes: &[u8], text: &mut String) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    self.feed_part(line, text);
                    if self.end_line(text) {
                        text.push_str(match self.rendering.newline {
                            Newline::Lf => "\n",
                            Newline::CrLf => "\r\n",
                        });
                    }
                }
                None => self.feed_part(line, text),
            }
        }
    }

    /// Appends the rest of an unfinished last line.
    pub fn finish(&mut self, text: &mut String) {
        if self.rendering.ansi_strip {
            self.end_string();
            self.lines.end_line();
            self.lines.drain_into(text);
        } else {
            self.end_line(text);
        }
    }

    fn feed_part(&mut self, bytes: &[u8], text: &mut String) {
        if self.rendering.ansi_strip {
            // The parser must not see parts of a character: what follows the rest of some confuses it.
            let joined = match self.partial.is_empty() {
                true => Cow::Borrowed(bytes),
                false => Cow::Owned([std::mem::take(&mut self.partial).as_slice(), bytes].concat()),
            };
            let bytes = &*joined;
            let (whole, rest) = bytes.split_at(bytes.len() - incomplete_length(bytes));
            self.parser.advance(&mut self.lines, whole);
            self.partial = rest.to_vec();
            self.lines.drain_into(text);
            return;
        }
        self.partial.extend_from_slice(bytes);
        let certain = self.partial.len() - uncertain_length(&self.partial);
        text.push_str(&String::from_utf8_lossy(&self.partial[..certain]));
        self.partial.drain(..certain);
    }

    /// Ends a line. Returns whether it is visible.
    fn end_line(&mut self, text: &mut String) -> bool {
        if self.rendering.ansi_strip {
            // An unterminated title or other string ends with its line. Otherwise it would swallow all that
            // follows.
            self.end_string();
            let printed = !self.lines.is_drawing();
            self.lines.line_feed();
            self.lines.drain_into(text);
            return printed;
        }
        let partial = std::mem::take(&mut self.partial);
        let line = partial.strip_suffix(b"\r").unwrap_or(&partial);
        text.push_str(&String::from_utf8_lossy(line));
        true
    }

    fn end_string(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        self.parser.advance(&mut self.lines, &partial);
        self.parser.advance(&mut self.lines, STRING_END);
    }
}

/// How many of the last bytes may be the start of something longer.
fn uncertain_length(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r") {
        return 1;
    }
    incomplete_length(bytes)
}

/// How many of the last bytes are the start of a character.
fn incomplete_length(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3)..bytes.len();
    let first = tail.rev().find(|at| bytes[*at] & 0b1100_0000 != 0b1000_0000);
    match first.map(|at| &bytes[at..]) {
        Some(rest) => match std::str::from_utf8(rest) {
            Err(error) if error.error_len().is_none() => rest.len(),
            _ => 0,
        },
        None => 0,
    }
}

/// A line that can be overwritten, and the text of the lines before it.
#[derive(Default)]
struct LineBuffer {
    done: String,
    line: Vec<char>,
    column: usize,
    /// The number of rows, if the rendering leaves out what is drawn.
    rows: Option<u16>,
    drawing: DrawingState,
}

impl LineBuffer {
    fn is_drawing(&self) -> bool {
        self.drawing.is_drawing()
    }

    fn line_feed(&mut self) {
        match self.rows.filter(|_| self.is_drawing()) {
            None => self.end_line(),
            Some(rows) => {
                if self.drawing.end_line(rows) {
                    self.break_off();
                }
            }
        }
    }

    /// Ends a line that printing will not continue.
    fn break_off(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
            self.done.push('\n');
        }
        self.column = 0;
    }

    /// Applies a sequence that affects the whole screen. Returns whether it was one.
    fn update_drawing(&mut self, params: &Params, private: bool, action: char) -> bool {
        let mut numbers = params.iter().map(|param| param.first().copied().unwrap_or(0));
        let (first, second) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let count = i32::from(first.max(1));
        match (private, action) {
            (true, 'h' | 'l') => {
                let screens = params.iter().flatten().any(|mode| matches!(mode, 47 | 1047 | 1049));
                if screens {
                    self.drawing.switch_screen(action == 'h');
                }
            }
            (false, 'H' | 'f') => self.drawing.move_to(first, second),
            (false, 'd') => self.drawing.move_to(first, 2),
            (false, 'A' | 'F') => self.drawing.move_by(-count),
            (false, 'B' | 'E') => self.drawing.move_by(count),
            (false, 's') => self.drawing.save(),
            (false, 'u') => self.drawing.restore(),
            (false, 'J') => {
                if self.drawing.erase(matches!(first, 2 | 3)) {
                    self.break_off();
                }
            }
            _ => return self.is_drawing(),
        }
        true
    }

    fn end_line(&mut self) {
        self.done.extend(self.line.drain(..));
        self.column = 0;
    }

    fn drain_into(&mut self, text: &mut String) {
        text.push_str(&self.done);
        self.done.clear();
    }

    fn put(&mut self, c: char) {
        if self.line.len() >= MAX_LINE {
            self.end_line();
        }
        if self.column < self.line.len() {
            self.line[self.column] = c;
        } else {
            self.line.resize(self.column, ' ');
            self.line.push(c);
        }
        self.column += 1;
    }
}

impl Perform for LineBuffer {
    fn print(&mut self, c: char) {
        if c.is_control() {
            return;
        }
        if self.rows.is_some() {
            self.drawing.note_written();
        }
        if !self.is_drawing() {
            self.put(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            _ if self.is_drawing() => {}
            b'\r' => self.column = 0,
            b'\t' => self.put('\t'),
            // Terminals ignore it. Elsewhere it separates texts.
            0 if self.rows.is_none() => self.put(NUL),
            b'\x08' => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, byte: u8) {
        match byte {
            _ if self.rows.is_none() => {}
            b'7' => self.drawing.save(),
            b'8' => self.drawing.restore(),
            b'c' => {
                self.drawing.reset();
                self.break_off();
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        if self.rows.is_some() && self.update_drawing(params, intermediates == b"?", action) {
            return;
        }
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::text::plain;

    fn rendered(rendering: Rendering, pieces: &[&[u8]]) -> String {
        let mut renderer = Renderer::new(rendering);
        let mut text = String::new();
        for piece in pieces {
            renderer.feed(piece, &mut text);
        }
        renderer.finish(&mut text);
        text
    }

    #[test]
    fn a_progress_bar_is_shown_in_its_last_state() {
        assert_eq!(plain(b"  0%\r 50%\r100%\ndone\n"), "100%\ndone\n");
        assert_eq!(plain(b"downloading\r\x1b[Kok\n"), "ok\n");
        assert_eq!(plain(b"|\x08/\x08-\n"), "-\n");
    }

    #[test]
    fn colours_titles_and_links_are_removed() {
        assert_eq!(plain(b"\x1b[1;31merror\x1b[0m: x\n"), "error: x\n");
        assert_eq!(plain(b"\x1b]0;title\x07text"), "text");
        assert_eq!(plain(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link");
    }

    #[test]
    fn an_unterminated_title_hides_only_its_own_line() {
        assert_eq!(plain(b"a\x1b]0;title\nimportant\n"), "a\nimportant\n");
        assert_eq!(plain(b"\x1bP1;2|x\nimportant\n"), "\nimportant\n");
    }

    #[test]
    fn the_view_decides_the_line_ends() {
        let strip = |newline| Rendering { newline, ..Rendering::default() };
        let keep = |newline| Rendering { ansi_strip: false, newline, ..Rendering::default() };
        assert_eq!(plain(b"a\r\nb\r\n"), "a\nb\n");
        assert_eq!(rendered(strip(Newline::CrLf), &[b"a\nb\r\n"]), "a\r\nb\r\n");
        assert_eq!(rendered(keep(Newline::Lf), &[b"a\r", b"\nb\rc\n"]), "a\nb\rc\n");
        assert_eq!(rendered(keep(Newline::CrLf), &[b"a\n"]), "a\r\n");
    }

    #[test]
    fn control_sequences_can_be_kept() {
        let rendering = Rendering { ansi_strip: false, ..Rendering::default() };
        assert_eq!(rendered(rendering, &[b"\x1b[1mbold\x1b[0m\n"]), "\x1b[1mbold\x1b[0m\n");
    }

    #[test]
    fn invalid_bytes_are_replaced_and_nothing_else_is_lost() {
        assert_eq!(plain(b"a\xffb\n"), "a\u{fffd}b\n");
        assert_eq!(plain("häß 日本\n".as_bytes()), "häß 日本\n");
    }

    #[test]
    fn a_cursor_moved_far_away_does_not_fill_the_memory() {
        let far = b"\x1b[65535Cx\x1b[65535Cy\x1b[65535Gz".repeat(100);
        assert!(plain(&far).len() < 10 * MAX_COLUMN);
        let title = [b"\x1b]0;".as_slice(), &b"a".repeat(1 << 20)].concat();
        assert_eq!(plain(&title), "");
    }

    /// What is printed beside a screen of five rows.
    fn printed(text: &str) -> String {
        rendered(Rendering { screen_rows: Some(5), ..Rendering::default() }, &[text.as_bytes()])
    }

    #[test]
    fn drawing_on_the_alternate_screen_is_left_out() {
        let editor = "\x1b[?1049h\x1b[2J\x1b[1;1Hhello\r\n~\r\n~\x1b[5;60H1,1\x1b[?1049l";
        assert_eq!(printed(&format!("$ vi\r\n{editor}$ ls\r\n")), "$ vi\n$ ls\n");
        assert_eq!(printed(&format!("left {editor}right\n")), "left right\n");
        let open = "\x1b[?47hdrawn\n\n\n\n\n\n\n\n";
        assert_eq!(printed(&format!("a\n{open}")), "a\n");
        let all = rendered(Rendering::default(), &[editor.as_bytes()]);
        assert!(all.contains('~'), "without a screen beside it, everything is shown: {all:?}");
    }

    #[test]
    fn repeated_drawing_is_shown_once() {
        let first = "\x1b[H\x1b[2Jload 1\x1b[K\n  PID\x1b[K\n    1\x1b[K";
        let again = "\x1b[Hload 2\x1b[K\n  PID\x1b[K\n    1\x1b[K\x1b[J";
        let quit = "\x1b[5;1H\x1b[?25h\n$ ";
        let frames = format!("$ top\n{first}{again}{again}{quit}");
        assert_eq!(printed(&frames), "$ top\nload 1\n  PID\n    1\n$ ");
    }

    #[test]
    fn printing_starts_at_the_top_of_an_erased_screen() {
        for clear in ["\x1b[H\x1b[2J\x1b[3J", "\x1b[2J\x1b[H", "\x1b[H\x1b[J", "\x1bc"] {
            assert_eq!(printed(&format!("one\n{clear}two\nthree\n")), "one\ntwo\nthree\n");
        }
    }

    #[test]
    fn lines_that_scroll_count_as_printed() {
        assert_eq!(printed("a\n\x1b[4;1Hb\nc\nd\ne\n"), "a\nd\ne\n");
        let bar = "\x1b7\x1b[5;1fProgress: 50%\x1b8";
        assert_eq!(printed(&format!("one\n{bar}two{bar} more\n")), "one\ntwo more\n");
    }

    #[test]
    fn a_character_that_comes_in_pieces_hides_nothing_that_follows() {
        let bytes = b"\xc2\x80\x1b\xa0\n";
        let whole = rendered(Rendering::default(), &[bytes]);
        assert_eq!(rendered(Rendering::default(), &[&bytes[..1], &bytes[1..]]), whole);
    }

    proptest! {
        #[test]
        fn text_has_no_control_characters_but_newlines_and_tabs(bytes in vec(any::<u8>(), 0..300)) {
            let text = plain(&bytes);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }

        #[test]
        fn it_does_not_matter_where_the_pieces_are_cut(
            bytes in vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(0x1b)], 0..200),
            cut in any::<prop::sample::Index>(),
            ansi_strip in any::<bool>(),
            screen_rows in proptest::option::of(1_u16..4),
        ) {
            let rendering = Rendering { ansi_strip, screen_rows, ..Rendering::default() };
            let cut = cut.index(bytes.len() + 1);
            let whole = rendered(rendering, &[&bytes]);
            prop_assert_eq!(rendered(rendering, &[&bytes[..cut], &bytes[cut..]]), whole);
        }

        #[test]
        fn a_renderer_is_in_its_initial_state_after_a_line(
            first in vec(any::<u8>(), 0..100), second in vec(any::<u8>(), 0..100),
        ) {
            let whole = [first.as_slice(), b"\n", &second].concat();
            let apart = plain(&[first.as_slice(), b"\n"].concat()) + &plain(&second);
            prop_assert_eq!(plain(&whole), apart);
        }
    }
}
