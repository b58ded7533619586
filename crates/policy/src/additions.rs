//! Arguments that a rule does not name, for programs that run whatever they are told.
//!
//!     make test -j4 SHELL=/tmp/x
//!     ╰──┬────╯ ╰──────┬───────╯
//!      named         added
//!
//! A rule such as `make test` allows one use of a program that can run anything. The arguments with which it would run
//! something else are too many to list, so the harmless ones are listed (`additions/table.rs`). All others need a rule
//! that names them.

mod check;
mod environments;
mod modules;
mod operands;
mod reach;
mod row;
mod table;

use std::borrow::Cow;

use crate::identity;
use crate::lock;
use crate::names::Names;
use crate::programs;
use crate::script::Word;
use crate::variables::are_harmless_to_rustc;
use check::Check;
use modules::module_row;
pub use reach::{AddedPlaces, Reach, added_places, reach, reach_of_shell};
use row::{Kind, is_number};
use table::row;

/// Options with which interpreters run files of the project as tests, or none of them.
const CHECKS: Names = Names("--check --test");

/// Interpreters that check a file if an option has this letter, and those that may stand beside it.
const CHECK_LETTERS: [(Names, char, &str); 2] =
    [(Names("perl ruby jruby"), 'c', "cwWtT"), (Names("php"), 'l', "ln")];

/// Interpreters whose programs run a command if they open a file with a name such as `x|`.
const OPENERS: Names = Names("perl ruby jruby truffleruby tclsh wish expect");

/// Interpreters that run what they read, too, whatever file they are given.
const READERS: Names = Names("jshell ghci iex evcxr swipl yap psysh pry");

/// Whether it matters with which arguments a program runs, because it runs what they say.
pub fn matter_to(program: &str) -> bool {
    let program = identity::program(program);
    (programs::is_interpreter(program) || lock::runs_anything(program))
        && !programs::is_shell(program)
}

/// The same command with its harmless options after its operands, as rules are written: `mvn test -q` for `mvn -q
/// test`. `None` if none stands before an operand.
pub fn options_last(program: &str, words: &[Word]) -> Option<Vec<Word>> {
    let row = row(identity::program(program));
    let (mut options, mut operands, mut at) = (Vec::new(), Vec::new(), 1);
    let mut moved = false;
    while let Some(text) = words.get(at).and_then(Word::literal) {
        let value = words.get(at + 1).and_then(Word::literal);
        let value = value.as_deref();
        let length = match row.option(&text) {
            _ if row.known.has(&text) => 1,
            Kind::Flag | Kind::PlaceIn => 1,
            Kind::Valued | Kind::Place if value.is_some_and(|it| !it.starts_with('-')) => 2,
            Kind::Counted => 1 + usize::from(value.is_some_and(is_number)),
            Kind::Unclear if value.is_some_and(|it| it.starts_with('-')) => 1,
            _ if text.starts_with('-') => break,
            _ => {
                moved |= !options.is_empty();
                operands.push(words[at].clone());
                at += 1;
                let first = operands[0].text();
                match row.ends_after(&first.unwrap_or_default(), operands.len()) {
                    true => break,
                    false => continue,
                }
            }
        };
        options.extend_from_slice(words.get(at..at + length)?);
        at += length;
    }
    moved.then(|| [&words[..1], &operands, &options, &words[at..]].concat())
}

/// The arguments of a command that a rule allows.
#[derive(Clone, Copy)]
pub struct Arguments<'a, 'b> {
    pub words: &'a [Word],
    /// For each word, whether the rule names it.
    pub named: &'b [bool],
    /// Whether the rule ends with `*`, so that any operands may follow.
    pub open: bool,
}

impl<'a> Arguments<'a, '_> {
    /// Those after the first few.
    fn after(self, at: usize) -> Self {
        let words = self.words.get(at..).unwrap_or_default();
        Self { words, named: self.named.get(at..).unwrap_or_default(), ..self }
    }

    fn names(&self, at: usize) -> bool {
        self.named.get(at).is_some_and(|named| *named)
    }

    fn text(&self, at: usize) -> Option<Cow<'a, str>> {
        self.words.get(at)?.text()
    }

    fn first_unnamed(&self) -> Option<&'a Word> {
        (0..self.words.len()).find(|at| !self.names(*at)).and_then(|at| self.words.get(at))
    }
}

/// The first argument that may change what a program runs, among those that a rule does not name.
pub fn refused<'a>(program: &str, given: Arguments<'a, '_>) -> Option<&'a Word> {
    let program = identity::program(program);
    if OPENERS.has(program)
        && let Some(word) = opened_command(given)
    {
        return Some(word);
    }
    if program == "npm"
        && let Some(word) = run_by_env(given)
    {
        return Some(word);
    }
    match programs::is_interpreter(program) {
        true => refused_by_interpreter(program, given),
        false => Check::new(program, row(program), given).refused(),
    }
}

/// The script of npm that a project need not have: `npm run env x` runs `x`.
fn run_by_env<'a>(given: Arguments<'a, '_>) -> Option<&'a Word> {
    const RUN: Names = Names("run run-script rum urn");
    let runs = |at: &usize| given.text(*at).is_none_or(|text| RUN.has(&text));
    let is_operand = |at: usize| given.text(at).is_none_or(|text| !text.starts_with('-'));
    let is_env = |at: &usize| !given.names(*at) && given.text(*at).is_none_or(|text| text == "env");
    let has_more = |at: &usize| (at + 1..given.words.len()).any(is_operand);
    let scripts = (0..given.words.len()).filter(runs).flat_map(|run| scripts(given, run + 1));
    scripts.filter(is_env).find(has_more).and_then(|at| given.words.get(at))
}

/// What an option of npm that is on or off may take: `--color always`.
const TRUTHS: Names = Names("true false null always");

/// Where the name of the script may stand that npm runs, from this word on: an option may take a word or not.
fn scripts(given: Arguments<'_, '_>, from: usize) -> Vec<usize> {
    let (row, mut at, mut found) = (row("npm"), from, Vec::new());
    while at < given.words.len() {
        let text = given.text(at).unwrap_or_default();
        match row.option(&text) {
            _ if !text.starts_with('-') => {
                found.push(at);
                break;
            }
            Kind::Flag if given.text(at + 1).is_some_and(|next| TRUTHS.has(&next)) => {
                found.push(at + 1);
                at += 2;
            }
            Kind::Flag | Kind::PlaceIn => at += 1,
            Kind::Valued | Kind::Place => at += 2,
            _ => {
                found.push(at + 1);
                at += 2;
            }
        }
    }
    found
}

/// Whether an interpreter with this option checks a file, which the rule need not name.
fn checks_a_file(program: &str, option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    let checks = |(programs, check, others): &(Names, char, &str)| {
        programs.has(program)
            && letters.contains(*check)
            && letters.chars().all(|it| others.contains(it))
    };
    CHECKS.has(option) || CHECK_LETTERS.iter().any(checks)
}

fn refused_by_interpreter<'a>(program: &str, given: Arguments<'a, '_>) -> Option<&'a Word> {
    let mut named = (0..given.words.len()).filter(|at| given.names(*at)).peekable();
    let informs = |at| given.text(at).is_some_and(|it| programs::is_information(program, &it));
    // `ruby --version x.rb` would run the file.
    if named.peek().is_some() && named.all(informs) {
        return given.first_unnamed();
    }
    let mut check = Check::new(program, row(program), given);
    let refused = check.refused();
    let reads_program = !check.has_program || READERS.has(program);
    refused.or_else(|| given.words.last().filter(|_| reads_program && !given.open))
}

/// The same for `python3 -m MODULE …`, whose arguments are the module's.
fn refused_by_module<'a>(module: &str, rest: Arguments<'a, '_>) -> Option<&'a Word> {
    match module_row(module) {
        _ if matter_to(module) => refused(module, rest),
        Some(row) => Check::new(module, row, rest).refused(),
        None if rest.open => None,
        None => rest.first_unnamed(),
    }
}

/// The same for the arguments of a Rust compiler, which could load or link anything.
fn refused_by_compiler<'a>(given: Arguments<'a, '_>) -> Option<&'a Word> {
    let words = (0..given.words.len()).map(|at| given.text(at));
    match words.collect::<Option<Vec<_>>>() {
        Some(words) if are_harmless_to_rustc(words.iter().map(AsRef::as_ref)) => None,
        _ => given.first_unnamed(),
    }
}

/// An operand that may be a command: `perl -ne print 'x|'` runs one, and reads what it prints.
fn opened_command<'a>(given: Arguments<'a, '_>) -> Option<&'a Word> {
    let opens = |word: &Word| {
        let Some(text) = word.text() else { return true };
        let (begin, end) = (text.trim_start(), text.trim_end());
        // Scripts take operands apart, so that a part may be a command.
        text.contains('|')
            || begin.starts_with(['<', '>', '+', '~'])
            || word.literal().is_none() && end.ends_with(['*', '?', ']', '}'])
    };
    let mut unnamed = (0..given.words.len()).filter(|at| !given.names(*at));
    unnamed.find_map(|at| given.words.get(at).filter(|word| opens(word)))
}
