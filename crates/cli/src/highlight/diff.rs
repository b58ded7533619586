//! Unified diffs. Only the lines that the head of a hunk counts belong to it, so lists are not taken for changes.

use super::Span;

const HEAD: &str = "1";
const HUNK: &str = "36";
const ADDED: &str = "32";
const REMOVED: &str = "31";

/// How many lines of the current hunk are still to come.
#[derive(Default)]
pub struct Diff {
    old: u64,
    new: u64,
    /// Whether the line before was the first of the two that name the files.
    named: bool,
}

impl Diff {
    /// The parts of a line to colour, if it belongs to a diff.
    pub fn spans(&mut self, line: &str) -> Option<Vec<Span>> {
        let all = 0..line.len();
        if self.old > 0 || self.new > 0 {
            let colour = match line.as_bytes().first() {
                Some(b'+') if self.new > 0 => {
                    self.new -= 1;
                    Some(ADDED)
                }
                Some(b'-') if self.old > 0 => {
                    self.old -= 1;
                    Some(REMOVED)
                }
                Some(b' ') | None => {
                    (self.old, self.new) = (self.old.saturating_sub(1), self.new.saturating_sub(1));
                    None
                }
                Some(b'\\') => None,
                Some(_) => {
                    (self.old, self.new) = (0, 0);
                    return self.spans(line);
                }
            };
            return Some(colour.map(|colour| (all, colour)).into_iter().collect());
        }
        if let Some((old, new, end)) = hunk(line) {
            (self.old, self.new) = (old, new);
            return Some(vec![(0..end, HUNK)]);
        }
        let (first, second) = (line.starts_with("--- "), line.starts_with("+++ "));
        let is_head = line.starts_with("diff --git ") || first || second && self.named;
        self.named = first;
        is_head.then(|| vec![(all, HEAD)])
    }
}

/// How many lines of both files a hunk has, by its head, and where the head ends.
fn hunk(line: &str) -> Option<(u64, u64, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => range.parse::<u64>().ok().map(|_| 1),
    };
    Some((count(old)?, count(new)?, "@@ -".len() + ranges.len() + " @@".len()))
}
