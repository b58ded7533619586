//! awk: its programs can run commands and write files.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let syntax = OptionSyntax {
        valued: "FvfEilW",
        attached: "dopL",
        long_valued: Names("field-separator assign file exec include load source"),
        stops_at_operand: true,
        ..OptionSyntax::default()
    };
    let (arguments, rest) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an unknown option"),
    };
    let mut programs = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => match (name.as_str(), value) {
                ("version" | "help" | "V" | "h", None) if call.arguments().len() == 1 => return,
                ("d" | "o" | "p" | "dump-variables" | "pretty-print" | "profile", Some(file)) => {
                    actions.push(Action::WriteAside(file));
                }
                ("f" | "E" | "i" | "l" | "D" | "W", _) => {
                    return actions.opaque(span, "a program in a file");
                }
                (name, _)
                    if ["file", "exec", "include", "load", "debug"]
                        .iter()
                        .any(|long| name.len() > 1 && long.starts_with(name)) =>
                {
                    return actions.opaque(span, "a program in a file");
                }
                ("e", _) => return actions.opaque(span, "an unknown option"),
                (name, Some(value)) if name.len() > 1 && "source".starts_with(name) => {
                    programs.push(value)
                }
                _ => {}
            },
            Argument::Unknown(word) if actions.may_be_option(&word) => {
                return actions.unresolved(word.span, "an awk program");
            }
            // The first operand is the program.
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
        let texts = actions.knowledge.possible_texts(&program);
        if texts.is_empty() {
            return actions.unresolved(program.span, "an awk program");
        }
        for text in texts {
            run(actions, &text, &program);
        }
    }
}

fn run(actions: &mut Actions<'_>, text: &str, program: &Word) {
    match effects(text) {
        Ok(effects) => {
            for file in effects.files {
                actions.push(Action::WriteAside(Word::known(file, program.span.clone())));
            }
            for text in effects.commands {
                let (span, by) = (program.span.clone(), Runner::SH);
                actions.push(Action::RunScript { text, span, by });
            }
        }
        Err(what) => actions.opaque(program.span.clone(), what),
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

/// How many ambiguous slashes are read both ways: as a division, and as the beginning of a pattern.
const MAX_SLASHES: u32 = 6;

/// What a program does, or why it cannot be judged. A slash after a value divides, but where a value ends
/// is not certain, and in the wrong reading a quote could hide the rest: all readings count.
fn effects(program: &str) -> Result<Effects, &'static str> {
    const LOST: &str = "an awk program that is not understood";
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

/// One reading of the ambiguous slashes: a bit for each.
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
            // The statement continues on the next line after these.
            Token::Line if matches!(before, Some(Token::Sign(',' | '&' | '|' | '{'))) => {}
            Token::Sign(';' | '}' | '{') | Token::Line => printing = false,
            Token::Sign('>') if printing && depth <= 0 => {
                let appends = next == Some(&Token::Sign('>'));
                at += usize::from(appends);
                let follows = tokens.get(at + 2);
                let whole = matches!(follows, None | Some(Token::Sign(';' | '}') | Token::Line));
                match tokens.get(at + 1) {
                    Some(Token::Text(file)) if whole => effects.files.push(file.clone()),
                    _ => return Err("awk writes to a file that is only known at run time"),
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
                        // A zero byte keeps a text with escapes from passing as a script.
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
                // A name may follow without a blank between.
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

/// Whether a slash after this token can only begin a pattern.
fn begins_pattern(token: Option<&Token>) -> bool {
    match token {
        None | Some(Token::Line) => true,
        Some(Token::Sign(sign)) => "(,!~&|;{".contains(*sign),
        _ => false,
    }
}

/// Skips a pattern. Implementations differ on a slash in brackets: that is not understood.
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
