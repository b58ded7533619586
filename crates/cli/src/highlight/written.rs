//! Highlighting of bytes as they arrive.

use std::io::{self, Write};

use super::Highlighter;

/// A longer line is not coloured.
const MAX_LINE: usize = 64 << 10;

/// Writes lines in colour. With `live`, the start of a line is written as soon as it is there, without colours: it may
/// be a prompt.
pub struct Highlighted<W: Write> {
    to: W,
    /// `None` writes everything as it is.
    highlighter: Option<Highlighter>,
    live: bool,
    /// A line that is not complete.
    rest: Vec<u8>,
    /// Whether the start of the line was written.
    begun: bool,
}

impl<W: Write> Highlighted<W> {
    pub fn new(to: W, highlighter: Option<Highlighter>, live: bool) -> Self {
        Self { to, highlighter, live, rest: Vec::new(), begun: false }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.line(&rest)?;
        self.to.flush()
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        match (std::str::from_utf8(line), &mut self.highlighter) {
            (Ok(line), Some(highlighter)) if !self.begun => {
                self.to.write_all(highlighter.text(line).as_bytes())
            }
            _ => self.to.write_all(line),
        }
    }
}

impl<W: Write> Write for Highlighted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.highlighter.is_none() {
            return self.to.write(bytes);
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                self.line(&line)?;
                self.begun = false;
            }
        }
        if !self.rest.is_empty() && (self.live || self.rest.len() > MAX_LINE) {
            self.begun = true;
            self.to.write_all(&self.rest)?;
            self.rest.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&str], live: bool) -> String {
        let mut to = Vec::new();
        let mut highlighted = Highlighted::new(&mut to, Some(Highlighter::new(None)), live);
        parts.iter().for_each(|part| highlighted.write_all(part.as_bytes()).unwrap());
        highlighted.finish().unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn lines_that_arrive_in_parts_are_coloured_unless_they_are_shown_at_once() {
        let parts = ["err", "or: a\nerror: b", "\nerror: c"];
        let red = "\x1b[1;31merror\x1b[0m";
        assert_eq!(written(&parts, false), format!("{red}: a\n{red}: b\n{red}: c"));
        assert_eq!(written(&parts, true), "error: a\nerror: b\nerror: c");
        let long = format!("error: {}\n", "x".repeat(100_000));
        assert_eq!(written(&[&long], false), long);
    }
}
