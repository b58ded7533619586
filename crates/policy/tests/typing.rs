//! What may be typed into running programs.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Lock, Policy, Reader, Scene, TypedText, TypingError};
use support::{SCENE, allow, deny};

/// Whether a text, and keys in angle brackets after it, may be typed into a command.
fn may_type(policy: &Policy, command: &str, typed: &str) -> bool {
    let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
    let reader = Reader { name: &words[0], arguments: &words[1..] };
    let (text, keys) = typed.split_once('<').unwrap_or((typed, ""));
    let keys: Vec<_> =
        keys.split('<').filter(|key| !key.is_empty()).map(|key| key.replace('>', "")).collect();
    let typed = TypedText { command: "", whole: text, new: text, keys: &keys, terminal: true };
    policy.judge_typed(&reader, &typed, &SCENE).is_ok()
}

fn all_typed(cases: &[(&str, &str)]) {
    for (command, typed) in cases {
        for policy in [deny("evil"), allow("ls,echo")] {
            assert!(may_type(&policy, command, typed), "{command}: {typed:?}");
        }
    }
}

fn none_typed(cases: &[(&str, &str)]) {
    for (command, typed) in cases {
        for policy in [deny("evil"), allow("ls,echo")] {
            assert!(!may_type(&policy, command, typed), "{command}: {typed:?}");
        }
        assert!(may_type(&Policy::default(), command, typed), "{command}: {typed:?}");
    }
}

#[test]
fn shells_get_only_commands_that_may_run() {
    none_typed(&[
        ("bash", "evil\n"),
        ("dash", "ls; evil\n"),
        ("bash --rcfile x", "evil\n"),
        ("bash -O extglob", "evil\n"),
        ("bash -i x", "evil\n"),
        ("bash /dev/stdin", "evil\n"),
        ("bash //dev/../dev/stdin", "evil\n"),
        ("bash /proc/self/fd/0", "evil\n"),
        ("sh stdin", "evil\n"),
        ("sh fd/0", "evil\n"),
        ("bash -e", "evil\n"),
        ("busybox sh", "evil\n"),
        ("busybox ash", "evil\n"),
        ("zsh", "ls\n"),
        ("bash", "ls <up>"),
        ("bash", "ls\u{10}\n"),
    ]);
    for command in ["python3", "python3 -E", "python3 -W ignore", "perl", "node -r x"] {
        assert!(!may_type(&deny("evil"), command, "os.system('evil')\n"), "{command}");
    }
    all_typed(&[
        ("bash", "ls -la\necho hi\n"),
        ("bash", "ls"),
        ("busybox sh", "ls\n"),
        ("bash", "ls<enter>"),
        ("bash -c read", "evil\n"),
        ("sh ask.sh", "evil\n"),
        ("bash -ec read", "evil\n"),
        ("python3 -m ask", "evil\n"),
        ("bash -x ask.sh", "evil\n"),
    ]);
}

/// Types a text into bash, and whatever that starts reads the rest.
fn type_into_bash(policy: &Policy, text: &str) -> Result<Option<Lock>, TypingError> {
    let reader = Reader { name: "bash", arguments: &[] };
    let typed = TypedText { command: "", whole: text, new: text, keys: &[], terminal: true };
    policy.judge_typed(&reader, &typed, &Scene { typed: true, ..SCENE })
}

#[test]
fn a_shell_within_the_shell_reads_what_is_typed_or_is_refused() {
    let policy = deny("evil");
    assert!(type_into_bash(&policy, "bash\n").is_ok());
    assert!(type_into_bash(&policy, "python3\n").is_ok());
    for text in ["{ bash; } < notes\n", "exec 0< notes\nbash\n", "cat notes | bash\n"] {
        assert!(type_into_bash(&policy, text).is_err(), "{text}");
    }
}

#[test]
fn what_is_typed_names_the_programs_that_may_run() {
    let lock = type_into_bash(&allow("ls,tar,gcc-12"), "ls; tar xf x.tgz\ngcc-12 x.c\n");
    let programs = lock.unwrap().unwrap().allowed.unwrap();
    let named = |name: &str| programs.iter().any(|program| program.name == name && program.named);
    assert!(named("ls") && named("tar") && named("gcc-12"));
    assert!(!named("rm") && !named("gzip"));
}

#[test]
fn a_shell_recalls_no_earlier_command() {
    none_typed(&[
        ("bash", "echo evil\n!e:1\n"),
        ("bash", "echo evil\n!!:s/echo//\n"),
        ("bash", "echo evil\n^echo evil^evil^\n"),
        ("bash", "!-1\n"),
    ]);
    all_typed(&[
        ("bash", "echo \"done!\"\n"),
        ("bash", "echo $! a!=b\n"),
        ("bash", "if ! ls; then echo no; fi\n"),
    ]);
}

#[test]
fn what_is_passed_on_to_another_terminal_is_judged_like_a_shells() {
    for command in [
        "script -c bash",
        "script -qc bash out",
        "script",
        "tmux attach",
        "tmux",
        "screen -r",
        "ssh host",
        "su",
    ] {
        none_typed(&[(command, "evil\n")]);
        all_typed(&[(command, "ls\n")]);
    }
    none_typed(&[
        ("docker exec -it web sh", "evil\n"),
        ("kubectl exec -it web -- bash", "evil\n"),
        ("sudo -i", "evil\n"),
        ("sudo bash", "evil\n"),
        ("sudo less /etc/x", "!evil\n"),
    ]);
    all_typed(&[("sudo cat", "my password!\n"), ("docker login", "ada\n")]);
}

#[test]
fn pagers_move_and_search() {
    for pager in ["less", "more", "man ls", "bat x", "pager", "busybox less x"] {
        none_typed(&[(pager, "!evil\n"), (pager, "v"), (pager, ":!evil\n"), (pager, "|aevil\n")]);
        none_typed(&[(pager, "jjj!evil\n"), (pager, "/x\n!evil\n")]);
        all_typed(&[
            (pager, "q"),
            (pager, " "),
            (pager, "/vital sign\nnN"),
            (pager, "G<up><pageup>"),
        ]);
    }
}

#[test]
fn editors_edit_save_and_leave() {
    none_typed(&[
        ("vim x", ":!evil\n"),
        ("vim.basic x", ":!evil\n"),
        ("vi x", "!!evil\n"),
        ("vim x", ":py3 import os; os.system('evil')\n"),
        ("vim x", ":call system('evil')\n"),
        ("vim x", "Qpy3 x\n"),
        ("vim x", "\"=system('evil')\n"),
        ("vim x", "<ctrl-r>"),
        ("vim x", ":s/a/\\=system('evil')/\n"),
        ("emacs x", "<ctrl-x><ctrl-e>"),
        ("emacs x", "\u{1b}!evil\n"),
        ("nano x", "<ctrl-t>"),
        ("nano x", "<ctrl-r><ctrl-x>"),
        ("ed", "!evil\n"),
    ]);
    all_typed(&[
        ("vim x", "ihello world\u{1b}:wq\n"),
        ("vim x", ":q!\n"),
        ("vim x", ":set number\n"),
        ("vim x", ":12\ndd<esc>"),
        ("nano x", "hello, world!<ctrl-o><enter><ctrl-x>"),
        ("emacs x", "hello"),
    ]);
}

#[test]
fn databases_and_programs_with_escapes_get_only_data() {
    none_typed(&[
        ("sqlite3 x.db", ".shell evil\n"),
        ("sqlite3", "select edit (1, 'evil');\n"),
        ("psql -h db", "\\! evil\n"),
        ("mysql", "system evil\n"),
        ("ftp host", "!evil\n"),
        ("dc", "!evil\n"),
        ("git add -p", "e\n:!evil\n"),
        ("git log", "!evil\n"),
        ("systemctl status", "!evil\n"),
    ]);
    all_typed(&[
        ("sqlite3 x.db", "select 1;\n.tables\n"),
        ("psql -h db", "select 1;\n\\dt\n"),
        ("git add -p", "y\n"),
        ("git commit", "q"),
        ("cat", "evil !x\n:x\n"),
        ("npm init", "my-package\n"),
        ("python3 ask.py", "evil\n"),
        ("./ask", "evil\n"),
        ("apt install x", "y\n"),
    ]);
}

#[test]
fn a_command_for_an_editor_is_found_in_parts() {
    let policy = deny("evil");
    let reader = Reader { name: "vim", arguments: &["x".to_owned()] };
    let may = |whole: &str, new: &str| {
        let typed = TypedText { command: "", whole, new, keys: &[], terminal: true };
        policy.judge_typed(&reader, &typed, &SCENE).is_ok()
    };
    assert!(may(":", ":"));
    assert!(may(":w", "w"));
    assert!(!may(":py3 import os; os.system('evil')\n", "py3 import os; os.system('evil')\n"));
}

#[test]
fn what_guards_pagers_and_shells_stays_set() {
    let policy = allow("less,unset,bash,export,env,set");
    support::all_denied(
        &policy,
        &[
            "LESSSECURE= less x",
            "unset LESSSECURE; less x",
            "env LESSSECURE=0 less x",
            "histchars='!^#' bash",
            "unset histchars",
            "set -H",
            "set -o histexpand",
        ],
    );
}
