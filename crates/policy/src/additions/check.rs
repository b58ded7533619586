//! Looks at the arguments of a program, and finds one that may change what it runs.

use super::operands::{
    climbs, has_ending, is_goal, is_inside, is_operand, is_test, is_test_file, is_test_name,
};
use super::reach::{Reach, reach};
use super::row::{Dashes, Kind, Operands, Row, ends_after, is_number};
use super::table::{CMAKE_BUILD, FORMATTER, SCRIPT, SCRIPT_ELSEWHERE, row};
use super::{
    Arguments, CHECKS, TRUTHS, checks_a_file, matter_to, refused, refused_by_compiler,
    refused_by_module,
};
use crate::names::Names;
use crate::opened;
use crate::paths::base_name;
use crate::programs;
use crate::script::Word;
use crate::subcommands;

/// Programs whose `run` runs texts for a shell that the project has, or tools.
const SHELL_SCRIPTS: Names = Names("pdm hatch rye");

/// Looks at arguments one after the other.
pub struct Check<'a, 'b> {
    program: &'b str,
    row: &'static Row,
    given: Arguments<'a, 'b>,
    /// The first operand, often a sub-command. With the second behind a dash, if it is a group of them.
    first: String,
    is_grouped: bool,
    operands: usize,
    named_operands: usize,
    /// Whether an interpreter knows what to run, other than what it reads.
    pub has_program: bool,
    /// Whether it may be any file, because that is only checked or run as a test.
    checks_a_file: bool,
    /// Whether the rule names the text of the program.
    is_inline: bool,
    /// Whether it runs tests, and all operands are files with some.
    runs_tests: bool,
    /// Where the rule holds.
    reach: Reach,
    /// Whether the rule names an option that changes what runs.
    has_choice: bool,
    /// Whether an option was added that names a directory to work from.
    has_place: bool,
}

/// What an argument means for those after it.
enum Next<'a> {
    /// So many words more belong to it.
    Skip(usize),
    Refuse(&'a Word),
    /// The rest is for another program.
    HandOver,
    /// The rest is for the program that a script of the project runs.
    Script,
    /// The rest is for a compiler.
    Compiler,
    /// The rest is for a program that formats code.
    Formatter,
    /// A rule names all of the rest.
    Named,
    /// The rest is for a module of Python, which is the next word if it has no name.
    Module(String),
}

impl<'a, 'b> Check<'a, 'b> {
    pub fn new(program: &'b str, row: &'static Row, given: Arguments<'a, 'b>) -> Self {
        let has_program = !programs::is_interpreter(program);
        let (first, operands, named_operands) = (String::new(), 0, 0);
        let (checks_a_file, is_inline, runs_tests) = (false, false, false);
        let is_build =
            program == "cmake" && given.names(0) && given.text(0).is_some_and(|it| it == "--build");
        let row = if is_build { self::row(CMAKE_BUILD) } else { row };
        // An option of an interpreter, or a query, does not choose among the parts of a project.
        let may_choose = has_program && row.operands != Operands::OfOptions && !given.open;
        let chooses = |at: usize| {
            given.names(at)
                && given.text(at).is_some_and(|text| {
                    text.starts_with("-")
                        && text != "--"
                        && !row.risky.has(&text)
                        && row.chooses(&text)
                })
        };
        Self {
            has_choice: may_choose && (0..given.words.len()).any(chooses),
            has_place: false,
            reach: reach(program, given),
            program,
            row,
            given,
            first,
            is_grouped: false,
            operands,
            named_operands,
            has_program,
            checks_a_file,
            is_inline,
            runs_tests,
        }
    }

    pub fn refused(&mut self) -> Option<&'a Word> {
        if self.is_unclear() {
            return self.given.first_unnamed();
        }
        let (mut ended, mut at) = (false, 0);
        while let Some(word) = self.given.words.get(at) {
            at += 1;
            let known = word.literal().or_else(|| word.text().filter(|_| self.given.names(at - 1)));
            let next = match known.as_deref() {
                Some("--") if !ended => {
                    ended = true;
                    self.after_dashes()
                }
                Some(text) if at == 1 && self.is_toolchain(text) => Next::Skip(0),
                // It may be an option of what the program runs.
                Some(text) if ended && text.starts_with('-') && !self.given.names(at - 1) => {
                    Next::Refuse(word)
                }
                Some(text) if !ended && text.len() > 1 && text.starts_with('-') => {
                    self.option(text, at)
                }
                Some(text) => self.operand(word, Some(text), at - 1),
                None if is_operand(word) || ended && word.is_single() => {
                    self.operand(word, None, at - 1)
                }
                None => Next::Refuse(word),
            };
            match next {
                Next::Skip(more) => at += more,
                Next::Refuse(word) => return Some(word),
                Next::HandOver => return self.refused_by_next(at),
                Next::Compiler => return refused_by_compiler(self.given.after(at)),
                Next::Formatter => return refused(FORMATTER, self.given.after(at)),
                Next::Named => return self.given.after(at).first_unnamed(),
                Next::Script => {
                    let row = if self.has_place { &SCRIPT_ELSEWHERE } else { &SCRIPT };
                    return Check::new("", row, self.given.after(at)).refused();
                }
                Next::Module(name) if name.is_empty() => {
                    let name = self.given.text(at)?;
                    return refused_by_module(&name, self.given.after(at + 1));
                }
                Next::Module(name) => return refused_by_module(&name, self.given.after(at)),
            }
        }
        None
    }

    /// Whether the rule has an option that may take the next word or not, so that nobody knows what that word is.
    fn is_unclear(&self) -> bool {
        let is_option = |at: usize| {
            self.given.names(at) && self.given.text(at).is_some_and(|text| text.starts_with('-'))
        };
        let is_unknown = |at: usize| {
            self.given.text(at).is_some_and(|text| {
                // What follows `-jar` is the program.
                let is_known = CHECKS.has(&text)
                    || self.row.risky.has(&text)
                    || text.contains('=')
                    || Names("-- -jar").has(&text);
                !is_known && !self.is_program(&text) && self.row.option(&text) == Kind::Unknown
            })
        };
        let has_value = |at: usize| self.given.names(at + 1) && !is_option(at + 1);
        (0..self.given.words.len()).any(|at| is_option(at) && is_unknown(at) && has_value(at))
    }

    /// Whether the next word is a program, or a module.
    fn is_program(&self, option: &str) -> bool {
        let runs = self.row.hands_over.iter().any(|(subs, _)| subs.has("run"));
        match opened::in_letters(self.program, option) {
            Some(_) => true,
            None if Names("python pypy perl").has(self.program) => false,
            None if runs => Names("-m --module").has(option),
            None => programs::is_inline_option(self.program, option),
        }
    }

    /// Whether it is the version of the program that is wanted: `cargo +nightly test`. By another name a folder may be
    /// one, which the command could have made.
    fn is_toolchain(&self, text: &str) -> bool {
        let name = text.strip_prefix('+').filter(|_| subcommands::has_toolchains(self.program));
        let is_version = |name: &str| {
            name.contains('.') && name.bytes().all(|it| it.is_ascii_digit() || it == b'.')
        };
        name.is_some_and(|name| {
            Names("stable beta nightly").has(name)
                || is_version(name)
                || name.strip_prefix("nightly-").is_some_and(is_date)
        })
    }

    /// The same for the program before this place, which gets the rest. If the rule names nothing of that, it allows
    /// the program with any arguments.
    fn refused_by_next(&self, at: usize) -> Option<&'a Word> {
        let rest = self.given.after(at);
        let program = at.checked_sub(1).and_then(|at| self.given.text(at))?;
        let name = base_name(&program);
        let bare = [".js", ".mjs", ".cjs", ".py"].iter().find_map(|end| name.strip_suffix(end));
        let bare = bare.unwrap_or(name);
        let is_script =
            programs::is_interpreter(self.program) && !matter_to(bare) && bare != "setup";
        match rest.named.contains(&true) {
            // What a script of the project does with its arguments is its own affair, unless the rule says with which.
            true if is_script && rest.open => None,
            true if is_script => rest.first_unnamed(),
            true => refused(bare, rest),
            // `go run main.go other.go` compiles both.
            false if name.ends_with(".go") => {
                let first = rest.words.first();
                first.filter(|it| it.text().is_none_or(|text| text.ends_with(".go")))
            }
            // A script of the project is one for a shell.
            false if SHELL_SCRIPTS.has(self.program) && !matter_to(bare) => {
                Check::new("", &SCRIPT, rest).refused()
            }
            // It runs whatever function its arguments name.
            false if name.ends_with(".py") && is_test_file(&program) => {
                refused_by_module("unittest", rest)
            }
            false => None,
        }
    }

    fn after_dashes(&self) -> Next<'a> {
        match self.row.after_dashes {
            Dashes::Operands => Next::Skip(0),
            Dashes::OfProgram(subs) | Dashes::OfCompiler(subs) if subs.has(&self.first) => {
                Next::HandOver
            }
            Dashes::OfCompiler(_) if self.first == "fmt" => Next::Formatter,
            Dashes::OfCompiler(_) => Next::Compiler,
            Dashes::OfProgram(_) => Next::Named,
            Dashes::Script => Next::Script,
        }
    }

    /// An option, whose next word is at this place.
    fn option(&mut self, text: &str, next: usize) -> Next<'a> {
        let (word, value) = (&self.given.words[next - 1], self.given.words.get(next));
        let is_named = self.given.names(next - 1);
        let is_inline = is_named && self.is_program(text);
        self.is_inline |= is_inline;
        self.runs_tests |= is_named && text == "--test";
        self.has_program |= is_inline || is_named && CHECKS.has(text);
        self.checks_a_file |= is_named && checks_a_file(self.program, text);
        match self.row.option(text) {
            _ if is_inline && self.module(text).is_some() => {
                Next::Module(self.module(text).unwrap_or_default())
            }
            // What follows is a program, and options may come after it.
            _ if is_inline && self.given.names(next) => Next::Skip(1),
            Kind::Valued | Kind::Place if is_named => Next::Skip(1),
            Kind::Counted if is_named => Next::Skip(usize::from(
                value.and_then(Word::literal).is_some_and(|it| is_number(&it)),
            )),
            _ if is_named && self.row.risky.has(text) => Next::Skip(1),
            Kind::Operand if is_named => {
                self.named_operands += 1;
                Next::Skip(1)
            }
            _ if is_named => Next::Skip(0),
            _ if self.may_override(text) => Next::Refuse(word),
            _ if self.has_choice && self.row.chooses(text) => Next::Refuse(word),
            _ if self.chooses_program(text) => Next::Refuse(word),
            Kind::Flag => Next::Skip(0),
            // `-j 4`
            Kind::Counted => {
                let number = value.and_then(|value| value.literal()).filter(|it| is_number(it));
                Next::Skip(usize::from(number.is_some()))
            }
            Kind::Unclear => match value {
                Some(value) if !value.literal().is_some_and(|it| it.starts_with('-')) => {
                    Next::Refuse(word)
                }
                _ => Next::Skip(0),
            },
            Kind::PlaceIn => {
                self.has_place = true;
                Next::Skip(0)
            }
            Kind::Operand
                if value.is_some_and(|value| {
                    let text = value.literal();
                    text.as_ref().is_some_and(|it| it.starts_with('-'))
                        || !self.takes(value, text.as_deref())
                }) =>
            {
                Next::Refuse(word)
            }
            Kind::Operand => Next::Skip(1),
            Kind::Valued | Kind::Place => match value {
                Some(value) if !value.literal().is_some_and(|it| self.row.takes_text(&it)) => {
                    Next::Refuse(value)
                }
                _ => {
                    self.has_place |= self.row.option(text) == Kind::Place;
                    Next::Skip(1)
                }
            },
            Kind::Unknown => Next::Refuse(word),
        }
    }

    /// Whether an option makes the sub-command run another program.
    fn chooses_program(&self, option: &str) -> bool {
        let name = option.split('=').next().unwrap_or_default();
        let named = (0..self.given.words.len()).filter(|at| self.given.names(*at));
        let subs: Vec<_> = named.filter_map(|at| self.given.text(at)).collect();
        self.row.choosing.is_some_and(|(runs, options)| {
            options.has(name)
                && subs.iter().any(|sub| runs.has(subcommands::main_name(self.program, sub)))
        })
    }

    /// Whether an option may replace what the rule says: where the files are that it names, or the value of an option.
    fn may_override(&self, option: &str) -> bool {
        let is_place =
            |option: &str| matches!(self.row.option(option), Kind::Place | Kind::PlaceIn);
        let mut named = (0..self.given.words.len()).filter(|at| self.given.names(*at));
        let replaces = |at: usize| {
            self.given.text(at).is_some_and(|named| {
                is_same_option(&named, option) || is_place(&named) && is_place(option)
            })
        };
        is_place(option) && self.reach == Reach::Here || named.any(replaces)
    }

    /// The module that an option names, or nothing if the next word does.
    fn module(&self, option: &str) -> Option<String> {
        match opened::in_letters(self.program, option) {
            Some(('m', name)) => Some(name),
            Some(_) => None,
            None => Names("-m --module").has(option).then(String::new),
        }
    }

    /// An operand at this place. The text is `None` if only the run will know it.
    fn operand(&mut self, word: &'a Word, text: Option<&str>, at: usize) -> Next<'a> {
        let is_named = self.given.names(at);
        if !is_named && !self.takes(word, text)
            || self.row.takes_values && !text.is_some_and(is_goal)
        {
            return Next::Refuse(word);
        }
        let name = text.unwrap_or_default();
        if self.operands == 0 {
            self.first = subcommands::main_name(self.program, name).to_owned();
        } else if self.operands == 1 && self.row.groups.has(&self.first) {
            self.is_grouped = true;
            self.first = format!("{}-{name}", self.first);
        }
        self.operands += 1;
        self.named_operands += usize::from(is_named);
        self.has_program = true;
        let ends = |list: &[(Names, usize)]| ends_after(list, &self.first, self.operands);
        match ends(self.row.hands_over) && !self.runs_tests {
            true => Next::HandOver,
            false if ends(self.row.scripts) || self.names_script() => Next::Script,
            false => Next::Skip(0),
        }
    }

    /// Whether the first operand is not a sub-command but a script of the project.
    fn names_script(&self) -> bool {
        self.operands == 1 && !self.row.own.is_empty() && !self.row.own.has(&self.first)
    }

    /// Whether an operand that the rule does not name is harmless.
    fn takes(&self, word: &Word, text: Option<&str>) -> bool {
        let row = self.row;
        let is_truth = |text: &str| TRUTHS.has(text) && subcommands::has_truth_values(self.program);
        if text.is_some_and(|text| !row.takes_value(text) || is_truth(text)) {
            return false;
        }
        match row.operands {
            _ if self.given.open => true,
            _ if self.has_choice => false,
            _ if self.is_inline => !programs::runs_operands_too(self.program),
            _ if self.runs_tests => is_inside(word) && is_test(word),
            Operands::Any => true,
            Operands::Known => text.is_some_and(|text| row.knows(text)),
            Operands::Numbers => text.is_some_and(is_number),
            Operands::One => self.operands == 0,
            Operands::Program => (self.has_program || self.checks_a_file) && is_inside(word),
            Operands::Tests => {
                text.is_some_and(|text| row.knows(text)) || is_inside(word) && is_test(word)
            }
            Operands::TestFiles => is_inside(word) && is_test(word) && text.is_some_and(has_ending),
            Operands::TestNames => text.is_some_and(|text| row.knows(text) || is_test_name(text)),
            Operands::OfOptions => self.named_operands == 0,
            Operands::OfSubcommand => {
                let most = 1 + usize::from(self.is_grouped);
                let is_query = row.queries.has(&self.first);
                let is_local = text.is_some_and(|text| text == "." || text.starts_with("./"));
                (is_query || row.known.has(&self.first) && self.named_operands > 0)
                    && self.named_operands <= most
                    && (!is_query || is_inside(word) || !is_path(text))
                    && (!row.local.has(&self.first) || is_local)
            }
        }
    }
}

/// Whether an operand may be the path of a file or folder outside.
fn is_path(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.starts_with(['/', '.', '~']) || climbs(text))
}

/// Whether it is a day: `2026-01-31`.
fn is_date(text: &str) -> bool {
    let shape = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    text.bytes().map(shape).eq(*b"0000-00-00")
}

/// Whether two options may be the same one, with a value: `-p x` and `--package=y`.
fn is_same_option(one: &str, other: &str) -> bool {
    fn name(option: &str) -> Option<&str> {
        let name = option.split('=').next().unwrap_or_default();
        Some(name.trim_start_matches('-')).filter(|it| it.len() < name.len() && !it.is_empty())
    }
    let (Some(one), Some(other)) = (name(one), name(other)) else { return false };
    let may_abbreviate = |short: &str, long: &str| {
        short.len() == 1 && long.len() > 2 && long[..1].eq_ignore_ascii_case(short)
    };
    one == other || may_abbreviate(one, other) || may_abbreviate(other, one)
}
