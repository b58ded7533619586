//! Commands, and what holds them together.

use super::reader::{Reader, is_meta, is_name};
use super::words::Place;
use super::{Assignment, Piece, Simple, Trouble, Word};
use crate::words::Words;

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Text,
    Parenthesis,
    /// One of the shell's own words.
    Own(Words),
    /// `;;`, `;&`, `;;&` or `esac`.
    Arm,
}

/// What a command turned out to be.
pub(super) enum Kind {
    Function(String),
    Other,
}

/// Words that are the shell's own where a command begins.
const RESERVED: Words = Words(
    "! [[ case coproc do done elif else esac fi for function if in select then time until while \
     { }",
);

/// What they begin with: most words can be told by that.
const INITIALS: &[u8] = b"![cdefistuw{}";

/// Those of them that only bash has.
const BASH_ONLY: Words = Words("[[ coproc function select time");

/// Builtins whose arguments can be assignments.
const DECLARING: Words = Words("declare export local readonly typeset");

impl Reader<'_> {
    /// The whole text.
    pub fn script(&mut self) -> Result<(), Trouble> {
        if self.text.contains('\0') {
            return Err(self.trouble("there is a zero byte in it"));
        }
        self.list(Until::Text)?;
        match self.pending.is_empty() {
            true => Ok(()),
            false => Err(self.trouble("the here-document does not end")),
        }
    }

    /// A text that is part of another. What it defines is not defined outside of it.
    pub(super) fn script_within(&mut self) -> Result<(), Trouble> {
        let functions = std::mem::take(&mut self.script.functions);
        self.script()?;
        self.script.functions = functions;
        Ok(())
    }

    pub(super) fn list(&mut self, until: Until) -> Result<(), Trouble> {
        let outermost = until == Until::Text && self.depth == 0;
        loop {
            self.gaps()?;
            if self.ends(until) {
                return Ok(());
            }
            let kind = self.and_or()?;
            self.blanks()?;
            let background = self.peek() == Some(b'&');
            if background || (self.peek() == Some(b';') && !self.is_arm_end()) {
                self.advance()?;
            } else if self.peek() != Some(b'\n') {
                self.gaps()?;
                if !self.ends(until) {
                    return Err(self.trouble("this does not belong here"));
                }
            }
            if let (Kind::Function(name), true, false) = (kind, outermost, background) {
                self.script.functions.push((name, self.script.commands.len()));
            }
        }
    }

    pub(super) fn is_arm_end(&mut self) -> bool {
        self.peek() == Some(b';') && matches!(self.ahead(1), Some(b';' | b'&'))
    }

    fn ends(&mut self, until: Until) -> bool {
        match until {
            Until::Text => self.peek().is_none(),
            Until::Parenthesis => self.peek() == Some(b')'),
            Until::Own(words) => self.reserved().is_some_and(|word| words.has(word)),
            Until::Arm => self.is_arm_end() || self.reserved() == Some("esac"),
        }
    }

    /// The shell's own word at the place, if it is one.
    pub(super) fn reserved(&mut self) -> Option<&'static str> {
        self.own_word().filter(|word| self.is_bash() || !BASH_ONLY.has(word))
    }

    /// The word at the place, if it is any shell's own.
    pub(super) fn own_word(&mut self) -> Option<&'static str> {
        const LONGEST: usize = 8;
        if !INITIALS.contains(&self.ahead(0)?) {
            return None;
        }
        let mut text = [0; LONGEST];
        let mut length = 0;
        while let Some(byte) = self.ahead(length)
            && !is_meta(byte)
        {
            let own = byte.is_ascii_lowercase() || b"!{}[".contains(&byte);
            if length == LONGEST || !own {
                return None;
            }
            text[length] = byte;
            length += 1;
        }
        RESERVED.iter().find(|word| word.as_bytes() == &text[..length])
    }

    /// Takes one of the shell's own words if it is there.
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, Trouble> {
        match self.reserved() == Some(word) {
            true => self.take_all(word.as_bytes()),
            false => Ok(false),
        }
    }

    pub(super) fn expect_word(
        &mut self,
        word: &'static str,
        what: &'static str,
    ) -> Result<(), Trouble> {
        match self.take_word(word)? {
            true => Ok(()),
            false => Err(self.trouble(what)),
        }
    }

    fn and_or(&mut self) -> Result<Kind, Trouble> {
        let mut kind = self.pipeline()?;
        loop {
            self.blanks()?;
            if !self.take_all(b"&&")? && !self.take_all(b"||")? {
                return Ok(kind);
            }
            self.gaps()?;
            self.pipeline()?;
            kind = Kind::Other;
        }
    }

    fn pipeline(&mut self) -> Result<Kind, Trouble> {
        let mut plain = true;
        loop {
            self.blanks()?;
            if self.take_word("!")? {
                plain = false;
            } else if self.take_word("time")? {
                plain = false;
                self.blanks()?;
                if self.ahead(2).is_none_or(is_meta) {
                    self.take_all(b"-p")?;
                    self.blanks()?;
                    self.take_all(b"--")?;
                }
            } else {
                break;
            }
        }
        self.blanks()?;
        if !plain && self.peek().is_none_or(|byte| b";&|\n)".contains(&byte)) {
            return Ok(Kind::Other);
        }
        self.script.pipelines += 1;
        let pipeline = self.script.pipelines;
        let mut kind = self.command(pipeline, false)?;
        loop {
            self.blanks()?;
            if self.peek() != Some(b'|') || self.ahead(1) == Some(b'|') {
                return Ok(if plain { kind } else { Kind::Other });
            }
            self.advance()?;
            if self.peek() == Some(b'&') {
                if !self.is_bash() {
                    return Err(self.trouble("this operator is not of this shell"));
                }
                self.advance()?;
            }
            self.gaps()?;
            self.command(pipeline, true)?;
            (kind, plain) = (Kind::Other, false);
        }
    }

    fn command(&mut self, pipeline: usize, piped: bool) -> Result<Kind, Trouble> {
        if self.compound()? {
            self.redirects_behind()?;
            return Ok(Kind::Other);
        }
        match self.reserved() {
            Some("function") => self.function(),
            Some("coproc") => self.coproc(),
            Some(_) => Err(self.trouble("this does not belong here")),
            None if !self.is_bash() && self.own_word().is_some_and(|word| word != "time") => {
                Err(self.trouble("shells differ on this word"))
            }
            None => self.simple(pipeline, piped),
        }
    }

    pub(super) fn simple(&mut self, pipeline: usize, piped: bool) -> Result<Kind, Trouble> {
        let start = self.at;
        let mut command = Simple { pipeline, piped, repeats: self.loops > 0, ..Simple::default() };
        let mut end = start;
        loop {
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                command.redirects.push(redirect);
                end = self.at;
                continue;
            }
            match self.peek() {
                None | Some(b';' | b'&' | b'|' | b')' | b'\n') => break,
                Some(b'(') if is_alone(&command) => {
                    self.advance()?;
                    self.blanks()?;
                    self.expect(b')', "a parenthesis is not closed")?;
                    let name = command.words.remove(0);
                    return self.function_body(&name);
                }
                _ => {}
            }
            let declares = command.words.first().and_then(Word::plain);
            let assigning =
                command.words.is_empty() || declares.is_some_and(|word| DECLARING.has(word));
            let word = self.word(if assigning { Place::Assigning } else { Place::Command })?;
            end = self.at;
            match word.assignment().filter(|_| command.words.is_empty()) {
                Some(assignment) => {
                    // A subscript is evaluated.
                    self.script.evaluates |= word.beginning().contains('[');
                    command.assignments.push(assignment);
                }
                None => command.words.push(word),
            }
        }
        if command.words.is_empty()
            && command.assignments.is_empty()
            && command.redirects.is_empty()
        {
            return Err(self.trouble("a command was expected here"));
        }
        command.span = match self.span(start) {
            span if span == (start..self.at) => start..end,
            within => within,
        };
        self.found(command)?;
        Ok(Kind::Other)
    }
}

/// Whether there is one word and nothing else, so that a parenthesis makes it a function.
fn is_alone(command: &Simple) -> bool {
    command.words.len() == 1 && command.assignments.is_empty() && command.redirects.is_empty()
}

impl Word {
    /// The text, if nothing of it is quoted or replaced.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }

    /// The assignment it is where one may stand.
    pub fn assignment(&self) -> Option<Assignment> {
        let Some(Piece::Text { text, quoted: false }) = self.pieces.first() else { return None };
        let end = text.find(['=', '[']).unwrap_or(text.len());
        let appends = text[..end].ends_with('+');
        let name = text[..end].strip_suffix('+').unwrap_or(&text[..end]);
        if !is_name(name) || end == text.len() {
            return None;
        }
        let mut value = self.clone();
        if text.as_bytes()[end] == b'=' {
            value.pieces[0] = Piece::Text { text: text[end + 1..].to_owned(), quoted: false };
        } else if !self.unquoted().any(|text| text.contains("]=") || text.contains("]+=")) {
            return None;
        } else {
            value = Self::unknown(true, self.span.clone());
        }
        Some(Assignment { name: name.to_owned(), value, appends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initials_are_those_of_all_reserved_words() {
        assert!(RESERVED.iter().all(|word| INITIALS.contains(&word.as_bytes()[0])));
    }
}
