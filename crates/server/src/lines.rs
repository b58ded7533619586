//! Splits a stream of bytes into lines of limited length.

use bytes::BufMut;
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that is read as a whole.
pub const MAX_LINE: usize = 8 << 20;

/// How many bytes of the end of a longer line are kept.
const END: usize = 4 << 10;

const READ_SIZE: usize = 16 << 10;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Whole(Vec<u8>),
    /// Longer than the limit: its beginning and its end.
    TooLong {
        start: Vec<u8>,
        end: Vec<u8>,
    },
}

impl Line {
    /// How many of its bytes are kept.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::TooLong { start, end } => start.len() + end.len(),
        }
    }
}

pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// How much of the buffer is known to have no line end.
    searched: usize,
    /// The beginning of a line that is too long, until its end is found.
    too_long: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), searched: 0, too_long: None }
    }

    /// The next line without its line end, or `None` at the end of the stream. A dropped future loses nothing.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.take_line() {
                return Some(line);
            }
            self.buffer.reserve(READ_SIZE);
            // After any error, nothing more will come.
            let mut room = (&mut self.buffer).limit(READ_SIZE);
            let read = self.source.read_buf(&mut room).await.unwrap_or(0);
            if read == 0 {
                return self.take_rest();
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        match memchr(b'\n', &self.buffer[self.searched..]) {
            Some(at) => {
                let rest = self.buffer.split_off(self.searched + at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.searched = 0;
                Some(self.line(line))
            }
            None => {
                self.searched = self.buffer.len();
                self.forget_middle();
                None
            }
        }
    }

    /// The last line, if it has no line end.
    fn take_rest(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer);
        self.searched = 0;
        (!rest.is_empty() || self.too_long.is_some()).then(|| self.line(rest))
    }

    fn line(&mut self, mut bytes: Vec<u8>) -> Line {
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        match self.too_long.take() {
            Some(start) => Line::TooLong { start, end: bytes },
            None if bytes.len() > MAX_LINE => {
                let end = bytes.split_off(bytes.len() - END);
                Line::TooLong { start: bytes, end }
            }
            None => Line::Whole(bytes),
        }
    }

    /// Drops the middle of a line that is too long.
    fn forget_middle(&mut self) {
        if self.too_long.is_none() && self.buffer.len() <= MAX_LINE {
            return;
        }
        let end = self.buffer.split_off(self.buffer.len() - self.buffer.len().min(END));
        let start = std::mem::replace(&mut self.buffer, end);
        self.too_long.get_or_insert(start);
        self.searched = self.buffer.len();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(bytes: &[u8]) -> Vec<Line> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = Lines::new(bytes);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await {
                all.push(line);
            }
            all
        })
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[test]
    fn lines_come_without_their_ends() {
        assert_eq!(lines(b"a\r\n\nb\nc"), [whole("a"), whole(""), whole("b"), whole("c")]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn of_a_line_that_is_too_long_both_ends_are_kept() {
        let mut bytes = b"start".to_vec();
        bytes.resize(3 * MAX_LINE, b'x');
        bytes.extend(b"end\nnext\n");
        let found = lines(&bytes);
        let Line::TooLong { start, end } = &found[0] else { panic!("{} lines", found.len()) };
        assert!(start.starts_with(b"startx") && end.ends_with(b"xend"));
        assert!(start.len() + end.len() <= MAX_LINE + 2 * READ_SIZE + 2 * END);
        assert_eq!(found[1..], [whole("next")]);
    }

    proptest! {
        #[test]
        fn lines_are_what_stands_between_newlines(texts in proptest::collection::vec("[a-z]{0,40}", 0..50)) {
            let joined: String = texts.iter().map(|text| format!("{text}\n")).collect();
            let expected: Vec<_> = texts.iter().map(|text| whole(text)).collect();
            prop_assert_eq!(lines(joined.as_bytes()), expected);
        }
    }
}
