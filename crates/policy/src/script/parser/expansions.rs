//! Expansions inside words: `$x`, `${x…}`, `$(…)`, `` `…` ``, `$((…))`.
//!
//! Every command inside an expansion becomes a command of the script.

use super::Parser;
use super::words::WordBuilder;
use crate::script::word::is_name_start;
use crate::script::{Origin, ParseError, Word};

/// What surrounds a text in braces or brackets.
#[derive(Clone, Copy)]
struct Inside {
    quoted: bool,
    /// Whether the shell evaluates it as arithmetic.
    evaluated: bool,
}

impl Parser<'_> {
    /// Parses a dollar sign and what belongs to it.
    pub(super) fn dollar(
        &mut self,
        word: &mut WordBuilder,
        quoted: bool,
    ) -> Result<(), ParseError> {
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
                    self.command_substitution()?;
                    let origin = self.script.output(first..self.script.commands.len(), quoted);
                    word.unknown(!quoted && origin != Origin::Number, origin);
                }
            }
            Some(b'{') => {
                self.advance()?;
                self.nested(|parser| parser.parameter(quoted))?;
                let text = &self.text[start + 2..self.at - 1];
                let many = text.contains(['@', '*']);
                word.unknown(!quoted || many, Origin::of_parameter(text, quoted));
            }
            Some(b'[') => return Err(self.error("this form of arithmetic is not supported")),
            Some(b'\'') if !quoted => {
                if !self.is_bash() {
                    return Err(self.error("shells differ on this quote"));
                }
                self.advance()?;
                self.ansi_quoted(word)?;
            }
            Some(b'"') if !quoted => {
                if !self.is_bash() {
                    return Err(self.error("shells differ on this quote"));
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
                word.unknown(!quoted, Origin::of_parameter(&self.text[start + 1..self.at], quoted));
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.advance()?;
                let origin = Origin::of_parameter(&self.text[self.at - 1..self.at], quoted);
                word.unknown(!quoted || byte == b'@' || byte == b'*', origin);
            }
            _ => word.push(b'$', quoted),
        }
        Ok(())
    }

    /// Parses the commands after `$(`, `<(` or `>(`, and the closing parenthesis.
    pub(super) fn command_substitution(&mut self) -> Result<(), ParseError> {
        let (start, pending) = (self.at, std::mem::take(&mut self.pending));
        self.nested(|parser| parser.list(super::commands::ListEnd::Parenthesis))?;
        let lines = self.text[start..self.at].contains('\n');
        if !self.pending.is_empty() || (lines && !pending.is_empty()) {
            return Err(self.error("a here-document overlaps with a substitution"));
        }
        self.pending = pending;
        self.expect(b')', "a parenthesis is not closed")
    }

    /// Parses `` `…` ``, which is a text of its own once its backslashes are removed.
    pub(super) fn backquotes(
        &mut self,
        word: &mut WordBuilder,
        quoted: bool,
    ) -> Result<(), ParseError> {
        let start = self.at;
        self.advance()?;
        let mut inner = Vec::new();
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.error("a backquote is not closed"));
            };
            self.advance()?;
            match (byte, self.peek_raw()) {
                (b'`', _) => break,
                (b'\\', Some(next @ (b'$' | b'`' | b'\\'))) => {
                    inner.push(next);
                    self.advance()?;
                }
                // Shells differ on an escaped quote in here.
                (b'\\', Some(b'"')) if quoted => {
                    return Err(self.error("shells differ on this quote"));
                }
                _ => inner.push(byte),
            }
        }
        if inner.contains(&b'\n') && !self.pending.is_empty() {
            return Err(self.error("a here-document overlaps with a substitution"));
        }
        let (inner, span) = (String::from_utf8_lossy(&inner).into_owned(), self.span(start));
        let first = self.script.commands.len();
        self.nested(|parser| parser.inner(&inner, span).inner_script())?;
        let origin = self.script.output(first..self.script.commands.len(), quoted);
        word.unknown(!quoted && origin != Origin::Number, origin);
        Ok(())
    }

    /// Parses what follows `${`, and the closing brace.
    fn parameter(&mut self, quoted: bool) -> Result<(), ParseError> {
        let mut indirect = false;
        match self.peek() {
            Some(b'#') if self.peek_at(1) != Some(b'}') => self.advance()?,
            Some(b'!') if self.peek_at(1) != Some(b'}') => {
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
            _ => return Err(self.error("this is not supported in braces")),
        }
        let name = self.text[start..self.at].replace("\\\n", "");
        if self.peek() == Some(b'[') {
            if !self.is_bash() {
                return Err(self.error("this shell has no arrays"));
            }
            self.advance()?;
            self.script.evaluates = true;
            let subscript = self.braced_text(b']', Inside { quoted, evaluated: true })?;
            let all = subscript.text().is_some_and(|text| text == "@" || text == "*");
            if indirect && !all {
                // The value of an element becomes a name.
                self.script.named.push(Word::unknown(false, subscript.span.clone()));
            }
            self.script.evaluated.push(subscript);
        } else if indirect && !self.ends_list_of_names() {
            let mut word = WordBuilder::default();
            word.unknown(false, Origin::of_parameter(&name, true));
            let span = self.span(start);
            self.script.named.push(Word { pieces: word.finish(), span });
        }
        match (self.peek(), self.peek_at(1)) {
            (Some(b'@'), Some(b'P')) => {
                return Err(self.error("this expands the value as code"));
            }
            (Some(b'='), _) | (Some(b':'), Some(b'=')) if indirect => {
                return Err(self.error("the variable that is set here is only known at run time"));
            }
            (Some(b'='), _) | (Some(b':'), Some(b'=')) => {
                let span = self.span(start);
                self.script.set_variables.push((name, span));
            }
            (Some(b':'), Some(next)) if !b"-+?".contains(&next) => {
                self.script.evaluates = true;
                let offset = self.braced_text(b'}', Inside { quoted, evaluated: true })?;
                self.script.evaluated.push(offset);
                return Ok(());
            }
            (Some(next), _) if b"}:-+?%#/^,@*".contains(&next) => {}
            _ => return Err(self.error("this is not supported in braces")),
        }
        self.braced_text(b'}', Inside { quoted, evaluated: false }).map(drop)
    }

    /// Whether the rest is that of `${!x@}` or `${!x*}`, the names that begin with `x`.
    fn ends_list_of_names(&mut self) -> bool {
        matches!(self.peek(), Some(b'@' | b'*')) && self.peek_at(1) == Some(b'}')
    }

    /// Parses text with expansions, up to a closing bracket or brace.
    fn braced_text(&mut self, end: u8, inside: Inside) -> Result<Word, ParseError> {
        let Inside { quoted, evaluated } = inside;
        let (mut word, start) = (WordBuilder::default(), self.at);
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.error("a brace or bracket is not closed"));
            };
            match byte {
                _ if byte == end => {
                    // It may become the value of a variable.
                    let word = Word { pieces: word.finish(), span: self.span(start) };
                    self.suspect(&word);
                    self.advance()?;
                    return Ok(word);
                }
                b'$' if quoted && self.peek_at(1) == Some(b'\'') => {
                    // Shells differ on whether these are quotes, so the text must mean the same either way.
                    self.advance()?;
                    let start = self.at + 1;
                    self.advance()?;
                    self.ansi_quoted(&mut word)?;
                    let inside = &self.text[start..self.at.saturating_sub(1)];
                    if inside.contains(['$', '`', '}', ']', '"', '\'']) {
                        return Err(self.error("shells differ on this quote"));
                    }
                }
                b'$' => self.dollar(&mut word, quoted)?,
                b'`' => self.backquotes(&mut word, quoted)?,
                b'"' => {
                    self.advance()?;
                    self.double_quoted(&mut word)?;
                }
                // Arithmetic expands text even in single quotes.
                b'\'' if evaluated => return Err(self.error("shells differ on this quote")),
                b'\'' if quoted => self.quotes_in_quotes(&mut word)?,
                b'\'' => self.single_quoted(&mut word)?,
                b'\\' => {
                    self.advance()?;
                    match self.peek_raw() {
                        Some(escaped) if escaped.is_ascii() => word.push(escaped, true),
                        _ => return Err(self.error("this is not supported in braces")),
                    }
                    self.advance()?;
                }
                b'[' if evaluated => return Err(self.error("this is not supported in braces")),
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    return Err(self.error("this is not supported in braces"));
                }
                _ => {
                    word.push(byte, true);
                    self.advance()?;
                }
            }
        }
    }

    /// Parses single quotes that some shells take literally: their text must mean the same either way.
    fn quotes_in_quotes(&mut self, word: &mut WordBuilder) -> Result<(), ParseError> {
        self.advance()?;
        while let Some(byte) = self.peek_raw() {
            self.advance()?;
            match byte {
                b'\'' => return Ok(()),
                b'$' | b'`' | b'\\' | b'"' | b'}' => break,
                _ => word.push(byte, true),
            }
        }
        Err(self.error("shells differ on this quote"))
    }

    /// Parses `((…))`, from the second parenthesis on. Bash reads a text that does not end like
    /// arithmetic as commands, and finds their end by rules of its own: that is not understood.
    pub(super) fn arithmetic(&mut self) -> Result<(), ParseError> {
        self.arithmetic_depth += 1;
        self.nested(Self::expression)?;
        self.arithmetic_depth -= 1;
        Ok(())
    }

    fn expression(&mut self) -> Result<(), ParseError> {
        self.advance()?;
        // Arithmetic evaluates names, and then their values.
        self.script.evaluates = true;
        let (mut open, start) = (1, self.at);
        let mut word = WordBuilder::default();
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.error("a parenthesis is not closed"));
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
                    self.backquotes(&mut word, true)?;
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
                    let name = self.name_in_arithmetic()?;
                    word.push_text(name.as_bytes(), true);
                    continue;
                }
                _ if byte.is_ascii_digit() || b" \t\n+-*/%<>=!&|^~?:,[]#@.".contains(&byte) => {}
                // Between the parts of `for ((…; …; …))`.
                b';' if self.in_header && open == 1 => {}
                _ => return Err(self.error("this is not supported in arithmetic")),
            }
            self.advance()?;
            if open == 0 {
                let word = Word { pieces: word.finish(), span: self.span(start) };
                self.script.evaluated.push(word);
                return self.expect(b')', "shells differ on these parentheses");
            }
            word.push(byte, true);
        }
    }

    /// Refuses an assignment to a name that only the run will know.
    fn no_assignment(&mut self) -> Result<(), ParseError> {
        let at = self.scan_ahead(0, |byte| matches!(byte, b' ' | b'\t')).len();
        let next =
            [self.peek_at(at), self.peek_at(at + 1), self.peek_at(at + 2)].map(|b| b.unwrap_or(0));
        let assigns = match next {
            [b'=', second, _] => second != b'=',
            [b'+', b'+', _] | [b'-', b'-', _] | [b'[', ..] => true,
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _] => true,
            [b'<', b'<', b'='] | [b'>', b'>', b'='] => true,
            _ => false,
        };
        match assigns {
            true => Err(self.error("the variable that is set here is only known at run time")),
            false => Ok(()),
        }
    }

    /// Parses a variable, which arithmetic may set.
    fn name_in_arithmetic(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| is_name_start(byte) || byte.is_ascii_digit()) {
            self.advance()?;
        }
        let name = self.text[start..self.at].replace("\\\n", "");
        let span = self.span(start);
        self.script.arithmetic_variables.push((name.clone(), span));
        Ok(name)
    }

    /// Parses the whole text as if in double quotes that never end: the body of a here-document, or a
    /// text that arithmetic evaluates.
    pub fn expanded_text(&mut self) -> Result<Word, ParseError> {
        let mut word = WordBuilder::default();
        word.quote();
        while let Some(byte) = self.peek() {
            match byte {
                b'$' => self.dollar(&mut word, true)?,
                b'`' => self.backquotes(&mut word, true)?,
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
