//! What is counted of a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::error::Error;
use crate::outcome::Outcome;
use crate::stats::Stats;
use crate::turns::Turn;

/// What is counted of a run as long as somebody waits for it.
pub struct Books {
    stats: Arc<Stats>,
    _turn: Turn,
    asked: Instant,
}

impl Books {
    pub fn open(stats: Arc<Stats>, turn: Turn, asked: Instant) -> Self {
        stats.running.fetch_add(1, Ordering::Relaxed);
        Self { stats, _turn: turn, asked }
    }

    pub fn note_start(&self) {
        self.stats.spawning.note(self.asked.elapsed());
    }

    pub fn note_answer(&self, answer: &Result<Outcome, Error>) {
        match answer {
            Ok(outcome) => self.stats.note_outcome(outcome),
            Err(error) => self.stats.note_error(error),
        }
        self.stats.total.note(self.asked.elapsed());
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        self.stats.running.fetch_sub(1, Ordering::Relaxed);
    }
}
