//! A small disk, to be filled.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// One of this size in a folder, if it can be mounted. It goes when this is dropped, which must be
    /// after whatever uses it.
    pub fn mount(path: &Path, size: &str) -> Option<Self> {
        let options = format!("size={size}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).status();
        mount.is_ok_and(|status| status.success()).then(|| Self { path: path.to_owned() })
    }

    /// Leaves no room on it.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        while filler.write_all(&[0; 512]).is_ok() {}
    }

    /// Leaves so much room on it, or a little less.
    pub fn fill_but(&self, room: u64) {
        self.fill();
        let filler = File::options().write(true).open(self.filler()).unwrap();
        let length = filler.metadata().unwrap().len();
        filler.set_len(length - room).unwrap();
    }

    /// Makes room again.
    pub fn clear(&self) {
        let _ = std::fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.path).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}
