//! How much has arrived for runs that they have not taken yet.
//!
//! Credit bounds how much data is on its way, but not in how many pieces, nor how many events come. So nothing more is
//! read while too many of them wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// So many may wait.
const ENOUGH: usize = 1 << 10;

#[derive(Default)]
pub struct Backlog {
    waiting: AtomicUsize,
    /// Notified when there is room again.
    room: Notify,
}

/// Something that waits for its run, until this is dropped.
pub struct Waiting(Arc<Backlog>);

impl Backlog {
    pub fn add(self: &Arc<Self>) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self.clone())
    }

    /// Waits until there is room. For one caller at a time.
    pub async fn room(&self) {
        while self.waiting.load(Ordering::Relaxed) >= ENOUGH {
            self.room.notified().await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::Relaxed) == ENOUGH {
            self.0.room.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn nothing_is_read_while_too_much_waits() {
        let backlog = Arc::new(Backlog::default());
        let mut waiting: Vec<_> = (0..ENOUGH + 5).map(|_| backlog.add()).collect();
        let mut reader = std::pin::pin!(backlog.room());
        waiting.truncate(ENOUGH);
        assert!(timeout(Duration::from_millis(1), &mut reader).await.is_err());
        waiting.pop();
        reader.await;
    }
}
