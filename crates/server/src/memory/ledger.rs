//! How many bytes are in use of how many.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// After a peak of this many bytes, free memory is returned to the system.
const PEAK: usize = 8 << 20;

#[derive(Debug)]
pub struct Ledger {
    used: AtomicUsize,
    limit: usize,
    pub freed: Notify,
    /// A queue: room is granted in the order of the requests for it.
    pub queue: tokio::sync::Mutex<()>,
    /// The most bytes since memory was last returned.
    peak: AtomicUsize,
}

impl Ledger {
    pub fn new(limit: usize) -> Self {
        let (used, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { used, limit, freed: Notify::new(), queue: tokio::sync::Mutex::default(), peak }
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether so many more bytes fit. One message always does, however long it is.
    pub fn has_room(&self, bytes: usize) -> bool {
        let used = self.used();
        used == 0 || used.saturating_add(bytes) <= self.limit
    }

    pub fn add(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(used, Ordering::Relaxed);
    }

    pub fn subtract(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Whether much less is in use than at the last peak.
    pub fn is_past_peak(&self) -> bool {
        let peak = self.peak.load(Ordering::Relaxed);
        peak >= PEAK && self.used() <= peak / 4
    }

    pub fn reset_peak(&self) {
        self.peak.store(self.used(), Ordering::Relaxed);
    }
}
