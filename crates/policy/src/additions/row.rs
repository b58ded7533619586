//! What is known about the arguments of a program: a row of the table.

use super::operands::{is_goal, is_value};
use crate::names::Names;

/// What an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Harmless, with whatever value it has.
    Flag,
    /// Harmless, and the next word is its value.
    Valued,
    /// The same, if the next word is a number.
    Counted,
    /// The same, and the value is a directory from which the program then works.
    Place,
    /// The same, and the value is in the same word.
    PlaceIn,
    /// Harmless if no word follows that it may take as its value or not.
    Unclear,
    /// The next word is as harmless as an operand.
    Operand,
    Unknown,
}

/// Which operands are harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// Those in `known`, because the others are something to run: `make test deploy`.
    Known,
    /// All if the rule names a sub-command and nothing for it: `pip install x`, but not `pip install requests x`.
    OfSubcommand,
    /// All if the rule names only options: `rpm -q x`.
    OfOptions,
    /// Tests in the working directory or below.
    Tests,
    /// Files of them with an ending, as anything else may be the name of something to run.
    TestFiles,
    /// Names of tests in Python: any other name of a function would be called, such as `code.interact`.
    TestNames,
    /// Numbers, such as ports.
    Numbers,
    /// One file, which is only read.
    One,
    /// Any file there, if it is the program that an interpreter runs.
    Program,
    Any,
}

/// What follows after `--`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dashes {
    Operands,
    /// Arguments for a program that these sub-commands run. For others they need a rule.
    OfProgram(Names),
    /// The same, but others give them to a compiler.
    OfCompiler(Names),
    /// Arguments for the program that a script of the project runs.
    Script,
}

/// What may be added to a call of these programs. An option that takes the next word where this says that it does not,
/// or the other way round, makes a value of a goal or a goal of a value: leave out what is unsure.
pub struct Row {
    pub programs: Names,
    /// Options that never take the next word.
    pub flags: Names,
    /// Options that always have a value, in the same word after `=` or in the next.
    pub valued: Names,
    /// Options that may have a number of digits, in the same word or in the next. Any other word is not theirs.
    pub counted: Names,
    /// Options that may have a value, but in the same word only.
    pub glued: Names,
    /// Options that take the next word if it is not an option, or only in some versions.
    pub unclear: Names,
    /// Options with a value as in `valued`, which is a directory, or a file in one, from which the program then works.
    pub places: Names,
    /// Options with a value in the next word that only a rule may name.
    pub risky: Names,
    /// Sub-commands, and options with which these would run another program than the rule means.
    pub choosing: Option<(Names, Names)>,
    /// Options with a value that is like an operand.
    pub with_operand: Names,
    /// Whether several flags may be one word: `-qy`.
    pub letters: bool,
    pub operands: Operands,
    /// Harmless operands, or sub-commands whose operands are packages and the like. Like all sub-commands, by their
    /// main names.
    pub known: Names,
    /// Sub-commands with a sub-command of their own. Both are one name to what follows: `pip-install`.
    pub groups: Names,
    /// Sub-commands whose operands are harmless as well, even if they name a file in the working directory.
    pub queries: Names,
    /// Sub-commands whose operands may be in other projects, unless they begin with a point.
    pub local: Names,
    /// Whether operands may set variables, `NAME=value`, and become part of commands.
    pub takes_values: bool,
    /// The variables that may be switched on and off.
    pub values: Names,
    /// Sub-commands, and after how many operands the rest is for another program. All if there is none.
    pub hands_over: &'static [(Names, usize)],
    /// The same for scripts of the project.
    pub scripts: &'static [(Names, usize)],
    /// Sub-commands of its own, if every other one is a script of the project.
    pub own: Names,
    pub after_dashes: Dashes,
}

pub const NOTHING: Row = Row {
    programs: Names(""),
    flags: Names(""),
    valued: Names(""),
    counted: Names(""),
    glued: Names(""),
    unclear: Names(""),
    places: Names(""),
    risky: Names(""),
    choosing: None,
    with_operand: Names(""),
    letters: false,
    operands: Operands::Known,
    known: Names(""),
    groups: Names(""),
    queries: Names(""),
    local: Names(""),
    takes_values: false,
    values: Names(""),
    hands_over: &[],
    scripts: &[],
    own: Names(""),
    after_dashes: Dashes::Operands,
};

/// Options that change nothing but what is printed, and how fast, where a row has them at all.
const QUIET: Names = Names(
    "-q -qq -v -vv -vvv -s -B --quiet --silent --verbose --color --no-color --nologo --no-header --no-progress \
     --no-audit --no-fund --batch-mode --no-transfer-progress -ntp -j --jobs --parallel --version --help",
);

impl Row {
    /// Whether an option changes what runs, if only to less. Beside it, another one could take that back.
    pub fn chooses(&self, option: &str) -> bool {
        // `-j4`
        let name = option.split('=').next().unwrap_or_default();
        let name = name.trim_end_matches(|last: char| last.is_ascii_digit());
        let is_quiet = QUIET.has(name) || self.letters && self.has_letters(option);
        let kind = self.option(option);
        !is_quiet && !matches!(kind, Kind::Counted | Kind::Place | Kind::PlaceIn)
    }

    pub fn option(&self, text: &str) -> Kind {
        let (name, value) =
            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        // `-C=sub` may mean `sub`, or the folder `=sub`.
        let is_unsure = value.is_some() && !name.starts_with("--") && name.len() == 2;
        let end = text.char_indices().nth(2).map_or(text.len(), |(end, _)| end);
        let (letter, number) = text.split_at(end);
        // `-j4`
        let may_be_counted = self.valued.has(letter) || self.counted.has(letter);
        let is_counted = may_be_counted && is_number(number);
        let is_combined = !text.starts_with("--") && self.letters && self.has_letters(text);
        let may_be_glued =
            [self.valued, self.counted, self.glued, self.places].iter().any(|it| it.has(name));
        match value {
            _ if self.flags.has(text) || is_counted || is_combined => Kind::Flag,
            _ if is_unsure => Kind::Unknown,
            None if self.valued.has(name) => Kind::Valued,
            None if self.counted.has(name) => Kind::Counted,
            None if self.unclear.has(name) => Kind::Unclear,
            None if self.places.has(name) => Kind::Place,
            None if self.with_operand.has(name) => Kind::Operand,
            None if self.glued.has(name) => Kind::Flag,
            Some(value) if self.places.has(name) && self.takes_text(value) => Kind::PlaceIn,
            Some(value) if may_be_glued && self.takes_text(value) => Kind::Flag,
            _ => Kind::Unknown,
        }
    }

    /// Whether an option may have this value. Scripts of the project may put it into a command.
    pub fn takes_text(&self, value: &str) -> bool {
        is_value(value) && (self.after_dashes != Dashes::Script || is_goal(value))
    }

    /// Whether it is several flags in one word: `-qy`, `-sj8`.
    fn has_letters(&self, text: &str) -> bool {
        let letters = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let has_number = letters.len() < text.len();
        let is_flag = |letter: char| self.flags.has(&format!("-{letter}"));
        let last = letters.chars().last().unwrap_or_default();
        let others = &letters[..letters.len() - last.len_utf8().min(letters.len())];
        // Without a number, it would take the next word if that is one.
        let is_last = |last: char| match has_number {
            true => self.counted.has(&format!("-{last}")),
            false => is_flag(last),
        };
        others.chars().skip(1).all(is_flag) && is_last(last)
    }

    /// Whether all after so many operands is for another program.
    pub fn ends_after(&self, first: &str, operands: usize) -> bool {
        [self.hands_over, self.scripts].iter().any(|list| ends_after(list, first, operands))
    }

    /// Whether it is an operand that the table knows.
    pub fn knows(&self, text: &str) -> bool {
        let is_switch = text.split_once('=').is_some_and(|(name, _)| self.values.has(name));
        self.known.has(text) || is_switch
    }

    /// Whether an operand is not a setting, or a harmless one.
    pub fn takes_value(&self, text: &str) -> bool {
        // A file with more of them.
        if text.starts_with('@') {
            return false;
        }
        let Some((name, value)) = text.split_once('=') else { return true };
        // `NAME:=value`, `NAME += value`
        let name = name.trim_end_matches([':', '+', '?', '!', ' ', '\t']);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        match self.values.has(name) {
            true => value.is_empty() || Names("0 1 2 true false yes no on off").has(value),
            // Others may set variables as well, but most such operands are addresses or patterns.
            false => !self.takes_values && !name.bytes().all(is_plain),
        }
    }
}

pub fn ends_after(list: &[(Names, usize)], first: &str, operands: usize) -> bool {
    list.iter().any(|(subs, after)| *after == operands && (subs.is_empty() || subs.has(first)))
}

pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
