//! Redirections: descriptors, operators and their targets.

use super::words::Position;
use super::{ONLY_BASH, Parser};
use crate::script::{ParseError, Redirect, RedirectKind, SimpleCommand, Word};

impl Parser<'_> {
    /// Parses redirections after a compound command, as those of a command without words.
    pub(super) fn trailing_redirects(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        let mut command = SimpleCommand::default();
        loop {
            self.skip_blanks()?;
            match self.redirect()? {
                Some(redirect) => command.redirects.push(redirect),
                None if command.redirects.is_empty() => return Ok(()),
                None => break,
            }
        }
        command.span = self.span(start);
        command.repeats = self.repeat_depth > 0;
        self.add_command(command)
    }

    /// Parses a redirection, if one is next.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, ParseError> {
        let start = self.at;
        let (mut digits, mut descriptor) = (0, None);
        while let Some(byte @ b'0'..=b'9') = self.peek_at(digits)
            && digits < 6
        {
            descriptor = Some(descriptor.unwrap_or(0) * 10 + u32::from(byte - b'0'));
            digits += 1;
        }
        let (mut prefix, mut name) = (digits, String::new());
        if digits == 0 && self.is_bash() && self.peek() == Some(b'{') {
            name = self.scan_ahead(1, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let closes = self.peek_at(name.len() + 1) == Some(b'}');
            prefix = if closes { name.len() + 2 } else { 0 };
        }
        let both = prefix == 0 && self.peek() == Some(b'&') && self.peek_at(1) == Some(b'>');
        if both && !self.is_bash() {
            return Err(self.error("shells differ on this operator"));
        }
        let operator = self.peek_at(prefix + usize::from(both));
        let substitution = prefix == 0 && !both && self.peek_at(1) == Some(b'(');
        if !matches!(operator, Some(b'<' | b'>')) || substitution {
            return Ok(None);
        }
        if prefix > digits {
            // `{name}>` sets the variable to the new descriptor.
            self.script.descriptor_variables.push((name, self.span(self.at)));
        }
        for _ in 0..prefix {
            self.peek();
            self.advance()?;
        }
        let replaces = self.peek() == Some(b'>') && !matches!(self.peek_at(1), Some(b'>' | b'&'));
        let kind = self.redirect_kind()?;
        Ok(Some(Redirect { descriptor, kind, replaces, span: self.span(start) }))
    }

    fn redirect_kind(&mut self) -> Result<RedirectKind, ParseError> {
        let start = self.at;
        if self.take_all(b"<<<")? {
            if !self.is_bash() {
                return Err(ParseError { span: self.span(start), what: ONLY_BASH });
            }
            return Ok(RedirectKind::HereString(self.target()?));
        }
        if self.take_all(b"<<-")? {
            return self.here_document(true);
        }
        if self.take_all(b"<<")? {
            return self.here_document(false);
        }
        if self.take_all(b"&>>")?
            || self.take_all(b"&>")?
            || self.take_all(b"<>")?
            || self.take_all(b">>")?
            || self.take_all(b">|")?
        {
            return Ok(RedirectKind::Write(self.target()?));
        }
        if self.take_all(b">&")? || self.take_all(b"<&")? {
            return Ok(RedirectKind::Duplicate(self.target()?));
        }
        if self.take(b'>')? {
            return Ok(RedirectKind::Write(self.target()?));
        }
        self.advance()?;
        Ok(RedirectKind::Read(self.target()?))
    }

    fn target(&mut self) -> Result<Word, ParseError> {
        self.skip_blanks()?;
        self.word(Position::Command)
    }
}
