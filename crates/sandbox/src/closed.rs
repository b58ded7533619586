//! Folders that no process in the sandbox can enter.
//!
//! In the sandbox's user namespace, root only has rights over its own files; other users do not exist there. So `bwrap`
//! cannot mount anything in another user's folder that is closed to others, such as a home of mode 0700. It need not:
//! commands can do even less. To hide something in such a folder, the folder itself is covered, which still holds if it
//! is opened up later.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid, getgroups};

/// The outermost folder around a path that no process in the sandbox can enter.
pub fn closed_around(path: &Path) -> Option<PathBuf> {
    let around = path.ancestors().skip(1).filter(|folder| is_closed(folder));
    around.last().map(Path::to_owned)
}

fn is_closed(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| found.is_dir() && !can_enter(&found))
}

fn can_enter(folder: &Metadata) -> bool {
    let may = |bit: u32| folder.mode() & bit != 0;
    let own_group = folder.gid() == getegid().as_raw();
    let groups = getgroups().unwrap_or_default();
    let in_group = own_group || groups.iter().any(|group| group.as_raw() == folder.gid());
    match folder.uid() == geteuid().as_raw() {
        // If user and group both exist in the namespace, `bwrap` needs no permission.
        true => own_group || may(0o100),
        false if in_group => may(0o010),
        false => may(0o001),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_folder_of_somebody_else_is_closed_unless_others_may_enter() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let secret = home.join(".ssh/key");
        fs::create_dir_all(secret.parent().unwrap()).unwrap();
        fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed_around(&secret), None);
        chown(&home, Some(65534), Some(65534)).unwrap();
        assert_eq!(closed_around(&secret), Some(home.clone()));
        assert_eq!(closed_around(&home), None);
        fs::set_permissions(&home, Permissions::from_mode(0o711)).unwrap();
        assert_eq!(closed_around(&secret), None);
    }
}
