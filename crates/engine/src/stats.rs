//! Counters of the engine: how runs ended, and how long they took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::outcome::{End, Outcome};

/// The upper bounds of the latency histogram, in seconds. The last bucket has none.
const RANGES: [f64; 12] =
    [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 1800.0];

/// The names of the ends that are counted.
const ENDS: [&str; 7] =
    ["exited", "failed", "signalled", "timed_out", "cancelled", "lost", "not_started"];

#[derive(Debug, Default)]
pub struct Stats {
    /// Answered runs, in the order of [`ENDS`].
    ends: [AtomicU64; ENDS.len()],
    pub refused: AtomicU64,
    pub busy: AtomicU64,
    pub running: AtomicU64,
    /// The output of all commands.
    pub bytes: AtomicU64,
    /// From the request to the command's first process.
    pub spawning: Latency,
    /// From the request to the answer.
    pub total: Latency,
}

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Latency {
    /// One count for each of [`RANGES`], and one for everything longer.
    counts: [AtomicU64; RANGES.len() + 1],
    microseconds: AtomicU64,
}

impl Latency {
    pub fn note(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let range = RANGES.iter().position(|end| seconds <= *end).unwrap_or(RANGES.len());
        self.counts[range].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// How many were counted up to each bound in seconds, longer ones than the bound before it alone; the last bound
    /// is infinite.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = RANGES.into_iter().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.microseconds.load(Ordering::Relaxed))
    }
}

impl Stats {
    /// How many answered runs ended in each way, by the name of that.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ENDS.into_iter().zip(self.ends.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub(crate) fn note_error(&self, error: &Error) {
        match error {
            Error::Refused(_) => self.refused.fetch_add(1, Ordering::Relaxed),
            Error::Busy => self.busy.fetch_add(1, Ordering::Relaxed),
            _ => self.ends[6].fetch_add(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn note_outcome(&self, outcome: &Outcome) {
        let at = match outcome.end {
            End::Exited(0) => 0,
            End::Exited(_) => 1,
            End::Signalled(_) => 2,
            End::TimedOut { .. } => 3,
            End::Cancelled | End::Closed(_) => 4,
            End::Lost => 5,
        };
        self.ends[at].fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(outcome.output.length(), Ordering::Relaxed);
    }
}
