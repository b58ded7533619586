//! The loader that a binary names, which the kernel runs in its place.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The kernel accepts no longer table.
const MAX_TABLE: usize = 64 << 10;

const MAX_PATH: usize = 4096;

/// The type of the entry that names the loader.
const LOADER: usize = 3;

/// Where a binary says what processor it is for, and those with 32 bits.
const MACHINE: usize = 0x12;
const X86: usize = 3;
const ARM: usize = 40;

/// Where a binary has what, in bytes, and how long that is.
struct Layout {
    table: (usize, usize),
    count: usize,
    entry: usize,
    offset: (usize, usize),
    size: (usize, usize),
}

const WIDE: Layout =
    Layout { table: (0x20, 8), count: 0x38, entry: 56, offset: (8, 8), size: (32, 8) };
const NARROW: Layout =
    Layout { table: (0x1c, 4), count: 0x2c, entry: 32, offset: (4, 4), size: (16, 4) };

/// The path of the loader, if the file is a binary and names one. `head` is how the file begins.
pub fn loader(file: &File, head: &[u8]) -> Option<Vec<u8>> {
    head.strip_prefix(b"\x7fELF")?;
    // By the processor, as the kernel does it, whatever the header says about its own width.
    let layout = match number(head, (MACHINE, 2))? {
        X86 | ARM => NARROW,
        _ => WIDE,
    };
    let count = number(head, (layout.count, 2))?;
    let mut table = vec![0; (count * layout.entry).min(MAX_TABLE)];
    file.read_exact_at(&mut table, number(head, layout.table)? as u64).ok()?;
    let entry = table.chunks_exact(layout.entry).find(|it| number(it, (0, 4)) == Some(LOADER))?;
    let mut path = vec![0; number(entry, layout.size)?.min(MAX_PATH)];
    file.read_exact_at(&mut path, number(entry, layout.offset)? as u64).ok()?;
    path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
    Some(path)
}

/// A number at a place, in this machine's order of bytes: the kernel runs no others.
fn number(bytes: &[u8], (at, length): (usize, usize)) -> Option<usize> {
    let bytes = bytes.get(at..at + length)?;
    let mut whole = [0; 8];
    let place = if cfg!(target_endian = "little") { 0 } else { 8 - length };
    whole[place..place + length].copy_from_slice(bytes);
    usize::try_from(u64::from_ne_bytes(whole)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_this_test_is_a_file() {
        let file = File::open("/proc/self/exe").unwrap();
        let mut head = [0; 256];
        file.read_exact_at(&mut head, 0).unwrap();
        let path = String::from_utf8(loader(&file, &head).unwrap()).unwrap();
        assert!(std::path::Path::new(&path).is_file(), "{path}");
        assert_eq!(loader(&file, b"#!/bin/sh\n"), None);
        assert_eq!(loader(&file, b"\x7fELF\x02"), None);
    }
}
