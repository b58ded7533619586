//! Arguments that a rule does not name, for programs that run whatever they are told.
//!
//!     make test -j4 SHELL=/tmp/x
//!     ╰──┬────╯ ╰──────┬───────╯
//!      named         added
//!
//! A rule such as `make test` allows one use of a program that can run anything. The arguments with which it would run
//! something else are too many to list, so the harmless ones are listed (`additions/table.rs`). All others need a rule
//! that names them.

mod modules;
mod operands;
mod table;

use std::borrow::Cow;

use crate::identity;
use crate::lock;
use crate::names::Names;
use crate::paths::base_name;
use crate::programs;
use crate::script::Word;
use crate::subcommands;
use modules::module_row;
use operands::{is_goal, is_inside, is_operand, is_test, is_test_file, is_test_name, is_value};
use table::{Dashes, Kind, Operands, Row, SCRIPT, row};

/// Options with which interpreters only print something about themselves.
const INFORMATION: Names = Names("-h -V --help --version");

/// Options with which interpreters run files of the project as tests, or none of them.
const CHECKS: Names = Names("--check --test");

/// Interpreters whose programs run a command if they open a file with a name such as `x|`.
const OPENERS: Names = Names("perl ruby tclsh wish expect");

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
        let length = match row.option(&text) {
            _ if row.known.has(&text) => 1,
            Kind::Flag => 1,
            Kind::Valued if value.is_some_and(|value| !value.starts_with('-')) => 2,
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
    match programs::is_interpreter(program) {
        true => refused_by_interpreter(program, given),
        false => Check::new(program, row(program), given).refused(),
    }
}

fn refused_by_interpreter<'a>(program: &str, given: Arguments<'a, '_>) -> Option<&'a Word> {
    let all_named_are = |known: Names| {
        let mut named = (0..given.words.len()).filter(|at| given.names(*at)).peekable();
        named.peek().is_some() && named.all(|at| given.text(at).is_some_and(|it| known.has(&it)))
    };
    // `ruby --version x.rb` would run the file.
    if all_named_are(INFORMATION) || all_named_are(Names("-v")) && program != "python" {
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

/// Looks at arguments one after the other.
struct Check<'a, 'b> {
    program: &'b str,
    row: &'static Row,
    given: Arguments<'a, 'b>,
    /// The first operand, often a sub-command.
    first: String,
    operands: usize,
    named_operands: usize,
    /// Whether an interpreter knows what to run, other than what it reads.
    has_program: bool,
    /// Whether the rule names the text of the program.
    is_inline: bool,
    /// Whether it runs tests, and all operands are files with some.
    runs_tests: bool,
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
    /// The rest is for a module of Python, which is the next word if it has no name.
    Module(String),
}

impl<'a, 'b> Check<'a, 'b> {
    fn new(program: &'b str, row: &'static Row, given: Arguments<'a, 'b>) -> Self {
        let has_program = !programs::is_interpreter(program);
        let (first, operands, named_operands) = (String::new(), 0, 0);
        let (is_inline, runs_tests) = (false, false);
        Self {
            program,
            row,
            given,
            first,
            operands,
            named_operands,
            has_program,
            is_inline,
            runs_tests,
        }
    }

    fn refused(&mut self) -> Option<&'a Word> {
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
                Next::Script => return Check::new("", &SCRIPT, self.given.after(at)).refused(),
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
        match programs::in_letters(self.program, option) {
            Some(_) => true,
            None if Names("python pypy perl").has(self.program) => false,
            None if runs => Names("-m --module").has(option),
            None => programs::is_inline_option(self.program, option),
        }
    }

    /// Whether it is the version of the program that is wanted: `cargo +nightly test`.
    fn is_toolchain(&self, text: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let name = text.strip_prefix('+').filter(|_| subcommands::has_toolchains(self.program));
        name.is_some_and(|name| name.chars().all(is_plain))
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
            Dashes::HandOver => Next::HandOver,
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
        match self.row.option(text) {
            _ if is_inline && self.module(text).is_some() => {
                Next::Module(self.module(text).unwrap_or_default())
            }
            // What follows is a program, and options may come after it.
            _ if is_inline && self.given.names(next) => Next::Skip(1),
            Kind::Valued if is_named => Next::Skip(1),
            _ if is_named && self.row.risky.has(text) => Next::Skip(1),
            Kind::Operand if is_named => {
                self.named_operands += 1;
                Next::Skip(1)
            }
            _ if is_named => Next::Skip(0),
            // `-j 4`
            Kind::Flag => {
                let number = value.and_then(|value| value.literal()).filter(|it| is_number(it));
                Next::Skip(usize::from(number.is_some() && self.row.valued.has(text)))
            }
            Kind::Operand
                if value.is_some_and(|value| !self.takes(value, value.literal().as_deref())) =>
            {
                Next::Refuse(word)
            }
            Kind::Operand => Next::Skip(1),
            Kind::Valued => match value {
                Some(value) if !value.literal().is_some_and(|it| self.row.takes_text(&it)) => {
                    Next::Refuse(value)
                }
                _ => Next::Skip(1),
            },
            Kind::Unknown => Next::Refuse(word),
        }
    }

    /// The module that an option names, or nothing if the next word does.
    fn module(&self, option: &str) -> Option<String> {
        match programs::in_letters(self.program, option) {
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
        if self.operands == 0 {
            self.first = text.unwrap_or_default().to_owned();
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
        if text.is_some_and(|text| !row.takes_value(text)) {
            return false;
        }
        match row.operands {
            _ if self.given.open || self.is_inline => true,
            _ if self.runs_tests => is_inside(word) && is_test(word),
            Operands::Any => true,
            Operands::Known => text.is_some_and(|text| row.knows(text)),
            Operands::Numbers => text.is_some_and(is_number),
            Operands::Program => is_inside(word),
            Operands::Tests => {
                text.is_some_and(|text| row.knows(text)) || is_inside(word) && is_test(word)
            }
            Operands::TestNames => text.is_some_and(|text| row.knows(text) || is_test_name(text)),
            Operands::OfOptions => self.named_operands == 0,
            Operands::OfSubcommand if row.queries.has(&self.first) => true,
            Operands::OfSubcommand => {
                let group = row.groups.has(&self.first);
                (1..=1 + usize::from(group)).contains(&self.named_operands)
                    && !row.closed.has(&self.first)
            }
        }
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

impl Row {
    fn option(&self, text: &str) -> Kind {
        let (name, value) =
            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let end = text.char_indices().nth(2).map_or(text.len(), |(end, _)| end);
        let (letter, number) = text.split_at(end);
        // `-j4`
        let is_counted = self.valued.has(letter) && is_number(number);
        let is_combined = !text.starts_with("--") && self.letters && self.has_letters(text);
        match value {
            _ if self.flags.has(text) || is_counted || is_combined => Kind::Flag,
            None if self.valued.has(name) => Kind::Valued,
            None if self.with_operand.has(name) => Kind::Operand,
            Some(value)
                if (self.valued.has(name) || self.glued.has(name)) && self.takes_text(value) =>
            {
                Kind::Flag
            }
            _ => Kind::Unknown,
        }
    }

    /// Whether an option may have this value. Scripts of the project may put it into a command.
    fn takes_text(&self, value: &str) -> bool {
        is_value(value) && (self.after_dashes != Dashes::Script || is_goal(value))
    }

    /// Whether it is several flags in one word: `-qy`, `-sj8`.
    fn has_letters(&self, text: &str) -> bool {
        let letters = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        letters.chars().skip(1).all(|letter| self.flags.has(&format!("-{letter}")))
    }

    /// Whether all after so many operands is for another program.
    fn ends_after(&self, first: &str, operands: usize) -> bool {
        [self.hands_over, self.scripts].iter().any(|list| ends_after(list, first, operands))
    }

    /// Whether it is an operand that the table knows.
    fn knows(&self, text: &str) -> bool {
        let is_switch = text.split_once('=').is_some_and(|(name, _)| self.values.has(name));
        self.known.has(text) || is_switch
    }

    /// Whether an operand is not a setting, or a harmless one.
    fn takes_value(&self, text: &str) -> bool {
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

fn ends_after(list: &[(Names, usize)], first: &str, operands: usize) -> bool {
    list.iter().any(|(subs, after)| *after == operands && (subs.is_empty() || subs.has(first)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
