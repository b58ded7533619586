//! What a place, or the program that leads to it, says on stderr: it may explain a failure.

use std::sync::{Arc, Mutex, PoisonError};

/// How much of it is kept.
const MAX_SAID: usize = 2 << 10;

/// The end of what was said. Clones share it.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    pub fn add(&self, bytes: &[u8]) {
        tracing::debug!("a place says: {}", String::from_utf8_lossy(bytes).trim_end());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_SAID)..]);
        let over = kept.len().saturating_sub(MAX_SAID);
        kept.drain(..over);
    }

    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// All of it in one line, without control characters: a place may say anything.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join("; ").replace(char::is_control, " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept_in_one_line() {
        let said = Said::default();
        said.add(&[b'x'; 3 * MAX_SAID]);
        said.add(b"\nfirst\n");
        said.clone().add(b"\n  sec\x1bond\n");
        let text = said.text();
        assert!(text.ends_with("x; first; sec ond"), "{text}");
        assert!(text.len() <= MAX_SAID);
    }
}
