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
