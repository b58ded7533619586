//! Compresses a kept output with gzip.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::output::Output;
use crate::page::Stop;
use crate::stream::Stream;

/// How much is read at a time.
const BLOCK: usize = 1 << 20;

/// Compresses a stream's raw bytes into the stdout of `target`, an empty output. Fails if `target` runs out of room:
/// a truncated archive is useless.
pub fn gzip(source: &Output, stream: Stream, target: &Output, stop: &Stop) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Appender(target), Compression::default());
    let mut at = 0;
    loop {
        stop.check()?;
        let piece = source.read_next(stream, at, BLOCK)?;
        if piece.bytes.is_empty() {
            break;
        }
        at = piece.at + piece.bytes.len() as u64;
        encoder.write_all(&piece.bytes)?;
    }
    encoder.finish()?;
    target.finish();
    Ok(())
}

struct Appender<'a>(&'a Output);

impl Write for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(Stream::Stdout, bytes);
        match self.0.cut(Stream::Stdout) {
            None => Ok(bytes.len()),
            Some(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
