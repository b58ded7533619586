//! What the shell replaces inside of words: `$x`, `${x…}`, `$(…)`, `` `…` ``, `$((…))`.

use super::reader::{Reader, is_name_start};
use super::words::Builder;
use super::{Origin, Trouble, Word};

/// Where text in braces or brackets stands.
#[derive(Clone, Copy)]
struct Inside {
    quoted: bool,
    /// Whether it is arithmetic.
    evaluated: bool,
}

impl Reader<'_> {
    /// A dollar sign and what belongs to it.
    pub(super) fn dollar(&mut self, word: &mut Builder, quoted: bool) -> Result<(), Trouble> {
        let start = self.at;
        self.advance()?;
        match self.peek() {
            Some(b'(') => {
                self.advance()?;
                let first = self.script.commands.len();
                if self.peek() == Some(b'(') {
                    self.arithmetic()?;
                    word.unknown(false, Origin::Number);
                } else {
                    self.substituted()?;
                    let commands = first..self.script.commands.len();
                    match self.script.commands[commands.clone()] {
                        [ref only] if only.counts() => word.unknown(false, Origin::Number),
                        _ => word.unknown(!quoted, Origin::Commands(commands)),
                    }
                }
            }
            Some(b'{') => {
                self.advance()?;
                self.deeper(|reader| reader.parameter(quoted))?;
                let text = &self.text[start + 2..self.at - 1];
                let many = text.contains(['@', '*']);
                word.unknown(!quoted || many, Origin::of_name(text));
            }
            Some(b'[') => return Err(self.trouble("this form of arithmetic is not understood")),
            Some(b'\'') if !quoted => {
                if !self.is_bash() {
                    return Err(self.trouble("shells differ on this quote"));
                }
                self.advance()?;
                self.ansi_quoted(word)?;
            }
            Some(b'"') if !quoted => {
                if !self.is_bash() {
                    return Err(self.trouble("shells differ on this quote"));
                }
                self.advance()?;
                self.double_quoted(word)?;
            }
            Some(byte) if is_name_start(byte) => {
                while let Some(byte) = self.peek()
                    && (is_name_start(byte) || byte.is_ascii_digit())
                {
                    self.advance()?;
                }
                word.unknown(!quoted, Origin::of_name(&self.text[start + 1..self.at]));
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.advance()?;
                let origin = if b"#?$".contains(&byte) { Origin::Number } else { Origin::Other };
                word.unknown(!quoted || byte == b'@' || byte == b'*', origin);
            }
            _ => word.push(b'$', quoted),
        }
        Ok(())
    }

    /// The commands behind `$(`, `<(` or `>(`, with the parenthesis at their end.
    pub(super) fn substituted(&mut self) -> Result<(), Trouble> {
        let (start, pending) = (self.at, std::mem::take(&mut self.pending));
        self.deeper(|reader| reader.list(super::grammar::Until::Parenthesis))?;
        let lines = self.text[start..self.at].contains('\n');
        if !self.pending.is_empty() || (lines && !pending.is_empty()) {
            return Err(self.trouble("a here-document and a substitution are in each other's way"));
        }
        self.pending = pending;
        self.expect(b')', "a parenthesis is not closed")
    }

    /// `` `…` ``: a text of its own once its backslashes are gone.
    pub(super) fn backquoted(&mut self, word: &mut Builder, quoted: bool) -> Result<(), Trouble> {
        let start = self.at;
        self.advance()?;
        let mut inner = Vec::new();
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.trouble("a backquote is not closed"));
            };
            self.advance()?;
            match (byte, self.raw()) {
                (b'`', _) => break,
                (b'\\', Some(next @ (b'$' | b'`' | b'\\'))) => {
                    inner.push(next);
                    self.advance()?;
                }
                // Shells differ on a quote that is escaped in here.
                (b'\\', Some(b'"')) if quoted => {
                    return Err(self.trouble("shells differ on this quote"));
                }
                _ => inner.push(byte),
            }
        }
        if inner.contains(&b'\n') && !self.pending.is_empty() {
            return Err(self.trouble("a here-document and a substitution are in each other's way"));
        }
        let (inner, span) = (String::from_utf8_lossy(&inner).into_owned(), self.span(start));
        let first = self.script.commands.len();
        self.deeper(|reader| reader.inner(&inner, span).script_within())?;
        word.unknown(!quoted, Origin::Commands(first..self.script.commands.len()));
        Ok(())
    }

    /// What follows `${`, with the brace at its end.
    fn parameter(&mut self, quoted: bool) -> Result<(), Trouble> {
        let mut indirect = false;
        match self.peek() {
            Some(b'#') if self.ahead(1) != Some(b'}') => self.advance()?,
            Some(b'!') if self.ahead(1) != Some(b'}') => {
                // The value is a name, and a name can have a subscript.
                self.script.evaluates = true;
                indirect = true;
                self.advance()?;
            }
            _ => {}
        }
        let start = self.at;
        match self.peek() {
            Some(byte) if is_name_start(byte) => {
                while let Some(byte) = self.peek()
                    && (is_name_start(byte) || byte.is_ascii_digit())
                {
                    self.advance()?;
                }
            }
            Some(byte) if byte.is_ascii_digit() => {
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.advance()?;
                }
            }
            Some(byte) if b"@*#?-$!".contains(&byte) => self.advance()?,
            _ => return Err(self.trouble("this is not understood in braces")),
        }
        let name = self.text[start..self.at].replace("\\\n", "");
        if self.peek() == Some(b'[') {
            if !self.is_bash() {
                return Err(self.trouble("there are no arrays in this shell"));
            }
            self.advance()?;
            self.script.evaluates = true;
            self.until(b']', Inside { quoted, evaluated: true })?;
        }
        match (self.peek(), self.ahead(1)) {
            (Some(b'@'), Some(b'P')) => {
                return Err(self.trouble("the value would be taken for code"));
            }
            (Some(b'='), _) | (Some(b':'), Some(b'=')) if indirect => {
                return Err(self.trouble("only the run will know what gets a value here"));
            }
            (Some(b'='), _) | (Some(b':'), Some(b'=')) => {
                let span = self.span(start);
                self.script.set.push((name, span));
            }
            (Some(b':'), Some(next)) if !b"-+?".contains(&next) => {
                self.script.evaluates = true;
                return self.until(b'}', Inside { quoted, evaluated: true });
            }
            (Some(next), _) if b"}:-+?%#/^,@*".contains(&next) => {}
            _ => return Err(self.trouble("this is not understood in braces")),
        }
        self.until(b'}', Inside { quoted, evaluated: false })
    }

    /// Text with replacements in it, up to a bracket or brace.
    fn until(&mut self, end: u8, inside: Inside) -> Result<(), Trouble> {
        let Inside { quoted, evaluated } = inside;
        let (mut word, start) = (Builder::default(), self.at);
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.trouble("a brace or bracket is not closed"));
            };
            match byte {
                _ if byte == end => {
                    // It may be what a variable gets.
                    let word = Word { pieces: word.finish(), span: self.span(start) };
                    self.suspect(&word);
                    return self.advance();
                }
                b'$' if quoted && self.ahead(1) == Some(b'\'') => {
                    // Quotes or not: shells differ, and nothing in it may depend on that.
                    self.advance()?;
                    let start = self.at + 1;
                    self.advance()?;
                    self.ansi_quoted(&mut word)?;
                    let inside = &self.text[start..self.at.saturating_sub(1)];
                    if inside.contains(['$', '`', '}', ']', '"', '\'']) {
                        return Err(self.trouble("shells differ on this quote"));
                    }
                }
                b'$' => self.dollar(&mut word, quoted)?,
                b'`' => self.backquoted(&mut word, quoted)?,
                b'"' => {
                    self.advance()?;
                    self.double_quoted(&mut word)?;
                }
                // What is evaluated is expanded whatever the quotes.
                b'\'' if evaluated => return Err(self.trouble("shells differ on this quote")),
                b'\'' if quoted => self.quotes_in_quotes(&mut word)?,
                b'\'' => self.single_quoted(&mut word)?,
                b'\\' => {
                    self.advance()?;
                    match self.raw() {
                        Some(escaped) if escaped.is_ascii() => word.push(escaped, true),
                        _ => return Err(self.trouble("this is not understood in braces")),
                    }
                    self.advance()?;
                }
                b'[' if evaluated => return Err(self.trouble("this is not understood in braces")),
                b'<' | b'>' if self.ahead(1) == Some(b'(') => {
                    return Err(self.trouble("this is not understood in braces"));
                }
                _ => {
                    word.push(byte, true);
                    self.advance()?;
                }
            }
        }
    }

    /// Single quotes where they may be quotes or not: nothing in them may depend on that.
    fn quotes_in_quotes(&mut self, word: &mut Builder) -> Result<(), Trouble> {
        self.advance()?;
        while let Some(byte) = self.raw() {
            self.advance()?;
            match byte {
                b'\'' => return Ok(()),
                b'$' | b'`' | b'\\' | b'"' | b'}' => break,
                _ => word.push(byte, true),
            }
        }
        Err(self.trouble("shells differ on this quote"))
    }

    /// `((…))` with the place at the second parenthesis. Bash takes what does not end as arithmetic for
    /// commands, and finds their end in a way of its own: that is not understood.
    pub(super) fn arithmetic(&mut self) -> Result<(), Trouble> {
        self.counting += 1;
        self.deeper(Self::expression)?;
        self.counting -= 1;
        Ok(())
    }

    fn expression(&mut self) -> Result<(), Trouble> {
        self.advance()?;
        // Names are evaluated, and so is what they stand for.
        self.script.evaluates = true;
        let mut open = 1;
        let mut word = Builder::default();
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.trouble("a parenthesis is not closed"));
            };
            match byte {
                b'(' => open += 1,
                b')' => open -= 1,
                b'$' => {
                    self.dollar(&mut word, true)?;
                    self.no_assignment()?;
                    continue;
                }
                b'`' => {
                    self.backquoted(&mut word, true)?;
                    self.no_assignment()?;
                    continue;
                }
                b'"' => {
                    self.advance()?;
                    self.double_quoted(&mut word)?;
                    self.no_assignment()?;
                    continue;
                }
                _ if is_name_start(byte) => {
                    self.name_in_arithmetic()?;
                    continue;
                }
                _ if byte.is_ascii_digit() || b" \t\n+-*/%<>=!&|^~?:,[]#@.".contains(&byte) => {}
                // The parts of `for ((…; …; …))`.
                b';' if self.in_header && open == 1 => {}
                _ => return Err(self.trouble("this is not understood in arithmetic")),
            }
            self.advance()?;
            if open == 0 {
                return self.expect(b')', "shells differ on these parentheses");
            }
        }
    }

    /// What only the run will know must not be the name of what gets a value.
    fn no_assignment(&mut self) -> Result<(), Trouble> {
        let at = self.run_ahead(0, |byte| matches!(byte, b' ' | b'\t')).len();
        let next = [self.ahead(at), self.ahead(at + 1), self.ahead(at + 2)].map(|b| b.unwrap_or(0));
        let assigns = match next {
            [b'=', second, _] => second != b'=',
            [b'+', b'+', _] | [b'-', b'-', _] | [b'[', ..] => true,
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _] => true,
            [b'<', b'<', b'='] | [b'>', b'>', b'='] => true,
            _ => false,
        };
        match assigns {
            true => Err(self.trouble("only the run will know what gets a value here")),
            false => Ok(()),
        }
    }

    /// A variable, which may get a value there.
    fn name_in_arithmetic(&mut self) -> Result<(), Trouble> {
        let start = self.at;
        while self.peek().is_some_and(|byte| is_name_start(byte) || byte.is_ascii_digit()) {
            self.advance()?;
        }
        let name = self.text[start..self.at].replace("\\\n", "");
        let span = self.span(start);
        self.script.counted.push((name, span));
        Ok(())
    }

    /// Reads the whole text as if it stood in double quotes that cannot be closed: the body of a
    /// here-document, or what arithmetic evaluates.
    pub(super) fn expanded_text(&mut self) -> Result<Word, Trouble> {
        let mut word = Builder::default();
        word.quote();
        while let Some(byte) = self.peek() {
            match byte {
                b'$' => self.dollar(&mut word, true)?,
                b'`' => self.backquoted(&mut word, true)?,
                b'\\' => self.quoted_backslash(&mut word, b"$`\\")?,
                _ => {
                    word.push(byte, true);
                    self.advance()?;
                }
            }
        }
        let word = Word { pieces: word.finish(), span: self.span(0) };
        self.suspect(&word);
        Ok(word)
    }
}
