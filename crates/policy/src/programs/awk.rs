//! Programs for awk: they can run commands and write files.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::judge::{Call, Judge, Ruling};
use crate::names::Names;
use crate::script::{Shell, Word};

/// Judges a call of awk.
pub fn inspect(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let syntax = OptionSyntax {
        valued: "FvfEilW",
        long_valued: Names("field-separator assign file exec include load source"),
        stops_at_operand: true,
        ..OptionSyntax::default()
    };
    let (arguments, rest) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not known"),
    };
    let mut programs = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => match (name.as_str(), value) {
                ("version" | "help" | "V" | "h", None) => return Ok(()),
                ("f" | "E" | "i" | "l" | "D" | "W", _) => {
                    return judge.opaque(span, "a program in a file");
                }
                (name, _)
                    if ["file", "exec", "include", "load", "debug"]
                        .iter()
                        .any(|long| name.len() > 1 && long.starts_with(name)) =>
                {
                    return judge.opaque(span, "a program in a file");
                }
                ("e", _) => return judge.opaque(span, "an option that is not known"),
                (name, Some(value)) if name.len() > 1 && "source".starts_with(name) => {
                    programs.push(value)
                }
                _ => {}
            },
            Argument::Unknown(word) if judge.may_be_option(&word) => {
                return judge.unresolved(word.span, "a program for awk");
            }
            // The first that is no option is the program.
            Argument::Operand(word) | Argument::Unknown(word) if programs.is_empty() => {
                programs.push(word);
            }
            Argument::Operand(_) | Argument::Unknown(_) => {}
        }
    }
    if programs.is_empty() {
        programs.extend(rest.first().cloned());
    }
    for program in programs {
        let texts = judge.knowledge.possible_texts(&program);
        if texts.is_empty() {
            return judge.unresolved(program.span, "a program for awk");
        }
        for text in texts {
            run(judge, &text, &program)?;
        }
    }
    Ok(())
}

/// Judges what a program does.
fn run(judge: &mut Judge<'_>, text: &str, program: &Word) -> Ruling {
    match effects(text) {
        Ok(effects) => {
            for file in effects.files {
                judge.side_file(&Word::known(file, program.span.clone()))?;
            }
            for command in effects.commands {
                let span = Some(program.span.clone());
                judge.elsewhere(|judge| judge.script(&command, Shell::Sh, span))?;
            }
            Ok(())
        }
        Err(what) => judge.opaque(program.span.clone(), what),
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Regex,
    Number,
    Sign(char),
    Line,
}

/// What a program does besides printing.
#[derive(Default)]
struct Effects {
    files: Vec<String>,
    /// Texts for a shell.
    commands: Vec<String>,
}

/// How many slashes that may divide or begin a pattern are read both ways.
const MAX_SLASHES: u32 = 6;

/// The files a program writes, or why it is not harmless. A slash behind a value divides, but where
/// a value ends is not certain: read the wrong way, a quote could hide the rest.
fn effects(program: &str) -> Result<Effects, &'static str> {
    const LOST: &str = "a program for awk that is not understood";
    let mut effects = Effects::default();
    let mut readings = 0;
    let mut way = 0_u32;
    loop {
        let mut slashes = Slashes { way, seen: 0 };
        if let Some(tokens) = tokens(program, &mut slashes) {
            readings += 1;
            effects_of(&tokens, &mut effects)?;
        }
        way += 1;
        if slashes.seen > MAX_SLASHES {
            return Err(LOST);
        }
        if way >= 1 << slashes.seen {
            break;
        }
    }
    match readings {
        0 => Err(LOST),
        _ => Ok(effects),
    }
}

/// One way to read the slashes nobody can be sure of: a bit for each.
struct Slashes {
    way: u32,
    seen: u32,
}

impl Slashes {
    fn next_divides(&mut self) -> bool {
        self.seen += 1;
        self.way >> (self.seen - 1).min(31) & 1 == 0
    }
}

fn effects_of(tokens: &[Token], effects: &mut Effects) -> Result<(), &'static str> {
    let (mut printing, mut depth) = (false, 0);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        match token {
            Token::Name(name) if name == "system" && next == Some(&Token::Sign('(')) => {
                return Err("awk runs a command");
            }
            Token::Name(name) if name == "print" || name == "printf" => {
                (printing, depth) = (true, 0);
            }
            Token::Sign('@') => return Err("awk loads or calls something by name"),
            Token::Sign('|') if next == Some(&Token::Sign('|')) => at += 1,
            Token::Sign('|') => {
                let whole =
                    matches!(tokens.get(at + 2), None | Some(Token::Sign(';' | '}') | Token::Line));
                match next {
                    Some(Token::Text(command)) if whole && printing => {
                        effects.commands.push(command.clone());
                    }
                    _ => return Err("awk runs a command"),
                }
            }
            Token::Sign('(' | '[') => depth += 1,
            Token::Sign(')' | ']') => depth -= 1,
            // A line goes on behind these.
            Token::Line if matches!(before, Some(Token::Sign(',' | '&' | '|' | '{'))) => {}
            Token::Sign(';' | '}' | '{') | Token::Line => printing = false,
            Token::Sign('>') if printing && depth <= 0 => {
                let appends = next == Some(&Token::Sign('>'));
                at += usize::from(appends);
                let follows = tokens.get(at + 2);
                let whole = matches!(follows, None | Some(Token::Sign(';' | '}') | Token::Line));
                match tokens.get(at + 1) {
                    Some(Token::Text(file)) if whole => effects.files.push(file.clone()),
                    _ => return Err("awk writes to a file only the run will know"),
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

fn tokens(program: &str, slashes: &mut Slashes) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = program.chars().peekable();
    while let Some(character) = rest.next() {
        let token = match character {
            ' ' | '\t' | '\r' => continue,
            '\n' => Token::Line,
            '#' => {
                while rest.peek().is_some_and(|next| *next != '\n') {
                    rest.next();
                }
                continue;
            }
            '\\' => {
                rest.next();
                continue;
            }
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next()? {
                        '"' => break,
                        // What an escape makes of it, no shell has seen.
                        '\\' => text.extend(['\u{0}', rest.next()?]),
                        '\n' => return None,
                        other => text.push(other),
                    }
                }
                Token::Text(text)
            }
            '/' if begins_pattern(tokens.last()) || !slashes.next_divides() => {
                pattern(&mut rest)?;
                Token::Regex
            }
            c if c.is_ascii_digit() || c == '.' => {
                // A name may follow without a blank.
                while rest.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
                Token::Number
            }
            c if c.is_alphabetic() || c == '_' => {
                let mut name = c.to_string();
                while let Some(next) = rest.next_if(|next| next.is_alphanumeric() || *next == '_') {
                    name.push(next);
                }
                Token::Name(name)
            }
            other => Token::Sign(other),
        };
        tokens.push(token);
    }
    Some(tokens)
}

/// Whether a slash behind it can only begin a pattern.
fn begins_pattern(token: Option<&Token>) -> bool {
    match token {
        None | Some(Token::Line) => true,
        Some(Token::Sign(sign)) => "(,!~&|;{".contains(*sign),
        _ => false,
    }
}

/// Passes over a pattern. In brackets some awks end it at a slash and some do not.
fn pattern(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    loop {
        match rest.next()? {
            '/' => return Some(()),
            '\\' => {
                rest.next()?;
            }
            '\n' => return None,
            '[' => {
                rest.next_if_eq(&'^');
                rest.next_if_eq(&']');
                loop {
                    match rest.next()? {
                        ']' => break,
                        '/' | '\n' => return None,
                        '\\' => {
                            rest.next()?;
                        }
                        '[' if rest.next_if_eq(&':').is_some() => while rest.next()? != ']' {},
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
