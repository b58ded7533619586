//! Compound commands: groups, loops, conditions, `[[ ]]`, functions, coprocesses.

use super::commands::{Kind, ListEnd};
use super::words::Position;
use super::{Parser, is_meta};
use crate::names::Names;
use crate::script::listing::is_listing;
use crate::script::word::is_name;
use crate::script::{ParseError, Word};

impl Parser<'_> {
    /// Parses a compound command. False if there is none.
    pub(super) fn compound(&mut self) -> Result<bool, ParseError> {
        self.nested(Self::compound_here)
    }

    fn compound_here(&mut self) -> Result<bool, ParseError> {
        if self.peek() == Some(b'(') {
            self.advance()?;
            if self.peek() == Some(b'(') && self.is_bash() {
                self.arithmetic()?;
            } else {
                self.list(ListEnd::Parenthesis)?;
                self.expect(b')', "a parenthesis is not closed")?;
            }
            return Ok(true);
        }
        match self.reserved() {
            Some("{") => {
                self.advance()?;
                self.group()?;
            }
            Some("if") => self.condition()?,
            Some("while" | "until") => {
                self.take_all(b"while")?;
                self.take_all(b"until")?;
                self.repeat_depth += 1;
                self.list(ListEnd::Reserved(Names("do")))?;
                self.loop_body()?;
                self.repeat_depth -= 1;
            }
            Some(word @ ("for" | "select")) => {
                self.take_all(word.as_bytes())?;
                self.for_loop()?;
            }
            Some("case") => self.case()?,
            Some("[[") => {
                self.take_all(b"[[")?;
                self.test()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses what follows an opening brace.
    fn group(&mut self) -> Result<(), ParseError> {
        self.list(ListEnd::Reserved(Names("}")))?;
        self.expect_word("}", "a brace is not closed")
    }

    fn condition(&mut self) -> Result<(), ParseError> {
        self.expect_word("if", "`if` was expected")?;
        loop {
            self.list(ListEnd::Reserved(Names("then")))?;
            self.expect_word("then", "`then` was expected")?;
            self.list(ListEnd::Reserved(Names("elif else fi")))?;
            if self.take_word("elif")? {
                continue;
            }
            if self.take_word("else")? {
                self.list(ListEnd::Reserved(Names("fi")))?;
            }
            return self.expect_word("fi", "`fi` was expected");
        }
    }

    fn loop_body(&mut self) -> Result<(), ParseError> {
        self.skip_newlines()?;
        if self.is_bash() && self.take_word("{")? {
            return self.group();
        }
        self.expect_word("do", "`do` was expected")?;
        self.list(ListEnd::Reserved(Names("done")))?;
        self.expect_word("done", "`done` was expected")
    }

    fn for_loop(&mut self) -> Result<(), ParseError> {
        self.skip_blanks()?;
        self.repeat_depth += 1;
        if self.is_bash() && self.peek() == Some(b'(') && self.peek_at(1) == Some(b'(') {
            self.advance()?;
            let outer = std::mem::replace(&mut self.in_header, true);
            self.arithmetic()?;
            self.in_header = outer;
            self.skip_blanks()?;
            self.take(b';')?;
        } else {
            let name = self.word(Position::Command)?;
            let Some(text) = name.plain().filter(|text| is_name(text)) else {
                return Err(ParseError { span: name.span, what: "this is not a variable name" });
            };
            self.script.set_variables.push((text.to_owned(), name.span.clone()));
            self.skip_newlines()?;
            if self.take_word("in")? {
                let mut words = Vec::new();
                loop {
                    self.skip_blanks()?;
                    if let Some(b';' | b'\n') = self.peek() {
                        break;
                    }
                    words.push(self.word(Position::Command)?);
                }
                self.script.loops.push((text.to_owned(), words));
            }
            self.take(b';')?;
        }
        self.loop_body()?;
        self.repeat_depth -= 1;
        Ok(())
    }

    fn case(&mut self) -> Result<(), ParseError> {
        self.expect_word("case", "`case` was expected")?;
        self.skip_blanks()?;
        self.word(Position::Command)?;
        self.skip_newlines()?;
        self.expect_word("in", "`in` was expected")?;
        loop {
            self.skip_newlines()?;
            if self.take_word("esac")? {
                return Ok(());
            }
            self.take(b'(')?;
            loop {
                self.skip_blanks()?;
                self.word(Position::Command)?;
                self.skip_blanks()?;
                if !self.take(b'|')? {
                    break;
                }
            }
            self.expect(b')', "a parenthesis was expected after the pattern")?;
            self.list(ListEnd::CaseArm)?;
            if self.is_arm_end() {
                let _ = self.take_all(b";;&")? || self.take_all(b";;")? || self.take_all(b";&")?;
            }
        }
    }

    /// Parses what follows `[[`.
    fn test(&mut self) -> Result<(), ParseError> {
        self.test_expression()?;
        self.skip_newlines()?;
        match self.ends_test() && self.take_all(b"]]")? {
            true => Ok(()),
            false => Err(self.error("`]]` was expected")),
        }
    }

    fn ends_test(&mut self) -> bool {
        let closes = self.peek() == Some(b']') && self.peek_at(1) == Some(b']');
        closes && self.peek_at(2).is_none_or(is_meta)
    }

    fn test_expression(&mut self) -> Result<(), ParseError> {
        loop {
            self.test_term()?;
            // A line may end before and after `&&`, `||` and `]]`.
            self.skip_newlines()?;
            if !self.take_all(b"&&")? && !self.take_all(b"||")? {
                return Ok(());
            }
        }
    }

    fn test_term(&mut self) -> Result<(), ParseError> {
        self.skip_newlines()?;
        if self.take(b'(')? {
            self.nested(Self::test_expression)?;
            return self.expect(b')', "a parenthesis is not closed");
        }
        let operand = self.operand(Position::Operand)?;
        let first = operand.plain().unwrap_or_default();
        if first == "!" {
            return self.nested(Self::test_term);
        }
        self.skip_blanks()?;
        let unary = first.len() == 2 && first.starts_with('-');
        if unary && !self.ends_test() {
            let second = self.operand(Position::Operand)?;
            if ["-v", "-R"].contains(&first) {
                self.script.evaluates = true;
                self.script.named.push(second);
            }
            return Ok(());
        }
        match self.peek() {
            _ if self.ends_test() => Ok(()),
            Some(b'&' | b'|' | b')' | b'\n') => Ok(()),
            Some(b'<' | b'>') => {
                self.advance()?;
                self.skip_blanks()?;
                self.operand(Position::Operand).map(drop)
            }
            _ => self.comparison(operand),
        }
    }

    /// Parses the operator after a word, and its right side.
    fn comparison(&mut self, left: Word) -> Result<(), ParseError> {
        const NUMBERS: Names = Names("-eq -ne -lt -le -gt -ge");
        const OTHERS: Names = Names("= == != =~ -nt -ot -ef");
        let operator = self.word(Position::Operand)?;
        let operator = operator.plain().unwrap_or_default();
        if !NUMBERS.has(operator) && !OTHERS.has(operator) {
            return Err(self.error("this operator is not supported"));
        }
        self.skip_blanks()?;
        let position = if operator == "=~" { Position::Regex } else { Position::Operand };
        let right = self.operand(position)?;
        if NUMBERS.has(operator) {
            self.script.evaluates = true;
            self.script.evaluated.extend([left, right]);
        }
        Ok(())
    }

    /// Parses a word other than `]]`.
    fn operand(&mut self, position: Position) -> Result<Word, ParseError> {
        match self.ends_test() {
            true => Err(self.error("a word was expected here")),
            false => self.word(position),
        }
    }

    /// Parses `function name`, with or without parentheses.
    pub(super) fn function(&mut self) -> Result<Kind, ParseError> {
        self.take_all(b"function")?;
        self.skip_blanks()?;
        let name = self.word(Position::Command)?;
        self.skip_blanks()?;
        if self.take(b'(')? {
            self.skip_blanks()?;
            self.expect(b')', "a parenthesis is not closed")?;
        }
        self.function_body(&name)
    }

    pub(super) fn function_body(&mut self, name: &Word) -> Result<Kind, ParseError> {
        let Some(text) = name.plain().map(str::to_owned) else {
            return Err(ParseError {
                span: name.span.clone(),
                what: "this is not a function name",
            });
        };
        if is_listing(&text) {
            let what = "a function must not replace this command";
            return Err(ParseError { span: name.span.clone(), what });
        }
        self.skip_newlines()?;
        self.repeat_depth += 1;
        if !self.compound()? {
            return Err(self.error("the function has no body"));
        }
        self.trailing_redirects()?;
        self.repeat_depth -= 1;
        self.script.function_names.push(text.clone());
        Ok(Kind::Function(text))
    }

    /// Parses `coproc`. A compound command after it can have a name.
    pub(super) fn coproc(&mut self) -> Result<Kind, ParseError> {
        self.take_all(b"coproc")?;
        self.skip_blanks()?;
        if !self.compound()? {
            let (start, commands) = (self.at, self.script.commands.len());
            let name = self.word(Position::Command)?;
            self.skip_blanks()?;
            if name.plain().is_some_and(is_name) && self.compound()? {
                let span = name.span.clone();
                self.script.set_variables.push((name.plain().unwrap_or_default().to_owned(), span));
            } else {
                self.at = start;
                self.script.commands.truncate(commands);
                self.simple(0, false)?;
            }
        }
        self.trailing_redirects()?;
        Ok(Kind::Other)
    }
}
