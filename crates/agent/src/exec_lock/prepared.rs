//! Rules that are ready for a run. What was found out for the run before is used again where it still holds.

use std::time::{Duration, Instant};

use super::identity::Changed;
use super::rules::Rules;
use super::target::Target;
use crate::exec_rules::{EncodedRules, ExecRules};

/// How long the files of denied programs are taken as known.
const LOOKUP_AGE: Duration = Duration::from_secs(10);

/// The rules of the next run, or of an earlier one: looking up denied programs takes long.
pub struct Prepared {
    given: EncodedRules,
    /// Whether the same rules mean the same whatever links there are now.
    is_lasting: bool,
    /// Whether they hold anything.
    pub holds: bool,
    denied: Vec<String>,
    path: Vec<u8>,
    pub rules: Rules,
    at: Instant,
    /// The same, in seconds since 1970.
    seconds: i64,
}

impl Prepared {
    /// For a run with these rules and this `PATH`, after an earlier one.
    pub fn next(
        earlier: Option<Self>,
        given: &EncodedRules,
        path: &[u8],
    ) -> Result<Self, postcard::Error> {
        let is_recent = |it: &Self| it.path == path && it.at.elapsed() < LOOKUP_AGE;
        let keep_up = |mut earlier: Self| {
            earlier.rules.keep_up();
            earlier
        };
        Ok(match earlier.filter(is_recent).map(keep_up) {
            Some(mut earlier) if earlier.is_lasting && earlier.given == *given => {
                earlier.rules.begin_again();
                earlier
            }
            earlier => {
                let rules = given.decode()?;
                match earlier.filter(|it| it.denied == rules.denied) {
                    Some(earlier) => earlier.replace(given.clone(), rules),
                    None => Self::new(given.clone(), rules, path),
                }
            }
        })
    }

    /// Allows the run more than before, for a command beside which those of earlier ones may go on.
    pub fn extend(&mut self, more: ExecRules, others_go_on: bool) {
        self.is_lasting = false;
        self.rules.extend(more, others_go_on);
    }

    fn new(given: EncodedRules, rules: ExecRules, path: &[u8]) -> Self {
        let (at, seconds) = (Instant::now(), Changed::now().seconds);
        let (is_lasting, holds) = (rules.are_lasting(), rules.hold());
        let (denied, path) = (rules.denied.clone(), path.to_owned());
        let rules = Rules::new(rules, &path);
        Self { given, is_lasting, holds, denied, path, rules, at, seconds }
    }

    /// For a run with other allowed programs.
    fn replace(self, given: EncodedRules, mut rules: ExecRules) -> Self {
        let (is_lasting, holds) = (rules.are_lasting(), rules.hold());
        let denied = std::mem::take(&mut rules.denied);
        let mut own = self.rules;
        own.replace_allowed(rules);
        Self { given, is_lasting, holds, denied, rules: own, ..self }
    }

    /// Looks up denied programs once more for a file that is younger: one may have been installed since, and this may
    /// be a copy.
    pub fn keep_up_with(&mut self, target: &Target) {
        if target.changed.seconds >= self.seconds {
            (self.at, self.seconds) = (Instant::now(), Changed::now().seconds);
            self.rules.look_up();
        }
    }
}
