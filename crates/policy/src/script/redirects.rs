//! Redirections.

use super::reader::Reader;
use super::words::Place;
use super::{Redirect, Simple, Trouble, Way, Word};

impl Reader<'_> {
    /// Redirections behind a compound command are those of a command without words.
    pub(super) fn redirects_behind(&mut self) -> Result<(), Trouble> {
        let start = self.at;
        let mut command = Simple::default();
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => command.redirects.push(redirect),
                None if command.redirects.is_empty() => return Ok(()),
                None => break,
            }
        }
        command.span = self.span(start);
        command.repeats = self.loops > 0;
        self.found(command)
    }

    /// A redirection, if one is there.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Trouble> {
        let start = self.at;
        let (mut digits, mut descriptor) = (0, None);
        while let Some(byte @ b'0'..=b'9') = self.ahead(digits)
            && digits < 6
        {
            descriptor = Some(descriptor.unwrap_or(0) * 10 + u32::from(byte - b'0'));
            digits += 1;
        }
        let (mut prefix, mut name) = (digits, String::new());
        if digits == 0 && self.is_bash() && self.peek() == Some(b'{') {
            name = self.run_ahead(1, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let closes = self.ahead(name.len() + 1) == Some(b'}');
            prefix = if closes { name.len() + 2 } else { 0 };
        }
        let both = prefix == 0 && self.peek() == Some(b'&') && self.ahead(1) == Some(b'>');
        if both && !self.is_bash() {
            return Err(self.trouble("shells differ on this operator"));
        }
        let operator = self.ahead(prefix + usize::from(both));
        let substitution = prefix == 0 && !both && self.ahead(1) == Some(b'(');
        if !matches!(operator, Some(b'<' | b'>')) || substitution {
            return Ok(None);
        }
        if prefix > digits {
            // `{name}>`: the variable gets the number.
            self.script.counted.push((name.clone(), self.span(self.at)));
            self.script.descriptors.push(name);
        }
        for _ in 0..prefix {
            self.peek();
            self.advance()?;
        }
        let way = self.way()?;
        Ok(Some(Redirect { descriptor, way, span: self.span(start) }))
    }

    fn way(&mut self) -> Result<Way, Trouble> {
        if self.take_all(b"<<<")? {
            if !self.is_bash() {
                return Err(self.trouble("this operator is not of this shell"));
            }
            return Ok(Way::Text(self.target()?));
        }
        if self.take_all(b"<<-")? {
            return self.document(true);
        }
        if self.take_all(b"<<")? {
            return self.document(false);
        }
        if self.take_all(b"&>>")?
            || self.take_all(b"&>")?
            || self.take_all(b"<>")?
            || self.take_all(b">>")?
            || self.take_all(b">|")?
        {
            return Ok(Way::Write(self.target()?));
        }
        if self.take_all(b">&")? || self.take_all(b"<&")? {
            return Ok(Way::Copy(self.target()?));
        }
        if self.take(b'>')? {
            return Ok(Way::Write(self.target()?));
        }
        self.advance()?;
        Ok(Way::Read(self.target()?))
    }

    fn target(&mut self) -> Result<Word, Trouble> {
        self.blanks()?;
        self.word(Place::Command)
    }
}
