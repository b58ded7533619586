use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::view::Mode;

/// A home with a project folder, as a real path.
fn home() -> (TempDir, PathBuf, View) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let work = home.join("work");
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    fs::create_dir_all(home.join(".ssh")).unwrap();
    let mut view = View::new(Mode::Workspace, work);
    view.homes.push(home.clone());
    (folder, home, view)
}

fn cover(layout: &Layout, path: &Path) -> Option<Cover> {
    layout.covers.get(path).copied()
}

#[test]
fn a_workspace_is_writable_but_for_what_configures_others() {
    let (_folder, home, view) = home();
    let layout = view.survey().unwrap();
    let work = home.join("work");
    assert_eq!(cover(&layout, &work), Some(Cover::Writable));
    assert_eq!(cover(&layout, &work.join(".git")), Some(Cover::Pinned));
    assert_eq!(cover(&layout, &work.join(".git/hooks")), Some(Cover::Protected));
    assert_eq!(cover(&layout, &work.join(".vscode")), None);
    assert!(layout.guarded.reserved.contains(&(work.clone(), ".vscode")));
    assert_eq!(cover(&layout, &work.join(".bashrc")), None);
}

#[test]
fn what_cannot_be_written_needs_no_protection() {
    let (_folder, home, view) = home();
    let layout = View { mode: Mode::ReadOnly, ..view }.survey().unwrap();
    let is_tmp = private().iter().any(|folder| home.starts_with(folder));
    assert_eq!(cover(&layout, &home.join("work")), is_tmp.then_some(Cover::Shown));
    assert!(
        layout.covers.values().all(|cover| *cover < Cover::Writable || *cover == Cover::Hidden)
    );
    assert!(layout.guarded.reserved.is_empty());
}

#[test]
fn the_hooks_of_a_submodule_are_protected_and_the_way_to_them_is_pinned() {
    let (_folder, home, view) = home();
    let module = home.join("work/.git/modules/lib/a");
    for name in ["objects", "refs", "HEAD", "config"] {
        fs::create_dir_all(module.join(name)).unwrap();
    }
    let layout = view.survey().unwrap();
    assert_eq!(cover(&layout, module.parent().unwrap()), Some(Cover::Pinned));
    assert_eq!(cover(&layout, &module.join("config")), Some(Cover::Protected));
    let git = layout.guarded.repositories.iter().find(|it| it.folder == module).unwrap();
    assert!(git.mounted.iter().eq(&["config"]) && git.root == home.join("work"));
}

#[test]
fn a_file_that_is_replaced_outside_makes_the_layout_out_of_date() {
    let (_folder, home, view) = home();
    let config = home.join("work/.mcp.json");
    fs::write(&config, "").unwrap();
    let layout = view.survey().unwrap();
    assert_eq!(layout.change(false), None);
    fs::write(&config, "[core]").unwrap();
    assert_eq!(layout.change(false), None);
    fs::write(home.join("new"), "").unwrap();
    fs::rename(home.join("new"), &config).unwrap();
    assert_eq!(layout.change(false), Some(config.as_path()));
    // File systems reuse inodes soon.
    for _ in 0..10 {
        fs::write(home.join("new"), "").unwrap();
        fs::rename(home.join("new"), &config).unwrap();
        assert_eq!(layout.change(false), Some(config.as_path()));
    }
}

#[test]
fn a_secret_that_goes_is_missed_by_nobody_until_there_is_another() {
    let (_folder, home, view) = home();
    let keys = home.join("work/keys");
    fs::create_dir(&keys).unwrap();
    let layout = View { deny_read: vec![keys.clone()], ..view }.survey().unwrap();
    fs::remove_dir(&keys).unwrap();
    assert_eq!(layout.change(false), None);
    assert!(layout.is_outdated());
    fs::create_dir(&keys).unwrap();
    assert_eq!(layout.change(false), Some(keys.as_path()));
}

#[test]
fn what_goes_before_it_is_covered_needs_no_cover_until_it_is_back() {
    let (_folder, home, view) = home();
    let keys = home.join("work/keys");
    fs::create_dir(&keys).unwrap();
    let mut layout = View { deny_read: vec![keys.clone()], ..view }.survey().unwrap();
    assert!(!layout.uncover_gone());
    fs::remove_dir(&keys).unwrap();
    assert!(layout.uncover_gone() && !layout.uncover_gone());
    assert_eq!(cover(&layout, &keys), None);
    assert!(!layout.is_outdated());
    fs::create_dir(&keys).unwrap();
    assert_eq!(layout.change(false), Some(keys.as_path()));
}

#[test]
fn a_secret_that_comes_into_being_makes_the_layout_out_of_date() {
    let (_folder, home, view) = home();
    let layout = view.survey().unwrap();
    fs::create_dir(home.join(".aws")).unwrap();
    assert_eq!(layout.change(false), Some(home.join(".aws").as_path()));
}

#[test]
fn a_folder_inside_another_cannot_be_exchanged() {
    let (_folder, home, view) = home();
    let inner = home.join("work/a/b");
    fs::create_dir_all(&inner).unwrap();
    let layout = View { write_dirs: vec![inner.clone()], ..view }.survey().unwrap();
    assert_eq!(cover(&layout, &inner), Some(Cover::Writable));
    assert_eq!(cover(&layout, &home.join("work/a")), Some(Cover::Pinned));
}

#[test]
fn what_is_private_stays_so_wherever_commands_start() {
    for directory in ["/", "/tmp", "/dev"] {
        let layout = View::new(Mode::ReadOnly, directory.into()).survey().unwrap();
        assert_eq!(cover(&layout, Path::new("/tmp")), Some(Cover::Private));
        assert_eq!(cover(&layout, Path::new("/")), None);
        assert_eq!(cover(&layout, Path::new("/dev")), None);
    }
    for directory in ["/", "/tmp", "/var", "/dev/shm", "/proc/self"] {
        let view = View::new(Mode::Workspace, directory.into());
        assert!(matches!(view.survey(), Err(ViewError::TooWide(_))), "{directory}");
    }
}

#[test]
fn the_target_of_a_startup_file_that_is_a_link_is_protected_if_it_is_inside() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("dotfiles")).unwrap();
    fs::write(root.join("dotfiles/zshrc"), "").unwrap();
    symlink("dotfiles/zshrc", root.join(".zshrc")).unwrap();
    symlink("/etc/profile", root.join(".profile")).unwrap();
    symlink("nowhere", root.join(".bashrc")).unwrap();
    let layout = View::new(Mode::Workspace, root.clone()).survey().unwrap();
    assert_eq!(layout.cover_of(&root.join("dotfiles/zshrc")), Some(Cover::Protected));
    assert_eq!(layout.cover_of(&root.join("dotfiles")), Some(Cover::Pinned));
    assert_eq!(layout.cover_of(&root.join(".bashrc")), Some(Cover::Writable));
}

#[test]
fn a_whole_home_cannot_be_written_nor_what_is_hidden_nor_a_link_protected() {
    let (_folder, home, view) = home();
    let wide = View { directory: home.clone(), ..view.clone() };
    assert!(matches!(wide.survey(), Err(ViewError::TooWide(_))));
    let hidden = View { write_dirs: vec![home.join(".ssh")], ..view.clone() };
    assert!(matches!(hidden.survey(), Err(ViewError::Hidden(_))));
    symlink(&home, home.join("work/.vscode")).unwrap();
    assert!(matches!(view.survey(), Err(ViewError::Link(_))));
    let unprotected = View { unprotected: vec![".vscode".into()], ..view };
    assert!(unprotected.survey().is_ok());
}
