//! Looks for a rule that allows a command.

use super::Judge;
use crate::additions::{self, Reach};
use crate::call::{Call, span_of};
use crate::denial::{Denial, Why};
use crate::limit::{Fit, fit};
use crate::names::Names;
use crate::paths::base_name;
use crate::policy::Unresolved;
use crate::programs;
use crate::rule::CommandName;
use crate::script::Word;

/// Builtins that no allow list has to name.
pub const HARMLESS: Names = Names("cd true false : test [ pwd exit return break continue wait");

impl Judge<'_> {
    /// Whether it is a builtin of the script's own shell that changes nothing outside the shell.
    pub(super) fn needs_no_rule(&self, name: &CommandName, call: &Call<'_>) -> bool {
        let in_shell = self.texts > 0 && call.wrappers == 0;
        let is_harmless = |name: &str| {
            HARMLESS.has(name) || (name == "set" && programs::sets_only_checks(call.arguments()))
        };
        in_shell && self.is_quiet && name.known().is_some_and(is_harmless)
    }

    /// The rule that allows a command, by its place in the list, if it needs one. Refuses a command that no rule
    /// allows, or none with all its arguments.
    pub(super) fn allowed(
        &mut self,
        name: &CommandName,
        words: &[Word],
    ) -> Result<Option<usize>, Denial> {
        let allow = &self.policy.allow;
        let mut refused = None;
        let program = name.known().map(base_name).filter(|name| additions::matter_to(name));
        let other = program.and_then(|program| additions::options_last(program, words));
        let spellings: Vec<_> = [Some(words), other.as_deref()].into_iter().flatten().collect();
        for (at, rule) in allow.iter().enumerate() {
            let Some(words) = spellings.iter().find(|words| rule.allows(name, words)) else {
                continue;
            };
            let why = match fit(rule, name, words) {
                Fit::Yes(reach) if self.is_within(reach) => {
                    if !self.needed.contains(&at) {
                        self.needed.push(at);
                    }
                    return Ok(Some(at));
                }
                Fit::Yes(_) => (span_of(words), Why::Moved { rule: rule.to_string() }),
                Fit::Adds(word) => (word.span.clone(), Why::Added { rule: rule.to_string() }),
                Fit::No => continue,
            };
            refused.get_or_insert_with(|| self.deny(why.0, why.1));
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        if allow.is_empty() {
            return Ok(None);
        }
        let span = span_of(words);
        match name.known().map(str::to_owned) {
            Some(name) => {
                let allowed = allow.iter().map(ToString::to_string).collect();
                Err(self.deny(span, Why::NotAllowed { name, allowed }))
            }
            None if allow.iter().any(|rule| rule.is_everything()) => Ok(None),
            None if self.policy.unresolved == Unresolved::Allow => Ok(None),
            None => Err(self.deny(span, Why::Unresolved { what: "its name" })),
        }
    }

    /// Whether the command runs where a rule with this reach holds, or the keeper will see whether it does.
    fn is_within(&self, reach: Reach) -> bool {
        let directories = &self.knowledge.directories;
        match reach {
            Reach::Anywhere => true,
            Reach::Here => directories.are_where_rules_begin(),
            Reach::Below => directories.are_below_where_rules_begin().unwrap_or(self.held),
        }
    }
}
