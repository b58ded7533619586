//! Words: quotes, escapes, arrays, process substitutions.

use super::{Parser, is_meta};
use crate::script::word::is_name;
use crate::script::{Origin, ParseError, Piece, Word};

/// Collects the pieces of a word.
#[derive(Debug, Default)]
pub(super) struct WordBuilder {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    quoted: bool,
}

impl WordBuilder {
    pub fn push(&mut self, byte: u8, quoted: bool) {
        if self.quoted != quoted {
            self.flush();
            self.quoted = quoted;
        }
        self.bytes.push(byte);
    }

    pub fn push_text(&mut self, text: &[u8], quoted: bool) {
        if self.quoted != quoted {
            self.flush();
            self.quoted = quoted;
        }
        self.bytes.extend_from_slice(text);
    }

    /// Notes a quote. `""` is a word, although it adds no text.
    pub fn quote(&mut self) {
        if self.is_empty() {
            self.pieces.push(Piece::Text { text: String::new(), quoted: true });
        }
    }

    pub fn unknown(&mut self, splits: bool, origin: Origin) {
        self.flush();
        self.pieces.push(Piece::Unknown { splits, origin });
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.pieces.is_empty()
    }

    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            let text = String::from_utf8_lossy(&self.bytes).into_owned();
            self.pieces.push(Piece::Text { text, quoted: self.quoted });
            self.bytes.clear();
        }
    }

    /// The pieces of the subscript at the end of the word, whose text begins at `start` in the first piece.
    fn inside_brackets(&self, start: usize) -> Vec<Piece> {
        let (pieces, bytes) = (self.pieces.clone(), self.bytes.clone());
        let mut pieces = Self { pieces, bytes, quoted: self.quoted }.finish();
        if let Some(Piece::Text { text, .. }) = pieces.first_mut() {
            text.drain(..start.min(text.len()));
        }
        if let Some(Piece::Text { text, .. }) = pieces.last_mut() {
            text.pop();
        }
        pieces
    }

    pub fn finish(mut self) -> Vec<Piece> {
        self.flush();
        // An empty piece only matters in a word that is empty.
        if self.pieces.len() > 1 {
            self.pieces
                .retain(|piece| !matches!(piece, Piece::Text { text, .. } if text.is_empty()));
        }
        self.pieces
    }

    /// The text so far, if none of it is quoted or expanded.
    fn plain(&self) -> Option<&str> {
        let plain = self.pieces.is_empty() && !self.quoted;
        std::str::from_utf8(&self.bytes).ok().filter(|_| plain)
    }
}

/// Where a word stands, which decides what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Command,
    /// Where an assignment such as `a=(b c)` is possible.
    Assigning,
    /// An operand in `[[ ]]`, where patterns may have parentheses.
    Operand,
    /// A regular expression in `[[ ]]`.
    Regex,
}

impl Parser<'_> {
    /// Parses a word. It may be empty only if it is quoted.
    pub(super) fn word(&mut self, position: Position) -> Result<Word, ParseError> {
        let start = self.at;
        let word = self.word_pieces(WordBuilder::default(), position)?;
        if word.is_empty() {
            return Err(self.error("a word was expected here"));
        }
        let word = Word { pieces: word, span: self.span(start) };
        if word.unquoted().flat_map(str::chars).any(is_odd) {
            let what = "it contains an invisible character or an unusual blank";
            return Err(ParseError { span: word.span, what });
        }
        self.suspect(&word);
        Ok(word)
    }

    fn word_pieces(
        &mut self,
        mut word: WordBuilder,
        position: Position,
    ) -> Result<Vec<Piece>, ParseError> {
        let mut parentheses = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' => {
                    self.single_quoted(&mut word)?;
                }
                b'"' => {
                    self.advance()?;
                    self.double_quoted(&mut word)?;
                }
                b'\\' => {
                    self.advance()?;
                    let Some(escaped) = self.peek_raw() else {
                        return Err(self.error("nothing follows the backslash"));
                    };
                    self.escaped(escaped, &mut word)?;
                }
                b'$' => self.dollar(&mut word, false)?,
                b'`' => self.backquotes(&mut word, false)?,
                b'<' | b'>' if self.peek_at(1) == Some(b'(') && position != Position::Regex => {
                    self.process_substitution(&mut word)?;
                }
                b'[' if position == Position::Assigning && word.plain().is_some_and(is_name) => {
                    self.subscript(&mut word)?;
                }
                b'(' if position == Position::Assigning && ends_with_equals(word.plain()) => {
                    self.array(&mut word)?;
                }
                b'(' if position == Position::Regex
                    || (position == Position::Operand && ends_with_extender(&word)) =>
                {
                    parentheses += 1;
                    word.push(byte, false);
                    self.advance()?;
                }
                b')' if parentheses > 0 => {
                    parentheses -= 1;
                    word.push(byte, false);
                    self.advance()?;
                }
                b'|' if parentheses > 0 || position == Position::Regex => {
                    if self.peek_at(1) == Some(b'|') && parentheses == 0 {
                        break;
                    }
                    word.push(byte, false);
                    self.advance()?;
                }
                // It may make the word a function's name, which the caller knows.
                b'(' if !word.is_empty() => break,
                b'(' => return Err(self.error("a parenthesis is not supported here")),
                // Blanks in the parentheses of a regular expression belong to it.
                b' ' | b'\t' if parentheses > 0 && position == Position::Regex => {
                    word.push(byte, false);
                    self.advance()?;
                }
                _ if is_meta(byte) => break,
                0..=31 | 127 => {
                    return Err(self.error("it contains a control character"));
                }
                _ => {
                    word.push(byte, false);
                    self.advance()?;
                }
            }
        }
        match parentheses {
            0 => Ok(word.finish()),
            _ => Err(self.error("a parenthesis is not closed")),
        }
    }

    /// Parses a character after a backslash.
    fn escaped(&mut self, byte: u8, word: &mut WordBuilder) -> Result<(), ParseError> {
        word.push(byte, true);
        self.advance()?;
        // The rest of a multi-byte character.
        while self.peek_raw().is_some_and(|byte| byte & 0xC0 == 0x80) {
            word.push(self.peek_raw().unwrap_or_default(), true);
            self.advance()?;
        }
        Ok(())
    }

    pub(super) fn single_quoted(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\'') else {
            return Err(self.error("a quote is not closed"));
        };
        self.advance()?;
        word.quote();
        word.push_text(&rest[..end], true);
        self.script.steps += end as u32;
        self.at += end;
        self.advance()
    }

    /// Parses what follows a double quote, up to the next.
    pub(super) fn double_quoted(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        let start = self.at - 1;
        word.quote();
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => return self.advance(),
                b'$' => self.dollar(word, true)?,
                b'`' => self.backquotes(word, true)?,
                b'\\' => self.quoted_backslash(word, b"$`\"\\")?,
                _ => {
                    word.push(byte, true);
                    self.advance()?;
                }
            }
        }
        self.at = start;
        Err(self.error("a quote is not closed"))
    }

    /// Parses a backslash that escapes only some characters.
    pub(super) fn quoted_backslash(
        &mut self,
        word: &mut WordBuilder,
        escapes: &[u8],
    ) -> Result<(), ParseError> {
        self.advance()?;
        match self.peek_raw() {
            Some(next) if escapes.contains(&next) => {
                word.push(next, true);
                self.advance()
            }
            _ => {
                word.push(b'\\', true);
                Ok(())
            }
        }
    }

    /// Parses `$'…'`, which has the escapes of C.
    pub(super) fn ansi_quoted(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        word.quote();
        while let Some(byte) = self.peek_raw() {
            self.advance()?;
            match byte {
                b'\'' => return Ok(()),
                b'\\' => self.ansi_escape(word)?,
                _ => word.push(byte, true),
            }
        }
        Err(self.error("a quote is not closed"))
    }

    fn ansi_escape(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        let Some(byte) = self.peek_raw() else {
            return Err(self.error("a quote is not closed"));
        };
        self.advance()?;
        let plain = match byte {
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 27,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'\'' | b'"' | b'?' => byte,
            b'0'..=b'7' => {
                self.at -= 1;
                return self.ansi_number(word, 8, 3);
            }
            b'x' => return self.ansi_number(word, 16, 2),
            b'u' => return self.ansi_number(word, 16, 4),
            b'U' => return self.ansi_number(word, 16, 8),
            _ => return Err(self.error("this escape is not supported")),
        };
        word.push(plain, true);
        Ok(())
    }

    fn ansi_number(
        &mut self,
        word: &mut WordBuilder,
        base: u32,
        most: usize,
    ) -> Result<(), ParseError> {
        let (mut number, mut digits) = (0, 0);
        while let Some(digit) = self.peek_raw().and_then(|byte| char::from(byte).to_digit(base))
            && digits < most
        {
            number = number * base + digit;
            digits += 1;
            self.advance()?;
        }
        match char::from_u32(number).filter(|_| most > 3 || number < 256) {
            // Bash cuts the text off at a zero byte, and an invalid character is not text.
            Some('\0') | None => Err(self.error("this escape is not supported")),
            _ if digits == 0 => Err(self.error("this escape is not supported")),
            Some(_) if most <= 3 => {
                word.push(number as u8, true);
                Ok(())
            }
            Some(character) => {
                let mut buffer = [0; 4];
                word.push_text(character.encode_utf8(&mut buffer).as_bytes(), true);
                Ok(())
            }
        }
    }

    /// Parses `[…]` after a name where an assignment is possible: bash reads up to its end.
    fn subscript(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        let (mut open, start) = (0, word.bytes.len() + 1);
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.error("a bracket is not closed"));
            };
            match byte {
                b'[' => open += 1,
                b']' => open -= 1,
                b'$' => {
                    self.dollar(word, true)?;
                    continue;
                }
                b'`' => {
                    self.backquotes(word, true)?;
                    continue;
                }
                b'"' => {
                    self.advance()?;
                    self.double_quoted(word)?;
                    continue;
                }
                b'\'' => {
                    self.single_quoted(word)?;
                    continue;
                }
                b'#' | b'\\' => return Err(self.error("this is not supported in brackets")),
                _ if is_meta(byte) => {
                    return Err(self.error("this is not supported in brackets"));
                }
                _ => {}
            }
            word.push(byte, false);
            self.advance()?;
            if open == 0 {
                let pieces = word.inside_brackets(start);
                let span = self.span(self.at);
                self.script.evaluated.push(Word { pieces, span });
                return Ok(());
            }
        }
    }

    /// Parses `(a b c)` after `name=`.
    fn array(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        if !self.is_bash() {
            return Err(self.error("this shell has no arrays"));
        }
        self.advance()?;
        self.script.evaluates = true;
        let mut elements = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.take(b')')? {
                word.unknown(true, Origin::Array(elements));
                return Ok(());
            }
            let element = self.word(Position::Command)?;
            if element.beginning().is_empty() && element.prefix().starts_with('[') {
                self.script.evaluated.push(element.key());
                elements.push(Word::unknown(true, element.span));
            } else if element.has_braces() {
                elements.push(Word::unknown(true, element.span));
            } else {
                elements.push(element);
            }
        }
    }

    fn process_substitution(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        if !self.is_bash() {
            return Err(self.error("this shell has no process substitution"));
        }
        self.advance()?;
        self.peek();
        self.advance()?;
        self.command_substitution()?;
        word.unknown(false, Origin::Pipe);
        Ok(())
    }
}

/// Whether a character misleads a reader: invisible, or a blank that the shell does not split at.
fn is_odd(character: char) -> bool {
    let unseen = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    unseen || (!character.is_ascii() && (character.is_whitespace() || character.is_control()))
}

fn ends_with_equals(text: Option<&str>) -> bool {
    let name = text.and_then(|text| text.strip_suffix('='));
    name.is_some_and(|name| is_name(name.strip_suffix('+').unwrap_or(name)))
}

fn ends_with_extender(word: &WordBuilder) -> bool {
    !word.quoted && word.bytes.last().is_some_and(|byte| b"?*+@!".contains(byte))
}
