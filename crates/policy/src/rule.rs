//! A rule: words for a command, or a regular expression.
//!
//! `git push` is about the command `git` with the sub-command `push`, however it is spelled:
//! `/usr/bin/git -C . push` is one. A deny rule also matches what *may* be such a command when it
//! runs; an allow rule only what is one for sure.

use std::borrow::Cow;
use std::fmt;

use regex::Regex;

use crate::names::Names;
use crate::paths::base_name;
use crate::script::{Script, Shell, Word};
use crate::subcommands::{self, OptionKind};

#[derive(Debug, Clone)]
pub struct Rule {
    kind: Kind,
    /// Told to who is refused.
    pub reason: Option<String>,
    /// What to do in its place.
    pub instead: Option<String>,
}

#[derive(Debug, Clone)]
enum Kind {
    Words {
        name: String,
        /// What the name ends with, without regard to case.
        base: String,
        rest: Vec<String>,
    },
    Regex(Regex),
}

/// A command's name, looked at once for all rules.
pub struct CommandName<'a> {
    literal: Option<Cow<'a, str>>,
    base: String,
}

impl<'a> CommandName<'a> {
    pub fn of(words: &'a [Word]) -> Self {
        let literal = words.first().and_then(Word::literal);
        let base = literal.as_deref().map(base_name).unwrap_or_default().to_lowercase();
        Self { literal, base }
    }

    /// The name, if it is known before the run.
    pub fn known(&self) -> Option<&str> {
        self.literal.as_deref()
    }
}

/// Whether a deny rule is about a command.
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
    #[error("the rule `{rule}` is not a regular expression")]
    Regex { rule: String, source: Box<regex::Error> },
    #[error("the rule `{rule}` should match its example `{example}` and does not")]
    NoMatch { rule: String, example: String },
    #[error("the rule `{rule}` should not match its example `{example}` and does")]
    Matches { rule: String, example: String },
}

/// Where programs of the system are. What is there is what its name says.
const SYSTEM: Names = Names("/bin/ /usr/bin/ /usr/local/bin/ /sbin/ /usr/sbin/ /usr/local/sbin/");

/// Builtins that change what the shell does later. A pattern does not allow them by the way.
const CHANGE_SHELL: Names = Names(
    ". alias bind builtin complete declare enable eval exec export fc hash local mapfile \
     readonly set shopt source trap typeset unalias unset",
);

impl Rule {
    pub fn new(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let kind = match inner {
            Some(pattern) if !pattern.is_empty() && pattern.contains(is_regex_sign) => {
                let regex = Regex::new(pattern).map_err(|source| RuleError::Regex {
                    rule: text.to_owned(),
                    source: Box::new(source),
                })?;
                Kind::Regex(regex)
            }
            _ => {
                let mut words = text.split_whitespace().map(str::to_owned);
                let name = words.next().ok_or(RuleError::Empty)?;
                let base = base_name(&name).to_lowercase();
                Kind::Words { name, base, rest: words.collect() }
            }
        };
        Ok(Self { kind, reason: None, instead: None })
    }

    /// Reads a comma-separated list; empty entries are passed over.
    pub fn list(text: &str) -> Result<Vec<Self>, RuleError> {
        text.split(',').filter(|entry| !entry.trim().is_empty()).map(Self::new).collect()
    }

    /// Holds the rule to its examples.
    pub fn check(&self, matching: &[String], others: &[String]) -> Result<(), RuleError> {
        let is_match = |example: &String| {
            let script = Script::parse(example, Shell::Bash, None);
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

    /// The name of the one program the rule is about, if there is one.
    pub fn program(&self) -> Option<&str> {
        match &self.kind {
            Kind::Words { name, .. } => Some(base_name(name)),
            Kind::Regex(_) => None,
        }
    }

    /// Whether it is about every command.
    pub fn is_everything(&self) -> bool {
        matches!(&self.kind, Kind::Words { name, rest, .. } if name == "*" && rest.is_empty())
    }

    /// Whether the command is one the rule allows.
    pub fn allows(&self, name: &CommandName<'_>, words: &[Word]) -> bool {
        let Some(name) = name.known() else { return false };
        match &self.kind {
            Kind::Words { name: pattern, rest, .. } => {
                allowed_name(pattern, name) && begins_with(rest, name, &words[1..])
            }
            Kind::Regex(regex) => {
                let all: Option<Vec<_>> = words.iter().map(Word::text).collect();
                all.is_some_and(|all| regex.is_match(&all.join(" ")))
            }
        }
    }

    /// Whether the command is, or could be, one the rule denies.
    pub fn matches(&self, name: &CommandName<'_>, words: &[Word]) -> Match {
        match &self.kind {
            Kind::Words { base, rest, .. } => {
                let Some(word) = words.first() else { return Match::No };
                // `git-push` is `git push`.
                if let Some(sub) = name.base.strip_prefix("git-").filter(|_| base == "git") {
                    let known = |text| Word::known(text, word.span.clone());
                    let words = [&[known("git"), known(sub)], &words[1..]].concat();
                    return self.matches(&CommandName::of(&words), &words);
                }
                let named = denied_name(base, name, word);
                // A program nobody knows may be one that runs what follows.
                if named != Match::Yes || rest.is_empty() {
                    return named;
                }
                covers(rest, &name.base, &words[1..])
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

    /// Whether a text that is no script, such as a program for an interpreter, has the name in it.
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

/// `/usr/bin/` is a path; a regular expression has something a path does not.
fn is_regex_sign(character: char) -> bool {
    "^$.*+?()[]{}|\\ ".contains(character)
}

fn allowed_name(pattern: &str, name: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    if pattern.contains('*') && CHANGE_SHELL.has(name) {
        return false;
    }
    let mut bare = name;
    if name.contains('/') {
        let system = SYSTEM.iter().find_map(|folder| name.strip_prefix(folder));
        bare = system.filter(|rest| !rest.contains('/')).unwrap_or(name);
    }
    match pattern.contains('/') {
        true => glob(pattern, name) && pattern.matches('/').count() == name.matches('/').count(),
        false => !bare.contains('/') && glob(pattern, bare),
    }
}

/// By the base name, wherever the program is, and without regard to case, as some file systems do.
fn denied_name(pattern: &str, name: &CommandName<'_>, word: &Word) -> Match {
    if name.known().is_some() {
        return if glob(pattern, &name.base) { Match::Yes } else { Match::No };
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

/// Whether something that ends so could match the pattern.
fn may_end(pattern: &str, end: &str) -> bool {
    let tail = pattern.rsplit('*').next().unwrap_or_default();
    tail.ends_with(end) || end.ends_with(tail)
}

/// Whether the words begin as the rule says, options that come before a sub-command left out.
fn begins_with(rest: &[String], name: &str, words: &[Word]) -> bool {
    let literal = |words: &[Word]| {
        let matches = |(pattern, word): (&String, &Word)| {
            word.text().is_some_and(|word| glob(pattern, &word))
        };
        words.len() >= rest.len() && rest.iter().zip(words).all(matches)
    };
    // `npm run *` is about `npm run` alone, too.
    let open = rest.last().is_some_and(|last| last == "*");
    let rest_without_star = &rest[..rest.len() - usize::from(open)];
    literal(words)
        || (open
            && words.len() == rest_without_star.len()
            && begins_with(rest_without_star, name, words))
        || subcommands::after_global_options(base_name(name), words).is_some_and(literal)
}

/// Whether the words are all there: sub-commands in order before other arguments, options anywhere.
fn covers(rest: &[String], program: &str, words: &[Word]) -> Match {
    let (wanted, places): (Vec<_>, Vec<_>) = rest
        .iter()
        .partition(|word| (word.starts_with('-') && word.len() > 1) || word.contains('='));
    let options = wanted.iter().map(|option| match option.starts_with('-') {
        true => has_option(option, program, words),
        false => has_word(option, words),
    });
    let options = options.min().unwrap_or(Match::Yes);
    let words = match words.first().and_then(Word::text) {
        // A toolchain before the sub-command.
        Some(first) if first.starts_with('+') && ["cargo", "rustc"].contains(&program) => {
            &words[1..]
        }
        _ => words,
    };
    options.min(has_subcommands(&places, program, words))
}

/// Whether a word such as `of=/dev/*` is among the arguments.
fn has_word(wanted: &str, words: &[Word]) -> Match {
    let matches = words.iter().map(|word| match word.text() {
        Some(text) if glob(wanted, &text) => Match::Yes,
        Some(_) => Match::No,
        None => Match::Maybe,
    });
    matches.max().unwrap_or(Match::No)
}

fn has_option(wanted: &str, program: &str, words: &[Word]) -> Match {
    let mut letters: Vec<char> = match wanted.strip_prefix("--") {
        // A long option has a letter that means the same.
        Some(_) => subcommands::option_letters(program, wanted).chars().collect(),
        None if !subcommands::has_single_dash_words(program) => {
            wanted[1..].to_lowercase().chars().collect()
        }
        None => vec![],
    };
    let mut unknown = false;
    for word in words {
        let Some(text) = word.text() else {
            let beginning = word.prefix();
            unknown |= beginning.is_empty() || beginning.starts_with('-') || !word.is_single();
            continue;
        };
        if text == "--" {
            break;
        }
        let name = text.split('=').next().unwrap_or_default();
        let abbreviates = name.len() > 2 && name.starts_with("--") && wanted.starts_with(name);
        if text == *wanted || name == wanted || abbreviates {
            return Match::Yes;
        }
        let given = subcommands::option_letters(program, &text).to_lowercase();
        let had = letters.len();
        letters.retain(|letter| !given.contains(*letter));
        if had > 0 && letters.is_empty() {
            return Match::Yes;
        }
    }
    if unknown { Match::Maybe } else { Match::No }
}

/// Whether the arguments that are no options begin with the given words. An option we do not know
/// may have a value or not, so both are tried: all places to go on from are followed at once, as one
/// after the other takes twice as long with every such option.
fn has_subcommands(places: &[&String], program: &str, words: &[Word]) -> Match {
    let mut starts = vec![false; words.len() + 2];
    starts[0] = true;
    let mut best = Match::No;
    for place in places {
        let mut behind = vec![false; words.len() + 2];
        for (at, word) in words.iter().enumerate() {
            if !starts[at] {
                continue;
            }
            let Some(text) = word.text() else {
                match word.prefix().starts_with('-') && word.is_single() {
                    true => starts[at + 1] = true,
                    false => best = Match::Maybe,
                }
                continue;
            };
            if word.literal().is_none() && !text.starts_with('-') {
                // The shell may make anything of a pattern.
                best = Match::Maybe;
                continue;
            }
            if !text.starts_with('-') || text == "-" {
                let given = subcommands::full_name(program, &text.to_lowercase(), place);
                behind[at + 1] |= glob(&place.to_lowercase(), &given);
                continue;
            }
            match subcommands::option_kind(program, &text) {
                OptionKind::Flag => starts[at + 1] = true,
                OptionKind::Valued if words.get(at + 1).is_some_and(|value| !value.is_single()) => {
                    best = Match::Maybe;
                }
                OptionKind::Valued => starts[at + 2] = true,
                OptionKind::Unknown => {
                    starts[at + 1] = true;
                    starts[at + 2] = true;
                }
            }
        }
        starts = behind;
    }
    if starts.contains(&true) { Match::Yes } else { best }
}

/// Whether a text matches a pattern in which `*` stands for any number of characters.
pub fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut middle: Vec<_> = rest.split('*').collect();
    let end = middle.pop().unwrap_or_default();
    for piece in middle {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}
