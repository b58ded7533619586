//! What a job's terminal shows. It is drawn from the kept output, when someone looks.

use std::sync::{Mutex, PoisonError};

use mcpz_output::{Output, Screen, ScreenContents, Stream};

use crate::request::TerminalSize;

/// How much output is drawn at a time, and at most after nobody has looked for long.
const PIECE: usize = 64 << 10;
const MAX_CATCH_UP: u64 = 1 << 20;

/// The terminal of a job.
#[derive(Debug)]
pub struct Terminal {
    drawn: Mutex<Drawn>,
}

struct Drawn {
    screen: Screen,
    /// How much of the output is drawn.
    at: u64,
}

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drawn").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Terminal {
    pub fn new(size: TerminalSize) -> Self {
        let screen = Screen::new(size.rows, size.columns);
        Self { drawn: Mutex::new(Drawn { screen, at: 0 }) }
    }

    /// What it shows at its current size, and the line the cursor is in. May read from the disk.
    pub fn shown(&self, output: &Output, size: Option<TerminalSize>) -> (ScreenContents, String) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = size {
            drawn.screen.resize(size.rows, size.columns);
        }
        drawn.catch_up(output);
        (drawn.screen.contents(), drawn.screen.prompt_line())
    }

    /// Whether output has arrived since someone last looked.
    pub fn is_behind(&self, output: &Output) -> bool {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.at < output.end(Stream::Stdout)
    }
}

impl Drawn {
    fn catch_up(&mut self, output: &Output) {
        let end = output.end(Stream::Stdout);
        self.at = self.at.max(end.saturating_sub(MAX_CATCH_UP));
        while self.at < end
            && let Ok(piece) = output.read_next(Stream::Stdout, self.at, PIECE)
            && !piece.bytes.is_empty()
        {
            self.screen.process(&piece.bytes);
            self.at = piece.at + piece.bytes.len() as u64;
        }
    }
}
