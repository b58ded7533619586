//! The loader that a binary names, which the kernel runs in its place.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How every binary begins.
pub const MAGIC: &[u8] = b"\x7fELF";

/// The kernel accepts no longer table.
const MAX_TABLE: usize = 64 << 10;

const MAX_PATH: usize = 4096;

/// How much of a binary usually has all that is needed here.
pub const BEGINNING: usize = 4096;

/// The type of the entry that names the loader.
const LOADER: usize = 3;

/// Where a binary has what, in bytes, and how long that is.
struct Layout {
    table: (usize, usize),
    /// The length of an entry of the table, which the kernel compares.
    entry_size: usize,
    count: usize,
    entry: usize,
    offset: (usize, usize),
    size: (usize, usize),
}

const WIDE: Layout = Layout {
    table: (0x20, 8),
    entry_size: 0x36,
    count: 0x38,
    entry: 56,
    offset: (8, 8),
    size: (32, 8),
};
const NARROW: Layout = Layout {
    table: (0x1c, 4),
    entry_size: 0x2a,
    count: 0x2c,
    entry: 32,
    offset: (4, 4),
    size: (16, 4),
};

/// Whether it is a binary that this machine runs by itself, perhaps as a processor with 32 bits would.
pub fn is_native(head: &[u8]) -> bool {
    const MACHINE: (usize, usize) = (0x12, 2);
    let is_native = |machine| match machine {
        3 | 6 => cfg!(any(target_arch = "x86_64", target_arch = "x86")),
        62 => cfg!(target_arch = "x86_64"),
        40 => cfg!(any(target_arch = "aarch64", target_arch = "arm")),
        183 => cfg!(target_arch = "aarch64"),
        243 => cfg!(target_arch = "riscv64"),
        _ => false,
    };
    head.starts_with(MAGIC) && number(head, MACHINE).is_some_and(is_native)
}

/// The path of the loader, if the file is a binary and names one. `beginning` is how the file begins. Which layout
/// counts depends on the processor and the kernel, so a file that names a loader by both is not clear.
pub fn loader(file: &File, beginning: &[u8]) -> io::Result<Option<Vec<u8>>> {
    if !beginning.starts_with(MAGIC) {
        return Ok(None);
    }
    match (WIDE.loader(file, beginning), NARROW.loader(file, beginning)) {
        (Some(_), Some(_)) => Err(io::Error::from_raw_os_error(libc::EIO)),
        (one, other) => Ok(one.or(other)),
    }
}

impl Layout {
    fn loader(&self, file: &File, beginning: &[u8]) -> Option<Vec<u8>> {
        number(beginning, (self.entry_size, 2)).filter(|size| *size == self.entry)?;
        let size = (number(beginning, (self.count, 2))? * self.entry).min(MAX_TABLE);
        let table = read(file, beginning, number(beginning, self.table)?, size)?;
        let entry = table.chunks_exact(self.entry).find(|it| number(it, (0, 4)) == Some(LOADER))?;
        let size = number(entry, self.size)?.min(MAX_PATH);
        let mut path = read(file, beginning, number(entry, self.offset)?, size)?.into_owned();
        path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
        Some(path)
    }
}

/// Some bytes of a file from a place on, out of its beginning if that has them.
fn read<'a>(file: &File, beginning: &'a [u8], at: usize, size: usize) -> Option<Cow<'a, [u8]>> {
    if let Some(known) = beginning.get(at..at.checked_add(size)?) {
        return Some(Cow::Borrowed(known));
    }
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, at as u64).ok()?;
    Some(Cow::Owned(bytes))
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
        let path = String::from_utf8(loader(&file, &head).unwrap().unwrap()).unwrap();
        assert!(std::path::Path::new(&path).is_file(), "{path}");
        assert_eq!(loader(&file, b"#!/bin/sh\n").unwrap(), None);
        assert_eq!(loader(&file, b"\x7fELF\x02").unwrap(), None);
    }

    /// A binary whose only entry names this loader.
    fn binary(layout: &Layout, path: &str) -> Vec<u8> {
        const TABLE: u16 = 0x60;
        let text = TABLE + 64;
        let mut bytes = vec![0; usize::from(text)];
        bytes[..4].copy_from_slice(b"\x7fELF");
        let mut set =
            |at: usize, number: u16| bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
        set(layout.table.0, TABLE);
        set(layout.entry_size, layout.entry as u16);
        set(layout.count, 1);
        set(usize::from(TABLE), LOADER as u16);
        set(usize::from(TABLE) + layout.offset.0, text);
        set(usize::from(TABLE) + layout.size.0, path.len() as u16);
        bytes.extend(path.as_bytes());
        bytes
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_loader_is_found_whatever_the_header_says_about_width_and_processor() {
        let found = |bytes: &[u8]| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("binary"), bytes).unwrap();
            let file = File::open(folder.path().join("binary")).unwrap();
            loader(&file, bytes).map_err(|error| error.raw_os_error())
        };
        let (wide, narrow) = (binary(&WIDE, "/a"), binary(&NARROW, "/b"));
        assert_eq!(found(&wide), Ok(Some(b"/a".to_vec())));
        assert_eq!(found(&narrow), Ok(Some(b"/b".to_vec())));
        let both: Vec<_> = wide.iter().zip(&narrow).map(|(one, other)| one | other).collect();
        assert_eq!(found(&both), Err(Some(libc::EIO)));
    }
}
