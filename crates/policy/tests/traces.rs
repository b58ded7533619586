//! What commands leave in their shell, and so has to be remembered for those after them.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use mcpz_policy::Traces;

fn all(expected: Traces, texts: &[&str]) {
    for text in texts {
        assert_eq!(Traces::of(text, "/bin/bash"), expected, "{text}");
    }
}

#[test]
fn programs_leave_nothing() {
    all(
        Traces::Nothing,
        &[
            "ls -la",
            "git commit -m 'x=1' && make -j4 2>&1 | tail -5",
            "if test -f x; then echo yes; fi",
            "command -v git",
            "(sleep 1; ls) &",
            "time make",
            "cat <<E\nalias x=y\nE",
            "printf '%s\\n' a",
            "",
            "# nothing",
        ],
    );
}

#[test]
fn builtins_and_assignments_leave_values() {
    all(
        Traces::Values,
        &[
            "x=1",
            "x=1 ls",
            "cd /tmp && ls",
            "ls; export PATH=/x",
            "for f in *; do echo $f; done",
            "echo ${x:=1}",
            "echo $((x = 1))",
            "(( x++ ))",
            "printf -v x %s y",
            "printf \"$o\" x",
            "read x < file",
            "set -e",
            "unset x",
            "echo $(cd x; pwd)",
            "ls {fd}>file",
        ],
    );
}

#[test]
fn what_may_run_later_leaves_code() {
    all(
        Traces::Code,
        &[
            "f() { ls; }",
            "alias ll='ls -l'",
            "trap 'ls' EXIT",
            ". ./file",
            "source file",
            "eval \"$x\"",
            "$x y",
            "exec 3>file",
            "command cd x",
            "builtin cd x",
            "enable -f x y",
            "ls | while read x; do f() { :; }; done",
            "if",
        ],
    );
}
