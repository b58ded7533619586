use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

struct Project {
    folder: TempDir,
    guard: Guard,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("p");
        fs::create_dir(&root).unwrap();
        let reserved = [(root.clone(), ".vscode"), (root.clone(), ".mcp.json")].into();
        let (without_git, plain) = (vec![root.clone()], vec![root]);
        let guarded = Guarded { reserved, without_git, plain, ..Guarded::default() };
        let guard = Guard::new(guarded, folder.path().join("q"));
        Self { folder, guard }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("p").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A git folder as `git init` makes it.
    fn init(&self, git: &str) {
        for folder in ["objects", "refs", "hooks"] {
            fs::create_dir_all(self.path(git).join(folder)).unwrap();
        }
        self.write(&format!("{git}/HEAD"), "ref: refs/heads/main\n");
        self.write(&format!("{git}/config"), "[core]\n\tbare = false\n");
        self.write(&format!("{git}/hooks/pre-commit.sample"), "");
    }

    /// What a check takes away, relative to the project.
    fn taken(&mut self) -> Vec<String> {
        let root = self.path("");
        let taken = self.guard.check().into_iter().map(|taken| {
            let (Fate::Moved(kept) | Fate::Replaced(kept)) = taken.fate else { panic!() };
            assert!(kept.symlink_metadata().is_ok() && kept.file_name() == taken.path.file_name());
            taken.path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()
        });
        taken.collect()
    }
}

#[test]
fn reserved_names_are_taken_however_they_came() {
    let mut project = Project::new();
    assert!(project.taken().is_empty());
    project.write(".vscode/settings.json", "{}");
    symlink("nowhere", project.path(".mcp.json")).unwrap();
    assert_eq!(project.taken(), [".mcp.json", ".vscode"]);
    project.write("sub/settings.json", "{}");
    fs::rename(project.path("sub"), project.path(".vscode")).unwrap();
    project.write("x", "{}");
    fs::hard_link(project.path("x"), project.path(".mcp.json")).unwrap();
    assert_eq!(project.taken(), [".mcp.json", ".vscode"]);
    assert!(project.path("x").exists() && project.taken().is_empty());
}

#[test]
fn a_new_repository_is_welcome_and_guarded_from_then_on() {
    let mut project = Project::new();
    project.init(".git");
    assert!(project.taken().is_empty());
    let config = "[core]\n\tbare = false\n[user]\n\tname = Ann\n";
    project.write(".git/config", config);
    assert!(project.taken().is_empty());
    project.write(".git/config", "[core]\n\tfsmonitor = ./x\n");
    project.write(".git/hooks/pre-commit", "");
    project.write(".git/commondir", "../other");
    assert_eq!(project.taken(), [".git/config", ".git/commondir", ".git/hooks/pre-commit"]);
    assert_eq!(fs::read_to_string(project.path(".git/config")).unwrap(), config);
    assert!(project.path(".git/hooks/pre-commit.sample").exists() && project.taken().is_empty());
}

#[test]
fn a_repository_that_would_run_something_keeps_the_rest() {
    let mut project = Project::new();
    project.init(".git");
    project.write(".git/config", "[core]\n\tbare = false\n\tpager = x\n");
    assert_eq!(project.taken(), [".git/config"]);
    let kept = fs::read_to_string(project.path(".git/config")).unwrap();
    assert_eq!(kept, "[core]\n\tbare = false\n");
    fs::remove_dir_all(project.path(".git")).unwrap();
    project.init("other");
    symlink("other", project.path(".git")).unwrap();
    assert_eq!(project.taken(), [".git"]);
    project.write(".git", "gitdir: other");
    assert_eq!(project.taken(), [".git"]);
}

#[test]
fn submodules_and_work_trees_must_be_harmless_too() {
    let mut project = Project::new();
    project.init(".git");
    project.init(".git/modules/a/b");
    project.write(".git/worktrees/w/commondir", "../..\n");
    project.write(".git/worktrees/v/commondir", "");
    assert!(project.taken().is_empty());
    project.write(".git/worktrees/v/config", "[core]\n\tpager = x\n");
    project.write(".git/worktrees/config", "[core]\n\tpager = x\n");
    assert_eq!(project.taken(), [".git/worktrees/config", ".git/worktrees/v/config"]);
    project.write(".git/modules/a/b/config", "[core]\n\tworktree = ../../../../b\n");
    assert!(project.taken().is_empty());
    project.write(".git/modules/a/b/config", "[alias]\n\tx = !y\n");
    project.write(".git/modules/a/b/hooks/post-checkout", "");
    project.write(".git/worktrees/w/commondir", "/elsewhere\n");
    project.write(".git/worktrees/w/config.worktree", "[core]\n\tpager = x\n");
    fs::create_dir(project.path("other")).unwrap();
    symlink("../../other", project.path(".git/modules/c")).unwrap();
    symlink("nowhere", project.path(".git/modules/d")).unwrap();
    let expected = [
        ".git/worktrees/w/commondir",
        ".git/worktrees/w/config.worktree",
        ".git/modules/c",
        ".git/modules/a/b/config",
        ".git/modules/a/b/hooks/post-checkout",
    ];
    assert_eq!(project.taken(), expected);
}

#[test]
fn a_folder_does_not_become_a_git_folder() {
    let mut project = Project::new();
    project.write("HEAD", "ref: refs/heads/main");
    project.write("refs/x", "");
    assert!(project.taken().is_empty());
    project.write("objects/x", "");
    assert_eq!(project.taken(), ["HEAD"]);
}

#[test]
fn links_lead_the_guard_nowhere() {
    let mut project = Project::new();
    project.init(".git");
    let outside = project.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("pre-commit"), "precious").unwrap();
    fs::write(outside.join("config"), "[alias]\n\tx = !y\n").unwrap();
    fs::remove_dir_all(project.path(".git/hooks")).unwrap();
    symlink(&outside, project.path(".git/hooks")).unwrap();
    fs::remove_file(project.path(".git/config")).unwrap();
    symlink(outside.join("config"), project.path(".git/config")).unwrap();
    assert_eq!(project.taken(), [".git/config", ".git/hooks"]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
}

#[test]
fn what_comes_from_outside_stays_until_a_command_changes_it() {
    let mut project = Project::new();
    project.init(".git");
    assert!(project.taken().is_empty());
    project.write(".git/hooks/pre-commit", "the user's");
    project.write(".git/config", "[alias]\n\tx = !y\n");
    assert_eq!(project.guard.accept(), None);
    assert!(project.taken().is_empty());
    project.write(".git/config", "[alias]\n\tx = !y\n[user]\n\tname = Ann\n");
    assert!(project.taken().is_empty());
    project.write(".git/hooks/pre-commit", "the model's");
    project.write(".git/config", "[alias]\n\tx = !z\n");
    assert_eq!(project.taken(), [".git/config", ".git/hooks/pre-commit"]);
    project.write(".vscode/settings.json", "{}");
    assert_eq!(project.guard.accept(), Some(project.path(".vscode")));
}
