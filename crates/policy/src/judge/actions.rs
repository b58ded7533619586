//! Judges the actions that [`programs`] lists.

use super::{Judge, Ruling, programs};
use crate::action::{Action, Runner};
use crate::call::{Call, span_of};
use crate::denial::{Suspect, Why};
use crate::identity;
use crate::names::Names;
use crate::policy::Unresolved;
use crate::rule::{CommandName, Match, Rule};
use crate::script::{Span, Word};
use crate::traces::Traces;

impl Judge<'_> {
    /// Judges all that a command does besides running its own program.
    pub(super) fn actions(&mut self, name: &str, call: &Call<'_>) -> Ruling {
        let mut actions = programs::actions(name, call, &self.knowledge);
        if self.is_left_to_kernel(name) {
            // It sees what is executed, but not which goals a makefile makes of it.
            let denies_goals = self.policy.deny.iter().any(Rule::is_about_goals);
            let is_seen = |action: &Action| match action {
                Action::RunForeign { .. } | Action::Opaque { .. } => true,
                Action::UnknownGoals { .. } => !denies_goals,
                _ => false,
            };
            actions.retain(|action| !is_seen(action));
        }
        if self.held {
            // The keeper sees which file it is.
            actions.retain(|action| !matches!(action, Action::OpenUnknown(_)));
        }
        self.run_by(name, |judge| {
            actions.into_iter().try_for_each(|action| judge.action(action, call))
        })
    }

    fn action(&mut self, action: Action, call: &Call<'_>) -> Ruling {
        match action {
            Action::Run(words) => {
                let inner = inner(call, &words);
                self.elsewhere(|judge| judge.call(&inner))
            }
            Action::RunOwn(words) => self.run_own(&inner(call, &words)),
            Action::RunScript { text, span, by: Runner::ThisShell } => {
                self.script(&text, call.shell, Some(span))
            }
            Action::RunScript { text, span, by: Runner::NewShell(shell) } => {
                match call.name().is_some_and(|name| programs::is_shell(&name)) {
                    true => self.new_shell(&text, shell, span),
                    false => self.shell_of_program(&text, shell, span),
                }
            }
            Action::RunForeign { texts, span } => self.run_foreign(&texts, span),
            // A word that a rule names for a program that can run anything may be gone then.
            Action::ChangePatterns { span } if self.limits_runners() => {
                self.opaque(span, "a pattern may then become no word, or another file's name")
            }
            Action::ChangePatterns { .. } => Ok(()),
            Action::RunLater => {
                self.knowledge.runs_out_of_order = true;
                Ok(())
            }
            Action::Open(words) => {
                self.leave(Traces::Values);
                words.first().into_iter().for_each(|file| self.run_file(file));
                // The kernel sees the interpreter, not the program that it opens.
                self.run_by("", |judge| judge.denied(&words))
            }
            Action::OpenUnknown(words) => self.may_be_script(&words),
            Action::UnknownGoals { span } => self.opaque(span, "an unknown makefile"),
            Action::Evaluate { text, span } => self.evaluate(&text, &span),
            Action::EvaluateNumber(word) => {
                self.knowledge.evaluated.push(word);
                Ok(())
            }
            Action::UseName(word) => {
                self.knowledge.named.push(word);
                Ok(())
            }
            Action::SetArguments(words) => {
                self.knowledge.add_arguments(&words);
                Ok(())
            }
            Action::Source => {
                self.knowledge.source();
                Ok(())
            }
            Action::ShiftArguments => {
                self.knowledge.shift_arguments();
                Ok(())
            }
            Action::MakeArray { name } => {
                self.knowledge.add_array(name);
                Ok(())
            }
            Action::AllowTextKeys => {
                self.knowledge.has_changed |= !self.knowledge.has_text_keys;
                self.knowledge.has_text_keys = true;
                Ok(())
            }
            Action::EvaluateVariables => {
                self.knowledge.evaluates = true;
                Ok(())
            }
            Action::Assign { name, value, span } => {
                self.knowledge.add_value(&name, value.as_ref());
                self.variable(&name, value.as_ref(), &span)
            }
            Action::Export { name, value, span } => {
                self.knowledge.export(&name);
                match value {
                    Some(value) => self.variable(&name, Some(&value), &span),
                    None => self.variable_as_it_is(&name, &span),
                }
            }
            Action::Alias { name, words } => {
                self.knowledge.add_alias(name, words);
                Ok(())
            }
            Action::ExportAll => {
                self.knowledge.export_all();
                Ok(())
            }
            Action::SetOnly { name, value, span } => self.variable(&name, value.as_ref(), &span),
            // The engine sets the first two to keep programs from running what is typed, and `~` is another folder
            // without the last.
            Action::Unset { name }
                if ["LESSSECURE", "histchars", "HOME"].contains(&name.as_str()) =>
            {
                self.variable(&name, None, &call.span())
            }
            Action::Unset { name } => {
                self.knowledge.add_value(&name, Some(&Word::known("", call.span())));
                Ok(())
            }
            Action::UnsetFunctions => {
                self.knowledge.unsets_functions = true;
                self.knowledge.has_changed = true;
                Ok(())
            }
            Action::Write(file) => self.write(&file),
            Action::WriteAside(file) => self.write_aside(&file),
            // Only an allow list and `write_dirs` restrict what is written.
            Action::HiddenWrite { .. } if self.policy.restricts_only_names() => Ok(()),
            Action::HiddenWrite { span } => {
                self.unresolved(span, "a word that may be an option; put -- before it")
            }
            Action::UnclearWrite { .. } if self.policy.write_dirs.is_empty() => Ok(()),
            Action::UnclearWrite { span, what } => self.unresolved(span, what),
            Action::Create(file) => {
                self.knowledge.add_written_file(&file);
                Ok(())
            }
            Action::Link(file) => {
                self.knowledge.add_link(&file);
                Ok(())
            }
            Action::Take(file) => self.take(&file),
            Action::CopyLinks { sources, made } => {
                self.copy_links(&sources, &made);
                Ok(())
            }
            Action::Delete { span } => self.delete(call, span),
            Action::Enter(directory) => {
                self.knowledge.directories.enter(Some(&directory), true);
                Ok(())
            }
            Action::EnterUnknown => {
                self.knowledge.directories.forget();
                Ok(())
            }
            Action::Opaque { span, what } => self.opaque(span, what),
            Action::Unresolved { span, what } => self.unresolved(span, what),
        }
    }

    /// Judges a command that belongs to an allowed program: no rule has to allow it. That program may execute anything,
    /// and no other may execute this one.
    fn run_own(&mut self, call: &Call<'_>) -> Ruling {
        self.is_shallow(call)?;
        self.denied(call.words)?;
        match call.name() {
            Some(name) => self.elsewhere(|judge| judge.actions(&name, call)),
            None => self.unresolved(call.span(), "its name"),
        }
    }

    /// Refuses a file that may be the script of a program which a rule denies with these arguments.
    fn may_be_script(&self, words: &[Word]) -> Ruling {
        let name = CommandName::of(words);
        let may_deny = |rule: &&Rule| {
            let Some(program) = rule.program().filter(|name| identity::is_script(name)) else {
                return false;
            };
            let meant = [&[Word::known(program, words[0].span.clone())], &words[1..]].concat();
            rule.matches(&name, words) != Match::No
                && rule.matches(&CommandName::of(&meant), &meant) != Match::No
        };
        match self.policy.deny.iter().find(may_deny) {
            Some(rule) if self.policy.unresolved == Unresolved::Deny => {
                let (rule, by) = (rule.to_string(), Suspect::Other);
                Err(self.deny(span_of(words), Why::MayBeDenied { rule, by }))
            }
            _ => Ok(()),
        }
    }

    /// Judges a program in another language. Without an allow list, it must at least not mention a denied
    /// command.
    fn run_foreign(&self, texts: &[String], span: Span) -> Ruling {
        if !self.policy.allow.is_empty() || self.allows_opaque() {
            return Ok(());
        }
        let denying = |text: &String| {
            let rule = self.policy.deny.iter().find(|rule| rule.is_mentioned_in(text));
            rule.filter(|_| !only_prints(text))
        };
        match texts.iter().find_map(denying) {
            Some(rule) => Err(self.deny(span, Why::Mentions { rule: rule.to_string() })),
            None => Ok(()),
        }
    }

    /// An allow list has to allow `find -delete`: a rule that also allows `find` alone does not.
    fn delete(&self, call: &Call<'_>, span: Span) -> Ruling {
        let bare = [call.words[0].clone()];
        let words = [call.words[0].clone(), Word::known("-delete", call.span())];
        let name = CommandName::of(&bare).at(self.knowledge.program_paths(&bare[0]));
        let allows = |rule: &Rule| rule.allows(&name, &words) && !rule.allows(&name, &bare);
        match self.policy.allow.is_empty() || self.policy.allow.iter().any(allows) {
            true => Ok(()),
            false => self.opaque(span, "it deletes files; a rule `find -delete` would allow it"),
        }
    }
}

/// Whether a program in any language does nothing but print texts in which no language expands anything.
fn only_prints(program: &str) -> bool {
    const PRINTS: Names = Names("print println puts echo console.log");
    let mut code = String::new();
    let mut rest = program;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = &rest[start..=start];
        let Some((text, after)) = rest[start + 1..].split_once(quote) else { return false };
        if text.contains(['@', '$', '`', '{', '[', '#', '\\', '\n']) {
            return false;
        }
        // Letters before a quote can change what the text means: `f"…"`.
        code.push_str(&rest[..start]);
        code.push_str(if rest[..start].ends_with(char::is_alphanumeric) { "?" } else { " " });
        rest = after;
    }
    code.push_str(rest);
    let is_sign = |c: char| c.is_whitespace() || "(),;+".contains(c);
    let mut words = code.split(is_sign).filter(|word| !word.is_empty());
    words.all(|word| PRINTS.has(word) || word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A command that another one runs: it finds the same input.
fn inner<'a>(call: &Call<'_>, words: &'a [Word]) -> Call<'a> {
    Call {
        words,
        input: call.input.clone(),
        listing: call.listing,
        shell: call.shell,
        wrappers: call.wrappers + 1,
    }
}
