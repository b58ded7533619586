//! An output as lines that parsers can read: escape sequences, carriage returns and invalid UTF-8 are gone.
//!
//! A line longer than [`LONGEST_LINE`] is cut. A text that begins with JSON or XML is also kept as a whole, as such
//! documents may be one long line. The last lines are kept for readers who need to see for themselves.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};

const LONGEST_LINE: usize = 1 << 20;
const LARGEST_DOCUMENT: usize = 32 << 20;
const TAIL_LINES: usize = 20;
const TAIL_LINE: usize = 300;

/// What is left of the outputs after all lines were seen.
#[derive(Default)]
pub(crate) struct Input {
    /// At most one for each output.
    pub documents: Vec<String>,
    pub tail: String,
    /// Whether a line or a document was too long to be seen as a whole.
    pub cut: bool,
}

impl Input {
    /// Gives each line to `line`, with the number of the output it is from.
    pub fn read<R: Read>(
        outputs: impl IntoIterator<Item = R>,
        mut line: impl FnMut(usize, &str),
    ) -> io::Result<Input> {
        let mut input = Input::default();
        for (at, output) in outputs.into_iter().enumerate() {
            let mut tail = Tail::default();
            let mut document: Option<Vec<u8>> = None;
            let mut too_large = false;
            let mut lines =
                RawLines { reader: BufReader::with_capacity(1 << 16, output), raw: Vec::new() };
            while let Some(cut) = lines.next()? {
                let text = clean(&lines.raw).into_owned();
                if document.is_none() && !too_large && begins_document(&text) {
                    document = Some(Vec::new());
                }
                if let Some(kept) = &mut document {
                    kept.extend_from_slice(&lines.raw);
                    kept.push(b'\n');
                    if cut && !lines.rest_into(kept)? || kept.len() > LARGEST_DOCUMENT {
                        (document, too_large, input.cut) = (None, true, true);
                    }
                } else if cut {
                    input.cut = true;
                    lines.skip_rest()?;
                }
                for part in text.split('\r') {
                    if !part.is_empty() || text.is_empty() {
                        line(at, part);
                        tail.push(part);
                    }
                }
            }
            let text = tail.text();
            if !input.tail.is_empty() && !text.is_empty() {
                input.tail.push('\n');
            }
            input.tail.push_str(&text);
            if let Some(kept) = document {
                input.documents.push(clean(&kept).into_owned());
            }
        }
        Ok(input)
    }
}

/// The last lines of one output.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
}

impl Tail {
    fn push(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if self.lines.len() == TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(crate::room::cut(line.trim_end(), TAIL_LINE));
    }

    fn text(self) -> String {
        Vec::from(self.lines).join("\n")
    }
}

/// Lines as bytes, without their ends; each is at most [`LONGEST_LINE`] long.
struct RawLines<R> {
    reader: BufReader<R>,
    raw: Vec<u8>,
}

impl<R: Read> RawLines<R> {
    /// Reads the next line; whether there is more of it in the reader.
    fn next(&mut self) -> io::Result<Option<bool>> {
        self.raw.clear();
        let limit = LONGEST_LINE as u64;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.raw)?;
        if read == 0 {
            return Ok(None);
        }
        let cut = self.raw.last() != Some(&b'\n') && read as u64 == limit;
        if self.raw.last() == Some(&b'\n') {
            self.raw.pop();
        }
        Ok(Some(cut))
    }

    /// Appends the rest of a cut line, in place of the line's end. False if it is too long.
    fn rest_into(&mut self, kept: &mut Vec<u8>) -> io::Result<bool> {
        kept.pop();
        let limit = (LARGEST_DOCUMENT + 1) as u64;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', kept)?;
        if read as u64 == limit && kept.last() != Some(&b'\n') {
            self.skip_rest()?;
            return Ok(false);
        }
        Ok(true)
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        self.reader.skip_until(b'\n').map(drop)
    }
}

/// Whether JSON or XML may begin here. `[info] …` and `[1/2] …` are log lines.
fn begins_document(line: &str) -> bool {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line).trim();
    if let Some(rest) = line.strip_prefix(['{', '[']) {
        return rest.is_empty() || rest.trim_start().starts_with(['{', '[', '"', ']', '}']);
    }
    line.starts_with("<?xml") || line.starts_with("<testsuite")
}

/// The text of a line as a terminal would show it, except for carriage returns inside it.
pub(crate) fn clean(raw: &[u8]) -> std::borrow::Cow<'_, str> {
    let mut end = raw.len();
    while end > 0 && raw[end - 1] == b'\r' {
        end -= 1;
    }
    let raw = &raw[..end];
    if memchr::memchr(0x1b, raw).is_none() {
        return String::from_utf8_lossy(raw);
    }
    let mut plain = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(escape) = memchr::memchr(0x1b, rest) {
        plain.extend_from_slice(&rest[..escape]);
        rest = &rest[escape + sequence(&rest[escape..])..];
    }
    plain.extend_from_slice(rest);
    String::from_utf8_lossy(&plain).into_owned().into()
}

/// How long the escape sequence is that begins here.
fn sequence(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => bytes[2..]
            .iter()
            .position(|byte| (0x40..=0x7e).contains(byte))
            .map_or(bytes.len(), |at| at + 3),
        Some(b']') => {
            let end = bytes[2..].iter().position(|&byte| byte == 0x07 || byte == 0x1b);
            end.map_or(bytes.len(), |at| {
                if bytes[at + 2] == 0x07 { at + 3 } else { (at + 4).min(bytes.len()) }
            })
        }
        Some(b'(' | b')') => 3.min(bytes.len()),
        Some(_) => 2,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut seen = Vec::new();
        Input::read([bytes], |_, line| seen.push(line.to_owned())).unwrap();
        seen
    }

    #[test]
    fn escapes_carriage_returns_and_bad_bytes_are_gone() {
        assert_eq!(lines(b"\x1b[1;31merror\x1b[0m: a\r\n\x1b]0;title\x07b\n"), ["error: a", "b"]);
        assert_eq!(lines(b"10%\r50%\rdone\nx\xffy"), ["10%", "50%", "done", "x\u{fffd}y"]);
        assert_eq!(lines(b"a\n\nb\x1b"), ["a", "", "b"]);
    }

    #[test]
    fn a_long_line_is_cut_unless_it_is_a_document() {
        let long = "x".repeat(LONGEST_LINE + 10);
        let seen = lines(format!("{long}\nnext\n").as_bytes());
        assert_eq!((seen[0].len(), seen[1].as_str()), (LONGEST_LINE, "next"));

        let document = format!("[\"{long}\"]\nnext\n");
        let input = Input::read([document.as_bytes()], |_, _| ()).unwrap();
        assert_eq!(input.documents, [document]);
    }

    #[test]
    fn the_tail_has_the_last_lines_of_each_output() {
        let many: String = (0..50).map(|at| format!("line {at}\n")).collect();
        let input = Input::read([many.as_bytes(), b"bad\n"], |_, _| ()).unwrap();
        assert!(
            input.tail.starts_with("line 30\n") && input.tail.ends_with("line 49\nbad"),
            "{}",
            input.tail
        );
    }
}
