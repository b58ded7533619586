//! Folds a file page by page, as a server would, and says how long it took: `fold FILE [ROOM]`.

#![allow(clippy::allow_attributes, clippy::print_stdout, reason = "an example prints")]

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::time::Instant;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let room = arguments.next().and_then(|room| room.parse().ok()).unwrap_or(1 << 20);
    let length = std::fs::metadata(&path)?.len();
    let (mut consumed, mut text, mut pages) = (0, 0, 0);
    let start = Instant::now();
    while consumed < length {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(consumed))?;
        let shown = mcpz_view::folded(BufReader::new(file), room)?;
        consumed += shown.consumed;
        text += shown.text.len();
        pages += 1;
    }
    println!("{length} bytes to {text} in {pages} pages, {:?}", start.elapsed());
    Ok(())
}
