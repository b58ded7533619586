//! Which file it is, and since when it is as it is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// When the name, content or rights of a file were last changed, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Changed {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

impl Changed {
    pub fn now() -> Self {
        // The clock that file systems read.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Self { seconds: now.tv_sec, nanoseconds: now.tv_nsec }
    }

    /// Whether that was certainly before another time.
    pub fn is_before(self, other: Self) -> bool {
        // Some file systems know only even seconds.
        const COARSE: i64 = 2;
        match self.nanoseconds {
            0 => self.seconds + COARSE <= other.seconds,
            _ => self < other,
        }
    }
}

impl From<&Metadata> for Changed {
    fn from(found: &Metadata) -> Self {
        Self { seconds: found.ctime(), nanoseconds: found.ctime_nsec() }
    }
}
