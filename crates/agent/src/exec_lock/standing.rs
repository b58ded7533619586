//! What a process may execute, because of the program that it is.

use std::sync::Arc;

use crate::exec_rules::MayRun;

/// What a process of the run may execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Everything that is not denied.
    Free,
    /// What everyone may, and these.
    Bound(Arc<[String]>),
    /// What everyone may.
    Least,
}

impl Standing {
    pub const LEAST: Self = Self::Least;

    /// What both may execute, or less.
    pub fn least(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Free, other) => other.clone(),
            (own, Self::Free) => own,
            (own, other) if own == *other => own,
            _ => Self::Least,
        }
    }

    pub fn of(may_run: &MayRun, before: &Self) -> Self {
        match may_run {
            MayRun::Anything => Self::Free,
            MayRun::AsBefore => before.clone(),
            MayRun::Only(programs) if programs.is_empty() => Self::Least,
            MayRun::Only(programs) => Self::Bound(programs.clone()),
        }
    }
}

/// A process that wants to execute something, as far as it matters for the decision.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub standing: &'a Standing,
    /// The program that it is to execute as the interpreter of its script, if it is `env`.
    pub env_program: Option<&'a str>,
    /// Whether an earlier command in the same shell has started it.
    pub is_earlier: bool,
}
