//! Programs for awk: they can run commands and write files.

use super::arguments::{Argument, Form, split};
use crate::judge::{Call, Judge, Ruling};
use crate::script::Word;
use crate::words::Words;

/// Judges a call of awk.
pub fn look(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let form = Form {
        valued: "FvfEil",
        long_valued: Words("field-separator assign file exec include load source"),
        stops: true,
        ..Form::default()
    };
    let (arguments, rest) = match split(&form, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.hides(span, "an option that is not known"),
    };
    let mut programs = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => match (name.as_str(), value) {
                ("version" | "help" | "V" | "h", None) => return Ok(()),
                ("f" | "E" | "i" | "l" | "D", _) => {
                    return judge.hides(span, "a program in a file");
                }
                (name, _)
                    if ["file", "exec", "include", "load", "debug"]
                        .iter()
                        .any(|long| name.len() > 1 && long.starts_with(name)) =>
                {
                    return judge.hides(span, "a program in a file");
                }
                ("e", _) => return judge.hides(span, "an option that is not known"),
                (name, Some(value)) if name.len() > 1 && "source".starts_with(name) => {
                    programs.push(value)
                }
                _ => {}
            },
            Argument::Other(word) | Argument::Unknown(word) => {
                return judge.unresolved(word.span, "a program for awk");
            }
        }
    }
    if programs.is_empty() {
        programs.extend(rest.first().cloned());
    }
    for program in programs {
        let Some(text) = program.data() else {
            return judge.unresolved(program.span, "a program for awk");
        };
        match files(&text) {
            Ok(files) => {
                for file in files {
                    judge.side_file(&Word::known(file, program.span.clone()))?;
                }
            }
            Err(what) => return judge.hides(program.span, what),
        }
    }
    Ok(())
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

/// The files a program writes, or why it is not harmless.
fn files(program: &str) -> Result<Vec<String>, &'static str> {
    const LOST: &str = "a program for awk that is not understood";
    let tokens = tokens(program).ok_or(LOST)?;
    // Behind a parenthesis or a name, a slash may divide or begin a pattern. Read the wrong way, a
    // quote could hide the rest.
    let divides = tokens.windows(2).any(|pair| {
        pair[1] == Token::Sign('/') && matches!(pair[0], Token::Sign(')') | Token::Name(_))
    });
    let signs = ["system", "|", ">", "@"];
    if divides && program.contains('"') && signs.iter().any(|sign| program.contains(sign)) {
        return Err(LOST);
    }
    let (mut files, mut printing, mut depth) = (Vec::new(), false, 0);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        match token {
            Token::Name(name) if name == "system" && next == Some(&Token::Sign('(')) => {
                return Err("awk runs a command");
            }
            Token::Name(name) if name == "print" || name == "printf" => {
                (printing, depth) = (true, 0)
            }
            Token::Sign('@') => return Err("awk loads or calls something by name"),
            Token::Sign('|') if next == Some(&Token::Sign('|')) => at += 1,
            Token::Sign('|') => return Err("awk runs a command"),
            Token::Sign('(' | '[') => depth += 1,
            Token::Sign(')' | ']') => depth -= 1,
            Token::Sign(';' | '}' | '{') | Token::Line => printing = false,
            Token::Sign('>') if printing && depth <= 0 => {
                let appends = next == Some(&Token::Sign('>'));
                at += usize::from(appends);
                let follows = tokens.get(at + 2);
                let whole = matches!(follows, None | Some(Token::Sign(';' | '}') | Token::Line));
                match tokens.get(at + 1) {
                    Some(Token::Text(file)) if whole => files.push(file.clone()),
                    _ => return Err("awk writes to a file only the run will know"),
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(files)
}

fn tokens(program: &str) -> Option<Vec<Token>> {
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
                        '\\' => text.push(rest.next()?),
                        '\n' => return None,
                        other => text.push(other),
                    }
                }
                Token::Text(text)
            }
            '/' if !ends_value(tokens.last()) => {
                let mut brackets = false;
                loop {
                    match rest.next()? {
                        '/' if !brackets => break,
                        // Some awks end the pattern here, some do not.
                        '/' => return None,
                        '\\' => drop(rest.next()?),
                        '[' => brackets = true,
                        ']' => brackets = false,
                        '\n' => return None,
                        _ => {}
                    }
                }
                Token::Regex
            }
            c if c.is_ascii_digit() || c == '.' => {
                while rest.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '.') {
                    rest.next();
                }
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

/// Whether a slash behind it divides.
fn ends_value(token: Option<&Token>) -> bool {
    match token {
        Some(Token::Name(name)) => {
            !["print", "printf", "return", "in", "case", "getline", "if", "while", "else", "do"]
                .contains(&name.as_str())
        }
        Some(Token::Text(_) | Token::Number) => true,
        Some(Token::Sign(sign)) => matches!(sign, ')' | ']' | '$'),
        _ => false,
    }
}
