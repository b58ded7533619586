//! sed: its programs can run commands (`e`) and write files (`w`).

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let syntax = OptionSyntax {
        valued: "efl",
        attached: "i",
        long_valued: Names("expression file line-length"),
        ..OptionSyntax::default()
    };
    let (arguments, _) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    let (mut programs, mut operands) = (Vec::new(), Vec::new());
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => {
                let is = |letter: &str, long: &str| {
                    name == letter || (name.len() > 1 && long.starts_with(&*name))
                };
                match value {
                    _ if ["help", "version", "sandbox"].contains(&name.as_str()) => return,
                    _ if is("f", "file") => return actions.opaque(span, "a program in a file"),
                    Some(program) if is("e", "expression") => programs.push(program),
                    // A backup may be in another folder.
                    Some(suffix) if is("i", "in-place") && suffix.prefix().contains('/') => {
                        actions.push(Action::WriteAside(suffix));
                    }
                    _ => {}
                }
            }
            Argument::Unknown(word) if actions.may_be_option(&word) => {
                let what = "a word that may be an option; put ./ or -- before it";
                return actions.unresolved(word.span, what);
            }
            Argument::Operand(word) | Argument::Unknown(word) => operands.push(word),
        }
    }
    if programs.is_empty() {
        match operands.first() {
            Some(first) => programs.push(first.clone()),
            None => return,
        }
    }
    // sed joins several programs, a line each.
    if let (true, Some(texts)) =
        (programs.len() > 1, programs.iter().map(Word::text).collect::<Option<Vec<_>>>())
    {
        programs = vec![Word::known(texts.join("\n"), call.span())];
    }
    for program in programs {
        let texts = actions.knowledge.possible_texts(&program);
        if texts.is_empty() {
            return actions.unresolved(program.span, "a sed program");
        }
        for text in texts {
            match (Program { text: &text, at: 0 }).written_files() {
                Ok(files) => {
                    for file in files {
                        actions.push(Action::WriteAside(Word::known(file, program.span.clone())));
                    }
                }
                Err(what) => return actions.opaque(program.span, what),
            }
        }
    }
}

/// A program and a position in it.
struct Program<'a> {
    text: &'a str,
    at: usize,
}

impl Program<'_> {
    /// The files the program writes, or why it cannot be judged.
    fn written_files(mut self) -> Result<Vec<String>, &'static str> {
        const LOST: &str = "a sed program that is not understood";
        let mut files = Vec::new();
        loop {
            self.skip(" \t\n;}");
            self.address().ok_or(LOST)?;
            self.skip(" \t!");
            let Some(command) = self.next() else { return Ok(files) };
            match command {
                '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P'
                | 'x' | 'z' | 'F' => {}
                'l' | 'L' | 'q' | 'Q' => self.skip(" \t0123456789"),
                '#' => drop(self.line()),
                ':' | 'b' | 't' | 'T' => {
                    self.skip(" \t");
                    self.until(&[' ', '\t', ';', '\n', '}']);
                }
                'a' | 'i' | 'c' => self.lines(),
                'r' | 'R' => drop(self.line()),
                'w' | 'W' => files.push(self.line().trim().to_owned()),
                's' => {
                    let delimiter = self.next().ok_or(LOST)?;
                    self.part(delimiter).ok_or(LOST)?;
                    self.part(delimiter).ok_or(LOST)?;
                    loop {
                        match self.peek() {
                            Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => {
                                self.next();
                            }
                            Some('e') => return Err("sed runs the text it matches"),
                            Some('w') => {
                                self.next();
                                files.push(self.line().trim().to_owned());
                                break;
                            }
                            Some(' ' | '\t' | ';' | '\n' | '}' | '#') | None => break,
                            Some(_) => return Err(LOST),
                        }
                    }
                }
                'y' => {
                    let delimiter = self.next().ok_or(LOST)?;
                    self.part(delimiter).ok_or(LOST)?;
                    self.part(delimiter).ok_or(LOST)?;
                }
                'e' => return Err("sed runs a command"),
                _ => return Err(LOST),
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, characters: &str) {
        while self.peek().is_some_and(|next| characters.contains(next)) {
            self.next();
        }
    }

    /// Skips a command's addresses: numbers, `$`, patterns.
    fn address(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some('0'..='9' | '$' | ',' | '~' | '+' | ' ' | '\t') => {
                    self.next();
                }
                Some('/') => {
                    self.next();
                    self.part('/')?;
                    self.skip("IM");
                }
                Some('\\') => {
                    self.next();
                    let delimiter = self.next()?;
                    self.part(delimiter)?;
                    self.skip("IM");
                }
                _ => return Some(()),
            }
        }
    }

    /// Skips text up to a delimiter that is not after a backslash.
    fn part(&mut self, delimiter: char) -> Option<()> {
        if delimiter == '\n' || delimiter == '\\' {
            return None;
        }
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                next if next == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    fn until(&mut self, ends: &[char]) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find(ends).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn line(&mut self) -> String {
        self.until(&['\n'])
    }

    /// Skips text that continues after lines that end with a backslash.
    fn lines(&mut self) {
        let continues =
            |line: String| line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
        while continues(self.line()) && self.next().is_some() {}
    }
}
