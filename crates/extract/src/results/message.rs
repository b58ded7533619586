//! What a test said, collected line by line: the first part of it, and how many bytes there were besides.

use std::ops::Deref;

use crate::room;

const LONGEST: usize = 600;
/// What a message may grow to while it is collected; of the rest only the length is kept.
const COLLECTED: usize = 4 * LONGEST;

#[derive(Debug, Default, Clone)]
pub(super) struct Message {
    text: String,
    /// How many bytes did not fit.
    dropped: usize,
    /// Blank lines after what did not fit: they count only if something follows.
    blank: usize,
}

impl Message {
    pub fn push(&mut self, line: &str) {
        let line = line.trim_end();
        if self.text.len() >= COLLECTED {
            if line.is_empty() {
                self.blank += 1;
            } else {
                self.dropped += std::mem::take(&mut self.blank) + 1 + line.len();
            }
        } else if !(self.text.is_empty() && line.is_empty()) {
            let end = line.floor_char_boundary(COLLECTED);
            self.text.push_str(&line[..end]);
            self.text.push('\n');
            self.dropped += line.len() - end;
        }
    }

    /// Appends another message.
    pub fn append(&mut self, other: &Message) {
        other.text.lines().for_each(|line| self.push(line));
        self.dropped += other.dropped;
    }

    /// How many bytes were said, collected or not.
    pub fn said(&self) -> usize {
        self.text.trim().len() + self.dropped
    }
}

impl Deref for Message {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Message {
    fn from(line: &str) -> Self {
        let mut message = Message::default();
        message.push(line);
        message
    }
}

/// A text to tell, and how many bytes came after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'a> {
    pub text: &'a str,
    pub more: usize,
}

impl<'a> Said<'a> {
    /// A part of `message`: if it goes to the end, it goes on with what was not collected.
    pub fn part(message: &Message, text: &'a str) -> Self {
        let to_the_end =
            message.trim_end().as_bytes().as_ptr_range().end == text.as_bytes().as_ptr_range().end;
        Said { text, more: if to_the_end { message.dropped } else { 0 } }
    }

    /// At most as much as an answer has room for.
    pub fn shortened(self) -> String {
        room::cut_of(self.text.trim(), LONGEST, self.more)
    }
}

impl<'a> From<&'a str> for Said<'a> {
    fn from(text: &'a str) -> Self {
        Said { text, more: 0 }
    }
}

impl<'a> From<&'a Message> for Said<'a> {
    fn from(message: &'a Message) -> Self {
        Said { text: &message.text, more: message.dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_that_are_left_out_are_counted_however_many_were_collected() {
        for lines in [vec!["grün".to_owned(); 5000], vec!["x".repeat(50_000), "y".to_owned()]] {
            let mut message = Message::default();
            lines.iter().for_each(|line| message.push(line));
            let whole = lines.join("\n");
            assert_eq!(message.said(), whole.len());
            let shown = Said::from(&message).shortened();
            let (text, rest) = shown.rsplit_once("… (").unwrap();
            assert!(whole.starts_with(text) && text.len() > LONGEST - 4, "{text}");
            assert_eq!(rest, format!("{} more bytes)", whole.len() - text.len()));
        }
    }
}
