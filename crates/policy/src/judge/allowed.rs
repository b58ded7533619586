//! Looks for a rule that allows a command.

use super::{Judge, Ruling};
use crate::additions::{self, Arguments};
use crate::call::span_of;
use crate::denial::Why;
use crate::identity;
use crate::names::Names;
use crate::paths::base_name;
use crate::policy::Unresolved;
use crate::programs;
use crate::rule::{CommandName, Rule};
use crate::script::Word;

impl Judge<'_> {
    /// Refuses a command that no rule allows, or none with all its arguments.
    pub(super) fn allowed(&mut self, name: &CommandName, words: &[Word]) -> Ruling {
        let allow = &self.policy.allow;
        let mut refused = None;
        let program = name.known().map(base_name).filter(|name| additions::matter_to(name));
        let other = program.and_then(|program| additions::options_last(program, words));
        let spellings: Vec<_> = [Some(words), other.as_deref()].into_iter().flatten().collect();
        for (at, rule) in allow.iter().enumerate() {
            let Some(words) = spellings.iter().find(|words| rule.allows(name, words)) else {
                continue;
            };
            let added = addition(rule, name, words);
            let added = added.map(|word| (word, Why::Added { rule: rule.to_string() }));
            let moved = || {
                Some((
                    self.moved_program(rule, name, words)?,
                    Why::Moved { rule: rule.to_string() },
                ))
            };
            if let Some((word, why)) = added.or_else(moved) {
                refused.get_or_insert_with(|| self.deny(word.span.clone(), why));
                continue;
            }
            if !self.needed.contains(&at) {
                self.needed.push(at);
            }
            return Ok(());
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        if allow.is_empty() {
            return Ok(());
        }
        let span = span_of(words);
        match name.known().map(str::to_owned) {
            Some(name) => {
                let allowed = allow.iter().map(ToString::to_string).collect();
                Err(self.deny(span, Why::NotAllowed { name, allowed }))
            }
            None if allow.iter().any(|rule| rule.is_everything()) => Ok(()),
            None if self.policy.unresolved == Unresolved::Allow => Ok(()),
            None => Err(self.deny(span, Why::Unresolved { what: "its name" })),
        }
    }
}

impl Judge<'_> {
    /// The program of an interpreter that a rule names by a relative path, if it is another file than the rule means:
    /// one that is not where the rules begin.
    fn moved_program<'a>(
        &self,
        rule: &Rule,
        name: &CommandName,
        words: &'a [Word],
    ) -> Option<&'a Word> {
        const PROGRAMS: Names =
            Names("cjs class exs groovy jar java jl js kts lua mjs php pl ps1 py rb sh tcl ts");
        let program = name.known().map(base_name)?;
        if !additions::matter_to(program) || rule.whole_program().is_some() {
            return None;
        }
        let is_relative = |word: &Word| word.text().is_some_and(|it| !it.starts_with(['/', '-']));
        let has_ending = |word: &Word| {
            let text = word.text().unwrap_or_default();
            text.rsplit_once('.').is_some_and(|(_, end)| PROGRAMS.has(end))
        };
        let file = words[1..].iter().find(|word| is_relative(word) && has_ending(word));
        let file = file.or_else(|| interpreted(words).filter(|word| is_relative(word)))?;
        (!self.knowledge.directories.are_where_rules_begin()).then_some(file)
    }
}

/// The file that an interpreter among these words runs, if it is given one.
fn interpreted(words: &[Word]) -> Option<&Word> {
    let interpreter = |word: &Word| {
        let text = word.text()?;
        let name = identity::program(base_name(&text)).to_owned();
        (programs::is_interpreter(&name) && !programs::is_shell(&name)).then_some(name)
    };
    let (at, name) =
        words.iter().enumerate().find_map(|(at, word)| Some((at, interpreter(word)?)))?;
    let rest = words.get(at + 1..)?;
    let is_inline = |word: &Word| {
        word.text().is_some_and(|it| it == "-m" || programs::is_inline_option(&name, &it))
    };
    let is_option = |word: &Word| word.text().is_some_and(|it| it.starts_with('-'));
    let at = rest.iter().position(|word| !is_option(word))?;
    (!rest[..at].iter().any(is_inline)).then(|| &rest[at])
}

/// The first argument that may change what a program runs, and that the rule does not name.
fn addition<'a>(rule: &Rule, name: &CommandName, words: &'a [Word]) -> Option<&'a Word> {
    let program = name.known().map(base_name).filter(|name| additions::matter_to(name))?;
    let named = rule.whole_program().is_none().then(|| rule.named(name, words)).flatten()?;
    let (words, named, open) = (&words[1..], &*named, rule.is_open());
    additions::refused(program, Arguments { words, named, open })
}
