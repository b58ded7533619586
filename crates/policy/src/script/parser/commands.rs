//! Lists, pipelines and simple commands.

use super::words::Position;
use super::{ONLY_BASH, Parser, is_meta};
use crate::names::Names;
use crate::script::{ParseError, SimpleCommand, Word};

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnd {
    EndOfText,
    Parenthesis,
    /// One of these reserved words.
    Reserved(Names),
    /// `;;`, `;&`, `;;&` or `esac`.
    CaseArm,
}

/// What kind of command was parsed.
pub(super) enum Kind {
    Function(String),
    Other,
}

/// Words with a meaning of their own where a command begins.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

/// Their first bytes, which tell most other words apart quickly.
const INITIALS: &[u8] = b"![cdefistuw{}";

/// The ones that only bash has.
const BASH_ONLY: Names = Names("[[ coproc function select time");

/// Builtins whose arguments can be assignments.
const DECLARING: Names = Names("declare export local readonly typeset");

impl Parser<'_> {
    /// Parses the whole text.
    pub fn script(&mut self) -> Result<(), ParseError> {
        if self.text.contains('\0') {
            return Err(self.error("it contains a zero byte"));
        }
        self.list(ListEnd::EndOfText)?;
        match self.pending.is_empty() {
            true => Ok(()),
            false => Err(self.error("the here-document does not end")),
        }
    }

    /// Parses a text inside another. Its functions are not defined outside.
    pub(super) fn inner_script(&mut self) -> Result<(), ParseError> {
        let functions = std::mem::take(&mut self.script.functions);
        self.script()?;
        self.script.functions = functions;
        Ok(())
    }

    pub(super) fn list(&mut self, end: ListEnd) -> Result<(), ParseError> {
        let outermost = end == ListEnd::EndOfText && self.depth == 0;
        loop {
            self.skip_newlines()?;
            if self.ends(end) {
                return Ok(());
            }
            let kind = self.and_or()?;
            self.skip_blanks()?;
            let background = self.peek() == Some(b'&');
            if background || (self.peek() == Some(b';') && !self.is_arm_end()) {
                self.advance()?;
            } else if self.peek() != Some(b'\n') {
                self.skip_newlines()?;
                if !self.ends(end) {
                    return Err(self.error("this is unexpected here"));
                }
            }
            if let (Kind::Function(name), true, false) = (kind, outermost, background) {
                self.script.functions.push((name, self.script.commands.len()));
            }
        }
    }

    pub(super) fn is_arm_end(&mut self) -> bool {
        self.peek() == Some(b';') && matches!(self.peek_at(1), Some(b';' | b'&'))
    }

    fn ends(&mut self, end: ListEnd) -> bool {
        match end {
            ListEnd::EndOfText => self.peek().is_none(),
            ListEnd::Parenthesis => self.peek() == Some(b')'),
            ListEnd::Reserved(words) => self.reserved().is_some_and(|word| words.has(word)),
            ListEnd::CaseArm => self.is_arm_end() || self.reserved() == Some("esac"),
        }
    }

    /// The reserved word at the position, if this shell has it.
    pub(super) fn reserved(&mut self) -> Option<&'static str> {
        self.any_reserved().filter(|word| self.is_bash() || !BASH_ONLY.has(word))
    }

    /// The reserved word at the position, of any shell.
    pub(super) fn any_reserved(&mut self) -> Option<&'static str> {
        const LONGEST: usize = 8;
        if !INITIALS.contains(&self.peek_at(0)?) {
            return None;
        }
        let mut text = [0; LONGEST];
        let mut length = 0;
        while let Some(byte) = self.peek_at(length)
            && !is_meta(byte)
        {
            let possible = byte.is_ascii_lowercase() || b"!{}[".contains(&byte);
            if length == LONGEST || !possible {
                return None;
            }
            text[length] = byte;
            length += 1;
        }
        RESERVED.iter().copied().find(|word| word.as_bytes() == &text[..length])
    }

    /// Consumes a reserved word if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, ParseError> {
        match self.reserved() == Some(word) {
            true => self.take_all(word.as_bytes()),
            false => Ok(false),
        }
    }

    pub(super) fn expect_word(
        &mut self,
        word: &'static str,
        what: &'static str,
    ) -> Result<(), ParseError> {
        match self.take_word(word)? {
            true => Ok(()),
            false => Err(self.error(what)),
        }
    }

    fn and_or(&mut self) -> Result<Kind, ParseError> {
        let mut kind = self.pipeline()?;
        loop {
            self.skip_blanks()?;
            if !self.take_all(b"&&")? && !self.take_all(b"||")? {
                return Ok(kind);
            }
            self.skip_newlines()?;
            self.pipeline()?;
            kind = Kind::Other;
        }
    }

    fn pipeline(&mut self) -> Result<Kind, ParseError> {
        let mut plain = true;
        loop {
            self.skip_blanks()?;
            if self.take_word("!")? {
                plain = false;
            } else if self.take_word("time")? {
                plain = false;
                self.skip_blanks()?;
                if self.peek_at(2).is_none_or(is_meta) {
                    self.take_all(b"-p")?;
                    self.skip_blanks()?;
                    self.take_all(b"--")?;
                }
            } else {
                break;
            }
        }
        self.skip_blanks()?;
        if !plain && self.peek().is_none_or(|byte| b";&|\n)".contains(&byte)) {
            return Ok(Kind::Other);
        }
        self.script.pipelines += 1;
        let pipeline = self.script.pipelines;
        let mut kind = self.command(pipeline, false)?;
        loop {
            self.skip_blanks()?;
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                return Ok(if plain { kind } else { Kind::Other });
            }
            self.advance()?;
            if self.peek() == Some(b'&') {
                if !self.is_bash() {
                    return Err(self.error(ONLY_BASH));
                }
                self.advance()?;
            }
            self.skip_newlines()?;
            self.command(pipeline, true)?;
            (kind, plain) = (Kind::Other, false);
        }
    }

    fn command(&mut self, pipeline: usize, piped: bool) -> Result<Kind, ParseError> {
        if self.compound()? {
            self.trailing_redirects()?;
            return Ok(Kind::Other);
        }
        match self.reserved() {
            Some("function") => self.function(),
            Some("coproc") => self.coproc(),
            Some(_) => Err(self.error("this is unexpected here")),
            None if !self.is_bash() && self.any_reserved().is_some_and(|word| word != "time") => {
                Err(self.error("shells differ on this word"))
            }
            None => self.simple(pipeline, piped),
        }
    }

    pub(super) fn simple(&mut self, pipeline: usize, piped: bool) -> Result<Kind, ParseError> {
        let start = self.at;
        let mut command = SimpleCommand {
            pipeline,
            piped,
            repeats: self.repeat_depth > 0,
            ..SimpleCommand::default()
        };
        let mut end = start;
        loop {
            self.skip_blanks()?;
            if let Some(redirect) = self.redirect()? {
                command.redirects.push(redirect);
                end = self.at;
                continue;
            }
            match self.peek() {
                None | Some(b';' | b'&' | b'|' | b')' | b'\n') => break,
                Some(b'(') if is_alone(&command) => {
                    self.advance()?;
                    self.skip_blanks()?;
                    self.expect(b')', "a parenthesis is not closed")?;
                    let name = command.words.remove(0);
                    return self.function_body(&name);
                }
                _ => {}
            }
            let declares = command.words.first().and_then(Word::plain);
            let assigning =
                command.words.is_empty() || declares.is_some_and(|word| DECLARING.has(word));
            let word =
                self.word(if assigning { Position::Assigning } else { Position::Command })?;
            end = self.at;
            match word.assignment().filter(|_| command.words.is_empty()) {
                Some(assignment) => {
                    // Bash evaluates a subscript.
                    let is_element = word.prefix().contains('[');
                    self.script.evaluates |= is_element;
                    if is_element || assignment.value.is_array() {
                        self.script.arrays.push(assignment.name.clone());
                    }
                    command.assignments.push(assignment);
                }
                None => command.words.push(word),
            }
        }
        if command.words.is_empty()
            && command.assignments.is_empty()
            && command.redirects.is_empty()
        {
            return Err(self.error("a command was expected here"));
        }
        command.span = match self.span(start) {
            span if span == (start..self.at) => start..end,
            within => within,
        };
        self.add_command(command)?;
        Ok(Kind::Other)
    }
}

/// Whether it is one word and nothing else, so that a parenthesis makes it a function.
fn is_alone(command: &SimpleCommand) -> bool {
    command.words.len() == 1 && command.assignments.is_empty() && command.redirects.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initials_are_those_of_all_reserved_words() {
        assert!(RESERVED.iter().all(|word| INITIALS.contains(&word.as_bytes()[0])));
    }
}
