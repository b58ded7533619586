//! Rules for single commands of git, such as `git log`: git does its work, and runs no other of its commands.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::sandbox::warnings;
use support::{MCPZ, Server};
use tempfile::TempDir;

/// A repository with some history, a submodule and a branch with changes of its own; one that it was cloned from; and a
/// server that allows only these commands, in it.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let new = Self(support::plain_folder());
        new.git("", "init -q --bare origin.git && git init -q --bare part.git");
        new.git("", "clone -q origin.git work 2>&1 && git clone -q part.git part 2>&1");
        new.git("part", "commit -q --allow-empty -m part && git push -q origin HEAD");
        new.git("work", "commit -q --allow-empty -m first && echo one >a && git add a");
        new.git("work", "commit -q -m second && git push -q -u origin HEAD");
        new.git("work", "checkout -q -b other && echo two >b && git add b && git commit -q -m b");
        new.git("work", "checkout -q - && echo three >c && git add c && git commit -q -m c");
        new.git("", "clone -q origin.git peer && cd peer && git commit -q --allow-empty -m peer");
        new.git("peer", "push -q origin HEAD");
        new
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Runs git without mcpz.
    fn git(&self, below: &str, arguments: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("git {arguments}")]);
        shell.current_dir(self.folder().join(below)).envs(self.variables());
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "git {arguments}: {text} {output:?}");
        text
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let name = |variable| (variable, "somebody".to_owned());
        let names =
            ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let settings = self.folder().join("gitconfig").display().to_string();
        let own = [("GIT_CONFIG_GLOBAL", settings), ("GIT_TERMINAL_PROMPT", "0".to_owned())];
        std::fs::write(&own[0].1, "[protocol \"file\"]\nallow = always\n").unwrap();
        names.map(name).into_iter().chain(own).collect()
    }

    fn server(&self, allowed: &str) -> Server {
        let mut command = Command::new(MCPZ);
        // Without the pager that commands would get.
        let settings = self.folder().join("mcpz.toml");
        std::fs::write(&settings, "[environment]\nagent = false\n").unwrap();
        command.args(["server", "shell", "--allow", allowed, "--config"]).arg(settings);
        command.arg("--working-dir");
        command.arg(self.folder().join("work")).envs(self.variables());
        let mut server = Server::from_command(command.env("XDG_STATE_HOME", self.folder()));
        server.initialize("2025-11-25");
        server
    }
}

#[test]
fn each_does_its_work() {
    for (allowed, command) in [
        ("git log", "git log -p"),
        ("git status", "git status"),
        ("git fetch", "git fetch"),
        ("git fetch", "git fetch --all --prune"),
        ("git pull", "git pull --rebase"),
        ("git pull", "git pull --no-rebase --no-edit"),
        ("git remote", "git remote update"),
        ("git push", "git push origin other"),
        ("git clone", "git clone ../origin.git ../clone"),
        ("git clone", "git clone file://$PWD/../origin.git ../clone"),
        ("git submodule", "git submodule add ../part.git part && git submodule update --remote"),
        ("git stash", "echo changed >a; git stash -u && git stash pop"),
        ("git worktree", "git worktree add ../tree other && git worktree remove ../tree"),
        ("git rebase", "git rebase other"),
        ("git merge", "git merge --no-edit other"),
        ("git cherry-pick", "git cherry-pick other"),
        ("git revert", "git revert --no-edit HEAD"),
        ("git commit", "git commit --allow-empty -m empty"),
        ("git bisect", "git bisect start HEAD HEAD~2 && git bisect good && git bisect reset"),
        ("git gc", "git gc"),
        ("git maintenance", "git maintenance run"),
        ("git archive", "git archive --format=tar.gz -o a.tgz HEAD"),
        ("git diff", "git diff other"),
        ("git describe", "git describe --always --dirty"),
        ("git fsck", "git fsck"),
    ] {
        let repository = Repository::new();
        let mut server = repository.server(&format!("{allowed},echo"));
        let reply = server.run(command);
        assert_eq!(reply["return_code"], 0, "{command}: {reply}");
        assert_eq!(warnings(&reply), "", "{command}: {reply}");
    }
}

#[test]
fn and_none_runs_another() {
    let repository = Repository::new();
    let mut server = repository.server("git log");
    let own = repository.git("", "--exec-path");
    let own = own.trim();
    std::fs::write(repository.folder().join("work/.gitattributes"), "* diff=x\n").unwrap();
    for (key, value) in [
        ("core.pager", "git tag pwned"),
        ("core.pager", "git -c a.b=c tag pwned"),
        ("core.pager", "git --git-dir=.git tag pwned"),
        ("core.pager", &format!("{own}/git tag pwned")),
        ("core.pager", &format!("{own}/git-tag pwned")),
        ("core.pager", "/usr/bin/git tag pwned"),
        ("pager.log", "exec git 'tag' pwned"),
        ("diff.external", "git tag pwned; true"),
        ("diff.x.textconv", "git tag pwned; true"),
    ] {
        repository.git("work", &format!("config {key} {value:?}"));
        let command = "git log -p --ext-diff --textconv";
        let reply = server.call(json!({"command": command, "tty": true}));
        assert_eq!(repository.git("work", "tag"), "", "{key} = {value}: {reply}");
        assert_ne!(warnings(&reply), "", "{value}: {reply}");
        repository.git("work", &format!("config --unset {key}"));
    }
}

#[test]
fn what_only_shows_something_pushes_nothing() {
    let repository = Repository::new();
    let mut server = repository.server("git status");
    std::fs::write(repository.folder().join("work/.gitattributes"), "* filter=x\n").unwrap();
    for clean in
        ["git send-pack ../origin.git HEAD:refs/heads/pwned", "git-receive-pack ../origin.git"]
    {
        repository.git("work", &format!("config filter.x.clean {clean:?}"));
        // As long as before, so that git has to look inside.
        std::fs::write(repository.folder().join("work/a"), "two\n").unwrap();
        let reply = server.run("git status");
        assert_eq!(repository.git("origin.git", "branch --list pwned"), "", "{reply}");
        assert_ne!(warnings(&reply), "", "{clean}: {reply}");
    }
}

#[test]
fn a_shell_that_the_command_has_use_for_runs_only_what_was_judged() {
    let repository = Repository::new();
    let mut server = repository.server("git status,git log,ls,head");
    repository.git("work", "config core.fsmonitor ': > pwned;'");
    let reply = server.run("PAGER='ls -l | head -n 3' ls; git status");
    assert!(!repository.folder().join("work/pwned").exists(), "{reply}");
    assert_ne!(warnings(&reply), "", "{reply}");
    repository.git("work", "config --unset core.fsmonitor");
    // Nor what somebody adds to it.
    repository.git("work", "config alias.x '!\"$@\"'");
    for pager in ["x=", "\"$@\"", "$1"] {
        let reply = server.run(&format!("PAGER='{pager}' ls; git status; git x eval ': > pwned'"));
        assert!(!repository.folder().join("work/pwned").exists(), "{pager}: {reply}");
    }
    let paged = json!({"command": "GIT_PAGER='head -n 1 | head' git log", "tty": true});
    let reply = server.call(paged);
    assert!(reply["output"].as_str().unwrap().starts_with("commit "), "{reply}");
    assert_eq!(warnings(&reply), "", "{reply}");
}

#[test]
fn a_rule_for_an_alias_allows_no_command_that_could_need_a_rule() {
    let repository = Repository::new();
    let folder = repository.folder().join("work");
    let set = |stands_for: &str| {
        let mut shell = Command::new("sh");
        shell
            .args(["-ec", &format!("git config alias.st '{stands_for}'")])
            .current_dir(&folder)
            .envs(repository.variables());
        assert!(shell.status().unwrap().success());
    };
    let mut server = repository.server("git st,git log,git branch");
    let mut runs = |stands_for: &str| {
        set(stands_for);
        let reply = server.call(json!({"command": "git st"}));
        reply["return_code"] == 0 && warnings(&reply).is_empty()
    };
    for fine in ["status", "log --oneline", "branch x", "!git branch"] {
        assert!(runs(fine), "{fine}");
    }
    let others =
        ["clean -fdxq", "checkout-index -f a", "read-tree -u --reset HEAD", "gc --prune=now"];
    let others = others.into_iter().chain(["push origin HEAD:new", "!git push", "config x.y z"]);
    for refused in others {
        assert!(!runs(refused), "{refused}");
    }
}
