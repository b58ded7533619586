//! Everything that says which commands may run, combined into one policy: `--allow`, `--deny`,
//! `blocked_commands`, an assistant's settings file. It holds for every tool.

use mcpz_policy::{Policy, Rule, RuleError, Runs, Threats, Unresolved};

use crate::restrictions::{ImportedRules, RestrictionsError};
use crate::settings::{self, Entry, RunsEntry, Settings};

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Restrictions(#[from] RestrictionsError),
    #[error("both the settings file and the allow list say what may run; keep only one of them")]
    TwoAllowLists,
    #[error("the allow list is empty; leave it out to allow everything, or list what may run")]
    NothingAllowed,
}

/// The policy of the settings and of an assistant's settings file that they name.
pub fn load(settings: &Settings) -> Result<Policy, PolicyError> {
    let (policy, tool) = (&settings.policy, &settings.shell_tool);
    let restrictions = tool.settings().map(|path| ImportedRules::load(&path)).transpose()?;
    let restrictions = restrictions.unwrap_or_default();
    let allow = policy.allow().as_deref().map(rules).transpose()?;
    // Each list says alone what may run. Only commands on both may run then, so one list must go.
    if allow.is_some() && restrictions.allow.is_some() {
        return Err(PolicyError::TwoAllowLists);
    }
    let allow = restrictions.allow.or(allow);
    // An empty list is a mistake, such as a variable that was not set. It must not allow everything.
    if allow.as_ref().is_some_and(Vec::is_empty) {
        return Err(PolicyError::NothingAllowed);
    }
    let mut deny = rules(&policy.deny())?;
    for text in tool.blocked_commands() {
        deny.extend(Rule::list(&text)?);
    }
    deny.extend(restrictions.deny);
    Ok(Policy {
        allow: allow.unwrap_or_default(),
        deny,
        unresolved: match policy.unresolved() {
            settings::Unresolved::Allow => Unresolved::Allow,
            settings::Unresolved::Deny => Unresolved::Deny,
        },
        threats: match policy.threats() {
            settings::Threats::Off => Threats::Off,
            settings::Threats::Warn => Threats::Warn,
            settings::Threats::Deny => Threats::Deny,
        },
        write_dirs: policy.write_dirs(),
        runs: policy.runs().into_iter().map(runs).collect(),
        ..Policy::default()
    })
}

fn runs(entry: RunsEntry) -> Runs {
    Runs { program: entry.program, may_run: entry.may_run }
}

fn rules(entries: &[Entry]) -> Result<Vec<Rule>, RuleError> {
    let rules = entries.iter().map(rules_of).collect::<Result<Vec<_>, _>>()?;
    Ok(rules.concat())
}

/// The rules of an entry, checked against its examples.
fn rules_of(entry: &Entry) -> Result<Vec<Rule>, RuleError> {
    match entry {
        Entry::Words(list) if list.starts_with('/') => Ok(vec![Rule::new(list)?]),
        Entry::Words(list) | Entry::List(list) => Rule::list(list),
        Entry::Full(entry) => {
            let mut rule = Rule::new(&entry.rule)?;
            rule.reason = entry.reason.clone();
            rule.instead = entry.instead.clone();
            rule.check(&entry.r#match, &entry.not_match)?;
            Ok(vec![rule])
        }
    }
}

/// How many examples an entry has.
pub fn examples(entry: &Entry) -> usize {
    match entry {
        Entry::Words(_) | Entry::List(_) => 0,
        Entry::Full(entry) => entry.r#match.len() + entry.not_match.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_the_policy_is_the_default_one() {
        let policy = load(&Settings::default()).unwrap();
        assert_eq!(policy.unresolved, Unresolved::default());
        assert_eq!(policy.threats, Threats::default());
        assert!(policy.allow.is_empty() && policy.deny.is_empty() && policy.write_dirs.is_empty());
    }
}
