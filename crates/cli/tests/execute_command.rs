//! What `execute_command` does and answers.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Server, mark, survivors};

#[test]
fn the_text_begins_with_command_output_and_return_code() {
    let mut server = Server::start(&[]);
    let result = server.call_raw(json!({"command": "echo hello"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    let expected =
        "{\n  \"command\": \"echo hello\",\n  \"output\": \"hello\\n\",\n  \"return_code\": 0,";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(result["isError"], false);
}

#[test]
fn a_command_that_fails_is_no_error_of_the_tool() {
    let mut server = Server::start(&[]);
    let result = server.call_raw(json!({"command": "echo out; echo err >&2; exit 3"}));
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["output"], "out\nerr\n");
    assert_eq!(result["structuredContent"]["return_code"], 3);
}

#[test]
fn output_is_stdout_and_then_stderr() {
    let mut server = Server::start(&[]);
    let reply = server.run("echo 1 >&2; echo 2; echo 3 >&2; echo 4");
    assert_eq!(reply["output"], "2\n4\n1\n3\n");
}

#[test]
fn stderr_can_be_left_out() {
    let mut server = Server::start(&["--no-stderr"]);
    assert_eq!(server.run("echo 1 >&2; echo 2")["output"], "2\n");
}

#[test]
fn a_command_ended_by_a_signal_tells_its_name() {
    let mut server = Server::start(&[]);
    let reply = server.run("kill -SEGV $$");
    assert_eq!(reply["signal"], "SIGSEGV");
    assert_eq!(reply["return_code"], -1);
}

#[test]
fn what_a_command_used_is_told() {
    let mut server = Server::start(&[]);
    let reply = server.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.2");
    assert!(reply["duration_ms"].as_u64().unwrap() >= 200, "{reply}");
    assert!(reply["cpu_ms"].as_u64().unwrap() >= 1, "{reply}");
    assert!(reply["max_rss_bytes"].as_u64().unwrap() > 100_000, "{reply}");
}

#[test]
fn a_command_runs_where_with_what_and_on_what_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let path = folder.path().canonicalize().unwrap();
    let mut server = Server::start(&["-w", path.to_str().unwrap()]);
    assert_eq!(server.run("pwd")["output"], format!("{}\n", path.display()));
    let reply = server.call(json!({
        "command": "pwd; echo $GREETING; cat",
        "working_directory": "below",
        "environment": {"GREETING": "hällo"},
        "stdin": "one\ntwo",
    }));
    assert_eq!(reply["output"], format!("{}/below\nhällo\none\ntwo", path.display()));
}

#[test]
fn a_command_without_input_reads_nothing() {
    let mut server = Server::start(&[]);
    let reply = server.run("read x; echo \"got $?\"; cat; python3 -c 'input()' 2>&1 | tail -1");
    assert_eq!(reply["output"], "got 1\nEOFError: EOF when reading a line\n");
}

#[test]
fn input_that_is_not_read_holds_up_nobody() {
    let mut server = Server::start(&[]);
    let reply = server.call(json!({"command": "echo done", "stdin": "x".repeat(1 << 20)}));
    assert_eq!(reply["output"], "done\n");
}

#[test]
fn a_timeout_keeps_what_was_printed_and_says_so() {
    let mut server = Server::start(&[]);
    let result = server.call_raw(json!({"command": "echo begun; sleep 300", "timeout": 0.5}));
    assert_eq!(result["isError"], true);
    let reply = &result["structuredContent"];
    assert_eq!(reply["output"], "begun\n");
    assert_eq!(reply["timed_out"], true);
    assert_eq!(reply["return_code"], -1);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("timed out after 0.5 seconds"), "{text}");
}

#[test]
fn the_servers_own_timeout_is_used_when_none_is_given() {
    let mut server = Server::start(&["-t", "1"]);
    let reply = server.run("sleep 300");
    assert_eq!(
        reply["message"],
        "timed out after 1 second; pass a larger `timeout`, or run it with `background`"
    );
}

#[test]
fn a_child_that_keeps_the_pipe_does_not_hold_up_the_answer() {
    let mut server = Server::start(&[]);
    let reply = server.run("sleep 3000 & echo hi");
    assert_eq!(reply["output"], "hi\n");
    assert_eq!(reply["background_pids"].as_array().unwrap().len(), 1);
}

#[test]
fn a_child_that_floods_the_pipe_does_not_hold_up_the_answer() {
    let mut server = Server::start(&[]);
    let reply = server.run("yes & echo hi");
    assert_eq!(reply["return_code"], 0);
    assert_eq!(reply["background_pids"].as_array().unwrap().len(), 1);
}

#[test]
fn the_far_end_of_a_process_substitution_is_waited_for() {
    let mut server = Server::start(&["-s", "/bin/bash"]);
    let reply = server.run("echo hi > >(cat)");
    assert_eq!(reply["output"], "hi\n");
    assert!(reply["background_pids"].is_null(), "{reply}");
}

#[test]
fn an_interactive_shell_cannot_stop_the_server() {
    let mut server = Server::start(&["-s", "/bin/bash"]);
    let reply = server.run("bash -i -c 'echo inside'; tty; echo $?");
    let output = reply["output"].as_str().unwrap();
    assert!(output.starts_with("inside\nnot a tty\n1\n"), "{reply}");
    assert_eq!(server.run("echo still here")["output"], "still here\n");
}

#[test]
fn every_byte_printed_before_the_end_is_there() {
    let mut server = Server::start(&[]);
    for _ in 0..50 {
        let reply = server.run("printf '%05000d' 1; printf '%05000d' 2 >&2");
        assert_eq!(reply["output"].as_str().unwrap().len(), 10_000);
    }
}

#[test]
fn of_a_long_output_the_beginning_and_the_end_are_told() {
    let mut server = Server::start(&[]);
    let reply = server.run("seq 1 200000 | tr 0-9 g-p; echo end >&2");
    let output = reply["output"].as_str().unwrap();
    assert!(output.starts_with("h\ni\nj\n"));
    assert!(output.ends_with("\nhppppp\niggggg\nend\n"));
    let omitted = reply["omitted_bytes"].as_u64().unwrap();
    let notice = format!("\n[... {omitted} bytes left out ...]\n");
    assert!(output.contains(&notice));
    let shown = output.len() - notice.len() + 1;
    assert_eq!(shown as u64 + omitted, 1_288_895 + 4);
    assert!(output.lines().all(|line| line.starts_with('[') || line.len() <= 6));
}

#[test]
fn all_of_a_long_output_can_be_read_on_either_stream() {
    let mut server = Server::start(&[]);
    let reply = server.run("seq 1 100000 >&2");
    assert!(reply["spill_uri"].is_null(), "{reply}");
    let arguments = json!({"uri": reply["stderr_spill_uri"], "grep": "^99999$"});
    let chunk = server.tool("read_file_chunk", arguments);
    assert_eq!(chunk["structuredContent"]["data"], "99999\n");
}

#[test]
fn a_short_output_cannot_become_a_long_answer() {
    let mut server = Server::start(&[]);
    let reply = server.run(r"for i in $(seq 1 6000); do printf '\033[4096Gy\n'; done");
    assert!(reply.to_string().len() < 1 << 20);
}

#[test]
fn bytes_that_are_no_text_do_not_lose_the_rest() {
    let mut server = Server::start(&[]);
    let reply = server.run(r"printf 'a\377b\n\033[31mred\033[0m\n10%%\r99%%\n'");
    assert_eq!(reply["output"], "a\u{fffd}b\nred\n99%\n");
}

#[test]
fn a_script_longer_than_an_argument_can_be_runs_all_the_same() {
    let mut server = Server::start(&[]);
    let script = format!("x='{}'\necho ${{#x}}\ncat\n", "a".repeat(500_000));
    let result = server.call_raw(json!({"command": script, "stdin": "input"}));
    assert_eq!(result["structuredContent"]["output"], "500000\ninput");
}

#[test]
fn what_cannot_start_says_why() {
    let mut server = Server::start(&["-w", "/"]);
    for (arguments, reason) in [
        (
            json!({"command": "true", "working_directory": "/no/such"}),
            "Failed to execute: cannot enter the working directory /no/such: No such file or directory (os error 2)",
        ),
        (
            json!({"command": "a\u{0}b"}),
            "Failed to execute: the command contains a NUL byte; remove it",
        ),
        (
            json!({"command": "true", "environment": {"A=B": "c"}}),
            "Failed to execute: `A=B` is not a valid variable name: it is empty, or contains `=` or a NUL byte",
        ),
        (
            json!({"command": "true", "environment": {"A": "x".repeat(200_000)}}),
            "Failed to execute: cannot execute /bin/sh: Argument list too long (os error 7)",
        ),
    ] {
        let result = server.call_raw(arguments);
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["output"], reason);
        assert_eq!(result["structuredContent"]["return_code"], -1);
    }
}

#[test]
fn arguments_that_are_wrong_are_named() {
    let mut server = Server::start(&[]);
    for (arguments, complaint) in [
        (json!({}), "missing field `command`"),
        (json!({"command": 5}), "`command` must be a string, not 5"),
        (json!({"command": "true", "cwd": "/"}), "unknown field `cwd`, expected one of `command`"),
        (json!({"command": "true", "timeout": 0}), "`timeout` must be more than 0"),
        (json!({"command": "true", "timeout": 1e300}), "at most 86400 seconds"),
    ] {
        let result = server.call_raw(arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(result["isError"], true);
        assert!(text.starts_with("Invalid arguments: ") && text.contains(complaint), "{text}");
    }
}

#[test]
fn denied_commands_do_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut server = Server::start(&["-w", path, "--deny", "touch*,sudo*"]);
    for command in ["touch x", "/usr/bin/touch x", "true; touch x", "env touch x", "$(touch x)"] {
        let result = server.call_raw(json!({"command": command}));
        assert_eq!(result["isError"], true, "{command}");
        let reply = &result["structuredContent"];
        assert_eq!(reply["return_code"], -1);
        let output = reply["output"].as_str().unwrap();
        assert!(output.starts_with("Command denied by security policy"), "{output}");
    }
    assert_eq!(server.run("ls -A")["output"], "");
}

#[test]
fn variables_cannot_smuggle_a_command_past_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut server = Server::start(&["-w", path, "-s", "bash", "--allow", "ls"]);
    for (name, value) in
        [("BASH_ENV", "$(touch pwned)"), ("BASH_FUNC_ls%%", "() { touch pwned; }"), ("PATH", path)]
    {
        let result = server.call_raw(json!({"command": "ls", "environment": {name: value}}));
        assert_eq!(result["isError"], true, "{name}");
    }
    assert_eq!(server.run("ls")["output"], "");
    let reply = server.call(json!({"command": "ls", "environment": {"LANG": "C"}}));
    assert_eq!(reply["return_code"], 0);
}

#[test]
fn the_shell_is_the_one_of_the_start_wherever_a_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("bin/sh")).unwrap();
    let mut command = std::process::Command::new(support::MCPZ);
    command.args(["server", "shell", "-s", "bin/sh"]).current_dir(folder.path());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let reply = server.call(json!({"command": "echo $0", "working_directory": "/"}));
    assert_eq!(reply["output"], format!("{}/bin/sh\n", folder.path().display()));
}

#[test]
fn only_allowed_commands_run() {
    let mut server = Server::start(&["--allow", "echo*,ls*"]);
    assert_eq!(server.run("echo 'a b'")["output"], "a b\n");
    let reply = server.run("cat /etc/passwd");
    assert_eq!(
        reply["output"],
        "Command denied by security policy: `cat /etc/passwd` (at 0) runs `cat`, which is not on \
         the allow list; allowed: echo*, ls*"
    );
}

#[test]
fn calls_run_side_by_side() {
    let mut server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let path = fifo.to_str().unwrap();
    server.run(&format!("mkfifo '{path}'"));
    // Each waits for the other: one after the other they would wait forever.
    let reader = server.start_call(json!({"command": format!("cat '{path}'")}));
    let writer = server.start_call(json!({"command": format!("echo met > '{path}'")}));
    assert_eq!(server.answer(writer)["result"]["structuredContent"]["return_code"], 0);
    assert_eq!(server.answer(reader)["result"]["structuredContent"]["output"], "met\n");
}

#[test]
fn many_calls_at_once_each_get_their_own_answer() {
    let mut server = Server::start(&[]);
    let calls: Vec<_> = (0..100)
        .map(|n| (n, server.start_call(json!({"command": format!("echo {n}; exit {n}")}))))
        .collect();
    for (n, call) in calls {
        let reply = server.answer(call)["result"]["structuredContent"].clone();
        assert_eq!(reply["output"], format!("{n}\n"));
        assert_eq!(reply["return_code"], n);
    }
}

#[test]
fn a_command_cannot_look_into_those_that_run_it() {
    let folder = support::open_folder();
    let mut server = Server::start_ordinary(folder.path());
    let command = "keeper=$PPID
        agent=$(cut -d' ' -f4 /proc/$keeper/stat)
        server=$(cut -d' ' -f4 /proc/$agent/stat)
        for pid in $keeper $agent $server; do
            cat /proc/$pid/comm
            cat /proc/$pid/environ /proc/$pid/maps >/dev/null 2>&1 && echo readable
        done";
    assert_eq!(server.run(command)["output"], "mcpz-keeper\nmcpz-agent\nmcpz\n");
}

#[test]
fn a_flood_until_the_timeout_is_cut_short_and_the_server_goes_on() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let reply: Value = server.call(json!({
        "command": "yes",
        "timeout": 1,
        "environment": {"MARK": mark},
    }));
    assert_eq!(reply["timed_out"], true);
    assert!(reply["output"].as_str().unwrap().starts_with("y\ny\n"));
    assert!(reply["omitted_bytes"].as_u64().unwrap() > 1_000_000);
    assert_eq!(survivors(&mark), [""; 0]);
    assert_eq!(server.run("echo still here")["output"], "still here\n");
}
