//! Counts a run, and notifies its observer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::observer::RunObserver;
use crate::outcome::Outcome;
use crate::stats::Stats;
use crate::turns::Turn;

/// Counts a run for as long as someone waits for it.
pub struct Accounting {
    stats: Arc<Stats>,
    _turn: Turn,
    asked: Instant,
    began: Option<Instant>,
    observer: Option<RunObserver>,
}

impl Accounting {
    pub fn open(
        stats: Arc<Stats>,
        turn: Turn,
        asked: Instant,
        observer: Option<RunObserver>,
    ) -> Self {
        stats.running.fetch_add(1, Ordering::Relaxed);
        Self { stats, _turn: turn, asked, began: None, observer }
    }

    pub fn note_start(&mut self) {
        self.stats.spawning.note(self.asked.elapsed());
        self.began = self.observer.is_some().then(Instant::now);
    }

    pub fn note_answer(&self, answer: &Result<Outcome, Error>) {
        match answer {
            Ok(outcome) => self.stats.note_outcome(outcome),
            Err(error) => self.stats.note_error(error),
        }
        self.stats.total.note(self.asked.elapsed());
        if let Some(observer) = &self.observer {
            let wall = answer.as_ref().map_or(Duration::ZERO, |outcome| outcome.usage.wall);
            // A short command reports its start and its end in one message.
            let heard = self.began.map_or(Duration::ZERO, |began| began.elapsed());
            observer.notify(wall.max(heard), answer);
        }
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        self.stats.running.fetch_sub(1, Ordering::Relaxed);
    }
}
