//! What is counted of a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::outcome::Outcome;
use crate::stats::Stats;
use crate::turns::Turn;
use crate::witness::Waiting;

/// What is counted of a run as long as somebody waits for it.
pub struct Books {
    stats: Arc<Stats>,
    _turn: Turn,
    asked: Instant,
    began: Option<Instant>,
    witness: Option<Waiting>,
}

impl Books {
    pub fn open(stats: Arc<Stats>, turn: Turn, asked: Instant, witness: Option<Waiting>) -> Self {
        stats.running.fetch_add(1, Ordering::Relaxed);
        Self { stats, _turn: turn, asked, began: None, witness }
    }

    pub fn note_start(&mut self) {
        self.stats.spawning.note(self.asked.elapsed());
        self.began = self.witness.is_some().then(Instant::now);
    }

    pub fn note_answer(&self, answer: &Result<Outcome, Error>) {
        match answer {
            Ok(outcome) => self.stats.note_outcome(outcome),
            Err(error) => self.stats.note_error(error),
        }
        self.stats.total.note(self.asked.elapsed());
        if let Some(witness) = &self.witness {
            let wall = answer.as_ref().map_or(Duration::ZERO, |outcome| outcome.usage.wall);
            // Of a short command all is heard at once, when it has ended.
            let heard = self.began.map_or(Duration::ZERO, |began| began.elapsed());
            witness.tell(wall.max(heard), answer);
        }
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        self.stats.running.fetch_sub(1, Ordering::Relaxed);
    }
}
