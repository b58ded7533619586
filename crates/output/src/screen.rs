//! The screen of a terminal: its text and its cursor.
//!
//! Unlike rendered output, this shows what full-screen programs draw. What has scrolled off the screen is gone.

use std::num::NonZeroU16;

use vt100::Parser;

const MAX_ROWS: u16 = 500;
const MAX_COLUMNS: u16 = 1000;

/// U+FE0F, which turns the character before it into an emoji: all its bytes but the last, and the last.
const EMOJI_STYLE: ([u8; 2], u8) = ([0xef, 0xb8], 0x8f);

/// The last byte of U+FE0E, which keeps a character from being an emoji.
const TEXT_STYLE: u8 = 0x8e;

/// A terminal's screen, drawn from the bytes that programs write.
pub struct Screen {
    parser: Parser,
    /// The last two bytes.
    recent: [u8; 2],
}

/// What a screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenContents {
    /// The lines, without trailing blanks and without empty lines at the end.
    pub text: String,
    /// The row of the cursor, starting at 1.
    pub row: u16,
    /// The column of the cursor, starting at 1.
    pub column: u16,
    pub cursor_hidden: bool,
    /// Whether the program expects other bytes for some keys: see [`key_bytes`](crate::key_bytes).
    pub application_cursor: bool,
}

impl Screen {
    /// An empty screen. Sizes are limited to what is supported.
    pub fn new(rows: u16, columns: u16) -> Self {
        let (rows, columns) = size(rows, columns);
        Self { parser: Parser::new(rows, columns, 0), recent: [0; 2] }
    }

    /// Draws what a program wrote. A character or control sequence may continue in the next bytes.
    pub fn process(&mut self, bytes: &[u8]) {
        let bytes: Vec<u8> = bytes.iter().map(|byte| self.narrow(*byte)).collect();
        self.parser.process(&bytes);
    }

    /// Keeps characters from being widened by the one after them. Most programs do not expect that either, and
    /// `vt100` 0.18 panics some time after it happened in the last column.
    fn narrow(&mut self, byte: u8) -> u8 {
        let widens = (self.recent, byte) == EMOJI_STYLE;
        self.recent = [self.recent[1], byte];
        if widens { TEXT_STYLE } else { byte }
    }

    /// Changes the size. Lines are cut, not wrapped again.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        let (rows, columns) = size(rows, columns);
        self.parser.set_size(rows, columns);
    }

    pub fn contents(&self) -> ScreenContents {
        let screen = self.parser.screen();
        let (_, columns) = screen.size();
        let (row, column) = screen.cursor_position();
        ScreenContents {
            text: text(screen.rows(0, columns.get())),
            row: row + 1,
            // After a program writes to the last column, the cursor is beyond it.
            column: column.saturating_add(1).min(columns.get()),
            cursor_hidden: screen.hide_cursor(),
            application_cursor: screen.application_cursor(),
        }
    }

    /// The text before the cursor in its row, without trailing blanks: the prompt, if a program waits at one.
    pub fn prompt_line(&self) -> String {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let mut line = screen.rows(0, column).nth(row.into()).unwrap_or_default();
        line.truncate(line.trim_end().len());
        as_written(line)
    }
}

fn size(rows: u16, columns: u16) -> (NonZeroU16, NonZeroU16) {
    let within = |size: u16, most| NonZeroU16::new(size.min(most)).unwrap_or(NonZeroU16::MIN);
    (within(rows, MAX_ROWS), within(columns, MAX_COLUMNS))
}

fn text(rows: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end_matches('\n').len());
    as_written(text)
}

/// Restores the emoji that [`Screen::narrow`] replaced.
fn as_written(text: String) -> String {
    match text.contains('\u{fe0e}') {
        true => text.replace('\u{fe0e}', "\u{fe0f}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(rows: u16, columns: u16, text: &str) -> Screen {
        let mut screen = Screen::new(rows, columns);
        screen.process(text.as_bytes());
        screen
    }

    fn shown(text: &str) -> ScreenContents {
        drawn(5, 20, text).contents()
    }

    #[test]
    fn an_empty_screen_has_its_cursor_in_the_top_left_corner() {
        let empty = ScreenContents {
            text: String::new(),
            row: 1,
            column: 1,
            cursor_hidden: false,
            application_cursor: false,
        };
        assert_eq!(shown(""), empty);
        assert_eq!(shown("  \r\n \r\n\x1b[H"), empty);
    }

    #[test]
    fn lines_have_no_trailing_blanks() {
        let shown = shown("one  \r\n\r\n  two \r\n\r\n");
        assert_eq!(shown.text, "one\n\n  two");
        assert_eq!((shown.row, shown.column), (5, 1));
    }

    #[test]
    fn lines_that_scroll_off_the_screen_are_gone() {
        assert_eq!(shown("1\r\n2\r\n3\r\n4\r\n5\r\n6").text, "2\n3\n4\n5\n6");
    }

    #[test]
    fn a_line_longer_than_a_row_wraps() {
        let shown = drawn(3, 4, "abcdefgh").contents();
        assert_eq!(shown.text, "abcd\nefgh");
        assert_eq!((shown.row, shown.column), (2, 4), "the cursor stays on the screen");
    }

    #[test]
    fn colours_and_overwritten_text_are_not_shown() {
        assert_eq!(shown("\x1b[1;31mred\x1b[0m \x1b[48;2;1;2;3mon\x1b[m").text, "red on");
        assert_eq!(shown("10%\r20%\r\x1b[K30%").text, "30%");
        assert_eq!(shown("-\x1b[9b").text, "----------", "a character that is repeated");
    }

    #[test]
    fn a_wide_character_has_two_columns() {
        let shown = shown("日本x");
        assert_eq!(shown.text, "日本x");
        assert_eq!(shown.column, 6);
        assert_eq!(drawn(2, 3, "日本").contents().text, "日\n本");
        let mut screen = drawn(2, 4, "日本");
        screen.resize(2, 3);
        screen.process("\x1b[1;3Hx".as_bytes());
        assert_eq!(screen.contents().text, "日x", "the half that was left is gone");
    }

    #[test]
    fn an_emoji_at_the_end_of_the_last_row_is_harmless() {
        let mut screen = Screen::new(2, 3);
        "x\r\nyy❤\u{fe0f}".bytes().for_each(|byte| screen.process(&[byte]));
        assert_eq!(screen.contents().text, "x\nyy❤\u{fe0f}");
        assert_eq!(screen.prompt_line(), "yy❤\u{fe0f}");
        screen.process("\x1b[1;3H日\x1b[1;3H日".as_bytes());
        assert_eq!(screen.contents().text, "x\n日❤\u{fe0f}");
    }

    #[test]
    fn a_full_screen_program_restores_the_screen() {
        let mut screen = drawn(3, 20, "$ vim\r\n");
        screen.process(b"\x1b[?1049h\x1b[?1h\x1b[?25l\x1b[2J\x1b[1;1Hhello\r\n~\r\n~\x1b[1;3H");
        let editing = screen.contents();
        assert_eq!(editing.text, "hello\n~\n~");
        assert_eq!((editing.row, editing.column), (1, 3));
        assert!(editing.cursor_hidden && editing.application_cursor);
        screen.process(b"\x1b[?25h\x1b[?1l\x1b[?1049l$ ");
        let after = screen.contents();
        assert_eq!(after.text, "$ vim\n$");
        assert_eq!((after.row, after.column), (2, 3));
        assert!(!after.cursor_hidden && !after.application_cursor);
    }

    #[test]
    fn the_prompt_is_the_text_before_the_cursor() {
        assert_eq!(drawn(5, 20, "one\r\n>>> ").prompt_line(), ">>>");
        assert_eq!(drawn(5, 20, "Password: \x1b[32mx\x1b[D\x1b[D").prompt_line(), "Password:");
        assert_eq!(drawn(5, 20, "line\r\n").prompt_line(), "");
        assert_eq!(drawn(5, 4, "abcd").prompt_line(), "abcd");
    }

    #[test]
    fn bytes_may_arrive_one_by_one() {
        let text = "é日\x1b[31m\x1b[2;3Hx".as_bytes();
        let mut screen = Screen::new(5, 20);
        text.chunks(1).for_each(|byte| screen.process(byte));
        assert_eq!(screen.contents().text, "é日\n  x");
    }

    #[test]
    fn sizes_are_limited() {
        let mut screen = Screen::new(0, 0);
        screen.process("日x\r\ny".as_bytes());
        assert_eq!((screen.contents().row, screen.contents().column), (1, 1));
        screen.resize(u16::MAX, u16::MAX);
        screen.process(b"\x1b[9999;9999H");
        assert_eq!((screen.contents().row, screen.contents().column), (MAX_ROWS, MAX_COLUMNS));
    }

    /// Bytes with more control sequences than random ones would have.
    fn written() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            "[a-z日本é\u{301}\u{fe0f}☀❤👍🇦🇧\r\n\t\u{8} ]{0,20}".prop_map(String::into_bytes),
            "(\x1b\\[\\??[0-9;]{0,6}[@-~]|\x1b[78DEMc]|\x1b\\[\\?(6|47|1049)[hl]|日|x|\n){0,12}"
                .prop_map(String::into_bytes),
        ]
    }

    fn edge() -> impl Strategy<Value = u16> {
        prop_oneof![4 => 0..6u16, 1 => 6..40u16, 1 => Just(u16::MAX)]
    }

    proptest! {
        #[test]
        fn no_input_panics_at_any_size(
            steps in proptest::collection::vec((written(), edge(), edge(), any::<bool>()), 0..12),
        ) {
            let mut screen = Screen::new(24, 80);
            for (bytes, rows, columns, resize) in steps {
                if resize {
                    screen.resize(rows, columns);
                }
                screen.process(&bytes);
                let shown = screen.contents();
                prop_assert!(shown.row >= 1 && shown.column >= 1);
                prop_assert!(shown.text.lines().all(|line| line == line.trim_end()));
                screen.prompt_line();
            }
        }
    }
}
