//! The file that a process wants to execute, found as the kernel will find it.
//!
//! The path is looked up from the process's own root and directory. `/proc/self` and what leads to it mean another
//! process to us, so such links are followed only where the path begins with them.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs::{File, metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use libc::c_int;

use super::elf;
use super::formats::{Format, Nature, formats};
use super::identity::{Changed, FileId};
use super::listener::Named;
use super::real_path::{open, open_clear, own_link};
use super::shebang::{HEAD, shebang};
use super::view::{FileOnMount, View};

/// The usual loaders of this machine's programs.
#[cfg(target_arch = "x86_64")]
pub const LOADERS: &[&str] =
    &["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux.so.2", "/lib/ld-musl-x86_64.so.1"];
#[cfg(target_arch = "aarch64")]
pub const LOADERS: &[&str] = &["/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-aarch64.so.1"];
#[cfg(target_arch = "riscv64")]
pub const LOADERS: &[&str] = &["/lib/ld-linux-riscv64-lp64d.so.1", "/lib/ld-musl-riscv64.so.1"];

/// How many interpreters may be scripts themselves.
const MAX_SCRIPTS: usize = 5;

/// A file that is about to be executed.
#[derive(Debug)]
pub struct Target {
    /// As the process named it.
    pub path: PathBuf,
    /// Where it is, through all links.
    pub real_path: PathBuf,
    /// The process that named it, which may be the keeper.
    pub process: i32,
    /// The link in `/proc` to the directory from which it was named.
    directory: PathBuf,
    /// Where the links lead that the path is, one after the other.
    pub links: Vec<PathBuf>,
    pub changed: Changed,
    pub file: OwnedFd,
    pub id: FileId,
    pub size: u64,
    /// What the kernel runs in its place, if it is a script.
    pub interpreter: Option<Interpreter>,
    /// What the kernel runs to load it, if that is not the usual loader.
    pub loader: Option<Box<Target>>,
    /// Whether its content could be looked at.
    pub is_readable: bool,
    /// Whether it belongs to root.
    is_roots: bool,
    /// Whether anybody may execute it.
    pub is_executable: bool,
    /// How it begins, if it can be read.
    head: Option<[u8; HEAD]>,
    formats: OnceCell<Vec<Format>>,
    /// Whether the process sees the same files as we do under the same names.
    pub same_view: bool,
}

/// What runs a script.
#[derive(Debug)]
pub struct Interpreter {
    /// The file itself, which may be a script as well.
    pub target: Box<Target>,
    /// What the kernel puts before the script's own path: the interpreter and its argument, and those of the
    /// interpreter, which may be a script as well.
    pub words: Vec<Vec<u8>>,
    /// The binary at the end.
    pub id: FileId,
}

impl Target {
    /// Finds the file that the kernel will execute for this process. Fails as the call itself would, or with ELOOP or
    /// EXDEV if that cannot be told.
    pub fn find(process: i32, named: &Named, ours: View) -> io::Result<Self> {
        let mut same_view = View::of(process).is_some_and(|its| its == ours);
        let (path, file) = match named {
            Named::Open(descriptor) => {
                let link = format!("/proc/{process}/fd/{descriptor}");
                let file = open(None, link.as_bytes(), 0)?;
                let path = std::fs::read_link(&link)?;
                // It may have been opened where something else is mounted.
                same_view &= is_seen_at(&file, &path);
                (path, file)
            }
            Named::Path { directory, path } => {
                let file = match same_view {
                    true => open_seen(process, *directory, path)?,
                    false => open_elsewhere(process, *directory, path)?,
                };
                (PathBuf::from(OsStr::from_bytes(path)), file)
            }
        };
        Self::of(process, path, file, same_view, 0)
    }

    fn of(
        process: i32,
        path: PathBuf,
        file: OwnedFd,
        same_view: bool,
        depth: usize,
    ) -> io::Result<Self> {
        let file = File::from(file);
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut real_path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        if found.nlink() == 0 {
            let path = real_path.as_os_str().as_bytes();
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            real_path = PathBuf::from(OsStr::from_bytes(path));
        }
        let links = match same_view && path != real_path {
            true => links(process, &path),
            false => Vec::new(),
        };
        let mut target = Self {
            path,
            real_path,
            process,
            directory: PathBuf::from(format!("/proc/{process}/cwd")),
            links,
            changed: Changed::from(&found),
            id: FileId::from(&found),
            size: found.len(),
            interpreter: None,
            loader: None,
            is_readable: true,
            is_roots: found.uid() == 0,
            is_executable: found.is_file() && found.mode() & 0o111 != 0,
            head: None,
            formats: OnceCell::new(),
            same_view,
            file: file.into(),
        };
        let Ok(file) = File::open(format!("/proc/self/fd/{}", target.file.as_raw_fd())) else {
            target.is_readable = false;
            return Ok(target);
        };
        let mut beginning = [0; elf::BEGINNING];
        let length = file.read_at(&mut beginning, 0)?;
        let head = *beginning.first_chunk().unwrap_or(&[0; HEAD]);
        target.head = Some(head);
        let other = |path: &[u8]| {
            let opened = match same_view {
                true => open_seen(process, None, path)?,
                false => open_elsewhere(process, None, path)?,
            };
            let named = PathBuf::from(OsStr::from_bytes(path));
            Self::of(process, named, opened, same_view, depth + 1)
        };
        if let Some((path, argument)) = shebang(&head) {
            if depth >= MAX_SCRIPTS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            target.interpreter = Some(Interpreter::new(other(path)?, path, argument));
        // The kernel takes its head for as long as it reads, however short the file is.
        } else if let Some(path) = elf::loader(&file, &beginning[..length.max(HEAD)])?
            && !(same_view && LOADERS.iter().any(|usual| usual.as_bytes() == &*path))
            // The kernel does not ask for the loader of a loader.
            && depth <= MAX_SCRIPTS
        {
            target.loader = Some(Box::new(other(&path)?));
        }
        Ok(target)
    }

    /// Finds a file that we are about to execute ourselves, relative to a directory or our own.
    pub fn find_own(directory: Option<BorrowedFd<'_>>, path: &[u8]) -> io::Result<Self> {
        let file = open_clear(directory.filter(|_| !path.starts_with(b"/")), path, 0)?;
        let path = PathBuf::from(OsStr::from_bytes(path));
        let mut target = Self::of(std::process::id() as i32, path, file, true, 0)?;
        if let Some(directory) = directory {
            target.directory = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        }
        // The kernel will look it up from the directory, and we have looked it up from our own.
        match target.has_moving_part() {
            true => Err(io::Error::from_raw_os_error(libc::ELOOP)),
            false => Ok(target),
        }
    }

    /// Whether the kernel would look up an interpreter or a loader from the directory of the process, or from its own
    /// folder in `/proc`.
    pub fn has_moving_part(&self) -> bool {
        let moves =
            |path: &Path| path.is_relative() || own_link(0, path.as_os_str().as_bytes()).is_some();
        self.parts().any(|part| moves(&part.path) || part.has_moving_part())
    }

    /// How the kernel runs it and its parts: the first that is not usual.
    pub fn whole_nature(&self) -> Nature {
        self.nature_among(self.formats())
    }

    /// The formats that the kernel was told, as they were when this was first asked.
    pub fn formats(&self) -> &[Format] {
        self.formats.get_or_init(formats)
    }

    /// Those that the kernel takes it for.
    pub fn formats_among<'a>(&self, formats: &'a [Format]) -> impl Iterator<Item = &'a Format> {
        let head = self.head.as_ref().map(|head| &head[..]).unwrap_or_default();
        formats.iter().filter(move |format| format.is_of(&self.path, head))
    }

    fn nature_among(&self, formats: &[Format]) -> Nature {
        let parts = self.parts().map(|part| part.nature_among(formats));
        let own = self.head.as_ref().map(|head| Nature::of(&self.path, head, formats));
        let mut natures = parts.chain(own);
        natures.find(|nature| *nature != Nature::Usual).unwrap_or(Nature::Usual)
    }

    /// The other files that the kernel runs with it.
    pub fn parts(&self) -> impl Iterator<Item = &Self> {
        let interpreter = self.interpreter.as_ref().map(|it| &*it.target);
        interpreter.into_iter().chain(self.loader.as_deref())
    }

    /// Whether it is known what the kernel would run: the content of a file that cannot be read may name another.
    /// Programs of root that others cannot read are binaries.
    pub fn is_clear(&self) -> bool {
        self.is_readable || (self.is_roots && !rustix::process::geteuid().is_root())
    }

    /// Whether the kernel lets us execute it.
    pub fn may_be_executed(&self) -> bool {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// The file that `/proc/PID/exe` will lead to.
    pub fn executable(&self) -> FileId {
        self.interpreter.as_ref().map_or(self.id, |interpreter| interpreter.id)
    }

    /// The directory of the process that named it, for as long as that waits. Empty if it is not known.
    pub fn directory(&self) -> PathBuf {
        std::fs::read_link(&self.directory).unwrap_or_default()
    }

    /// Its base name, as the process named it.
    pub fn name(&self) -> &str {
        base_name(&self.path)
    }

    /// Its base name, through all links.
    pub fn real_name(&self) -> &str {
        base_name(&self.real_path)
    }

    /// The command line that it will have when it was executed with these arguments.
    pub fn command_line(&self, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let Some(interpreter) = &self.interpreter else { return arguments.to_vec() };
        let path = self.path.as_os_str().as_bytes().to_vec();
        let own = arguments.iter().skip(1).cloned();
        interpreter.words.iter().cloned().chain([path]).chain(own).collect()
    }

    /// The arguments that its interpreter gets, if it is a script.
    pub fn interpreter_arguments(&self, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let Some(interpreter) = &self.interpreter else { return arguments.to_vec() };
        // The interpreter's own interpreter comes first.
        let inner = interpreter.target.interpreter.as_ref().map_or(0, |inner| inner.words.len());
        self.command_line(arguments).split_off(inner)
    }

    /// The program that `env` will look up for a script that begins with `#!/usr/bin/env`.
    pub fn env_program(&self) -> Option<&str> {
        let [interpreter, argument] = self.interpreter.as_ref()?.words.as_slice() else {
            return None;
        };
        let [interpreter, argument] =
            [interpreter, argument].map(|it| std::str::from_utf8(it).unwrap_or_default());
        let words = argument.split_ascii_whitespace();
        let mut words = words.filter(|word| !word.starts_with('-') && !word.contains('='));
        let program = words.next().filter(|_| base_name(Path::new(interpreter)) == "env")?;
        Some(base_name(Path::new(program)))
    }

    /// Whether its content is that of another file of the same size.
    pub fn has_content_of(&self, other: &File) -> bool {
        let Ok(own) = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())) else {
            return false;
        };
        let (mut left, mut right) = ([0; 16 << 10], [0; 16 << 10]);
        let mut at = 0;
        while at < self.size {
            let length = ((self.size - at) as usize).min(left.len());
            let read = own
                .read_exact_at(&mut left[..length], at)
                .and_then(|()| other.read_exact_at(&mut right[..length], at));
            if read.is_err() || left[..length] != right[..length] {
                return false;
            }
            at += length as u64;
        }
        true
    }
}

pub fn base_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The executable of a process.
pub fn executable_of(process: i32) -> Option<FileId> {
    metadata(format!("/proc/{process}/exe")).ok().map(|found| FileId::from(&found))
}

/// Whether an open file is what we find at this path, on the same mount.
fn is_seen_at(file: &OwnedFd, path: &Path) -> bool {
    let Ok(seen) = open_clear(None, path.as_os_str().as_bytes(), 0) else { return false };
    matches!((FileOnMount::of(&seen), FileOnMount::of(file)), (Some(seen), Some(file)) if seen == file)
}

/// Where the links lead that a path of a process is, one after the other.
fn links(process: i32, path: &Path) -> Vec<PathBuf> {
    const MOST: usize = 40;
    let start = PathBuf::from(format!("/proc/{process}/cwd")).join(path);
    let next = |path: &PathBuf| {
        let link = std::fs::read_link(path).ok()?;
        Some(path.parent()?.join(link))
    };
    std::iter::successors(Some(start), next).skip(1).take(MOST).collect()
}

/// Opens a path of a process that sees what we see.
fn open_seen(process: i32, directory: Option<c_int>, path: &[u8]) -> io::Result<OwnedFd> {
    if let Some((link, rest)) = own_link(process, path) {
        let opened = open(None, &link, 0)?;
        return match rest.is_empty() {
            true => Ok(opened),
            false => open_clear(Some(opened.as_fd()), rest, 0),
        };
    }
    let from = match path.starts_with(b"/") {
        true => None,
        false => Some(start(process, directory)?),
    };
    open_clear(from.as_ref().map(AsFd::as_fd), path, 0).map_err(|error| {
        let folder = from.as_ref().map(|from| format!("/proc/self/fd/{}", from.as_raw_fd()));
        let path = PathBuf::from(folder.unwrap_or_default()).join(OsStr::from_bytes(path));
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) if leads_to_own_folder(&path, 0) => {
                io::Error::from_raw_os_error(libc::ELOOP)
            }
            _ => error,
        }
    })
}

/// Whether a path that leads nowhere leads through `/proc/self`, which is another folder to its process.
fn leads_to_own_folder(path: &Path, links: usize) -> bool {
    const MOST: usize = 40;
    let own = std::fs::read_link("/proc/self").map(|own| Path::new("/proc").join(own));
    let (Ok(own), Some(folder)) = (own, path.parent()) else { return links > 0 };
    let Some(name) = path.file_name().filter(|_| links < MOST) else { return true };
    match std::fs::canonicalize(folder) {
        Ok(folder) if folder.starts_with(&own) => true,
        Ok(folder) => std::fs::read_link(folder.join(name))
            .is_ok_and(|link| leads_to_own_folder(&folder.join(link), links + 1)),
        Err(_) => leads_to_own_folder(folder, links + 1),
    }
}

/// The same for a process with another root or other mounts.
fn open_elsewhere(process: i32, directory: Option<c_int>, path: &[u8]) -> io::Result<OwnedFd> {
    match path.starts_with(b"/") {
        true => {
            let root = open(None, format!("/proc/{process}/root").as_bytes(), 0)?;
            open_clear(Some(root.as_fd()), path, libc::RESOLVE_IN_ROOT)
        }
        // Links to absolute paths would lead to our own root.
        false => open_clear(Some(start(process, directory)?.as_fd()), path, libc::RESOLVE_BENEATH),
    }
}

/// The directory from which a process looks up a relative path.
fn start(process: i32, directory: Option<c_int>) -> io::Result<OwnedFd> {
    let link = match directory {
        Some(descriptor) => format!("/proc/{process}/fd/{descriptor}"),
        None => format!("/proc/{process}/cwd"),
    };
    open(None, link.as_bytes(), 0)
}

impl Interpreter {
    fn new(target: Target, path: &[u8], argument: Option<&[u8]>) -> Self {
        let (mut words, id) = match &target.interpreter {
            Some(inner) => (inner.words.clone(), inner.id),
            None => (Vec::new(), target.id),
        };
        words.extend([path].into_iter().chain(argument).map(<[u8]>::to_vec));
        Self { target: Box::new(target), words, id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel fills its head with zeros.
    #[test]
    fn a_binary_that_ends_within_its_header_names_its_loader() {
        let mut bytes = [0; 45];
        bytes[..4].copy_from_slice(elf::MAGIC);
        let (table, path) = (4, 12);
        let fields = [(0x1c, table), (0x2a, 32), (0x2c, 1), (table, 3), (table + 4, path)];
        fields.into_iter().for_each(|(at, number)| bytes[usize::from(at)] = number);
        bytes[usize::from(table) + 16] = 8;
        bytes[usize::from(path)..][..8].copy_from_slice(b"/bin/sh\0");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("short");
        std::fs::write(&file, bytes).unwrap();
        let target = Target::find_own(None, file.as_os_str().as_bytes()).unwrap();
        assert_eq!(target.loader.unwrap().path, Path::new("/bin/sh"));
    }
}
