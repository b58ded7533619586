//! The cgroup hierarchies of this machine: where our folders can be made, and how much memory and how many
//! processes there are to share out.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// The hierarchy that a folder belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 2: one hierarchy for all controllers.
    Unified,
    /// Version 1: a hierarchy for each controller.
    Memory,
    Pids,
    Cpu,
}

impl Hierarchy {
    /// Whether the keeper itself must be inside, because version 1 cannot start a process in another cgroup.
    pub fn holds_keeper(self) -> bool {
        self != Self::Unified
    }
}

/// Folders below which ours may be made, the best first. Enables the CPU controller only if `cpu`.
pub fn parents(hierarchy: Hierarchy, cpu: bool) -> Vec<PathBuf> {
    match hierarchy {
        Hierarchy::Unified => own_unified().map_or(Vec::new(), |own| unified(own, cpu)),
        Hierarchy::Memory => own_folder("memory").into_iter().collect(),
        Hierarchy::Pids => own_folder("pids").into_iter().collect(),
        Hierarchy::Cpu => own_folder("cpu").into_iter().collect(),
    }
}

/// A cgroup of version 2 that has processes cannot enable the memory controller for those below it. The cgroup
/// above has enabled it for ours, and may be writable as well.
fn unified(own: PathBuf, cpu: bool) -> Vec<PathBuf> {
    enable_controllers(&own, cpu);
    let above = own.parent().filter(|above| {
        let shares = own.join("memory.max").exists() || own.join("pids.max").exists();
        // To start a process in a sibling, we need the right to move it there.
        shares && access(above.join("cgroup.procs"), Access::WRITE_OK).is_ok()
    });
    if cpu && let Some(above) = above.filter(|above| is_delegated(above)) {
        enable_controllers(above, cpu);
    }
    above.map(Path::to_owned).into_iter().chain([own]).collect()
}

/// Whether a folder is ours to change. Users other than root can only write to what was delegated to them, and
/// systemd marks what it delegates to root. The outermost cgroup of a container has no other manager.
fn is_delegated(folder: &Path) -> bool {
    let marked = |name| {
        let mut value = [0; 1];
        rustix::fs::getxattr(folder, name, &mut value).is_ok() && value == *b"1"
    };
    let outermost = !folder.join("cgroup.type").exists();
    !geteuid().is_root() || outermost || marked("trusted.delegate") || marked("user.delegate")
}

/// Lets folders of version 2 below this one have limits of their own.
pub fn enable_controllers(folder: &Path, cpu: bool) {
    for controller in ["+memory", "+pids"].into_iter().chain(cpu.then_some("+cpu")) {
        put(&folder.join("cgroup.subtree_control"), controller);
    }
}

/// How much memory we have, in bytes: that of the machine, or less if our own cgroup is limited.
pub fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| field(&text, "MemTotal:")).map(|kib| kib << 10);
    let unified = own_unified().and_then(|own| least(&own, "memory.max"));
    let stat = own_folder("memory").map(|own| own.join("memory.stat"));
    let stat = stat.and_then(|stat| fs::read_to_string(stat).ok());
    let first = stat.and_then(|text| field(&text, "hierarchical_memory_limit"));
    [machine, unified, first].into_iter().flatten().min()
}

/// How many processes we can have.
pub fn processes() -> Option<u64> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
    let unified = own_unified().and_then(|own| least(&own, "pids.max"));
    let machine = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"].map(number);
    machine.into_iter().chain([unified]).flatten().min()
}

/// The smallest number in this file of a folder and the folders above it.
fn least(folder: &Path, file: &str) -> Option<u64> {
    let read = |folder: &Path| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    folder.ancestors().filter_map(read).min()
}

/// The number behind a name, in a text with one pair per line.
pub fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// Writes to a file of a cgroup. False if the file does not exist or cannot be written.
pub fn put(file: &Path, text: &str) -> bool {
    let opened = fs::OpenOptions::new().write(true).open(file);
    opened.is_ok_and(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()).is_ok())
}

fn own_unified() -> Option<PathBuf> {
    let own = folder_of("/proc/self/cgroup", |line| line.strip_prefix("0::"))?;
    mounted_at(&own, "cgroup2", None)
}

/// Our own folder in the hierarchy of a version 1 controller.
fn own_folder(controller: &str) -> Option<PathBuf> {
    folder_with("/proc/self/cgroup", controller)
}

/// Thaws the version 1 freezer cgroup of a process: while frozen, not even SIGKILL ends it.
pub fn thaw(pid: i32) {
    if let Some(folder) = folder_with(&format!("/proc/{pid}/cgroup"), "freezer") {
        let _ = fs::write(folder.join("freezer.state"), "THAWED");
    }
}

fn folder_with(file: &str, controller: &str) -> Option<PathBuf> {
    let folder = folder_of(file, |line| controlled_by(line, controller))?;
    mounted_at(&folder, "cgroup", Some(controller))
}

/// The cgroup that a line of a `cgroup` file names, if it belongs to this controller.
fn controlled_by<'a>(line: &'a str, controller: &str) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':').skip(1);
    parts.next()?.split(',').any(|one| one == controller).then(|| parts.next())?
}

/// The first match among the lines of a `cgroup` file.
fn folder_of(file: &str, matches: impl Fn(&str) -> Option<&str>) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(matches).map(str::to_owned)
}

/// Where a cgroup is in the file system.
fn mounted_at(cgroup: &str, file_system: &str, controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|mount| folder_at(mount, cgroup, file_system, controller))
}

/// The folder of a cgroup, if `mount`, a line of `mountinfo`, has this file system type and shows it.
fn folder_at(
    mount: &str,
    cgroup: &str,
    file_system: &str,
    controller: Option<&str>,
) -> Option<PathBuf> {
    let (mount, rest) = mount.split_once(" - ")?;
    let (mounted, options) = rest.split_once(' ')?;
    let controls = |name| options.split([',', ' ']).any(|option| option == name);
    if mounted != file_system || !controller.is_none_or(controls) {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = Path::new(cgroup).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_folder_is_found_below_the_mount() {
        let mount = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw";
        let folder = folder_at(mount, "/user.slice/a.scope", "cgroup2", None);
        assert_eq!(folder, Some("/sys/fs/cgroup/user.slice/a.scope".into()));
    }

    #[test]
    fn a_mount_of_a_part_shows_only_that_part() {
        let mount = "30 24 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let folder = folder_at(mount, "/box/run", "cgroup2", None);
        assert_eq!(folder, Some("/sys/fs/cgroup/run".into()));
        assert_eq!(folder_at(mount, "/other", "cgroup2", None), None);
    }

    #[test]
    fn version_one_has_a_mount_for_each_controller() {
        let mount = "31 24 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer";
        assert_eq!(folder_at(mount, "/", "cgroup2", None), None);
        assert_eq!(folder_at(mount, "/x", "cgroup", Some("cpu")), None);
        let folder = folder_at(mount, "/x", "cgroup", Some("freezer"));
        assert_eq!(folder, Some("/sys/fs/cgroup/freezer/x".into()));
    }

    #[test]
    fn a_line_may_name_several_controllers_and_a_path_with_colons() {
        assert_eq!(controlled_by("5:cpu,memory:/a:b", "memory"), Some("/a:b"));
        assert_eq!(controlled_by("5:cpu,memory:/a", "mem"), None);
        assert_eq!(controlled_by("0::/a", "memory"), None);
    }

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let events = "oom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(field(events, "oom_kill"), Some(2));
        assert_eq!(field(events, "oom_group"), None);
        assert_eq!(field("MemTotal:       24681 kB\n", "MemTotal:"), Some(24681));
    }

    /// A folder that looks like a cgroup of version 2 whose parent shares out memory.
    fn shared_out(folder: &Path) -> PathBuf {
        let own = folder.join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("memory.max"), "max\n").unwrap();
        fs::write(folder.join("cgroup.procs"), "").unwrap();
        own
    }

    #[test]
    fn where_the_folder_above_shares_out_memory_ours_is_beside_us() {
        let folder = tempfile::tempdir().unwrap();
        let own = shared_out(folder.path());
        assert_eq!(unified(own.clone(), false), [folder.path(), &own]);
        fs::remove_file(own.join("memory.max")).unwrap();
        assert_eq!(unified(own.clone(), false), [own]);
    }

    #[test]
    fn what_is_above_us_counts_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let own = shared_out(folder.path());
        assert_eq!(least(&own, "memory.max"), None);
        fs::write(folder.path().join("memory.max"), "1000\n").unwrap();
        assert_eq!(least(&own, "memory.max"), Some(1000));
        fs::write(own.join("memory.max"), "400\n").unwrap();
        assert_eq!(least(&own, "memory.max"), Some(400));
    }
}
