//! How much is measured.

use std::time::Duration;

/// More outputs than are kept of one owner: only then one that comes lets go of another.
const KEPT: usize = 250;

/// Longer than anything idle is held on to.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Blocks of calls one after the other, of each that takes part.
    pub calls: usize,
    /// Servers that are started.
    pub starts: usize,
    /// How long calls are counted, and how often.
    pub block: Duration,
    pub blocks: usize,
    /// Bytes that are taken in, and how often.
    pub volume: u64,
    pub takes: usize,
    /// Processes that have nothing to do with the server.
    pub strangers: usize,
    /// Tests, lines and files of the outputs whose tokens are counted.
    pub cases: usize,
    /// Seconds of `yes`.
    pub flood: f64,
    /// Lines whose way is measured.
    pub ticks: usize,
    /// Calls of all kinds, and large outputs before them.
    pub soak: usize,
    pub kept: usize,
    /// How long is waited for what is let go of.
    pub patience: Duration,
    pub judgements: usize,
    /// How large crowds are.
    pub sessions: &'static [usize],
    pub running: &'static [usize],
    pub jobs: &'static [usize],
    /// Blocks of calls beside them, and how long nothing is called.
    pub scaled: usize,
    pub rest: Duration,
}

impl Effort {
    /// What the published numbers take: about two minutes.
    pub const FULL: Self = Self {
        calls: 200,
        starts: 40,
        block: Duration::from_millis(200),
        blocks: 9,
        volume: 1 << 30,
        takes: 5,
        strangers: 1000,
        cases: 400,
        flood: 5.0,
        ticks: 60,
        soak: 5000,
        kept: KEPT,
        patience: PATIENCE,
        judgements: 20_000,
        sessions: &[10, 100, 1_000, 10_000],
        running: &[10, 100, 1_000, 3_000],
        jobs: &[10, 100, 1_000],
        scaled: 15,
        rest: Duration::from_secs(5),
    };

    /// A look after a change.
    pub const QUICK: Self = Self {
        calls: 50,
        starts: 15,
        block: Duration::from_millis(100),
        blocks: 3,
        volume: 128 << 20,
        takes: 3,
        strangers: 1000,
        cases: 400,
        flood: 1.0,
        ticks: 20,
        soak: 1000,
        kept: KEPT,
        patience: PATIENCE,
        judgements: 2000,
        sessions: &[10, 100, 1_000],
        running: &[10, 100, 1_000],
        jobs: &[10, 100],
        scaled: 5,
        rest: Duration::from_secs(3),
    };

    /// As little as shows that everything still works; the numbers mean nothing.
    pub const TRIAL: Self = Self {
        calls: 1,
        starts: 1,
        block: Duration::from_millis(5),
        blocks: 1,
        volume: 1 << 20,
        takes: 1,
        strangers: 5,
        cases: 40,
        flood: 0.2,
        ticks: 3,
        soak: 40,
        kept: 4,
        patience: Duration::ZERO,
        judgements: 100,
        sessions: &[1, 3],
        running: &[1, 3],
        jobs: &[1, 3],
        scaled: 1,
        rest: Duration::from_millis(10),
    };
}
