//! Commands that hold others: groups, loops, conditions, functions.

use super::grammar::{Kind, Until};
use super::listing::is_listing;
use super::reader::{Reader, is_meta, is_name};
use super::words::Place;
use super::{Trouble, Word};
use crate::words::Words;

impl Reader<'_> {
    /// A compound command, if one is there.
    pub(super) fn compound(&mut self) -> Result<bool, Trouble> {
        self.deeper(Self::compound_here)
    }

    fn compound_here(&mut self) -> Result<bool, Trouble> {
        if self.peek() == Some(b'(') {
            self.advance()?;
            if self.peek() == Some(b'(') && self.is_bash() {
                self.arithmetic()?;
            } else {
                self.list(Until::Parenthesis)?;
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
                self.loops += 1;
                self.list(Until::Own(Words("do")))?;
                self.body_of_loop()?;
                self.loops -= 1;
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

    /// What follows an opening brace.
    fn group(&mut self) -> Result<(), Trouble> {
        self.list(Until::Own(Words("}")))?;
        self.expect_word("}", "a brace is not closed")
    }

    fn condition(&mut self) -> Result<(), Trouble> {
        self.expect_word("if", "`if` was expected")?;
        loop {
            self.list(Until::Own(Words("then")))?;
            self.expect_word("then", "`then` was expected")?;
            self.list(Until::Own(Words("elif else fi")))?;
            if self.take_word("elif")? {
                continue;
            }
            if self.take_word("else")? {
                self.list(Until::Own(Words("fi")))?;
            }
            return self.expect_word("fi", "`fi` was expected");
        }
    }

    fn body_of_loop(&mut self) -> Result<(), Trouble> {
        self.gaps()?;
        if self.is_bash() && self.take_word("{")? {
            return self.group();
        }
        self.expect_word("do", "`do` was expected")?;
        self.list(Until::Own(Words("done")))?;
        self.expect_word("done", "`done` was expected")
    }

    fn for_loop(&mut self) -> Result<(), Trouble> {
        self.blanks()?;
        self.loops += 1;
        if self.is_bash() && self.peek() == Some(b'(') && self.ahead(1) == Some(b'(') {
            self.advance()?;
            let outer = std::mem::replace(&mut self.in_header, true);
            self.arithmetic()?;
            self.in_header = outer;
            self.blanks()?;
            self.take(b';')?;
        } else {
            let name = self.word(Place::Command)?;
            let Some(text) = name.plain().filter(|text| is_name(text)) else {
                return Err(Trouble { span: name.span, what: "this is no name for a variable" });
            };
            self.script.set.push((text.to_owned(), name.span.clone()));
            self.gaps()?;
            if self.take_word("in")? {
                let mut words = Vec::new();
                loop {
                    self.blanks()?;
                    if let Some(b';' | b'\n') = self.peek() {
                        break;
                    }
                    words.push(self.word(Place::Command)?);
                }
                self.script.loops.push((text.to_owned(), words));
            }
            self.take(b';')?;
        }
        self.body_of_loop()?;
        self.loops -= 1;
        Ok(())
    }

    fn case(&mut self) -> Result<(), Trouble> {
        self.expect_word("case", "`case` was expected")?;
        self.blanks()?;
        self.word(Place::Command)?;
        self.gaps()?;
        self.expect_word("in", "`in` was expected")?;
        loop {
            self.gaps()?;
            if self.take_word("esac")? {
                return Ok(());
            }
            self.take(b'(')?;
            loop {
                self.blanks()?;
                self.word(Place::Command)?;
                self.blanks()?;
                if !self.take(b'|')? {
                    break;
                }
            }
            self.expect(b')', "a parenthesis was expected behind the pattern")?;
            self.list(Until::Arm)?;
            if self.is_arm_end() {
                let _ = self.take_all(b";;&")? || self.take_all(b";;")? || self.take_all(b";&")?;
            }
        }
    }

    /// What follows `[[`.
    fn test(&mut self) -> Result<(), Trouble> {
        self.any_of_test()?;
        self.gaps()?;
        match self.ends_test() && self.take_all(b"]]")? {
            true => Ok(()),
            false => Err(self.trouble("`]]` was expected")),
        }
    }

    fn ends_test(&mut self) -> bool {
        let closes = self.peek() == Some(b']') && self.ahead(1) == Some(b']');
        closes && self.ahead(2).is_none_or(is_meta)
    }

    fn any_of_test(&mut self) -> Result<(), Trouble> {
        loop {
            self.term_of_test()?;
            // A line may end before what joins or closes, and behind it.
            self.gaps()?;
            if !self.take_all(b"&&")? && !self.take_all(b"||")? {
                return Ok(());
            }
        }
    }

    fn term_of_test(&mut self) -> Result<(), Trouble> {
        self.gaps()?;
        if self.take(b'(')? {
            self.deeper(Self::any_of_test)?;
            return self.expect(b')', "a parenthesis is not closed");
        }
        let first = self.operand(Place::Operand)?;
        let first = first.plain().unwrap_or_default();
        if first == "!" {
            return self.deeper(Self::term_of_test);
        }
        self.blanks()?;
        let unary = first.len() == 2 && first.starts_with('-');
        if unary && !self.ends_test() {
            self.script.evaluates |= ["-v", "-R"].contains(&first);
            return self.operand(Place::Operand).map(drop);
        }
        match self.peek() {
            _ if self.ends_test() => Ok(()),
            Some(b'&' | b'|' | b')' | b'\n') => Ok(()),
            Some(b'<' | b'>') => {
                self.advance()?;
                self.blanks()?;
                self.operand(Place::Operand).map(drop)
            }
            _ => self.comparison(),
        }
    }

    /// An operator and what stands behind it.
    fn comparison(&mut self) -> Result<(), Trouble> {
        const NUMBERS: Words = Words("-eq -ne -lt -le -gt -ge");
        const OTHERS: Words = Words("= == != =~ -nt -ot -ef");
        let operator = self.word(Place::Operand)?;
        let operator = operator.plain().unwrap_or_default();
        if !NUMBERS.has(operator) && !OTHERS.has(operator) {
            return Err(self.trouble("this operator is not understood"));
        }
        self.script.evaluates |= NUMBERS.has(operator);
        self.blanks()?;
        let place = if operator == "=~" { Place::Regex } else { Place::Operand };
        self.operand(place).map(drop)
    }

    /// A word that is not the end.
    fn operand(&mut self, place: Place) -> Result<Word, Trouble> {
        match self.ends_test() {
            true => Err(self.trouble("something else was expected here")),
            false => self.word(place),
        }
    }

    /// `function name`, with or without parentheses.
    pub(super) fn function(&mut self) -> Result<Kind, Trouble> {
        self.take_all(b"function")?;
        self.blanks()?;
        let name = self.word(Place::Command)?;
        self.blanks()?;
        if self.take(b'(')? {
            self.blanks()?;
            self.expect(b')', "a parenthesis is not closed")?;
        }
        self.function_body(&name)
    }

    pub(super) fn function_body(&mut self, name: &Word) -> Result<Kind, Trouble> {
        let Some(text) = name.plain().map(str::to_owned) else {
            return Err(Trouble {
                span: name.span.clone(),
                what: "this is no name for a function",
            });
        };
        if is_listing(&text) {
            let what = "a function in place of a command";
            return Err(Trouble { span: name.span.clone(), what });
        }
        self.gaps()?;
        self.loops += 1;
        if !self.compound()? {
            return Err(self.trouble("the function has no body"));
        }
        self.redirects_behind()?;
        self.loops -= 1;
        Ok(Kind::Function(text))
    }

    /// `coproc`, whose command can have a name if it is a compound one.
    pub(super) fn coproc(&mut self) -> Result<Kind, Trouble> {
        self.take_all(b"coproc")?;
        self.blanks()?;
        if !self.compound()? {
            let (start, commands) = (self.at, self.script.commands.len());
            let name = self.word(Place::Command)?;
            self.blanks()?;
            if name.plain().is_some_and(is_name) && self.compound()? {
                let span = name.span.clone();
                self.script.set.push((name.plain().unwrap_or_default().to_owned(), span));
            } else {
                self.at = start;
                self.script.commands.truncate(commands);
                self.simple(0, false)?;
            }
        }
        self.redirects_behind()?;
        Ok(Kind::Other)
    }
}
