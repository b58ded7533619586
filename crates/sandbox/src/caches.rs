//! Caches of package managers and compilers, which commands write to a layer of their own.
//!
//!     ~/.npm in a sandbox   what ~/.npm contains outside, and on top of it what commands have written
//!     ~/.npm outside        unchanged
//!
//! A cache is full of code, so a command that writes to it decides what other programs run. Commands find in a cache
//! what the user has there, but what they add goes to a folder that no program outside reads, and stays there for the
//! next sandbox in the same working directory.
//!
//!     ~/.cache/mcpz/%home%ann%p-1f…/0/lock         held as long as a sandbox uses the layer
//!                                    /.npm/upper   what commands have written, as overlayfs keeps it
//!                                    /.npm/work

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

/// Caches in a home. Commands see what is there, and write to a layer.
pub const LAYERED: &[&str] = &[
    ".bun/install/cache",
    ".cache/Cypress",
    ".cache/bazel",
    ".cache/ccache",
    ".cache/deno",
    ".cache/go-build",
    ".cache/golangci-lint",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/node-gyp",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/puppeteer",
    ".cache/pypoetry",
    ".cache/sccache",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/git",
    ".cargo/registry",
    ".ccache",
    ".gradle/caches",
    ".gradle/wrapper",
    ".ivy2",
    ".local/bin",
    ".local/lib",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2/repository",
    ".npm",
    ".nuget/packages",
    ".sbt",
    ".yarn",
    "go/bin",
    "go/pkg",
];

/// Folders of such programs that hold other files as well, some of them secret. Commands see those as they are, and
/// what they create goes to the layer.
pub const OPENED: &[&str] = &[".cache", ".cargo", ".gradle", ".m2"];

/// Files with which programs lock or count what is in a cache. Each layer has its own.
pub const OWN: &[&str] = &[
    ".cargo/.global-cache",
    ".cargo/.global-cache-journal",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
];

/// Where a sandbox finds its layer until its caches are mounted: overlayfs looks for its folders by path.
pub const LAYERS: &str = "/run/.layers";

/// How many sandboxes in one working directory may have layers at the same time.
const MAX_SLOTS: usize = 16;

/// The layer of one sandbox, as long as this lives.
#[derive(Debug)]
pub struct Layer {
    pub folder: PathBuf,
    _lock: File,
}

impl Layer {
    /// Takes the layer of a working directory: the first one that no other sandbox uses.
    pub fn claim(caches: &Path, directory: &Path) -> io::Result<Self> {
        let workspace = caches.join(name_of(directory));
        for slot in 0..MAX_SLOTS {
            let folder = workspace.join(slot.to_string());
            DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
            let lock = File::create(folder.join("lock"))?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

/// What the layers take on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub bytes: u64,
    pub layers: usize,
}

/// Measures all layers, and removes those that were not used for longest until the rest fits.
pub fn limit_caches(caches: &Path, limit: u64) -> CacheUsage {
    let mut layers: Vec<_> = layers(caches).map(|it| (used_at(&it), size(&it), it)).collect();
    layers.sort();
    let mut usage = CacheUsage { bytes: 0, layers: layers.len() };
    usage.bytes = layers.iter().map(|(_, size, _)| size).sum();
    for (_, size, layer) in &layers {
        if usage.bytes <= limit {
            break;
        }
        if remove(layer) {
            usage.bytes -= size;
            usage.layers -= 1;
        }
    }
    usage
}

/// Removes all layers that no sandbox uses, and returns what is left.
pub fn clear_caches(caches: &Path) -> CacheUsage {
    limit_caches(caches, 0)
}

fn layers(caches: &Path) -> impl Iterator<Item = PathBuf> {
    let inside = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let workspaces = inside(caches).map(|entry| entry.path());
    let slots = workspaces.flat_map(move |it| inside(&it).map(|entry| entry.path()));
    slots.filter(|slot| slot.join("lock").exists())
}

fn used_at(layer: &Path) -> Option<SystemTime> {
    layer.join("lock").metadata().and_then(|found| found.modified()).ok()
}

/// Removes a layer that no sandbox uses.
fn remove(layer: &Path) -> bool {
    let lock = File::open(layer.join("lock"));
    let is_free = |lock: &File| flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    let Some(_lock) = lock.ok().filter(is_free) else { return false };
    open_up(layer);
    let is_removed = fs::remove_dir_all(layer).is_ok();
    let _ = layer.parent().map(fs::remove_dir);
    is_removed
}

/// Gives us the right to remove what is in a folder. Overlayfs leaves folders without any rights, and so may commands.
fn open_up(folder: &Path) {
    let Ok(found) = folder.symlink_metadata() else { return };
    if !found.is_dir() {
        return;
    }
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

fn size(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    let entries = found.is_dir().then(|| fs::read_dir(path)).into_iter().flatten();
    let inside: u64 = entries.flatten().flatten().map(|entry| size(&entry.path())).sum();
    found.blocks() * 512 + inside
}

/// A name for the layers of a working directory: readable, and not that of another one.
fn name_of(directory: &Path) -> String {
    let readable = directory.to_string_lossy().replace(['/', '%'], "%");
    let end = readable.char_indices().rev().nth(99).map_or(0, |(at, _)| at);
    // FNV-1a, which is the same in every version of this program.
    let hash = directory.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{}-{hash:016x}", &readable[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_at_the_same_time_have_layers_of_their_own() {
        let caches = tempfile::tempdir().unwrap();
        let claim = || Layer::claim(caches.path(), Path::new("/home/ann/p")).unwrap();
        let (first, second) = (claim(), claim());
        assert_ne!(first.folder, second.folder);
        let freed = first.folder.clone();
        drop(first);
        assert_eq!(claim().folder, freed);
        let other = Layer::claim(caches.path(), Path::new("/home/ann/q")).unwrap();
        assert_ne!(other.folder.parent(), second.folder.parent());
    }

    #[test]
    fn the_oldest_layers_go_first_and_none_that_is_used() {
        let caches = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let layer = Layer::claim(caches.path(), Path::new(name)).unwrap();
            fs::create_dir_all(layer.folder.join("work/work")).unwrap();
            fs::write(layer.folder.join("big"), vec![1; 100_000]).unwrap();
            let closed = Permissions::from_mode(0o000);
            fs::set_permissions(layer.folder.join("work/work"), closed).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            layer
        };
        let used = make("/a");
        let [old, new] = ["/b", "/c"].map(|name| make(name).folder.clone());
        let all = limit_caches(caches.path(), u64::MAX);
        assert!(all.layers == 3 && all.bytes >= 300_000);
        assert_eq!(limit_caches(caches.path(), 250_000).layers, 2);
        assert!(!old.exists() && new.exists());
        assert_eq!(clear_caches(caches.path()).layers, 1);
        assert!(!new.exists() && used.folder.join("big").exists());
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = |end: &str| name_of(Path::new(&format!("/{}{end}", "a".repeat(300))));
        assert!(long("x").len() < 130 && long("x") != long("y"));
        assert!(name_of(Path::new("/home/ann")).starts_with("%home%ann-"));
    }
}
