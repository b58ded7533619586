//! What may be typed into running programs.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{InputWay, Lock, Policy, Reader, Scene, TypedText, TypingError};
use support::{SCENE, allow, deny};

/// Whether a text, and keys in angle brackets after it, may be typed into a command that reads keys.
fn may_type(policy: &Policy, command: &str, typed: &str) -> bool {
    may_type_as(policy, InputWay::Keys, command, typed)
}

fn may_type_as(policy: &Policy, way: InputWay, command: &str, typed: &str) -> bool {
    let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
    let reader = Reader { name: &words[0], arguments: &words[1..], relays: false };
    let (text, keys) = typed.split_once('<').unwrap_or((typed, ""));
    let keys: Vec<_> =
        keys.split('<').filter(|key| !key.is_empty()).map(|key| key.replace('>', "")).collect();
    let typed = TypedText { command: "", whole: text, new: text, unread: 0, keys: &keys, way };
    policy.judge_typed(&reader, &typed, &SCENE).is_ok()
}

/// A text of which nothing was typed before.
fn typed_alone(text: &str) -> TypedText<'_> {
    let way = InputWay::Keys;
    TypedText { command: "", whole: text, new: text, unread: 0, keys: &[], way }
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
    let reader = Reader { name: "bash", ..Reader::default() };
    let typed = typed_alone(text);
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
fn what_a_shell_is_about_to_start_may_read_the_rest() {
    for text in [
        "vim x\n:term evil.x\n",
        "timeout 60 vim x\n:term evil.x\n",
        "less x\nv:term evil.x\n",
        "cat x | more\nv",
        "htop\ns",
        "mc\necho x\n",
        "python3 -m pdb ask.py\nshell\n",
    ] {
        assert!(type_into_bash(&deny("evil"), text).is_err(), "{text}");
    }
    for text in ["vim x\n:wq\n", "vim x\n", "htop\nq", "make\n./x; ls | wc -l\n", "which vim\nv\n"]
    {
        assert!(type_into_bash(&deny("evil"), text).is_ok(), "{text}");
    }
    let (reader, whole) = (Reader { name: "bash", ..Reader::default() }, "vim x\n:wq\nv; s @x\n");
    let new = "v; s @x\n";
    for (unread, expected) in [(0, false), (whole.len() - new.len(), true)] {
        let typed = TypedText { command: "", whole, new, unread, keys: &[], way: InputWay::Keys };
        let may = deny("evil").judge_typed(&reader, &typed, &Scene { typed: true, ..SCENE });
        assert_eq!(may.is_ok(), expected);
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
        ("bash", "fc\n"),
        ("bash", "fc -s\n"),
        ("bash", "fc -e - echo=x\n"),
        ("sh", "!-1\n"),
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
        none_typed(&[(pager, "jjj!evil\n"), (pager, "/x\n!evil\n"), (pager, "<ctrl-x><ctrl-v>")]);
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
        ("vim x", "yy@\""),
        ("vim x", "K"),
        ("vim x", "gx"),
        ("vim x", "q:"),
        ("vim x", ":set kp=evil\n"),
        ("vim x", ":set kp:x\n"),
        ("vim x", ":set equalprg:w\n=="),
        ("vim x", ":<up>"),
        ("emacs .", "!evil\n"),
        ("micro x", "<ctrl-e>"),
        ("joe x", "<ctrl-k>"),
        ("jed x", "\u{1b}x"),
        ("vim docs", "mr"),
        ("vim docs", "mv"),
        ("vim x", ":set number<backspace>"),
        ("vi .git/rebase-merge/git-rebase-todo", "Oexec evil\u{1b}:wq\n"),
        ("nano /tmp/crontab.x1/crontab", "* * * * * evil\n"),
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
        ("git commit", "<ctrl-t>"),
        ("git commit", "\u{18}\u{5}"),
    ]);
    all_typed(&[
        ("sqlite3 x.db", "select 1;\n.tables\n"),
        ("psql -h db", "select 1;\n\\dt\n"),
        ("git add -p", "y\n"),
        ("git commit", "q"),
        ("git commit", "ihello\u{1b}ZZ"),
        ("git commit", "hello<ctrl-o><enter><ctrl-x>"),
        ("cat", "evil !x\n:x\n"),
        ("npm init", "my-package\n"),
        ("python3 ask.py", "evil\n"),
        ("./ask", "evil\n"),
        ("apt install x", "y\n"),
    ]);
}

#[test]
fn who_holds_a_terminal_for_others_is_judged_like_a_shell() {
    let words = ["-c".to_owned(), "import ask".to_owned()];
    for (name, arguments) in [("python3", &words[..]), ("ask", &[]), ("cat", &[]), ("python3", &[])]
    {
        let reader = Reader { name, arguments, relays: true };
        let may = |policy: &Policy, text: &str| {
            let typed = TypedText {
                command: "",
                whole: text,
                new: text,
                unread: 0,
                keys: &[],
                way: InputWay::Stream,
            };
            policy.judge_typed(&reader, &typed, &SCENE).is_ok()
        };
        assert!(!may(&deny("evil"), "evil\n"), "{name}");
        assert!(!may(&allow("ls,echo"), "evil\n"), "{name}");
        assert!(may(&allow("ls,echo"), "ls\n"), "{name}");
    }
    let words = ["cat".to_owned()];
    let reader = Reader { name: "sudo", arguments: &words, relays: true };
    let text = "my password!\n";
    let typed = typed_alone(text);
    assert!(deny("evil").judge_typed(&reader, &typed, &SCENE).is_ok());
}

#[test]
fn a_program_that_nobody_knows_gets_only_plain_answers_unless_it_waits_for_a_line() {
    let free = ["a; $(b) | c\n", "it is \"so\" (or not)!\n", ":x\n", "<ctrl-o>", "<f2>"];
    none_typed(&free.map(|text| ("./ask", text)));
    none_typed(&[("./ask", "\u{1b}x"), ("./ask", "\u{18}")]);
    all_typed(&[
        ("./ask", "y"),
        ("./ask", "y\n"),
        ("./ask", "Ada Lovelace<enter>"),
        ("./ask", "1.0.0\nhttps://host:80/x.git\nada@host\n"),
        ("./ask", "<down><down><space><enter>"),
        ("./ask", "<ctrl-c>"),
        ("timeout 9 ./ask", ":x\n"),
        ("sort", "a; $(b) | c\nd!\n"),
        ("wc -l", ":x\n!y\n"),
    ]);
    for policy in [deny("evil"), allow("ls")] {
        let may = |way, text: &str| may_type_as(&policy, way, "./ask", text);
        for text in &free[..3] {
            assert!(may(InputWay::Line, text), "{text}");
            assert!(may(InputWay::Secret, text), "{text}");
            assert!(may(InputWay::Stream, text), "{text}");
        }
        assert!(!may(InputWay::Line, "y\n:!evil\n"), "something else may read the second line");
        assert!(may(InputWay::Stream, "y\n:!evil\n"));
        assert!(may_type_as(&policy, InputWay::Secret, "apt update", "my password!\n"));
    }
}

#[test]
fn consoles_and_debuggers_run_what_they_read() {
    let policy = deny("evil");
    for command in [
        "python3 -i ask.py",
        "python3 -ic pass",
        "python3 -Bi ask.py",
        "python3 -m code",
        "python3 -mcode",
        "python3 -W ignore -m IPython",
        "python3 -c import#code;code.interact()",
        "python3 -c exec(input())",
        "python3 /usr/bin/xonsh",
        "ruby /usr/bin/irb",
        "node -e require('repl').start()",
        "perl -ne eval",
    ] {
        for way in [InputWay::Stream, InputWay::Line, InputWay::Keys] {
            assert!(!may_type_as(&policy, way, command, "x('evil')\n"), "{command}: {way:?}");
            let prints =
                command.contains("xonsh") || may_type_as(&policy, way, command, "print(1)\n");
            assert!(prints, "{command}: {way:?}");
        }
    }
    // It may have a console in it.
    assert!(!may_type(&policy, "python3 ask.py", "x('evil')\n"));
    assert!(may_type(&policy, "python3 ask.py", "print(1)\n"));
    assert!(may_type_as(&policy, InputWay::Line, "python3 ask.py", "x('evil')\n"));
    for command in [
        "gdb x",
        "python3 -m pdb ask.py",
        "perl -d ask.pl",
        "perl -de 1",
        "node inspect ask.js",
        "python3 -m pytest --pdb",
        "lldb x",
        "ruby -rdebug ask.rb",
    ] {
        none_typed(&[
            (command, "shell evil\n"),
            (command, "!evil\n"),
            (command, "p system('evil')\n"),
            (command, "p qx,evil,\n"),
            (command, "import os; os.system('evil')\n"),
        ]);
        all_typed(&[(command, "n\n"), (command, "break main.c:12\n"), (command, "q\ny\n")]);
    }
}

#[test]
fn programs_that_act_on_every_key_are_only_looked_at_and_left() {
    for command in [
        "mc",
        "ranger",
        "python3 /usr/bin/ranger",
        "nnn",
        "vifm",
        "lf",
        "tig",
        "lazygit",
        "htop",
        "fzf --bind x:execute(evil)",
        "kak x",
        "hx x",
        "mutt",
    ] {
        none_typed(&[
            (command, "!evil\n"),
            (command, "s"),
            (command, "l"),
            (command, ":evil\n"),
            (command, "evil\n"),
            (command, "<ctrl-o>"),
            (command, "<enter>"),
        ]);
        all_typed(&[(command, "q"), (command, "<down><pagedown>"), (command, "<ctrl-c>")]);
    }
    all_typed(&[("fzf", "main.rs\n")]);
    for shell in ["xonsh", "nu", "elvish", "osh", "rc", "es", "tcsh", "yash", "mksh", "pdksh"] {
        none_typed(&[(shell, "ls\n")]);
    }
}

#[test]
fn a_command_for_an_editor_is_found_in_parts() {
    let policy = deny("evil");
    let reader = Reader { name: "vim", arguments: &["x".to_owned()], relays: false };
    let may = |whole: &str, new: &str| {
        let typed =
            TypedText { command: "", whole, new, unread: 0, keys: &[], way: InputWay::Keys };
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

#[test]
fn what_a_script_of_a_package_starts_reads_code_only_if_a_rule_allows_that() {
    let python = Reader { name: "python3", ..Reader::default() };
    let code = "import os;os.system('x')\n";
    for command in ["npm run py", "yarn py", "pnpm run py"] {
        let typed = TypedText { command, ..typed_alone(code) };
        let judge = |policy: &Policy| policy.judge_typed(&python, &typed, &SCENE);
        assert!(judge(&allow(command)).is_err(), "{command}");
        assert!(judge(&allow(&format!("{command},python3"))).is_ok(), "{command}");
    }
    assert!(!may_type(&allow("make shell"), "tclsh", "exec evil\n"));
}
