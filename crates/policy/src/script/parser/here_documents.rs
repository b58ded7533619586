//! Here-documents: announced on one line, with a body that begins on the next.

use super::{Parser, Pending};
use crate::script::{ParseError, RedirectKind, Word};

impl Parser<'_> {
    /// Parses what follows `<<` or `<<-`.
    pub(super) fn here_document(&mut self, tabs: bool) -> Result<RedirectKind, ParseError> {
        if self.arithmetic_depth > 0 {
            return Err(self.error("here-documents in arithmetic are not supported"));
        }
        self.skip_blanks()?;
        let start = self.at;
        let (mut end, mut quoted) = (String::new(), false);
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' | b'"' => {
                    quoted = true;
                    self.advance()?;
                    while self.peek_raw().is_some_and(|inside| inside != byte) {
                        end.push(self.delimiter_byte()?);
                    }
                    self.expect(byte, "a quote is not closed")?;
                }
                b'\\' => {
                    quoted = true;
                    self.advance()?;
                    end.push(self.delimiter_byte()?);
                }
                _ if super::is_meta(byte) => break,
                _ => end.push(self.delimiter_byte()?),
            }
        }
        if end.is_empty() {
            return Err(self.error("the here-document has no delimiter"));
        }
        let number = self.script.here_documents.len();
        self.script.here_documents.push(None);
        let span = self.span(start);
        self.pending.push(Pending { number, end, quoted, tabs, span });
        Ok(RedirectKind::HereDocument(number))
    }

    /// Consumes a byte of a delimiter that all shells read alike.
    fn delimiter_byte(&mut self) -> Result<char, ParseError> {
        match self.peek_raw() {
            Some(byte) if byte.is_ascii_alphanumeric() || b"_-.!:+@%/".contains(&byte) => {
                self.advance()?;
                Ok(char::from(byte))
            }
            _ => Err(self.error("this here-document delimiter is not supported")),
        }
    }

    /// Consumes the end of a line, and the here-documents announced on it.
    pub(super) fn newline(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        for pending in std::mem::take(&mut self.pending) {
            let body = self.body(&pending)?;
            self.script.here_documents[pending.number] = Some(body);
        }
        Ok(())
    }

    fn body(&mut self, pending: &Pending) -> Result<Word, ParseError> {
        let mut body = String::new();
        loop {
            if self.at >= self.text.len() {
                let what = "the here-document does not end";
                return Err(ParseError { span: pending.span.clone(), what });
            }
            let mut line = self.line();
            // Shells join lines before they look for the end.
            while !pending.quoted && continues(&line) && self.at < self.text.len() {
                line.truncate(line.len() - 1);
                let next = self.line();
                line.push_str(&next);
            }
            let line = if pending.tabs { line.trim_start_matches('\t') } else { &line };
            if line == pending.end {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        if pending.quoted {
            let body = Word::known(body, pending.span.clone());
            self.suspect(&body);
            return Ok(body);
        }
        let span = pending.span.clone();
        self.nested(|parser| parser.inner(&body, span).expanded_text())
    }

    /// Consumes the rest of the line, and its end.
    fn line(&mut self) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at = (self.at + end + 1).min(self.text.len());
        self.script.steps += end as u32;
        rest[..end].to_owned()
    }
}

/// Whether a backslash at its end joins the line with the next.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}
