//! What the file of a program was at some moment.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use super::identity::{Changed, FileId};
use super::target::Target;

/// The largest program whose content is noted, and one that cannot be executed yet.
const LARGEST: u64 = 1 << 20;
const LARGEST_NEW: u64 = 16 << 20;

#[derive(Clone)]
pub struct Note {
    pub id: FileId,
    pub changed: Changed,
    /// Whether a later change would show in its time: that was over, and the file system keeps it.
    pub was_over: bool,
    /// What is in it, if that is little. It is still the same if only its rights have changed.
    content: Option<Rc<[u8]>>,
}

impl Note {
    /// What it is now. Files that are found by their names are in folders that are noted.
    pub fn of(target: &Target, is_found_by_name: bool) -> Self {
        // What is too large to be noted has to be told by its time.
        let was_over = is_over(target) && (target.size > LARGEST_NEW || keeps_times(&target.file));
        let content = match target.is_executable {
            _ if !was_over && target.size <= LARGEST_NEW => content_of(target),
            // Nobody changes the rights of what is there to be found by its name.
            _ if is_found_by_name => None,
            true if target.size <= LARGEST => content_of(target),
            false if target.size <= LARGEST_NEW => content_of(target),
            _ => None,
        };
        Self { id: target.id, changed: target.changed, was_over, content }
    }

    /// Whether the file is still what it was.
    pub fn is_of(&self, target: &Target) -> bool {
        let is_alike = |content: &Rc<[u8]>| {
            content.len() as u64 == target.size && content_of(target).as_ref() == Some(content)
        };
        let is_untouched = self.was_over && self.id == target.id && self.changed == target.changed;
        is_untouched || self.content.as_ref().is_some_and(is_alike)
    }

    /// Whether it was still the same at a later moment.
    pub fn is_same_as(&self, later: &Self) -> bool {
        let is_untouched = self.was_over && self.id == later.id && self.changed == later.changed;
        is_untouched || (self.content.is_some() && self.content == later.content)
    }
}

/// Whether every write shows in the time of a file. In memory and over a network, one through a mapping need not, and
/// what is written to an overlay may be in memory.
fn keeps_times(file: &OwnedFd) -> bool {
    const BCACHEFS: i64 = 0xca45_1a4e;
    const EROFS: i64 = 0xe0f5_e1e2;
    const SQUASHFS: i64 = 0x7371_7368;
    const ZFS: i64 = 0x2fc1_2fc1;
    const KEEPING: [i64; 8] = [
        libc::EXT4_SUPER_MAGIC,
        libc::XFS_SUPER_MAGIC,
        libc::BTRFS_SUPER_MAGIC,
        libc::F2FS_SUPER_MAGIC,
        BCACHEFS,
        ZFS,
        // They cannot be written.
        EROFS,
        SQUASHFS,
    ];
    rustix::fs::fstatfs(file).is_ok_and(|found| KEEPING.contains(&found.f_type))
}

/// Whether a change would give the file another time now. For a large one, the tick of the clock is worth waiting for.
fn is_over(target: &Target) -> bool {
    const TICK: Duration = Duration::from_millis(1);
    const MOST_TICKS: usize = 20;
    let is_over = || target.changed.is_before(Changed::now());
    let mut waits = (0..MOST_TICKS).filter(|_| target.size > LARGEST_NEW);
    is_over()
        || waits.any(|_| {
            std::thread::sleep(TICK);
            is_over()
        })
}

fn content_of(target: &Target) -> Option<Rc<[u8]>> {
    fs::read(format!("/proc/self/fd/{}", target.file.as_raw_fd())).ok().map(Rc::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::ptr;
    use std::thread::sleep;

    use super::*;

    const OWN: &str = "#!/bin/sh\necho own..\n";
    const OTHER: &str = "#!/bin/sh\necho other\n";

    /// Writes over the beginning of a file through a mapping that was read before.
    fn write_mapped(path: &Path, text: &str) {
        let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that is at least as long as the text, and that nobody else uses.
        unsafe {
            let descriptor = file.as_raw_fd();
            let mapped = libc::mmap(
                ptr::null_mut(),
                text.len(),
                protection,
                libc::MAP_SHARED,
                descriptor,
                0,
            );
            assert_ne!(mapped, libc::MAP_FAILED);
            assert_eq!(ptr::read_volatile(mapped.cast::<u8>()), text.as_bytes()[0]);
            ptr::copy_nonoverlapping(text.as_ptr(), mapped.cast(), text.len());
            assert_eq!(libc::munmap(mapped, text.len()), 0);
        }
    }

    #[test]
    fn a_program_that_is_written_through_a_mapping_is_another_one() {
        // In memory, such a file keeps its time.
        for folder in [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()] {
            let path = folder.path().join("tool");
            fs::write(&path, OWN).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            let target = || Target::find_own(None, path.as_os_str().as_bytes()).unwrap();
            while !is_over(&target()) {
                sleep(Duration::from_millis(1));
            }
            let note = Note::of(&target(), false);
            assert!(note.is_of(&target()), "{}", path.display());
            write_mapped(&path, OTHER);
            assert!(!note.is_of(&target()), "{}", path.display());
        }
    }
}
