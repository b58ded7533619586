//! Arguments that a rule does not name, for programs that run whatever they are told.
//!
//!     make test -j4 SHELL=/tmp/x
//!     ╰──┬────╯ ╰──────┬───────╯
//!      named         added
//!
//! A rule such as `make test` allows one use of a program that can run anything. The arguments with which it would run
//! something else are too many to list, so the harmless ones are listed (`additions/table.rs`). All others need a rule
//! that names them.

mod table;

use crate::identity;
use crate::lock;
use crate::names::Names;
use crate::programs;
use crate::script::Word;
use crate::variables::is_inert;
use table::{Kind, Row, row};

/// Options with which interpreters only print something about themselves.
const INFORMATION: Names = Names("-h -v -V --help --version");

/// Whether it matters with which arguments a program runs, because it runs what they say.
pub fn matter_to(program: &str) -> bool {
    let program = identity::program(program);
    (programs::is_interpreter(program) || lock::runs_anything(program))
        && !programs::is_shell(program)
}

/// The first argument that may change what a program runs, among those that a rule does not name.
pub fn refused<'a>(program: &str, words: &'a [Word], named: &[bool]) -> Option<&'a Word> {
    let program = identity::program(program);
    let row = row(program);
    let is_interpreter = programs::is_interpreter(program);
    let text = |at: usize| words.get(at).and_then(Word::text);
    let names = |at: usize| named.get(at).is_some_and(|named| *named);
    // `ruby -v x.rb` would run the file.
    let asks = is_interpreter
        && (0..words.len())
            .filter(|at| names(*at))
            .all(|at| text(at).is_some_and(|it| INFORMATION.has(&it)));
    let (mut operands, mut ended, mut at) = (0, false, 0);
    let mut first = String::new();
    while let Some(word) = words.get(at) {
        at += 1;
        let known = word.literal().or_else(|| word.text().filter(|_| names(at - 1)));
        let Some(text) = known else {
            if asks || row.takes_values || !(is_operand(word) || ended && word.is_single()) {
                return Some(word);
            }
            operands += 1;
            if row.hands_over(&first, operands) {
                return None;
            }
            continue;
        };
        if text == "--" && !ended {
            if row.hands_over_after_dashes {
                return None;
            }
            ended = true;
            continue;
        }
        // After `--` it may be an option of what the program runs.
        if ended && text.starts_with('-') && !names(at - 1) {
            return Some(word);
        }
        if !ended && text.len() > 1 && text.starts_with('-') {
            let is_inline = programs::is_inline_option(program, &text);
            match row.option(&text) {
                _ if names(at - 1) && is_inline && text == "-m" => {
                    return in_module(words.get(at..)?, named.get(at..).unwrap_or_default());
                }
                // What follows is a program, and options may come after it.
                _ if names(at - 1) && is_inline && names(at) => at += 1,
                _ if names(at - 1) => {}
                Kind::Flag => {}
                Kind::Valued => {
                    let value = words.get(at)?;
                    if value.literal().is_none_or(|it| it.starts_with('-')) && !is_operand(value) {
                        return Some(value);
                    }
                    at += 1;
                }
                Kind::Unknown => return Some(word),
            }
            continue;
        }
        if !names(at - 1) && (asks || !row.takes(&text)) || row.takes_values && !is_inert(&text) {
            return Some(word);
        }
        if operands == 0 {
            first = text.into_owned();
        }
        operands += 1;
        if row.hands_over(&first, operands) {
            return None;
        }
    }
    None
}

/// Whether a word certainly is not an option, nor becomes several of which one is.
fn is_operand(word: &Word) -> bool {
    // A pattern with a beginning of its own.
    let begins = |text: &str| !text.starts_with(['-', '{', '*', '?', '[', '~', '+', '@', '!']);
    word.is_operand() || word.text().is_some_and(|text| !text.is_empty() && begins(&text))
}

/// The same for `python3 -m MODULE …`, whose arguments are the module's.
fn in_module<'a>(words: &'a [Word], named: &[bool]) -> Option<&'a Word> {
    let module = words.first()?.text()?;
    match matter_to(&module) {
        true => refused(&module, &words[1..], named.get(1..).unwrap_or_default()),
        false => None,
    }
}

impl Row {
    fn option(&self, text: &str) -> Kind {
        let (name, value) =
            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let is_number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
        let end = text.char_indices().nth(2).map_or(text.len(), |(end, _)| end);
        let (letter, number) = text.split_at(end);
        // `-j4`
        let is_counted = self.valued.has(letter) && is_number(number);
        let is_combined = !text.starts_with("--") && self.letters && self.has_letters(text);
        match value {
            _ if self.flags.has(text) || is_counted || is_combined => Kind::Flag,
            None if self.valued.has(name) => Kind::Valued,
            Some(_) if self.valued.has(name) => Kind::Flag,
            _ => Kind::Unknown,
        }
    }

    /// Whether it is several flags in one word: `-qy`, `-sj8`.
    fn has_letters(&self, text: &str) -> bool {
        let letters = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        letters.chars().skip(1).all(|letter| self.flags.has(&format!("-{letter}")))
    }

    /// Whether an operand is harmless.
    fn takes(&self, text: &str) -> bool {
        // A file with more of them.
        if text.starts_with('@') {
            return false;
        }
        let Some((name, value)) = text.split_once('=') else { return true };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        match self.values.has(name) {
            true => value.is_empty() || Names("0 1 2 true false yes no on off").has(value),
            // Others may set variables as well, but most such operands are addresses or patterns.
            false => !self.takes_values && !name.bytes().all(is_plain),
        }
    }

    /// Whether all that follows after so many operands is for another program.
    fn hands_over(&self, first: &str, operands: usize) -> bool {
        let hands_over = |(subs, after): &(Names, usize)| {
            *after == operands && (subs.is_empty() || subs.has(first))
        };
        self.hands_over.iter().any(hands_over)
    }
}
