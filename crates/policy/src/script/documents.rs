//! Here-documents: announced on one line, found behind its end.

use super::reader::{Pending, Reader};
use super::{Trouble, Way, Word};

impl Reader<'_> {
    /// What follows `<<` or `<<-`.
    pub(super) fn document(&mut self, tabs: bool) -> Result<Way, Trouble> {
        if self.counting > 0 {
            return Err(self.trouble("a here-document is not understood in arithmetic"));
        }
        self.blanks()?;
        let start = self.at;
        let (mut end, mut quoted) = (String::new(), false);
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' | b'"' => {
                    quoted = true;
                    self.advance()?;
                    while self.raw().is_some_and(|inside| inside != byte) {
                        end.push(self.delimiter_byte()?);
                    }
                    self.expect(byte, "a quote is not closed")?;
                }
                b'\\' => {
                    quoted = true;
                    self.advance()?;
                    end.push(self.delimiter_byte()?);
                }
                _ if super::reader::is_meta(byte) => break,
                _ => end.push(self.delimiter_byte()?),
            }
        }
        if end.is_empty() {
            return Err(self.trouble("the end of the here-document has no name"));
        }
        let number = self.script.documents.len();
        self.script.documents.push(None);
        let span = self.span(start);
        self.pending.push(Pending { number, end, quoted, tabs, span });
        Ok(Way::Document(number))
    }

    /// Names that no two shells read differently.
    fn delimiter_byte(&mut self) -> Result<char, Trouble> {
        match self.raw() {
            Some(byte) if byte.is_ascii_alphanumeric() || b"_-.!:+@%/".contains(&byte) => {
                self.advance()?;
                Ok(char::from(byte))
            }
            _ => Err(self.trouble("the end of the here-document is not understood")),
        }
    }

    /// The end of a line, and the here-documents that were announced on it.
    pub(super) fn newline(&mut self) -> Result<(), Trouble> {
        self.advance()?;
        for pending in std::mem::take(&mut self.pending) {
            let body = self.body(&pending)?;
            self.script.documents[pending.number] = Some(body);
        }
        Ok(())
    }

    fn body(&mut self, pending: &Pending) -> Result<Word, Trouble> {
        let mut body = String::new();
        loop {
            if self.at >= self.text.len() {
                let what = "the here-document does not end";
                return Err(Trouble { span: pending.span.clone(), what });
            }
            let mut line = self.line();
            // Lines are joined before the end is looked for.
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
        self.deeper(|reader| reader.inner(&body, span).expanded_text())
    }

    /// The rest of the line, with the place behind it.
    fn line(&mut self) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at = (self.at + end + 1).min(self.text.len());
        self.script.steps += end as u32;
        rest[..end].to_owned()
    }
}

/// Whether a backslash at the end joins the line with the next.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}
