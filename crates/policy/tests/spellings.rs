//! Other spellings of what a deny rule names: options, their values, plugins, and what git corrects.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{ExactCall, Rule};
use support::{all_allowed, all_denied, deny};

#[test]
fn two_dashes_may_be_the_value_of_an_option() {
    all_denied(
        &deny("git push --force,git push -f,curl -k,tool -rf"),
        &[
            "git push -o -- --force",
            "git push --push-option -- --force origin main",
            "git push -o -- -f",
            "curl -o -- -k https://example.org",
            "tool -o -- -rf",
            "tool --out -- -rf",
        ],
    );
    all_allowed(
        &deny("git push --force,rm -rf,git commit --amend"),
        &[
            "git push origin -- --force",
            "rm -f -- -r",
            "rm -r -- \"$(cat list)\"",
            "git commit -q -- \"$(cat list)\"",
        ],
    );
}

#[test]
fn an_unknown_option_may_take_the_next_word() {
    all_denied(&deny("tool x"), &["tool --no-v w x", "tool -a=b w x", "tool -a w x", "tool x"]);
    all_allowed(&deny("tool x"), &["tool --out=w y x", "tool y x"]);
}

#[test]
fn an_option_has_other_spellings() {
    for (rule, commands) in [
        (
            "sed -i",
            &["sed --in-place=.bak s/a/b/ f", "sed --in-place s/a/b/ f", "sed -ni.bak p f"][..],
        ),
        ("curl -k", &["curl --insecure https://example.org"]),
        ("git commit -n", &["git commit --no-verify -m x"]),
        ("git commit --no-verify", &["git commit -nm x"]),
        ("tar -x", &["tar xf a", "tar --extract -f a", "tar -f a --get", "tar -zxf a"]),
        ("tool --mode evil", &["tool --mode=evil", "tool --mode evil", "tool -v --mode=evil a"]),
        ("docker run", &["docker container --help=false run x", "docker container -q run x"]),
    ] {
        all_denied(&deny(rule), commands);
    }
    all_allowed(
        &deny("tar -x,tool --mode evil"),
        &["tar cf a.tar x", "tool --mode=good", "tool evil"],
    );
}

#[test]
fn a_plugin_is_a_sub_command_of_its_program() {
    all_denied(&deny("docker compose"), &["docker-compose up", "/usr/local/bin/docker-compose up"]);
    all_denied(&deny("cargo nextest run"), &["cargo-nextest nextest run", "cargo-nextest run"]);
    all_denied(&deny("git push"), &["git-push origin", "/usr/lib/git-core/git-push"]);
    all_allowed(
        &deny("docker compose,cargo nextest run"),
        &["docker ps", "cargo-nextest nextest list"],
    );
}

#[test]
fn git_runs_the_command_that_was_probably_meant() {
    let denies = |rule: &str, words: &str| {
        let (rule, call) = (Rule::new(rule).unwrap(), ExactCall::new("git", words.split(' ')));
        rule.denies(&call)
    };
    for words in ["pussh origin", "puhs", "psuh", "-C w pusj", "pushx"] {
        assert!(denies("git push", words), "{words}");
    }
    assert!(denies("git rm", "rmm x") && denies("git push --force", "puhs --force"));
    assert!(!denies("git push --force", "puhs"));
    let others = ["pull", "st", "co main", "lfs push", "br", "sparse-checkout list"];
    for words in others {
        assert!(!denies("git push", words) && !denies("git rm", words), "{words}");
        all_allowed(&deny("git push,git rm"), &[&format!("git {words}")]);
    }
    // Before it runs, it counts as an alias.
    all_allowed(&deny("git push,git rm"), &["git pushx", "git pussh"]);
}

#[test]
fn options_that_mean_the_same_are_denied_alike() {
    for (rule, commands) in [
        (
            "git branch -D",
            &[
                "git branch --delete --force x",
                "git branch --force --delete x",
                "git branch --delete -f x",
                "git branch -d --force x",
                "git branch -df x",
            ][..],
        ),
        ("git branch --delete --force", &["git branch -D x"]),
        ("git branch -M", &["git branch --move --force a b"]),
        ("git branch -m", &["git branch --move a b", "git branch --mov a b"]),
        ("git branch -c", &["git branch --copy a b"]),
        (
            "git add -A",
            &["git add --all", "git add --al", "git add --no-ignore-removal", "git stage --all"],
        ),
        ("git push -f", &["git push origin +main", "git push origin +main:x", "git push --force"]),
        ("git push --force", &["git push origin a +b", "git push -uf origin a"]),
        ("git push --delete", &["git push origin :main", "git push -d origin main"]),
        ("git remote remove", &["git remote rm x"]),
        (
            "npm install -g",
            &["npm i --location=global ./p", "npm i --location global p", "npm i --global p"],
        ),
        ("npm install --location=global", &["npm i -g p", "npm i --global p"]),
        (
            "grep -r",
            &[
                "grep -d recurse x .",
                "grep x -d recurse .",
                "grep -drecurse x .",
                "grep -nd rec x .",
                "grep --directories=recurse x .",
                "grep --dir=rec x .",
                "grep --dir rec x .",
                "grep -R x .",
                "grep --dereference-recursive x .",
            ],
        ),
        ("grep -d recurse", &["grep -r x .", "grep --recursive x ."]),
        (
            "curl -X POST",
            &["curl -XPOST u", "curl -sXPOST u", "curl --request=POST u", "curl u -X POST"],
        ),
        ("curl -O", &["curl --remote-name u", "curl --remote-name-all u"]),
        ("rsync --delete", &["rsync --del a b", "rsync --delete-after a b"]),
        ("openssl enc", &["openssl base64 -d", "openssl aes-256-cbc -d -in x", "openssl des3"]),
        ("openssl dgst", &["openssl sha256 x", "openssl md5 x"]),
        ("pacman -R", &["pacman --remove x", "pacman -Rns x"]),
    ] {
        all_denied(&deny(rule), commands);
    }
    all_allowed(
        &deny(
            "git branch -D,git add -A,git push -f,npm install -g,grep -r,curl -X POST,openssl enc",
        ),
        &[
            "git branch --delete x",
            "git branch --force x y",
            "git add .",
            "git push origin main:other",
            "npm install --location=user p",
            "npm install x",
            "grep -d skip x f",
            "grep --directories=skip x f",
            "grep -n recurse f",
            "curl -X PUT u",
            "curl u POST",
            "openssl sha256 x",
        ],
    );
}

#[test]
fn a_signal_is_denied_by_its_number_and_by_its_names() {
    for rule in
        ["kill -9", "kill -KILL", "kill -SIGKILL", "kill -s KILL", "kill --signal 9", "kill -n 9"]
    {
        all_denied(
            &deny(rule),
            &[
                "kill -9 1",
                "kill -KILL 1",
                "kill -SIGKILL 1",
                "kill -kill 1",
                "kill -s 9 1",
                "kill -s KILL 1",
                "kill -sKILL 1",
                "kill -s sigkill 1",
                "kill -n 9 1",
                "kill --signal 9 1",
                "kill --signal=KILL 1",
                "/usr/bin/kill --sig KILL 1",
                "xargs kill -KILL",
                "kill -s \"$signal\" 1",
                "kill $options 1",
            ],
        );
        all_allowed(
            &deny(rule),
            &[
                "kill 1",
                "kill -TERM 1",
                "kill -15 1",
                "kill -s INT 1",
                "kill -19 1",
                "kill 9",
                "kill -l",
                "kill -- -9",
            ],
        );
    }
    all_denied(&deny("pkill -9 -f"), &["pkill -KILL -f x", "pkill --signal KILL --full x"]);
    all_allowed(&deny("pkill -9 -f"), &["pkill -KILL x", "pkill -f x"]);
}
