//! What programs need, as far as that was worked out before.
//!
//! Most commands name the same programs as one of the last, and the tables are long.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{LockedProgram, MayRun, NamedProgram, Runs};

/// How many sets of programs are remembered with what they need.
const MOST_SETS: usize = 32;

/// How many programs are remembered with what they usually may execute.
const MOST_PROGRAMS: usize = 1000;

/// A cache that all clones of a policy share.
#[derive(Clone, Default)]
pub struct KnownNeeds(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    programs: HashMap<String, MayRun>,
    /// The newest is the first.
    sets: VecDeque<KnownSet>,
}

/// Programs, and what they need where the settings add this.
struct KnownSet {
    runs: Vec<Runs>,
    named: Vec<NamedProgram>,
    needs: Arc<[LockedProgram]>,
}

impl KnownNeeds {
    /// What these programs need, which is worked out only once for the same.
    pub fn needs(
        &self,
        runs: &[Runs],
        named: &[NamedProgram],
        work_out: impl FnOnce() -> Arc<[LockedProgram]>,
    ) -> Arc<[LockedProgram]> {
        if let Some(set) = self.lock().sets.iter().find(|it| it.runs == runs && it.named == named) {
            return set.needs.clone();
        }
        let needs = work_out();
        let (runs, named) = (runs.to_vec(), named.to_vec());
        let mut known = self.lock();
        known.sets.truncate(MOST_SETS - 1);
        known.sets.push_front(KnownSet { runs, named, needs: needs.clone() });
        needs
    }

    /// What a program may execute, if the settings say nothing.
    pub fn usual(&self, name: &str, work_out: impl FnOnce(&str) -> MayRun) -> MayRun {
        let mut known = self.lock();
        if let Some(usual) = known.programs.get(name) {
            return usual.clone();
        }
        let usual = work_out(name);
        if known.programs.len() < MOST_PROGRAMS {
            known.programs.insert(name.to_owned(), usual.clone());
        }
        usual
    }

    /// No code panics while it holds this.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KnownNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownNeeds")
    }
}
