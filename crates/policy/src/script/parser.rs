//! The parser: a position in a text, and the ways to move it forward.
//!
//! A backslash at the end of a line joins it with the next almost everywhere. [`Parser::peek`] skips it,
//! so that nothing else has to expect `r\⏎m`; only [`Parser::peek_raw`] sees it.

mod commands;
mod compounds;
mod expansions;
mod here_documents;
mod redirects;
mod words;

use super::word::is_name;
use super::{MAX_DEPTH, MAX_STEPS, ParseError, Piece, Script, Shell, SimpleCommand, Span, Word};
use crate::names::Names;

/// Why an operator of bash is not understood.
const ONLY_BASH: &str = "only bash has this operator, and this is another shell";

/// Parses one text into a [`Script`].
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    shell: Shell,
    script: &'a mut Script,
    depth: u32,
    /// How many loops and functions surround the position.
    repeat_depth: u32,
    /// How many arithmetic expressions surround the position. A shell finds their end by counting
    /// parentheses, without regard to comments and here-documents.
    arithmetic_depth: u32,
    /// Whether the arithmetic is the header of a `for` loop.
    in_header: bool,
    /// Here-documents whose bodies are still to come.
    pending: Vec<Pending>,
    /// Where the text stands in the text that was sent, if it is only a part of it.
    within: Option<Span>,
}

/// A here-document that was announced on the current line.
#[derive(Debug)]
pub struct Pending {
    pub number: usize,
    pub end: String,
    pub quoted: bool,
    /// `<<-`: leading tabs do not count.
    pub tabs: bool,
    pub span: Span,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, shell: Shell, within: Option<Span>, script: &'a mut Script) -> Self {
        Self {
            text,
            at: 0,
            shell,
            script,
            depth: 0,
            repeat_depth: 0,
            arithmetic_depth: 0,
            in_header: false,
            pending: Vec::new(),
            within,
        }
    }

    /// A parser for a text taken out of this one.
    fn inner<'b>(&'b mut self, text: &'b str, span: Span) -> Parser<'b> {
        Parser {
            text,
            at: 0,
            shell: self.shell,
            within: Some(span),
            script: self.script,
            depth: self.depth,
            repeat_depth: self.repeat_depth,
            arithmetic_depth: self.arithmetic_depth,
            in_header: false,
            pending: Vec::new(),
        }
    }

    fn is_bash(&self) -> bool {
        self.shell == Shell::Bash
    }

    /// The byte at the position, after line continuations.
    fn peek(&mut self) -> Option<u8> {
        while self.text.as_bytes()[self.at..].starts_with(b"\\\n") {
            self.at += 2;
        }
        self.peek_raw()
    }

    /// The byte at the position, even if a line continuation begins there.
    fn peek_raw(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte `count` after the one at the position.
    fn peek_at(&mut self, count: usize) -> Option<u8> {
        let start = self.at;
        for _ in 0..count {
            self.peek();
            self.at += 1;
            if self.at > self.text.len() {
                self.at = start;
                return None;
            }
        }
        let byte = self.peek();
        self.at = start;
        byte
    }

    /// The bytes that satisfy `is_part`, starting `count` after the one at the position.
    fn scan_ahead(&mut self, count: usize, is_part: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        for _ in 0..count {
            self.peek();
            self.at = (self.at + 1).min(self.text.len());
        }
        let mut run = String::new();
        while let Some(byte) = self.peek().filter(|byte| is_part(*byte)) {
            run.push(char::from(byte));
            self.at += 1;
        }
        self.at = start;
        run
    }

    /// Moves on by one byte.
    fn advance(&mut self) -> Result<(), ParseError> {
        self.at = (self.at + 1).min(self.text.len());
        self.script.steps += 1;
        match self.script.steps > MAX_STEPS {
            true => Err(self.error("it takes too long to parse")),
            false => Ok(()),
        }
    }

    /// Consumes a byte if it is next.
    fn take(&mut self, byte: u8) -> Result<bool, ParseError> {
        let there = self.peek() == Some(byte);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Consumes these bytes if all of them are next.
    fn take_all(&mut self, bytes: &[u8]) -> Result<bool, ParseError> {
        let there = bytes.iter().enumerate().all(|(at, byte)| self.peek_at(at) == Some(*byte));
        if there {
            for _ in bytes {
                self.peek();
                self.advance()?;
            }
        }
        Ok(there)
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), ParseError> {
        match self.take(byte)? {
            true => Ok(()),
            false => Err(self.error(what)),
        }
    }

    /// Skips blanks, and a comment after them.
    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        while let Some(b' ' | b'\t') = self.peek() {
            self.advance()?;
        }
        if self.peek() == Some(b'#') {
            if self.arithmetic_depth > 0 {
                return Err(self.error("comments in arithmetic are not supported"));
            }
            // A backslash does not continue a comment.
            while self.peek_raw().is_some_and(|byte| byte != b'\n') {
                self.advance()?;
            }
        }
        Ok(())
    }

    /// Skips blanks, comments and line ends.
    fn skip_newlines(&mut self) -> Result<(), ParseError> {
        self.skip_blanks()?;
        while self.peek() == Some(b'\n') {
            self.newline()?;
            self.skip_blanks()?;
        }
        Ok(())
    }

    /// The span from `start` to the position, in the text that was sent.
    fn span(&self, start: usize) -> Span {
        self.within.clone().unwrap_or(start..self.at)
    }

    pub(super) fn error(&self, what: &'static str) -> ParseError {
        let start = self.text.floor_char_boundary(self.at);
        let end = self.text[start..].chars().next().map_or(0, char::len_utf8);
        ParseError { span: self.within.clone().unwrap_or(start..start + end), what }
    }

    /// Parses something one level deeper.
    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("it is nested too deeply"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn add_command(&mut self, command: SimpleCommand) -> Result<(), ParseError> {
        let limits = self.script.limits;
        if self.script.commands.len() >= limits.commands {
            return Err(self.error(limits.too_many));
        }
        self.script.commands.push(command);
        Ok(())
    }

    /// Remembers a word's text if it becomes code when something evaluates it, alone or joined with
    /// other texts.
    fn suspect(&mut self, word: &Word) {
        let texts = word.pieces.iter().filter_map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        let signs = |text: &str| text.bytes().any(|byte| matches!(byte, b'$' | b'`' | b'\\'));
        if !texts.clone().any(signs) {
            return;
        }
        let text: String = texts.collect();
        let open = text.contains("$(") || text.contains("${") || text.contains('`');
        let begun = text == "$"
            || text.ends_with("[$")
            || (text.contains('[') && text.ends_with('$') && assigns(&text));
        if open || begun || ESCAPED.iter().any(|escape| text.contains(escape)) {
            self.script.suspects.push((text, word.span.clone()));
        }
    }
}

/// Whether a text has the form of an assignment.
fn assigns(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Escapes that `printf` turns into a dollar sign or a backquote.
const ESCAPED: Names = Names(
    "\\044 \\44 \\0044 \\x24 \\u24 \\u0024 \\140 \\0140 \\x60 \\u60 \\u0060 \\U24 \\U0024 \
     \\U00000024 \\U60 \\U00000060",
);

/// Whether a byte ends a word.
fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}
