//! Which commands may run according to the settings file of a coding assistant.
//!
//! Qwen Code and Gemini CLI have `tools.core` and `tools.exclude`, older versions `coreTools` and
//! `excludeTools`, the newest Qwen Code `permissions`. All of them that are in a file apply together.
//!
//! A file is named to restrict commands, so it never fails open: anything that looks like a rule and is
//! not understood keeps the server from starting, and so does a file that restricts nothing. A warning would
//! not do: nobody reads the warnings of a server that a client starts.

mod entry;
mod keys;
mod misplaced;

use std::fmt;
use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, parse_to_ast};
use mcpz_policy::{Rule, RuleError};

use crate::install::JSON_OPTIONS;
use entry::{Entry, EntryError, TOOL};
use keys::{Effect, Section};

/// Why commands that a person would have to confirm are refused.
const NOBODY_TO_ASK: &str =
    "the settings require a person to confirm this, and mcpz cannot ask anyone";

/// Why everything is refused if the list of what may run has no command on it.
const NOTHING_LISTED: &str =
    "the settings list what may run, and run_shell_command is not on the list";

/// Rules for the policy.
#[derive(Debug, Default)]
pub struct ImportedRules {
    /// What may run; `None` for everything.
    pub allow: Option<Vec<Rule>>,
    pub deny: Vec<Rule>,
}

#[derive(Debug)]
pub struct RestrictionsError {
    path: PathBuf,
    problem: Box<Problem>,
}

impl fmt::Display for RestrictionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the settings file {}{}", self.path.display(), self.problem)
    }
}

impl std::error::Error for RestrictionsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// What is wrong. The text follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error(" named by --settings or `settings` cannot be read")]
    Read(#[source] std::io::Error),
    #[error(" is not valid JSON")]
    Syntax(#[source] ParseError),
    #[error(
        " must have an object as its `{key}`, as in {{\"tools\": {{\"core\": [\"{TOOL}(git)\"]}}}}"
    )]
    NoObject { key: &'static str },
    #[error(" must have a list as its `{key}`, such as [\"{TOOL}(git)\"]")]
    NoList { key: String },
    #[error(" has `{key}` twice, but only one of them would apply; merge them")]
    Twice { key: String },
    #[error(
        " has `{key}`, which looks like a rule but is not one; use `tools.core` for what may run, or \
         `tools.exclude` for what may not"
    )]
    UnknownKey { key: String },
    #[error(" has an entry in `{key}` that is not understood: {entry}; {advice}")]
    Entry { key: String, entry: String, advice: EntryError },
    #[error(" has an entry in `{key}` that is not a valid rule: {entry}")]
    Rule { key: String, entry: String, source: RuleError },
    #[error(
        " restricts no command; write what may run, as in {{\"tools\": {{\"core\": [\"{TOOL}(git)\"]}}}}, or \
         what may not, as in {{\"tools\": {{\"exclude\": [\"{TOOL}(rm)\"]}}}}, or leave the file out \
         (`tools.allowed` and `permissions.allow` only say what needs no confirmation)"
    )]
    NoRules,
}

impl ImportedRules {
    pub fn load(path: &Path) -> Result<Self, RestrictionsError> {
        let text = std::fs::read_to_string(path).map_err(Problem::Read);
        let read = text.and_then(|text| Self::read(&text));
        read.map_err(|problem| RestrictionsError { path: path.to_owned(), problem: problem.into() })
    }

    fn read(text: &str) -> Result<Self, Problem> {
        let text = text.trim_start_matches('\u{feff}');
        let file = parse_to_ast(text, &CollectOptions::default(), &JSON_OPTIONS);
        let file = file.map_err(Problem::Syntax)?.value;
        let Some(Value::Object(top)) = &file else { return Err(Problem::NoRules) };
        let mut lists = Lists { text, only: Vec::new(), deny: Vec::new() };
        lists.read(Section::Top, top)?;
        for section in [Section::Tools, Section::Permissions] {
            match top.get(section.name()).map(|member| &member.value) {
                Some(Value::Object(members)) => lists.read(section, members)?,
                Some(_) => return Err(Problem::NoObject { key: section.name() }),
                None => {}
            }
        }
        match misplaced::find(top) {
            Some(key) => Err(Problem::UnknownKey { key }),
            None => lists.restrictions(),
        }
    }
}

/// The commands of each list that was found.
struct Lists<'a> {
    /// The whole file.
    text: &'a str,
    /// Each list says alone what may run, so only what is on all of them may.
    only: Vec<Vec<Rule>>,
    deny: Vec<Rule>,
}

impl Lists<'_> {
    fn read(&mut self, section: Section, members: &Object<'_>) -> Result<(), Problem> {
        let mut seen = Vec::new();
        for member in &members.properties {
            let (name, key) = (member.name.as_str(), section.key(member.name.as_str()));
            let effect = section.effect(name);
            if effect.is_none() && !section.has(name) {
                continue;
            }
            if seen.contains(&name) {
                return Err(Problem::Twice { key });
            }
            seen.push(name);
            match (effect, &member.value) {
                (Some(effect), Value::Array(list)) => self.add(effect, &key, list)?,
                (Some(_), _) => return Err(Problem::NoList { key }),
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, effect: Effect, key: &str, list: &Array<'_>) -> Result<(), Problem> {
        if effect == Effect::Unasked {
            return Ok(());
        }
        let mut rules = Vec::new();
        for element in &list.elements {
            let Some(text) = element.as_string_lit() else {
                let entry = element.text(self.text).to_owned();
                return Err(Problem::Entry {
                    key: key.to_owned(),
                    entry,
                    advice: EntryError::Form,
                });
            };
            rules.extend(rule(effect, key, &text.value)?);
        }
        match effect {
            Effect::Only => self.only.push(rules),
            _ => self.deny.extend(rules),
        }
        Ok(())
    }

    fn restrictions(self) -> Result<ImportedRules, Problem> {
        let Self { only, mut deny, .. } = self;
        if only.is_empty() && deny.is_empty() {
            return Err(Problem::NoRules);
        }
        let Some(allow) = only.into_iter().reduce(|a, b| on_both(&a, &b)) else {
            return Ok(ImportedRules { allow: None, deny });
        };
        if allow.is_empty() {
            deny.push(everything(NOTHING_LISTED));
        }
        let allow =
            Some(allow).filter(|rules| !rules.is_empty() && !rules.iter().any(Rule::is_everything));
        Ok(ImportedRules { allow, deny })
    }
}

/// The rule of an entry, if it is about commands.
fn rule(effect: Effect, key: &str, text: &str) -> Result<Option<Rule>, Problem> {
    let (key, entry) = (key.to_owned(), text.to_owned());
    let read = match Entry::parse(text) {
        Ok(read) => read,
        Err(advice) => return Err(Problem::Entry { key, entry, advice }),
    };
    let command = match read {
        Entry::Command(command) => command,
        // It may be another program's tool or a command. Denying it is right in both cases; allowing it
        // would be a guess.
        Entry::Unknown(name) if effect != Effect::Only => name,
        Entry::Unknown(_) | Entry::OtherTool => return Ok(None),
    };
    let mut rule = Rule::new(&command).map_err(|source| Problem::Rule { key, entry, source })?;
    rule.reason = (effect == Effect::Ask).then(|| NOBODY_TO_ASK.to_owned());
    Ok(Some(rule))
}

fn everything(reason: &str) -> Rule {
    let mut rule = Rule::new("*").expect("it is not empty");
    rule.reason = Some(reason.to_owned());
    rule
}

/// The rules of either list that the other covers. Of two that overlap in another way, neither is kept:
/// better to allow too little than too much.
fn on_both(a: &[Rule], b: &[Rule]) -> Vec<Rule> {
    let within = |rule: &&Rule, list: &[Rule]| list.iter().any(|other| covers(other, rule));
    let both = a.iter().filter(|rule| within(rule, b));
    both.chain(b.iter().filter(|rule| within(rule, a))).cloned().collect()
}

/// Whether a rule starts with all the words of a broader one.
fn covers(broad: &Rule, rule: &Rule) -> bool {
    let (broad_text, text) = (broad.to_string(), rule.to_string());
    broad.is_everything() || text == broad_text || text.starts_with(&format!("{broad_text} "))
}
