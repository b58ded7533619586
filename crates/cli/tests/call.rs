//! `mcpz call` and the command line.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn mcpz(arguments: &[&str]) -> Output {
    Command::new(support::MCPZ)
        .args(arguments)
        .env("XDG_STATE_HOME", support::state().path())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env_remove("MCPZ_CONFIG")
        .output()
        .unwrap()
}

fn call(arguments: &[&str]) -> (String, String, i32) {
    let output = mcpz(&[&["call"], arguments].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[test]
fn that_something_is_left_out_is_said_apart() {
    for (tool, argument) in [
        ("execute_command", "command"),
        ("shell", "command"),
        ("execute", "command"),
        ("shell_exec", "cmd"),
    ] {
        let command = format!("{argument}=seq 20000");
        let (_, stderr, code) = call(&["--tools", "all", tool, &command]);
        let advice = "; write the output to a file, or pass a larger --max-answer\n";
        assert!(stderr.starts_with("mcpz: ") && stderr.ends_with(advice), "{tool}: {stderr}");
        assert_eq!(code, 0);
        let command = format!("{argument}=seq 20");
        assert_eq!(call(&["--tools", "all", tool, &command]).1, "", "{tool}");
    }
}

#[test]
fn a_call_prints_what_the_command_printed_and_ends_as_it_ended() {
    let command = "command=echo out; echo err >&2; exit 7";
    assert_eq!(call(&["execute_command", command]), ("out\nerr\n".into(), String::new(), 7));
}

#[test]
fn what_was_extracted_is_printed_instead_of_the_output() {
    let (stdout, stderr, code) =
        call(&["execute_command", "command=echo '{\"a\": [1]}'; exit 3", "extract=json"]);
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap(), serde_json::json!({"a": [1]}));
    assert_eq!((stderr.as_str(), code), ("", 3));
}

#[test]
fn what_a_view_or_extract_leaves_out_is_said_to_a_person() {
    let noise = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done";
    let errors = "command=seq 3000 | tr 0-9 a-j | sed 's/^/error: /'";
    for (command, how, expected) in [
        (
            &*format!("command={noise}"),
            "view=folded",
            "2998 of 3000 lines not shown; omit `view` to see them",
        ),
        ("command=seq 200", "view=errors", "200 of 200 lines not shown; omit `view` to see them"),
        (errors, "view=errors", "the view did not fit; pass a larger --max-answer"),
        (
            "command=echo a,b; seq 9000 | sed 's/^/1,/'",
            "extract=table",
            " more left out; pass a larger --max-answer",
        ),
        (
            "command=seq 9",
            "view=changes",
            "ran just now: exit code 0; nothing to compare with: each `mcpz call` starts a server of its own, which keeps \
             no earlier output. This is the whole output; to compare two runs, save them to files and use `diff`",
        ),
    ] {
        let (stdout, stderr, _) = call(&["execute_command", command, how]);
        assert!(stderr.ends_with(&format!("{expected}\n")), "{how}: {stderr}");
        assert!(!stdout.is_empty() && stderr.lines().count() == 1, "{how}: {stderr}");
        for word in ["spill_uri", "read_file_chunk", "cursor", "json_path", "read_job"] {
            assert!(!stderr.contains(word), "{how}: {stderr}");
        }
    }
}

#[test]
fn warnings_are_printed_apart() {
    let command = r#"command=perl -e '$name = "r" . "m"; exec $name, "/nonexistent/x"'"#;
    let (stdout, stderr, _) = call(&["--deny", "rm", "execute_command", command]);
    assert!(stderr.starts_with("mcpz: warning: policy: `perl` ("), "{stderr}");
    assert_eq!(stdout, "");
}

#[test]
fn arguments_are_read_by_the_tools_schema() {
    let (stdout, _, code) = call(&[
        "execute_command",
        "command=echo $A $B; pwd; cat",
        "environment.A=1",
        "environment.B=x=y",
        "working_directory=/",
        "stdin=5",
        "timeout=20",
    ]);
    assert_eq!((stdout.as_str(), code), ("1 x=y\n/\n5\n", 0));
}

#[test]
fn the_whole_answer_is_there_as_json() {
    let (stdout, _, code) = call(&["--json", "execute_command", "command=echo hi; exit 2"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["structuredContent"]["output"], "hi\n");
    assert_eq!(code, 2);
}

#[test]
fn a_timeout_ends_with_124_and_a_signal_with_128_and_its_number() {
    let (stdout, stderr, code) = call(&["-t", "1", "execute_command", "command=echo a; sleep 300"]);
    assert_eq!((stdout.as_str(), code), ("a\n", 124));
    let advice = "pass a larger `timeout`, or run it with `detach=true`";
    assert_eq!(stderr, format!("mcpz: timed out after 1 second; {advice}\n"));
    assert_eq!(call(&["execute_command", "command=kill -TERM $$"]).2, 143);
}

/// A call whose standard input is a pipe, with what is written to it, and a pipe that may stay open.
fn call_with(written: &[u8], stays_open: bool, arguments: &[&str]) -> (String, String) {
    let mut child = Command::new(support::MCPZ)
        .args(["call", "execute_command"])
        .args(arguments)
        .env("XDG_STATE_HOME", support::state().path())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(written).unwrap();
    let _open = stays_open.then_some(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn standard_input_is_passed_on_if_asked_for() {
    assert_eq!(call_with(b"hi\n", false, &["command=cat", "stdin=-"]).0, "hi\n");
    assert_eq!(call_with(b"", false, &["command=cat; echo end", "stdin=-"]).0, "end\n");
    let large = "x".repeat(3 << 20);
    assert_eq!(call_with(large.as_bytes(), false, &["command=wc -c", "stdin=-"]).0, "3145728\n");
    let endless = "yes | mcpz call execute_command command='wc -c' stdin=-";
    let mut sh = Command::new("sh");
    sh.args(["-c", &endless.replace("mcpz", support::MCPZ)]);
    let said = "mcpz: standard input is too large for a call; pass the path of a file to the command instead\n";
    let output = sh.env("XDG_STATE_HOME", support::state().path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
    let (stdout, stderr) = call_with(b"\xff", false, &["command=cat", "stdin=-"]);
    let said =
        "mcpz: standard input is not UTF-8; pass the path of a file to the command instead\n";
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", said));
}

#[test]
fn a_call_never_waits_for_an_input_that_it_was_not_told_to_read() {
    assert_eq!(call_with(b"", true, &["command=cat; echo end"]).0, "end\n");
    let said = "mcpz: standard input was not read; `stdin=-` passes it to the command\n";
    let unread = call_with(b"hi\n", true, &["command=cat; echo end"]);
    assert_eq!(unread, ("end\n".into(), said.into()));
    assert_eq!(call_with(b"hi\n", true, &["command=cat", "stdin=x"]), ("x\n".into(), "".into()));
    let loop_of_calls = format!(
        "printf '1\\n2\\n' | while read n; do '{}' call execute_command command='cat; echo '$n; done",
        support::MCPZ
    );
    let mut sh = Command::new("sh");
    sh.args(["-c", &loop_of_calls]).env("XDG_STATE_HOME", support::state().path());
    assert_eq!(sh.output().unwrap().stdout, b"1\n2\n");
}

#[test]
fn a_call_that_waits_for_its_input_can_be_interrupted() {
    let mut child = Command::new(support::MCPZ)
        .args(["call", "execute_command", "command=cat", "stdin=-"])
        .env("XDG_STATE_HOME", support::state().path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hi").unwrap();
    let unread = || rustix::io::ioctl_fionread(&stdin).unwrap();
    support::wait_until("it reads", || (unread() == 0).then_some(()));
    support::kill("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_refusal_ends_with_1() {
    let (stdout, _, code) = call(&["--deny", "rm*", "execute_command", "command=rm x"]);
    assert_eq!(code, 1);
    assert_eq!(
        stdout,
        "Command denied by security policy: `rm x` (at 0) is denied by the rule `rm*`\n"
    );
}

#[test]
fn mistakes_are_explained() {
    for (arguments, explanation) in [
        (
            &["shel", "command=x"][..],
            "mcpz: there is no tool `shel` here; available: execute_command, read_file_chunk, \
             list_jobs, read_job, write_job, stop_job; `--tools` offers others\n",
        ),
        (&["execute_command", "ls"], "mcpz: `ls` is not an argument; write it as KEY=VALUE\n"),
        (
            &["execute_command", "timeout=soon"],
            "mcpz: `soon` is not a valid `timeout`; expected type number\n",
        ),
        (
            &["-w", "/no/such", "execute_command", "command=x"],
            "mcpz: cannot use /no/such as the working directory: No such file or directory (os error 2)\n",
        ),
        (
            &["-s", "/no/shell", "execute_command", "command=x"],
            "mcpz: cannot use /no/shell as the shell: No such file or directory (os error 2)\n",
        ),
        (
            &["--tools", "shall", "execute_command", "command=x"],
            "mcpz: there is no tool `shall`; available: default, all, execute_command, read_file_chunk, \
             list_jobs, read_job, write_job, stop_job, shell, execute, run_shell_command, shell_exec\n",
        ),
    ] {
        let (stdout, stderr, code) = call(arguments);
        assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", explanation, 1));
    }
}

#[test]
fn the_help_of_the_server_has_every_flag_of_its_document() {
    let output = mcpz(&["server", "shell", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    for flag in [
        "-w, --working-dir <PATH>",
        "-t, --timeout <SECONDS>",
        "-s, --shell <PATH>",
        "--allow <PATTERNS>",
        "--deny <PATTERNS>",
        "--no-stderr",
        "-v, --verbose",
        "-h, --help",
        "--tools <LIST>",
        "--config <FILE>",
    ] {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
    assert!(!String::from_utf8(mcpz(&["--help"]).stdout).unwrap().contains("agent"));
}

#[test]
fn a_call_that_is_interrupted_ends_its_command() {
    let mark = support::mark();
    let state = support::state();
    let mut child = Command::new(support::MCPZ)
        .args(["call", "execute_command", "command=sleep 300"])
        .env("XDG_STATE_HOME", state.path())
        .arg(format!("environment.MARK={mark}"))
        .spawn()
        .unwrap();
    support::wait_until("it runs", || (!support::survivors(&mark).is_empty()).then_some(()));
    support::kill("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(support::survivors(&mark), [""; 0]);
}

/// What is shown on a terminal of 60 columns.
fn on_terminal(line: &str, variables: &[(&str, &str)]) -> String {
    let line = format!("stty cols 60; '{}' call execute_command {line}", support::MCPZ);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("MCPZ_CONFIG");
    script.env("XDG_STATE_HOME", support::state().path()).env("XDG_CONFIG_HOME", "/nonexistent");
    script.stdin(Stdio::null()).env("NO_COLOR", "1");
    String::from_utf8(script.envs(variables.iter().copied()).output().unwrap().stdout).unwrap()
}

#[test]
fn a_terminal_shows_the_progress_of_a_call_and_erases_it() {
    let slow = r#"command='seq 3; printf "copied 45%%\\033]0;x\\007 of a file that is far away, so take your time"; sleep 1.2; echo; echo done'"#;
    let text = on_terminal(slow, &[]);
    let (progress, rest) = text.rsplit_once("\r\x1b[K").unwrap_or_else(|| panic!("{text:?}"));
    assert!(rest.starts_with("1\r\n2\r\n3\r\ncopied 45%"), "{rest:?}");
    assert!(rest.ends_with("done\r\n"), "{rest:?}");
    let shown: Vec<_> = progress.split("\r\x1b[K").filter(|it| !it.is_empty()).collect();
    let expected = "1s  3 lines  [████░░░░░░]  45%  copied 45% of a file that …";
    assert!(shown.contains(&expected), "{shown:?}");
    assert!(shown.iter().all(|line| line.chars().count() < 60 && !line.contains('\x1b')));
    // Nothing of it is where nobody can see it move.
    assert!(!on_terminal(slow, &[("TERM", "dumb")]).contains("lines"));
    assert!(!on_terminal(&format!("{slow} 2>/dev/null"), &[]).contains("lines"));
    let file = tempfile::NamedTempFile::new().unwrap();
    on_terminal(&format!("{slow} 2>'{}'", file.path().display()), &[]);
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "");
}

#[test]
fn a_call_that_is_interrupted_erases_its_progress() {
    let line =
        "command='echo 45%; sleep 100' & call=$!; sleep 2; kill -INT $call; wait $call; echo over";
    let text = on_terminal(line, &[]);
    assert!(text.contains("1 line  [████░░░░░░]  45%  45%"), "{text:?}");
    assert!(text.ends_with("\r\x1b[Kover\r\n"), "{text:?}");
}
