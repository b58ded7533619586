//! The place in a text, and the way forward.
//!
//! A backslash at the end of a line joins it with the next almost everywhere, so it is passed over
//! here, once: nobody else has to think of `r\⏎m`.

use super::{MAX_COMMANDS, MAX_DEPTH, MAX_STEPS, Script, Shell, Simple, Span, Trouble, Word};
use crate::words::Words;

/// Reads one text into a [`Script`].
pub struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) shell: Shell,
    pub(super) script: &'a mut Script,
    pub(super) depth: u32,
    /// How many loops and functions stand around the place.
    pub(super) loops: u32,
    /// How many arithmetic expressions stand around the place: what is in them is found by counting
    /// parentheses, without regard to comments and here-documents.
    pub(super) counting: u32,
    /// Whether the arithmetic is the head of a loop.
    pub(super) in_header: bool,
    /// Here-documents whose lines are still to come.
    pub(super) pending: Vec<Pending>,
    within: Option<Span>,
}

/// A here-document that was announced.
#[derive(Debug)]
pub struct Pending {
    pub number: usize,
    pub end: String,
    pub quoted: bool,
    /// `<<-`: tabs at the beginning of lines do not count.
    pub tabs: bool,
    pub span: Span,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str, shell: Shell, within: Option<Span>, script: &'a mut Script) -> Self {
        Self {
            text,
            at: 0,
            shell,
            script,
            depth: 0,
            loops: 0,
            counting: 0,
            in_header: false,
            pending: Vec::new(),
            within,
        }
    }

    /// A reader for a text that was taken out of this one.
    pub(super) fn inner<'b>(&'b mut self, text: &'b str, span: Span) -> Reader<'b> {
        Reader {
            text,
            at: 0,
            shell: self.shell,
            within: Some(span),
            script: self.script,
            depth: self.depth,
            loops: self.loops,
            counting: self.counting,
            in_header: false,
            pending: Vec::new(),
        }
    }

    pub(super) fn is_bash(&self) -> bool {
        self.shell == Shell::Bash
    }

    /// The byte at the place, line continuations passed over.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while self.text.as_bytes()[self.at..].starts_with(b"\\\n") {
            self.at += 2;
        }
        self.raw()
    }

    /// The byte at the place, whatever it is.
    pub(super) fn raw(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte `count` after the one at the place.
    pub(super) fn ahead(&mut self, count: usize) -> Option<u8> {
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

    /// The bytes that are as they should be from the one `count` after the place on.
    pub(super) fn run_ahead(&mut self, count: usize, is_part: impl Fn(u8) -> bool) -> String {
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

    /// Goes one byte on.
    pub(super) fn advance(&mut self) -> Result<(), Trouble> {
        self.at = (self.at + 1).min(self.text.len());
        self.script.steps += 1;
        match self.script.steps > MAX_STEPS {
            true => Err(self.trouble("it takes too long to read")),
            false => Ok(()),
        }
    }

    /// Takes a byte if it is there.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, Trouble> {
        let there = self.peek() == Some(byte);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Takes several bytes in a row, or none of them.
    pub(super) fn take_all(&mut self, bytes: &[u8]) -> Result<bool, Trouble> {
        let there = bytes.iter().enumerate().all(|(at, byte)| self.ahead(at) == Some(*byte));
        if there {
            for _ in bytes {
                self.peek();
                self.advance()?;
            }
        }
        Ok(there)
    }

    pub(super) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Trouble> {
        match self.take(byte)? {
            true => Ok(()),
            false => Err(self.trouble(what)),
        }
    }

    /// Passes over blanks, and a comment if one begins there.
    pub(super) fn blanks(&mut self) -> Result<(), Trouble> {
        while let Some(b' ' | b'\t') = self.peek() {
            self.advance()?;
        }
        if self.peek() == Some(b'#') {
            if self.counting > 0 {
                return Err(self.trouble("a comment is not understood in arithmetic"));
            }
            // A backslash does not continue a comment.
            while self.raw().is_some_and(|byte| byte != b'\n') {
                self.advance()?;
            }
        }
        Ok(())
    }

    /// Passes over blanks, comments and ends of lines.
    pub(super) fn gaps(&mut self) -> Result<(), Trouble> {
        self.blanks()?;
        while self.peek() == Some(b'\n') {
            self.newline()?;
            self.blanks()?;
        }
        Ok(())
    }

    /// Where something is that began at `start`, in the text that was sent.
    pub(super) fn span(&self, start: usize) -> Span {
        self.within.clone().unwrap_or(start..self.at)
    }

    pub(super) fn trouble(&self, what: &'static str) -> Trouble {
        let start = self.text.floor_char_boundary(self.at);
        let end = self.text[start..].chars().next().map_or(0, char::len_utf8);
        Trouble { span: self.within.clone().unwrap_or(start..start + end), what }
    }

    /// Notes that something stands in something else, and does the work.
    pub(super) fn deeper<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        if self.depth >= MAX_DEPTH {
            return Err(self.trouble("it is nested too deep"));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    pub(super) fn found(&mut self, command: Simple) -> Result<(), Trouble> {
        if self.script.commands.len() >= MAX_COMMANDS {
            return Err(self.trouble("it has too many commands"));
        }
        self.script.commands.push(command);
        Ok(())
    }

    /// Keeps a word's text if it would be code to something that evaluates it, alone or put together
    /// with others.
    pub(super) fn suspect(&mut self, word: &Word) {
        let texts = word.pieces.iter().filter_map(|piece| match piece {
            super::Piece::Text { text, .. } => Some(text.as_str()),
            super::Piece::Unknown { .. } => None,
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

/// Whether a text is an assignment.
fn assigns(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// A dollar sign or a backquote, as `printf` would make them.
const ESCAPED: Words = Words(
    "\\044 \\44 \\0044 \\x24 \\u24 \\u0024 \\140 \\0140 \\x60 \\u60 \\u0060 \\U24 \\U0024 \\U00000024 \\U60 \\U00000060",
);

/// Whether a byte ends a word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(is_name_start)
        && bytes.all(|byte| is_name_start(byte) || byte.is_ascii_digit())
}
