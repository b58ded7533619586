//! The progress of a call, on a terminal: how long it takes, how much it has printed, and the last line.
//!
//!     12s  340 lines  [█████░░░░░]  45%  copying 45%
//!
//! It is one line on standard error, and erased when this is dropped.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mcpz_audit::visible;
use mcpz_output::{Output, Stream};

use crate::{colours, jobs, terminal};

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// How long a call may take before anything is shown, and how often that is renewed.
const QUIET: Duration = Duration::from_millis(300);
const INTERVAL: Duration = Duration::from_millis(100);

/// How much is read between two updates to count lines. If a command prints faster, its lines are not counted.
const MAX_READ: u64 = 16 << 20;
const PIECE: usize = 1 << 20;

/// The cells of a bar.
const BAR: usize = 10;

/// Shows the progress of a command, if standard error is a terminal.
pub struct Progress {
    output: Arc<OnceLock<Output>>,
    began: Instant,
    shows: bool,
    /// What is on the terminal.
    shown: String,
    lines: Lines,
}

impl Progress {
    pub fn new(output: Arc<OnceLock<Output>>) -> Self {
        let shows = io::stderr().is_terminal() && !colours::is_dumb();
        Self { output, began: Instant::now(), shows, shown: String::new(), lines: Lines::default() }
    }

    /// Shows progress until this is dropped.
    pub async fn run(mut self) -> Infallible {
        if !self.shows {
            return std::future::pending().await;
        }
        tokio::time::sleep(QUIET).await;
        loop {
            self.update();
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn update(&mut self) {
        let (printed, last) = match self.output.get() {
            Some(output) => (self.lines.count(output), output.last_lines(&STREAMS)),
            None => (Printed::Lines(0), String::new()),
        };
        let width = terminal::width(io::stderr()).unwrap_or(80);
        let line = line(self.began.elapsed(), printed, &last);
        // The last column stays empty: some terminals would begin another line.
        let line = terminal::cut(&line, width.saturating_sub(1));
        if line != self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
            self.shown = line;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.shown.is_empty() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// How much was printed.
#[derive(Debug, Clone, Copy)]
enum Printed {
    Lines(u64),
    Bytes(u64),
}

/// Counts lines as they arrive.
#[derive(Default)]
struct Lines {
    counted: u64,
    /// How far each stream was read.
    read: [u64; 2],
    /// Whether there is too much to count.
    behind: bool,
}

impl Lines {
    fn count(&mut self, output: &Output) -> Printed {
        let mut room = MAX_READ;
        for (stream, read) in STREAMS.into_iter().zip(&mut self.read) {
            while !self.behind && output.end(stream) > *read {
                let Ok(piece) = output.read_next(stream, *read, PIECE) else { break };
                let length = piece.bytes.len() as u64;
                self.behind = piece.at > *read || length > room;
                room = room.saturating_sub(length);
                *read = piece.at + length;
                self.counted += piece.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
                if length == 0 {
                    break;
                }
            }
        }
        match self.behind {
            true => Printed::Bytes(output.length()),
            false => Printed::Lines(self.counted),
        }
    }
}

fn line(elapsed: Duration, printed: Printed, last: &str) -> String {
    let last = last.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last = visible(&last.replace('\t', " "));
    let printed = match printed {
        Printed::Lines(1) => "1 line".to_owned(),
        Printed::Lines(lines) => format!("{lines} lines"),
        Printed::Bytes(bytes) => format!("{} MB", bytes / 1_000_000),
    };
    let bar = percentage(&last).map(bar).unwrap_or_default();
    format!("{}  {printed}{bar}  {}", jobs::time(elapsed), last.trim()).trim_end().to_owned()
}

/// The last percentage in a line.
fn percentage(line: &str) -> Option<u64> {
    let numbers = line.rmatch_indices('%').filter_map(|(end, _)| {
        let before = &line[..end];
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let start = before
            .rfind(|c: char| !is_part(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        before[start..].parse::<f64>().ok()
    });
    let mut numbers = numbers.filter(|number| (0.0..=100.0).contains(number));
    numbers.next().map(|number| number as u64)
}

fn bar(percent: u64) -> String {
    let full = percent as usize * BAR / 100;
    format!("  [{}{}]  {percent}%", "█".repeat(full), "░".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(last: &str) -> String {
        line(Duration::from_secs(75), Printed::Lines(3), last)
    }

    #[test]
    fn a_line_has_the_time_the_lines_and_the_last_of_them() {
        assert_eq!(shown(""), "1m15s  3 lines");
        assert_eq!(shown("one\ntwo\x1b[2J\n\n"), "1m15s  3 lines  two\\u{1b}[2J");
        assert_eq!(line(Duration::ZERO, Printed::Lines(1), "x"), "0s  1 line  x");
        assert_eq!(line(Duration::ZERO, Printed::Bytes(2_500_000), ""), "0s  2 MB");
    }

    #[test]
    fn a_bar_shows_the_percentage_that_a_program_prints() {
        assert_eq!(shown("at 45% of x"), "1m15s  3 lines  [████░░░░░░]  45%  at 45% of x");
        for (text, expected) in [
            ("100%", Some(100)),
            ("é7.5%", Some(7)),
            ("10% then 20%", Some(20)),
            ("50% of 120%", Some(50)),
            ("%d %", None),
            ("120%", None),
            ("", None),
        ] {
            assert_eq!(percentage(text), expected, "{text}");
        }
    }
}
