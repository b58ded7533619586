//! What commands leave for those after them, and so has to be remembered.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Traces, Verdict};
use support::{deny, judge};

fn all(expected: Traces, texts: &[&str]) {
    for text in texts {
        let judgement = judge(&deny("sudo"), text);
        assert_eq!(judgement.verdict, Verdict::Allow, "{text}");
        assert_eq!(judgement.traces, expected, "{text}");
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
            "ls > /dev/null 2>&1",
            "git status; python3 --version",
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
            "ls; export LANG=C",
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
            "ls {fd}>&1",
        ],
    );
}

#[test]
fn files_that_are_made_or_run_are_values() {
    all(
        Traces::Values,
        &[
            "ls > file",
            "echo x | tee file",
            "ln -s /usr/bin/id check",
            "cp a b",
            "cat > file <<'E'\nls\nE",
            "sh -c 'ls > file'",
            "./check",
            "nohup ./check &",
            "sh script &",
            "python3 script.py",
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
            "eval 'x=1'",
            "x=ls; $x y",
            "exec 3>file",
            "command cd x",
            "builtin cd x",
            "enable",
            "ls | while read x; do f() { :; }; done",
        ],
    );
}
