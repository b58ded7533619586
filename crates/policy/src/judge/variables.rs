//! Judges the variables that a request sets, by what programs do with them.

use super::{Judge, Ruling};
use crate::additions;
use crate::denial::Why;
use crate::identity;
use crate::locked::Runs;
use crate::names::Names;
use crate::rule::Rule;
use crate::script::{Shell, Span, Word};
use crate::variables::{Effect, Seen, effect, is_settled};

/// Commands that are harmless as the value of any variable: they show, compile, or do nothing.
const KNOWN: Names = Names("cat true : less more gcc g++ cc c++ clang clang++ ld ar as");

/// Variables that programs get without being told so, because shells set them or inherit them.
const INHERITED: Names = Names("PWD OLDPWD TERM LANG LC_ALL TZ USER LOGNAME COLUMNS LINES");

/// Variables with the folder for temporary files.
const TEMPORARY: Names = Names("TMPDIR TMP TEMP TEMPDIR");

impl Judge<'_> {
    /// Judges a variable that gets a value, which is `None` if only the run will know it.
    pub fn variable(&mut self, name: &str, value: Option<&Word>, span: &Span) -> Ruling {
        let seen = match self.knowledge.is_exported(name) || INHERITED.has(name) {
            true => Seen::ByPrograms,
            false => Seen::ByTheShell,
        };
        self.variable_for(name, value, span, seen)
    }

    /// Judges a variable that programs get with the value it has.
    pub(super) fn variable_as_it_is(&mut self, name: &str, span: &Span) -> Ruling {
        let texts = self.knowledge.possible_texts(&Word::variable(name, span.clone()));
        if texts.is_empty() {
            return self.variable(name, None, span);
        }
        let mut values = texts.into_iter().map(|text| Word::known(text, span.clone()));
        values.try_for_each(|value| self.variable(name, Some(&value), span))
    }

    /// Whether rules allow a program that runs what it is told, but only with certain arguments.
    pub(super) fn limits_runners(&self) -> bool {
        let limits = |rule: &Rule| match rule.program() {
            None => true,
            Some(_) if rule.whole_program().is_some() => false,
            // Behind such a path is nothing that may run others.
            Some(program) if program.contains('*') => rule.path().is_none(),
            Some(program) => additions::matter_to(program),
        };
        // What may run anything by the settings may run such a program.
        let runs_all = |runs: &Runs| runs.may_run.iter().any(|pattern| pattern == "*");
        self.policy.allow.iter().any(limits) || self.policy.runs.iter().any(runs_all)
    }

    pub(super) fn variable_for(
        &mut self,
        name: &str,
        value: Option<&Word>,
        span: &Span,
        seen: Seen,
    ) -> Ruling {
        if name == "PATH" && self.policy.allow.is_empty() && self.knowledge.extends_path(value) {
            return Ok(());
        }
        let unclear = value.filter(|value| value.text().is_none() && !value.has_braces());
        if let Some(texts) = unclear.and_then(|value| self.knowledge.texts(value)) {
            let mut values = texts.into_iter().map(|text| Word::known(text, span.clone()));
            return values.try_for_each(|value| self.variable_for(name, Some(&value), span, seen));
        }
        let known = value.and_then(Word::text);
        let rules = &self.policy.allow;
        if rules.iter().any(|rule| rule.allows_variable(name, known.as_deref())) {
            return Ok(());
        }
        if TEMPORARY.has(name) {
            self.temporary_folder(value, span)?;
        }
        let is_text = |value: &str| is_settled(name, value);
        if seen == Seen::ByPrograms
            && self.limits_runners()
            && !known.as_deref().is_some_and(is_text)
        {
            return Err(self.deny(span.clone(), Why::Variable { name: name.to_owned() }));
        }
        let is_harmless = |value: &str| value.is_empty() || KNOWN.has(identity::program(value));
        match (effect(name, known.as_deref(), seen), value) {
            (Effect::Harmless, _) => Ok(()),
            (Effect::Unknown, _) if rules.is_empty() => Ok(()),
            (Effect::Unknown, _) if rules.iter().any(Rule::is_everything) => Ok(()),
            (Effect::Unknown, _) => {
                Err(self.deny(span.clone(), Why::VariableNotAllowed { name: name.to_owned() }))
            }
            (Effect::Command, Some(_)) if known.as_deref().is_some_and(is_harmless) => Ok(()),
            (Effect::Command, Some(value)) if known.is_some() => {
                self.shell_of_program(&known.unwrap_or_default(), Shell::Sh, value.span.clone())
            }
            _ if self.allows_opaque() => Ok(()),
            _ => Err(self.deny(span.clone(), Why::Variable { name: name.to_owned() })),
        }
    }
}
