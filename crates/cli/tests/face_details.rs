//! What each tool says that its caller would otherwise have to guess.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::audit::settled;
use support::http::{HttpServer, Request};
use support::{MCPZ, Server, exec, read};

fn all() -> Server {
    Server::start(&["--tools", "all"])
}

/// All text of an answer.
fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn shell(server: &mut Server, command: &str) -> String {
    text(&server.tool("shell", json!({"command": command})))
}

#[test]
fn the_text_of_shell_names_what_was_left_running() {
    let mut server = all();
    let result = server.tool("shell", json!({"command": "sleep 300 & echo $!"}));
    let reply = &result["structuredContent"];
    let pid = reply["stdout"].as_str().unwrap().trim();
    let job = reply["background_job"].as_str().unwrap();
    let said = text(&result);
    assert!(said.contains(&format!("still running as {job}: process {pid}")), "{said}");
    server.tool("stop_job", json!({"job_id": job}));
}

#[test]
fn an_answer_names_no_tool_that_is_not_offered() {
    for (tool, arguments) in [
        ("shell", json!({"command": "seq 20000; sleep 300 & sleep 300 &"})),
        (
            "run_shell_command",
            json!({"command": "seq 20000; sleep 300 & sleep 300 &", "is_background": false}),
        ),
    ] {
        let offered = |tools: &str| {
            let mut server = Server::start(&["--tools", tools]);
            let result = server.tool(tool, arguments.clone());
            let reply = &result["structuredContent"];
            let (uri, job) = (reply["spill_uri"].as_str().unwrap(), &reply["background_job"]);
            (text(&result), uri.to_owned(), job.as_str().unwrap().to_owned())
        };
        let (said, uri, job) = offered("all");
        assert!(
            said.contains(&format!("read the full output with read_file_chunk: {uri}]")),
            "{said}"
        );
        assert!(said.contains(&format!("[still running as {job}: processes ")), "{said}");
        assert!(said.contains("; stop_job ends it]"), "{said}");
        let (said, uri, _) = offered(tool);
        assert!(said.contains(&format!("; the full output is in: {uri}]")), "{said}");
        assert!(said.contains("; it ends with the server]"), "{said}");
    }
}

#[test]
fn a_whole_number_may_have_a_fraction_of_nothing() {
    let mut server = all();
    let result = server.tool("shell", json!({"command": "echo hi", "timeout": 30.0}));
    assert_eq!(result["structuredContent"]["stdout"], "hi\n");
    let page = json!({"cmd": "echo hi", "page": {"limit_bytes": 10.0, "limit_lines": 2.0}});
    assert_eq!(exec(&mut server, page)["stdout_chunk"], "hi\n");
}

#[test]
fn a_wrong_argument_is_named_in_every_tool() {
    let mut server = all();
    for (tool, arguments, complaint) in [
        ("shell", json!({"command": 5}), "`command` must be a string, not 5"),
        ("shell", json!({"command": "x", "timeout": "5"}), "`timeout` must be a whole number"),
        ("shell", json!({"command": "x", "timeout": 1.5}), "`timeout` must be a whole number"),
        ("shell", json!({"command": "x", "timeout": -1}), "`timeout` must be 1 or more, not -1"),
        ("shell", json!({"command": "x", "max_output_size": -1}), "must be 1 or more, not -1"),
        ("shell", json!({"command": "x", "max_output_size": 0}), "must be 1 or more, not 0"),
        ("shell", json!({"command": "x", "environment": {"A": 1}}), "`environment.A` must be a"),
        ("execute", json!({"command": "x", "args": [1]}), "`args[0]` must be a string, not 1"),
        ("execute_command", json!({"command": "x", "tty": "no"}), "`tty` must be true or false"),
        ("shell_exec", json!({"cmd": "x", "page": {"limit_bytes": "1"}}), "`page.limit_bytes`"),
        ("shell_exec", json!({"cmd": "x", "on_large_output": "no"}), "one of \"spill\""),
        ("read_job", json!({"job_id": "job-1", "timeout": "5"}), "`timeout` must be a number"),
        (
            "run_shell_command",
            json!({"command": "x", "is_background": 1}),
            "`is_background` must be true or false, not 1",
        ),
    ] {
        let said = text(&server.tool(tool, arguments));
        assert!(said.contains(complaint), "{tool}: {said}");
    }
}

#[test]
fn suggestions_know_the_shells_own_words_and_pipelines() {
    let mut server = all();
    for (command, advice) in [
        ("[[ a == a ]]", "`[[` needs bash"),
        ("pushd /", "`pushd` needs bash"),
        ("exprot A=1", "Did you mean export"),
        ("gti status | cat", "`gti` is not on the PATH. Did you mean git"),
        ("echo a | gti | wc -l", "`gti` is not on the PATH"),
        ("./gone.sh", "there is no file `./gone.sh`"),
        ("env gti", "`gti` is not on the PATH. Did you mean git"),
        ("nice gti", "`gti` is not on the PATH. Did you mean git"),
        ("timeout 5 gti", "`gti` is not on the PATH. Did you mean git"),
        ("exec gti", "`gti` is not on the PATH. Did you mean git"),
    ] {
        let said = shell(&mut server, command);
        assert!(said.contains(advice), "{command}: {said}");
    }
    let said = shell(&mut server, "ls /nonexistent");
    assert!(!said.contains("PATH") && !said.contains("there is no file"), "{said}");
}

#[test]
fn a_command_that_ends_with_0_although_a_part_was_not_found_is_not_called_successful() {
    let mut server = all();
    for (command, advice) in [
        ("gti status | cat", "`gti` is not on the PATH. Did you mean git"),
        ("[[ a == a ]] | cat", "`[[` needs bash"),
    ] {
        let result = server.tool("shell", json!({"command": command}));
        let said = result["content"][0]["text"].as_str().unwrap();
        let expected = "Command ended with exit code 0, but something in it was not found: ";
        assert!(said.starts_with(&format!("{expected}{advice}")), "{said}");
        assert_eq!(result["isError"], false);
    }
}

#[test]
fn a_script_whose_interpreter_does_not_exist_is_told_so() {
    let folder = support::plain_folder();
    let script = folder.path().join("bad.sh");
    for (line, expected) in [
        ("#!/nope/interp", "the script's interpreter `/nope/interp` does not exist"),
        ("#!/bin/sh\r", "names `/bin/sh` followed by a carriage return"),
    ] {
        std::fs::write(&script, format!("{line}\necho hi\n")).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        for shell_program in ["sh", "bash"] {
            let flags = ["--tools", "shell", "--shell", shell_program, "-w"];
            let folder = folder.path().to_str().unwrap();
            let mut server = Server::start(&[&flags[..], &[folder]].concat());
            let absolute = script.to_str().unwrap();
            for command in ["./bad.sh", "./bad.sh | cat", "exec ./bad.sh", "env ./bad.sh", absolute]
            {
                let said = shell(&mut server, command);
                assert!(said.contains(expected), "{shell_program} {command}: {said}");
            }
        }
    }
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    std::fs::rename(&script, folder.path().join("inner/bad.sh")).unwrap();
    let mut server = Server::start(&["--tools", "shell", "-w", folder.path().to_str().unwrap()]);
    let said = shell(&mut server, "cd inner && ./bad.sh");
    assert!(said.contains("or the interpreter in its first line does not"), "{said}");
}

#[test]
fn an_exit_code_of_126_alone_is_no_reason_for_advice() {
    let mut server = all();
    for command in ["sh -c 'exit 126'", "(exit 126)", "echo no >&2; exit 126"] {
        let result = server.tool("shell", json!({"command": command}));
        let said = &result["content"][0]["text"];
        assert_eq!(said, "Command failed with exit code 126", "{command}");
    }
}

#[test]
fn what_may_not_be_executed_or_read_is_told_with_what_to_do() {
    let folder = support::open_folder();
    let script = folder.path().join("script.sh");
    std::fs::write(&script, "echo hi\n").unwrap();
    let mut server = Server::start_ordinary_with(folder.path(), &["--tools", "shell"]);
    let said = shell(&mut server, &format!("'{}'", script.display()));
    assert!(said.contains("exit code 126") && said.contains("chmod +x"), "{said}");
    let said = shell(&mut server, "bash -c /");
    assert!(said.contains("126") && said.contains("a directory cannot be executed"), "{said}");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o000)).unwrap();
    let said = shell(&mut server, &format!("cat '{}'", secret.display()));
    let expected = format!("permission denied for `{}`", secret.display());
    assert!(said.contains(&expected), "{said}");
    let said = shell(&mut server, &format!("echo x > '{}'", secret.display()));
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn the_executing_line_of_the_log_has_run_tool_owner_and_directory() {
    let state = support::state();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "shell", "-v", "--log-format", "json"]);
    command.env("XDG_STATE_HOME", state.path()).stderr(Stdio::piped());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server.tool("shell", json!({"command": "echo hi", "working_directory": "/"}));
    let mut stderr = server.child.stderr.take().unwrap();
    server.close_stdin();
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let says = |line: &&Value| line["message"].as_str().unwrap().starts_with("executing");
    let fields = &lines.iter().find(says).unwrap()["fields"];
    let run =
        settled(&state).iter().find(|record| record["event"] == "start").unwrap()["id"].clone();
    assert_eq!(fields["run"], run);
    let told = ["tool", "owner", "directory", "command"].map(|name| fields[name].as_str().unwrap());
    assert_eq!(told, ["shell", "stdio", "/", "echo hi"]);
}

#[test]
fn a_command_in_the_background_is_marked_and_described_in_text_jobs_and_trail() {
    let state = support::state();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all"]).env("XDG_STATE_HOME", state.path());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let arguments = json!({
        "command": "sleep 300 & sleep 301", "description": "Start two servers", "is_background": true,
    });
    let result = server.tool("run_shell_command", arguments);
    let said = text(&result);
    assert!(said.contains("Description: Start two servers [background]"), "{said}");
    let jobs = server.tool("list_jobs", json!({}))["structuredContent"]["jobs"].clone();
    assert_eq!(jobs[0]["description"], "Start two servers [background]");
    let records = support::audit::records(&state);
    assert_eq!(records[0]["description"], "Start two servers [background]");
    server.tool("stop_job", json!({"job_id": jobs[0]["job_id"]}));
}

#[test]
fn all_processes_in_the_background_are_told() {
    let mut server = all();
    let command = "sleep 300 & sleep 301 & wait";
    let result =
        server.tool("run_shell_command", json!({"command": command, "is_background": true}));
    let reply = &result["structuredContent"];
    assert_eq!(reply["background_pids"].as_array().unwrap().len(), 3, "{reply}");
    server.tool("stop_job", json!({"job_id": reply["job_id"]}));
}

#[test]
fn a_command_in_the_background_that_fails_at_once_says_so() {
    let mut server = all();
    let arguments = json!({"command": "echo why >&2; exit 3", "is_background": true});
    let result = server.tool("run_shell_command", arguments);
    let reply = &result["structuredContent"];
    assert_eq!((&reply["exit_code"], &reply["stderr"]), (&json!(3), &json!("why\n")));
    let said = text(&result);
    assert!(said.contains("Error: it exited immediately with code 3"), "{said}");
    assert!(said.contains("Background PIDs: (none)"), "{said}");
}

#[test]
fn stderr_is_paged_like_stdout_and_its_uri_is_on_every_page() {
    let mut server = all();
    let cmd = "seq 3; seq 30000 >&2";
    let (mut stderr, mut page) =
        (String::new(), json!({"limit_bytes": 20_000, "limit_lines": 9_999}));
    let mut pages = 0;
    loop {
        let reply = exec(&mut server, json!({"cmd": cmd, "page": page}));
        stderr.push_str(reply["stderr_chunk"].as_str().unwrap());
        assert!(reply["stderr_spill_uri"].as_str().unwrap().ends_with(".err"));
        pages += 1;
        let Some(cursor) = reply["next_cursor"].as_str() else { break };
        page = json!({"cursor": cursor, "limit_bytes": 20_000, "limit_lines": 9_999});
    }
    assert_eq!(stderr, (1..=30_000).map(|n| format!("{n}\n")).collect::<String>());
    assert!(pages > 5);
}

#[test]
fn the_kind_of_a_text_is_told() {
    let mut server = all();
    for (cmd, mime) in [
        ("echo '<!DOCTYPE html><html></html>'", "text/html"),
        ("echo '<?xml version=\"1.0\"?><a/>'", "application/xml"),
        ("printf 'a,b\\n1,2\\n3,4\\n'", "text/csv"),
        ("printf '{\"a\":1}\\n{\"a\":2}\\n'", "application/x-ndjson"),
        ("echo '{\"a\":1}'", "application/json"),
        ("echo hello, world", "text/plain"),
    ] {
        assert_eq!(exec(&mut server, json!({"cmd": cmd}))["mime"], mime, "{cmd}");
    }
}

#[test]
fn a_summary_does_not_count_that_there_were_no_errors() {
    let mut server = all();
    let cmd = "echo '0 errors, 0 warnings'; echo '3 passed; 0 failed'; echo 'error: x'";
    let reply = exec(&mut server, json!({"cmd": cmd, "summary": true}));
    assert_eq!(reply["summary"], json!({"lines": 3, "errors": 1, "warnings": 0}));
}

#[test]
fn zip_names_one_file_on_every_page_and_grep_reads_it() {
    let mut server = all();
    let cmd = "seq 50000";
    let first = exec(&mut server, json!({"cmd": cmd, "zip": true}));
    let uri = first["spill_uri"].as_str().unwrap().to_owned();
    assert!(uri.ends_with(".out.gz"), "{uri}");
    let page = json!({"cursor": first["next_cursor"]});
    let second = exec(&mut server, json!({"cmd": cmd, "zip": true, "page": page}));
    assert_eq!(second["spill_uri"], uri);
    let found = read(&mut server, json!({"uri": uri, "grep": "^4999.$"}));
    assert_eq!(found["data"].as_str().unwrap().lines().count(), 10);
    let bytes = read(&mut server, json!({"uri": uri}));
    assert_eq!(
        (&bytes["encoding"], &bytes["mime"]),
        (&json!("base64"), &json!("application/gzip"))
    );
}

#[test]
fn binary_output_is_announced_once_and_has_no_pages() {
    let mut server = all();
    let reply = exec(&mut server, json!({"cmd": "head -c 300000 /dev/urandom"}));
    assert!(reply["stdout_chunk"].as_str().unwrap().starts_with("[300000 bytes of "), "{reply}");
    assert_eq!(reply["next_cursor"], Value::Null);
    let chunk = read(&mut server, json!({"uri": reply["spill_uri"]}));
    assert_eq!(chunk["encoding"], "base64");
}

#[test]
fn an_output_that_is_an_error_comes_with_the_exit_code() {
    let mut server = all();
    let arguments = json!({"cmd": "seq 100000; exit 4", "on_large_output": "error"});
    let result = server.tool("shell_exec", arguments);
    assert_eq!(result["isError"], true);
    let reply = &result["structuredContent"];
    assert_eq!((&reply["exit_code"], &reply["stdout_chunk"]), (&json!(4), &json!("")));
    assert!(reply["message"].as_str().unwrap().contains("is over the limit"), "{reply}");
}

#[test]
fn why_a_spawn_failed_is_said_beside_the_documents_words() {
    let mut server = all();
    let result = server.tool("execute", json!({"command": "/nonexistent/x", "args": []}));
    assert_eq!(result["content"][0]["text"], "Error: execute: spawn failed");
    let why = result["content"][1]["text"].as_str().unwrap();
    assert_eq!(why, "cannot execute /nonexistent/x: No such file or directory (os error 2)");
}

#[test]
fn a_404_names_the_real_path_and_a_server_listens_on_localhost() {
    let server = HttpServer::start(&["--path", "/here"]);
    let answer = server.send(&Request::new("GET", "/mcp"));
    assert_eq!(answer.status, 404);
    let body = String::from_utf8(answer.body).unwrap();
    assert!(body.contains("the endpoint is at /here"), "{body}");
    let mut command = Command::new(MCPZ);
    command.env("MCP_HTTP_BIND", "localhost:0").stderr(Stdio::piped());
    command.args(["server", "shell", "--http", "--auth", "none", "--config", "/dev/null"]);
    let state = support::state();
    let mut server = command.env("XDG_STATE_HOME", state.path()).spawn().unwrap();
    let mut said = std::io::BufReader::new(server.stderr.take().unwrap());
    let mut listening = String::new();
    while !listening.contains("listening on") {
        let read = std::io::BufRead::read_line(&mut said, &mut listening).unwrap();
        assert!(read > 0, "{listening}");
    }
    assert!(listening.contains("127.0.0.1:") || listening.contains("[::1]:"), "{listening}");
    support::kill("TERM", server.id());
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_advice_of_shell_is_in_its_structure_too() {
    let mut server = all();
    for (command, advice) in [("gti status", "Did you mean"), ("[[ a ]]", "bash")] {
        let reply = server.tool("shell", json!({"command": command}))["structuredContent"].clone();
        assert!(reply["message"].as_str().unwrap().contains(advice), "{reply}");
    }
    for command in ["true", "exit 3"] {
        let reply = server.tool("shell", json!({"command": command}))["structuredContent"].clone();
        assert_eq!(reply["message"], Value::Null, "its exit code says it all");
    }
}

#[test]
fn a_command_that_was_handed_over_tells_how_long_it_ran_and_nothing_it_does_not_know() {
    let mut server = Server::start(&["--tools", "all", "--background-after", "1"]);
    for (tool, field) in [
        ("execute", "elapsed_ms"),
        ("shell", "execution_time_ms"),
        ("run_shell_command", "duration_ms"),
    ] {
        let mut arguments = json!({"command": "sleep 300"});
        if tool == "run_shell_command" {
            arguments["is_background"] = json!(false);
        }
        let reply = server.tool(tool, arguments)["structuredContent"].clone();
        assert!(reply[field].as_u64().unwrap() >= 1000, "{tool}: {reply}");
        assert_eq!((&reply["cpu_ms"], &reply["max_rss_bytes"]), (&Value::Null, &Value::Null));
    }
    let jobs = server.tool("list_jobs", json!({}))["structuredContent"]["jobs"].clone();
    for job in jobs.as_array().unwrap() {
        assert!(job["duration_ms"].as_u64().unwrap() >= 1000, "{job}");
    }
}

#[test]
fn what_a_command_in_a_session_used_is_left_out_as_nobody_knows() {
    let mut server = all();
    let reply = server.call_raw(json!({"command": "true", "session": "a"}));
    let reply = reply["structuredContent"].as_object().unwrap();
    assert!(reply.contains_key("duration_ms"));
    assert!(!reply.contains_key("cpu_ms") && !reply.contains_key("max_rss_bytes"), "{reply:?}");
}

#[test]
fn the_shell_of_a_session_says_how_to_use_it() {
    let mut server = all();
    server.call_raw(json!({"command": "true", "session": "work"}));
    let jobs = server.tool("list_jobs", json!({}))["structuredContent"]["jobs"].clone();
    let typed = server.tool("write_job", json!({"job_id": jobs[0]["job_id"], "text": "x\n"}));
    assert!(text(&typed).contains("with `session` set to `work`"), "{typed}");
}
