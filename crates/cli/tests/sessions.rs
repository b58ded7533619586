//! Sessions: a shell that remembers where it is.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Server, mark, survivors, wait_until};

/// The shells that are here: `zsh` need not be.
fn shells() -> Vec<&'static str> {
    let all = ["/bin/sh", "/bin/bash", "/bin/zsh"];
    all.into_iter().filter(|shell| Path::new(shell).exists()).collect()
}

fn say(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "session": "work"}))
}

#[test]
fn a_session_keeps_directory_variables_and_functions() {
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        let begun = say(&mut server, "cd /usr; x='a  b'; greet() { echo \"hello $1 from $x\"; }");
        assert_eq!((&begun["cwd"], &begun["output"]), (&json!("/usr"), &json!("")), "{shell}");
        let told = say(&mut server, "greet Ada; pwd");
        assert_eq!(told["output"], "hello Ada from a  b\n/usr\n", "{shell}");
        assert_eq!((&told["session"], &told["return_code"]), (&json!("work"), &json!(0)));
        let other = server.call(json!({"command": "pwd; echo \"$x\"", "session": "other"}));
        assert_ne!(other["cwd"], "/usr");
        assert!(other["output"].as_str().unwrap().ends_with("\n\n"), "{other}");
    }
}

#[test]
fn each_command_has_its_own_exit_code_and_output() {
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        for (command, output, code) in [
            ("printf 'no end'", "no end", 0),
            ("false", "", 1),
            ("echo $?", "1\n", 0),
            ("echo error >&2; echo out; (exit 7)", "out\nerror\n", 7),
            ("cat; echo after", "after\n", 0),
            ("echo a\necho b\n\nfor i in 1 2; do\n  echo $i\ndone\n", "a\nb\n1\n2\n", 0),
            ("cat <<E\nit's \"text\"\nE", "it's \"text\"\n", 0),
            ("printf() { echo fake; }; echo hi", "hi\n", 0),
            ("unset -f printf", "", 0),
            ("# nothing", "", 0),
        ] {
            let told = say(&mut server, command);
            assert_eq!(told["output"], output, "{shell}: {command}");
            assert_eq!(told["return_code"], code, "{shell}: {command}");
        }
        let flood = say(&mut server, "yes | head -c 10000000; echo the end");
        assert!(flood["output"].as_str().unwrap().ends_with("the end\n"));
        assert!(flood["omitted_bytes"].as_u64().unwrap() > 9_000_000);
        assert_eq!(say(&mut server, "echo fine")["output"], "fine\n");
    }
}

#[test]
fn a_mistake_does_not_end_a_session() {
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        say(&mut server, "x=1");
        for mistake in ["if", "echo 'no end", "echo \"no end", "done", "$(", "no_such_command"] {
            let told = say(&mut server, mistake);
            assert_ne!(told["return_code"], 0, "{shell}: {mistake}");
            assert_ne!(told["output"], "", "{shell}: {mistake}");
        }
        assert_eq!(say(&mut server, "echo $x")["output"], "1\n", "{shell}");
    }
}

#[test]
fn a_shell_that_ends_is_said_to_be_gone_and_made_anew() {
    for shell in shells() {
        for (end, code, output) in [
            ("exit 4", 4, ""),
            ("trap 'echo bye' EXIT; exit 3", 3, "bye\n"),
            ("exec sh -c 'echo replaced; exit 5'", 5, "replaced\n"),
            ("set -e; false", 1, ""),
            ("sleep 300 & exit 4", 4, ""),
        ] {
            let mut server = Server::start(&["-s", shell]);
            say(&mut server, "x=1");
            let told = say(&mut server, end);
            assert_eq!(told["return_code"], code, "{shell}: {end}: {told}");
            assert_eq!(told["output"], output, "{shell}: {end}");
            let message = told["message"].as_str().unwrap();
            assert!(message.starts_with("this command ended the session; "), "{message}");
            assert_eq!(say(&mut server, "echo \"[$x]\"")["output"], "[]\n", "{shell}: {end}");
        }
    }
}

#[test]
fn a_timeout_ends_the_command_and_not_the_session() {
    let mark = mark();
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        say(&mut server, "cd /usr");
        let command =
            format!("MARK={mark} sh -c 'trap \"\" TERM; echo begun; sleep 300; sleep 300'");
        let late = server.call(json!({"command": command, "session": "work", "timeout": 2}));
        assert_eq!((&late["timed_out"], &late["cwd"]), (&json!(true), &json!("/usr")), "{late}");
        assert!(late["output"].as_str().unwrap().starts_with("begun\n"), "{late}");
        assert!(survivors(&mark).is_empty());
        assert_eq!(say(&mut server, "pwd")["output"], "/usr\n", "{shell}");
    }
}

#[test]
fn a_timeout_ends_what_has_left_the_shell_and_ignores_signals() {
    let mark = mark();
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        say(&mut server, "cd /usr");
        // The shell itself can answer as soon as it has the signal.
        let command = format!(
            "MARK={mark} setsid -f sh -c 'trap \"\" TERM; echo begun; while sleep 0.2; do :; done'; sleep 300"
        );
        let late = server.call(json!({"command": command, "session": "work", "timeout": 2}));
        assert_eq!((&late["timed_out"], &late["cwd"]), (&json!(true), &json!("/usr")), "{late}");
        assert!(late["output"].as_str().unwrap().starts_with("begun\n"), "{late}");
        assert!(survivors(&mark).is_empty(), "{shell}");
        assert_eq!(say(&mut server, "pwd")["output"], "/usr\n", "{shell}");
    }
}

#[test]
fn a_timeout_leaves_alone_what_something_in_the_background_starts_meanwhile() {
    let (folder, mark) = (tempfile::tempdir().unwrap(), mark());
    let mut server = Server::start(&["-s", "/bin/bash"]);
    say(&mut server, &format!("cd '{}'", folder.path().display()));
    let wait = "until [ -e begun ]; do sleep 0.01; done";
    say(&mut server, &format!("({wait}; MARK={mark} sleep 300; touch ended) &"));
    let command = "touch begun; sleep 300";
    let late = server.call(json!({"command": command, "session": "work", "timeout": 2}));
    assert_eq!(late["timed_out"], true, "{late}");
    assert_eq!(survivors(&mark).len(), 1);
    assert!(!folder.path().join("ended").exists());
}

#[test]
fn a_break_that_stands_alone_breaks_nothing() {
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        say(&mut server, "cd /usr");
        for text in ["break", "continue", "for i in 1 2; do continue; done; break"] {
            let told = say(&mut server, text);
            assert_eq!((&told["cwd"], &told["message"]), (&json!("/usr"), &Value::Null), "{told}");
        }
        assert_eq!(say(&mut server, "pwd")["output"], "/usr\n", "{shell}");
    }
}

#[test]
fn a_timeout_leaves_what_was_put_in_the_background_before() {
    let mark = mark();
    let mut server = Server::start(&["-s", "/bin/bash"]);
    say(&mut server, &format!("MARK={mark} sleep 300 & echo begun"));
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    let late = server.call(json!({"command": "sleep 300", "session": "work", "timeout": 0.2}));
    assert_eq!((&late["timed_out"], late["cwd"].is_string()), (&json!(true), true));
    assert_eq!(survivors(&mark).len(), 1);
}

#[test]
fn commands_of_a_session_take_turns_and_can_be_cancelled_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["-w", folder.path().to_str().unwrap()]);
    let first = server.start_call(json!({"command": "echo first; sleep 1", "session": "work"}));
    server.wait_for_output(first, "first");
    let second = server.start_call(json!({"command": "touch never", "session": "work"}));
    server.notify("notifications/cancelled", json!({"requestId": second}));
    assert_eq!(server.answer(first)["result"]["structuredContent"]["return_code"], 0);
    let told = say(&mut server, "test -e never; echo $?");
    assert_eq!(told["output"], "1\n");
}

#[test]
fn a_shell_that_cannot_be_interrupted_is_ended() {
    let mut server = Server::start(&[]);
    let endless = json!({"command": "while :; do :; done", "session": "work", "timeout": 0.2});
    let told = server.call(endless);
    assert_eq!(told["timed_out"], true);
    assert!(told["message"].as_str().unwrap().contains("this command ended the session"), "{told}");
    assert_eq!(say(&mut server, "echo fine")["output"], "fine\n");
}

#[test]
fn a_shell_that_reports_late_after_a_timeout_is_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let slow = folder.path().join("slow");
    assert!(Command::new("mkfifo").arg(&slow).status().unwrap().success());
    let mut server = Server::start(&[]);
    say(&mut server, "x=kept");
    let command = format!("sleep 300; read line < '{}'", slow.display());
    let call = server.start_call(json!({"command": command, "session": "work", "timeout": 0.2}));
    // The shell opens it once its `sleep` has been ended, and reports only after what follows.
    let held = std::fs::OpenOptions::new().write(true).open(&slow).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    drop(held);
    assert_eq!(server.answer(call)["result"]["structuredContent"]["timed_out"], true);
    assert_eq!(say(&mut server, "echo $x")["output"], "kept\n");
}

#[test]
fn what_cannot_be_asked_of_a_session_is_told() {
    let mut server = Server::start(&[]);
    for (arguments, expected) in [
        (json!({"session": "a/b"}), "`session` must be 1 to 64 letters, digits, `_`, `-` or `.`"),
        (
            json!({"session": "a", "background": true}),
            "a command in a `session` cannot have `background`, `detach`, `tty` or `stdin`",
        ),
    ] {
        let mut arguments = arguments;
        arguments["command"] = json!("true");
        let answer = server.tool("execute_command", arguments);
        assert_eq!(answer["content"][0]["text"], format!("Invalid arguments: {expected}"));
    }
    server.call(json!({"command": "pwd", "session": "a", "working_directory": "/usr"}));
    let again = json!({"command": "pwd", "session": "a", "working_directory": "/tmp"});
    let output = server.call(again)["output"].clone();
    let expected = "Failed to execute: the session `a` is already running; change its directory and \
                    variables with `cd` and `export`";
    assert_eq!(output, expected);
}

#[test]
fn what_a_session_was_told_before_counts_when_it_is_judged() {
    let mut server = Server::start(&["--deny", "rm", "-s", "/bin/bash"]);
    let mut refused = |command: &str| {
        let told = say(&mut server, command);
        let output = told["output"].as_str().unwrap();
        output.starts_with("Command denied by security policy")
    };
    assert!(!refused("x=r; y=m"));
    assert!(refused("$x$y -rf nothing"));
    assert!(refused("rm nothing"));
    assert!(!refused("f() { echo harmless; }"));
    assert!(!refused("f"));
}

#[test]
fn a_session_ends_with_the_connection() {
    let mark = mark();
    let mut server = Server::start(&[]);
    say(&mut server, &format!("MARK={mark} sleep 300 & echo begun"));
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    server.close_stdin();
    server.wait();
    assert!(survivors(&mark).is_empty());
}

#[test]
fn tracing_shows_the_commands_and_nothing_else() {
    for shell in shells() {
        // Within `eval`, `bash` repeats the sign and `zsh` says where it is.
        let sign = match shell {
            "/bin/bash" => "++ ",
            "/bin/zsh" => "+(eval):1> ",
            _ => "+ ",
        };
        let mut server = Server::start(&["-s", shell]);
        let mut check = |command: &str, output: &str, errors: &[&str]| {
            // In an `eval`, `zsh` has no lines to show.
            let shown = errors.iter().filter(|line| shell != "/bin/zsh" || line.starts_with('+'));
            let shown: String = shown.map(|line| line.replace("+ ", sign) + "\n").collect();
            let told = say(&mut server, command);
            assert_eq!(told["output"], format!("{output}{shown}"), "{shell}: {command}");
        };
        check("set -x", "", &[]);
        check("false", "", &["+ false"]);
        check("echo $?", "1\n", &["+ echo 1"]);
        check("set -v", "", &["+ set -v"]);
        check("(exit 3)", "", &["(exit 3)", "+ exit 3"]);
        check("echo $?", "3\n", &["echo $?", "+ echo 3"]);
        check("set +x", "", &["set +x", "+ set +x"]);
        check("echo it\\'s", "it's\n", &["echo it\\'s"]);
        check("set +v", "", &["set +v"]);
        check("set -x", "", &[]);
        say(&mut server, "exec 2>/dev/null");
        assert_eq!(say(&mut server, "echo quiet")["output"], "quiet\n", "{shell}");
    }
}

#[test]
fn a_mistake_while_tracing_leaves_it_on() {
    for shell in shells() {
        let mut server = Server::start(&["-s", shell]);
        say(&mut server, "set -x");
        for _ in 0..2 {
            let told = say(&mut server, "if");
            assert!(!told["output"].as_str().unwrap().contains("_mcpz"), "{told}");
            assert_ne!(told["return_code"], 0, "{shell}");
        }
        let told = say(&mut server, "case $- in *x*) echo on;; esac");
        assert!(told["output"].as_str().unwrap().starts_with("on\n+"), "{shell}: {told}");
    }
}

#[test]
fn a_trap_for_errors_sees_those_of_commands_alone() {
    for shell in ["/bin/bash", "/bin/zsh"].into_iter().filter(|shell| Path::new(shell).exists()) {
        let mut server = Server::start(&["-s", shell]);
        say(&mut server, "trap 'echo trapped' ERR");
        let told = say(&mut server, "false");
        assert!(told["output"].as_str().unwrap().starts_with("trapped\n"), "{shell}: {told}");
        assert_eq!(say(&mut server, "echo $?")["output"], "1\n", "{shell}");
    }
}

/// A small source of numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// One of many small commands that change what a shell knows.
fn command(numbers: &mut Numbers) -> String {
    let name = ["a", "b", "c"][numbers.below(3)];
    let number = numbers.below(100);
    match numbers.below(16) {
        0 => format!("{name}={number}"),
        1 => format!("echo \"${name} {number}\""),
        2 => format!("mkdir -p d{} && cd d{}", number % 5, number % 5),
        3 => "cd ..; [ -e stop ] && cd top || true".to_owned(),
        4 => format!("(exit {})", number % 7),
        5 => "echo $?".to_owned(),
        6 => format!("f() {{ echo f{number} \"$@\"; return {}; }}", number % 3),
        7 => format!("f {name} 'x y' || echo failed $?"),
        8 => format!("printf '%s' no-end-{number}"),
        9 => format!("{name}=$(echo {number} | tr 0-9 a-j); echo ${name} >&2"),
        10 => format!("for i in 1 2 3; do {name}=$i$i; done; echo ${{{name}}}"),
        11 => format!("cat <<'E'\n${name} {number} it's\nE"),
        12 => format!("echo \"it's \\\"{number}\\\" `echo deep`\" | cat"),
        13 => "pwd | sed 's/.*top/top/'".to_owned(),
        14 => format!("case {number} in *7) echo seven;; *) false;; esac"),
        _ => format!("[ {number} -gt 50 ] && echo big || {{ echo small; (exit 9); }}"),
    }
}

#[test]
fn five_hundred_commands_do_the_same_as_in_one_script() {
    for (seed, shell) in shells().into_iter().enumerate() {
        let mut numbers = Numbers(seed as u64 + 7);
        let first = "f() { echo f; }".to_owned();
        let rest = std::iter::repeat_with(|| command(&mut numbers));
        let commands: Vec<_> = std::iter::once(first).chain(rest).take(500).collect();
        let place = tempfile::tempdir().unwrap();
        let (ours, theirs) = (place.path().join("ours/top"), place.path().join("theirs/top"));
        for top in [&ours, &theirs] {
            std::fs::create_dir_all(top).unwrap();
            std::fs::write(top.parent().unwrap().join("stop"), "").unwrap();
        }
        // The same in one shell, with a line after each that cannot be mistaken.
        let script: String = std::iter::once("s=0\n".to_owned())
            .chain(commands.iter().map(|command| {
                format!("(exit $s)\n{command}\ns=$?; printf '\\001%d %s\\002' $s \"$PWD\"; printf '\\003' >&2\n")
            }))
            .collect();
        let quiet: &[&str] = match shell {
            "/bin/bash" => &["--norc", "--noprofile"],
            "/bin/zsh" => &["-f"],
            _ => &[],
        };
        let expected = Command::new(shell)
            .args(quiet)
            .args(["-c", &script])
            .current_dir(&theirs)
            .output()
            .unwrap();
        let stdout = String::from_utf8(expected.stdout).unwrap();
        let stderr = String::from_utf8(expected.stderr).unwrap();
        let mut steps = stdout.split_terminator('\u{2}').zip(stderr.split_terminator('\u{3}'));

        let mut server = Server::start(&["-s", shell, "-w", ours.to_str().unwrap()]);
        for (at, command) in commands.iter().enumerate() {
            let (step, errors) = steps.next().unwrap();
            let (output, end) = step.split_once('\u{1}').unwrap();
            let (code, directory) = end.split_once(' ').unwrap();
            let told = say(&mut server, command);
            assert_eq!(told["output"], format!("{output}{errors}"), "{shell} {at}: {command}");
            assert_eq!(told["return_code"].to_string(), code, "{shell} {at}: {command}");
            let expected = directory.replace("/theirs/", "/ours/");
            assert_eq!(told["cwd"], expected, "{shell} {at}: {command}");
        }
    }
}
