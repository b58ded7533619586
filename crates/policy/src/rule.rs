//! A rule: words for a command, or a regular expression.
//!
//! `git push` matches the command `git` with the sub-command `push`, however it is spelled:
//! `/usr/bin/git -C . push` is one. A deny rule also matches what *may* be such a command when it runs; an
//! allow rule matches only what certainly is one. To an allow rule, programs in the system's folders are their
//! bare names, and any other path needs a rule of its own; a deny rule matches the name wherever the program is.

mod arguments;
mod goals;
mod name;
mod signals;

use std::borrow::Cow;
use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::identity;
use crate::opened::opened;
use crate::paths::base_name;
pub use crate::pattern::glob;
use crate::script::{Limits, Script, Shell, Word};
use crate::subcommands::{self, Goals};
use arguments::covers;
pub use name::CommandName;

#[derive(Debug, Clone)]
pub struct Rule {
    kind: Kind,
    /// Why the rule exists, for the message of a refusal.
    pub reason: Option<String>,
    /// What to do instead, for the same message.
    pub instead: Option<String>,
}

#[derive(Debug, Clone)]
enum Kind {
    Words {
        name: String,
        /// The name's base name in lower case.
        base: String,
        rest: Vec<String>,
    },
    Regex(Regex),
}

/// A program with its arguments, as it is about to be executed: nothing is left to find out.
pub struct ExactCall {
    name: CommandName,
    words: Vec<Word>,
}

impl ExactCall {
    pub fn new(name: impl Into<String>, arguments: impl IntoIterator<Item: Into<String>>) -> Self {
        let arguments = arguments.into_iter().map(|word| Word::known(word, 0..0));
        let words: Vec<_> = [Word::known(name, 0..0)].into_iter().chain(arguments).collect();
        Self { name: CommandName::of(&words), words }
    }

    /// What it opens as programs, if it is an interpreter. `resolve` finds where a path leads. `None` if only the run
    /// will know.
    pub fn opened(
        &self,
        resolve: &dyn Fn(&str) -> Option<String>,
    ) -> Option<impl Iterator<Item = Self>> {
        let resolve = |word: &Word| Some(vec![resolve(&word.text()?)?]);
        let program = identity::program(&self.name.base);
        let all = opened(program, &self.words[1..], &resolve)?;
        let call = |words: Vec<Word>| Self { name: CommandName::of(&words), words };
        // Each may have many arguments.
        Some(all.into_iter().map(move |opened| call(opened.words())))
    }
}

/// Whether a deny rule matches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    No,
    /// Only the run will know.
    Maybe,
    Yes,
}

#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("a rule is empty: leave it out, or name a command, such as `git push`")]
    Empty,
    #[error("the rule `{rule}` is not a valid regular expression")]
    Regex { rule: String, source: Box<regex::Error> },
    #[error("the rule `{rule}` should match its example `{example}`, but does not")]
    NoMatch { rule: String, example: String },
    #[error("the rule `{rule}` should not match its example `{example}`, but does")]
    Matches { rule: String, example: String },
}

impl Rule {
    pub fn new(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let kind = match inner {
            Some(pattern) if !pattern.is_empty() && pattern.contains(is_regex_sign) => {
                let regex = RegexBuilder::new(pattern).dot_matches_new_line(true).build().map_err(
                    |source| RuleError::Regex { rule: text.to_owned(), source: Box::new(source) },
                )?;
                Kind::Regex(regex)
            }
            _ => {
                let mut words = text.split_whitespace().map(str::to_owned);
                let name = words.next().ok_or(RuleError::Empty)?;
                let base = identity::without_g(&base_name(&name).to_lowercase()).to_owned();
                Kind::Words { name, base, rest: words.collect() }
            }
        };
        Ok(Self { kind, reason: None, instead: None })
    }

    /// Parses a comma-separated list, without its empty entries.
    pub fn list(text: &str) -> Result<Vec<Self>, RuleError> {
        text.split(',').filter(|entry| !entry.trim().is_empty()).map(Self::new).collect()
    }

    /// Checks the rule against commands it should match, and others it should not.
    pub fn check(&self, matching: &[String], others: &[String]) -> Result<(), RuleError> {
        let is_match = |example: &String| {
            let script = Script::parse(example, Shell::Bash, None, Limits::ONE);
            script.is_ok_and(|script| {
                let mut commands = script.commands.iter().map(|command| &command.words);
                commands.any(|words| self.matches(&CommandName::of(words), words) == Match::Yes)
            })
        };
        let rule = self.to_string();
        if let Some(example) = matching.iter().find(|example| !is_match(example)) {
            return Err(RuleError::NoMatch { rule, example: example.clone() });
        }
        match others.iter().find(|example| is_match(example)) {
            Some(example) => Err(RuleError::Matches { rule, example: example.clone() }),
            None => Ok(()),
        }
    }

    /// The base name of the program in the rule, if it names one.
    pub fn program(&self) -> Option<&str> {
        match &self.kind {
            Kind::Words { name, .. } => Some(base_name(name)),
            Kind::Regex(_) => None,
        }
    }

    /// The path of the program in the rule, if it names one by its path.
    pub fn path(&self) -> Option<&str> {
        match &self.kind {
            Kind::Words { name, .. } => Some(name.as_str()).filter(|name| name.contains('/')),
            Kind::Regex(_) => None,
        }
    }

    /// The base name of the program, if the rule matches it with whatever arguments.
    pub fn whole_program(&self) -> Option<String> {
        match &self.kind {
            Kind::Words { base, rest, .. } if rest.iter().all(|word| word == "*") => {
                Some(base.clone())
            }
            _ => None,
        }
    }

    /// The command of git, if the rule allows that with whatever arguments.
    pub fn whole_command_of_git(&self) -> Option<&str> {
        let Kind::Words { base, rest, .. } = &self.kind else { return None };
        let (sub, more) = rest.split_first().filter(|_| base == "git")?;
        let is_plain = !sub.starts_with('-') && !sub.contains('*');
        (is_plain && more.iter().all(|word| word == "*")).then_some(sub)
    }

    /// Whether it allows any words after those it names: `npm run *`.
    pub fn is_open(&self) -> bool {
        matches!(&self.kind, Kind::Words { rest, .. } if rest.last().is_some_and(|last| last == "*"))
    }

    /// Whether it names options of a program, such as `rm -rf`.
    pub fn is_about_options(&self) -> bool {
        matches!(&self.kind, Kind::Words { rest, .. } if rest.iter().any(|word| word.starts_with('-')))
    }

    /// Whether it names a goal of a program such as make, whose files, options and variables can add goals.
    pub fn is_about_goals(&self) -> bool {
        let Kind::Words { base, rest, .. } = &self.kind else { return false };
        let is_goal = |word: &String| !word.starts_with('-') && !word.contains('=');
        let takes_code = subcommands::goals(identity::program(base)).is_some_and(Goals::take_code);
        takes_code && rest.iter().any(is_goal)
    }

    /// Whether a variable in the environment of a program may make the rule match its call.
    pub fn is_about_variable_of(&self, program: &str, variable: &str) -> bool {
        let program = program.to_lowercase();
        self.is_about_goals() && subcommands::adds_goals(identity::program(&program), variable)
    }

    /// Whether it matches every command.
    pub fn is_everything(&self) -> bool {
        matches!(&self.kind, Kind::Words { name, rest, .. } if name == "*" && rest.is_empty())
    }

    /// Whether it is a rule for variables, such as `NAME=*`.
    pub fn is_about_variables(&self) -> bool {
        matches!(&self.kind, Kind::Words { name, .. } if name.contains('='))
    }

    /// Whether it is a rule for variables, such as `NAME=*`, that allows this one. The value is `None` if only the run
    /// will know it.
    pub fn allows_variable(&self, name: &str, value: Option<&str>) -> bool {
        let Kind::Words { name: rule, rest, .. } = &self.kind else { return false };
        let Some((names, values)) = rule.split_once('=') else { return false };
        let allows = value.map_or(values == "*", |value| glob(values, value));
        rest.is_empty() && glob(names, name) && allows
    }

    /// Whether the rule allows the command.
    pub fn allows(&self, name: &CommandName, words: &[Word]) -> bool {
        let allows_name = match &self.kind {
            Kind::Words { name: pattern, .. } => name.is_allowed_by(pattern),
            Kind::Regex(regex) => name.is_what_it_says(regex.as_str().contains('/')),
        };
        allows_name && self.allows_arguments(name, words)
    }

    /// The same for a program that is the one the rule means.
    pub fn allows_arguments(&self, name: &CommandName, words: &[Word]) -> bool {
        match &self.kind {
            Kind::Words { rest, .. } => {
                name.known().is_some_and(|program| named(rest, program, &words[1..]).is_some())
            }
            Kind::Regex(regex) => {
                let all: Option<Vec<_>> = words.iter().map(Word::text).collect();
                all.is_some_and(|all| regex.is_match(&all.join(" ")))
            }
        }
    }

    /// For each argument of a command that it allows, whether the rule names it. `None` if it is a regular expression,
    /// which sees them all.
    pub fn named(&self, name: &CommandName, words: &[Word]) -> Option<Vec<bool>> {
        match &self.kind {
            Kind::Words { rest, .. } => named(rest, name.known()?, &words[1..]),
            Kind::Regex(_) => None,
        }
    }

    /// For each argument, whether the rule spells it out, and leaves no part of it to a `*`.
    pub fn spelled_out(&self, name: &CommandName, words: &[Word]) -> Option<Vec<bool>> {
        match &self.kind {
            Kind::Words { rest, .. } => {
                given_by(rest, name.known()?, &words[1..], |pattern| !pattern.contains('*'))
            }
            Kind::Regex(_) => None,
        }
    }

    /// The folder before the `*` of a path that allows this word, if that may lead out of the working directory.
    pub fn folder_of(&self, word: &str) -> Option<&str> {
        let Kind::Words { rest, .. } = &self.kind else { return None };
        let leads_out = |path: &str| path.starts_with('/') || path.split('/').any(|it| it == "..");
        let mut patterns = rest.iter().filter(|it| it.contains('*') && leads_out(it));
        let pattern = patterns.find(|pattern| allows_argument(pattern, word))?;
        let fixed = &pattern[..pattern.find('*')?];
        fixed.rfind('/').map(|end| &fixed[..=end])
    }

    /// Whether the command is, or may be, one the rule denies.
    pub fn matches(&self, name: &CommandName, words: &[Word]) -> Match {
        match &self.kind {
            Kind::Words { base, rest, .. } => {
                let Some(word) = words.first() else { return Match::No };
                // `git-push` is `git push`.
                if let Some(words) = subcommands::as_subcommand(&name.base, words)
                    && words[0].text().is_some_and(|program| program == *base)
                {
                    return self.matches(&CommandName::of(&words), &words);
                }
                let named = denied_name(base, name, word);
                // An unknown program may be a wrapper, so its words do not matter.
                if named != Match::Yes || rest.is_empty() {
                    return named;
                }
                covers(rest, identity::program(&name.base), &words[1..])
            }
            Kind::Regex(regex) => {
                let all: Option<Vec<_>> = words.iter().map(Word::text).collect();
                match all {
                    Some(all) if regex.is_match(&all.join(" ")) => Match::Yes,
                    Some(_) => Match::No,
                    None => Match::Maybe,
                }
            }
        }
    }

    /// Whether it denies what is about to be executed.
    pub fn denies(&self, call: &ExactCall) -> bool {
        self.matches(&call.name, &call.words) == Match::Yes || self.denies_corrected(call)
    }

    /// Whether it denies what git may make of a mistyped sub-command. Before it runs, the sub-command counts as
    /// somebody's alias.
    fn denies_corrected(&self, call: &ExactCall) -> bool {
        let Kind::Words { base, rest, .. } = &self.kind else { return false };
        let wanted = rest.iter().find(|word| !word.starts_with('-'));
        let Some(wanted) = wanted.filter(|_| base == "git" && call.name.base == "git") else {
            return false;
        };
        let words = &call.words[1..];
        let Some([sub, after @ ..]) = subcommands::after_global_options("git", words) else {
            return false;
        };
        let corrected = || Word::known(wanted, sub.span.clone());
        sub.literal().is_some_and(|sub| subcommands::is_mistyped(&sub, wanted))
            && covers(rest, "git", &[&[corrected()], after].concat()) == Match::Yes
    }

    /// Whether a text in another language, such as a program for an interpreter, contains the name.
    pub fn is_mentioned_in(&self, text: &str) -> bool {
        let Kind::Words { name, .. } = &self.kind else { return false };
        let name = base_name(name);
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
        name != "*" && words.any(|word| glob(name, word))
    }
}

impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::new(text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Words { name, rest, .. } => {
                f.write_str(name)?;
                rest.iter().try_for_each(|word| write!(f, " {word}"))
            }
            Kind::Regex(regex) => write!(f, "/{regex}/"),
        }
    }
}

/// Whether a text between slashes is a regular expression, and not a path such as `/usr/bin/`.
fn is_regex_sign(character: char) -> bool {
    "^$.*+?()[]{}|\\ ".contains(character)
}

/// Compares base names, because the program may be anywhere, without regard to case, as some file systems do.
fn denied_name(pattern: &str, name: &CommandName, word: &Word) -> Match {
    if name.known().is_some() {
        let is_named = name.names().iter().any(|name| glob(pattern, name));
        return if is_named { Match::Yes } else { Match::No };
    }
    let end = word.suffix().to_lowercase();
    let could_be = match end.rsplit_once('/') {
        Some((_, base)) => glob(pattern, base),
        None => may_end(pattern, &end),
    };
    match word.is_single() && !could_be {
        true => Match::No,
        false => Match::Maybe,
    }
}

/// Whether a text with this end may match the pattern.
fn may_end(pattern: &str, end: &str) -> bool {
    let tail = pattern.rsplit('*').next().unwrap_or_default();
    tail.ends_with(end) || end.ends_with(tail)
}

/// For each word, whether the rule names it, if the words begin with those of the rule. Global options before a
/// sub-command do not count. A `*` names nothing.
fn named(rest: &[String], name: &str, words: &[Word]) -> Option<Vec<bool>> {
    given_by(rest, name, words, |pattern| pattern != "*")
}

/// For each word, whether it comes from a word of the rule that is like this.
fn given_by(
    rest: &[String],
    name: &str,
    words: &[Word],
    is_so: fn(&str) -> bool,
) -> Option<Vec<bool>> {
    // `cat *` is the program with whatever words, also with those that only the run will know.
    if rest == ["*"] {
        return Some(vec![false; words.len()]);
    }
    let program = base_name(name);
    let rest = &*ungrouped(rest, program);
    let may_set = subcommands::goals(program).is_some();
    let literal = |words: &[Word]| {
        let matches = |(at, (pattern, word)): (usize, (&String, &Word))| {
            let is_same = |word: &str| at == 0 && subcommands::is_same(program, pattern, word);
            let allows = |word: &str| {
                allows_argument(pattern, word) && !(may_set && sets_variable(pattern, word))
            };
            word.text().is_some_and(|word| allows(&word) || is_same(&word))
        };
        let begins = words.len() >= rest.len() && rest.iter().zip(words).enumerate().all(matches);
        let is_given = |at: usize| rest.get(at).is_some_and(|pattern| is_so(pattern));
        begins.then(|| (0..words.len()).map(is_given).collect::<Vec<_>>())
    };
    // `npm run *` also matches `npm run` alone.
    let open = || {
        let (last, others) = rest.split_last()?;
        let is_alone = last == "*" && words.len() == others.len();
        if is_alone { given_by(others, name, words, is_so) } else { None }
    };
    let after_options = || {
        let after = subcommands::after_global_options(program, words)?;
        let grouped = || {
            let first = subcommands::without_group(program, &after[..after.len().min(2)])?;
            let given = literal(&[&first, &after[2..]].concat())?;
            Some([&[true], &*given].concat())
        };
        let given = literal(after).or_else(grouped)?;
        Some([vec![false; words.len() - after.len()], given].concat())
    };
    literal(words).or_else(open).or_else(after_options)
}

/// Whether the pattern of an allow rule matches an argument. Only a `*` alone stands for whatever may follow: in
/// `scripts/*.py` it leads to no other folder, and `*.py` is not an option.
fn allows_argument(pattern: &str, word: &str) -> bool {
    let climbs = |text: &str| text.split('/').filter(|part| *part == "..").count();
    let here = word.strip_prefix("./").filter(|_| pattern.contains('/'));
    (glob(pattern, word) || here.is_some_and(|word| glob(pattern, word)))
        && (pattern == "*"
            || (climbs(pattern) == climbs(word)
                && pattern.starts_with('/') >= word.starts_with('/')
                && pattern.starts_with('-') == word.starts_with('-')))
}

/// Whether a word sets a variable of a program with goals, and the pattern means a goal: `X=./a-test` for `*-test`.
fn sets_variable(pattern: &str, word: &str) -> bool {
    let is_goal = pattern.starts_with('*') || !pattern.ends_with('*');
    word.contains('=')
        && !pattern.contains('=')
        && is_goal
        && pattern != "*"
        && !pattern.starts_with('-')
}

/// The words of a rule, with a sub-command of a group by its other name.
fn ungrouped<'a>(rest: &'a [String], program: &str) -> Cow<'a, [String]> {
    match rest {
        [group, sub, others @ ..] => match subcommands::ungrouped(program, group, sub) {
            Some(plain) => [&[plain.to_owned()], others].concat().into(),
            None => rest.into(),
        },
        _ => rest.into(),
    }
}
