//! The `shell_exec` and `read_file_chunk` tools, example by example of their document.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Read;
use std::process::Command;

use serde_json::{Value, json};
use support::{MCPZ, Server, wait_until};

fn start() -> Server {
    Server::start(&["--tools", "shell_exec,read_file_chunk"])
}

fn exec(server: &mut Server, arguments: Value) -> Value {
    let result = server.tool("shell_exec", arguments);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap_or_default(),
        result["structuredContent"],
        "{text}"
    );
    result["structuredContent"].clone()
}

fn read(server: &mut Server, arguments: Value) -> Value {
    server.tool("read_file_chunk", arguments)["structuredContent"].clone()
}

#[test]
fn request_schema() {
    let mut server = start();
    let reply = exec(
        &mut server,
        json!({
            "cmd": "sh", "args": ["-c", "echo $AWS_REGION; pwd"], "cwd": "/", "env": {"AWS_REGION": "eu-north-1"},
            "page": {"cursor": "bytes:0", "limit_bytes": 65536, "limit_lines": 2000},
            "on_large_output": "spill",
        }),
    );
    assert_eq!(reply["stdout_chunk"], "eu-north-1\n/\n");
}

#[test]
fn response_schema() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "echo out; echo err >&2; exit 3"}));
    for (field, value) in [
        ("exit_code", json!(3)),
        ("stdout_chunk", json!("out\n")),
        ("stderr_chunk", json!("err\n")),
        ("bytes_start", json!(0)),
        ("bytes_end", json!(3)),
        ("total_bytes", json!(4)),
        ("truncated", json!(false)),
        ("mime", json!("text/plain")),
        ("line_count", json!(1)),
        ("stderr_count", json!(1)),
    ] {
        assert_eq!(reply[field], value, "{field}");
    }
    for absent in ["next_cursor", "spill_uri", "head_preview"] {
        assert!(reply[absent].is_null(), "{absent}");
    }
    let nothing = exec(&mut server, json!({"cmd": "true"}));
    assert!(nothing["bytes_end"].is_null());
}

#[test]
fn small_output() {
    let mut server = start();
    assert_eq!(exec(&mut server, json!({"cmd": "echo 'hi'"}))["stdout_chunk"], "hi\n");
}

#[test]
fn paged() {
    let mut server = start();
    let reply = exec(
        &mut server,
        json!({"cmd": "seq", "args": ["1", "20000"], "page": {"limit_lines": 100000}}),
    );
    assert_eq!(reply["bytes_end"], 65_535);
    let cursor = reply["next_cursor"].as_str().unwrap();
    assert!(cursor.starts_with("bytes:65536@exec-"), "{cursor}");
    assert!(reply["head_preview"].as_str().unwrap().starts_with("1\n2\n"));
    assert!(reply["tail_preview"].as_str().unwrap().ends_with("19999\n20000\n"));
    let by_lines = exec(&mut server, json!({"cmd": "seq", "args": ["1", "20000"]}));
    assert_eq!(by_lines["line_count"], 2000);
}

#[test]
fn the_example_loop_reads_all_and_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("runs");
    let mut server = start();
    let command = format!("echo run >> {}; seq 1 50000", counter.display());
    let mut reply = exec(&mut server, json!({"cmd": command, "page": {"limit_bytes": 10_000}}));
    let mut all = reply["stdout_chunk"].as_str().unwrap().to_owned();
    while let Some(cursor) = reply["next_cursor"].as_str() {
        // With the run's name and without: both mean the run that was.
        let plain = cursor.split('@').next().unwrap();
        let cursor = if all.len().is_multiple_of(20_000) { cursor } else { plain };
        let page = json!({"cursor": cursor, "limit_bytes": 10_000});
        reply = exec(&mut server, json!({"cmd": command, "page": page}));
        assert_eq!(reply["bytes_start"], all.len());
        all.push_str(reply["stdout_chunk"].as_str().unwrap());
    }
    let expected: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(all, expected);
    assert_eq!(std::fs::read_to_string(counter).unwrap(), "run\n");
}

#[test]
fn a_cursor_never_starts_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let mut server = start();
    let command = format!("touch {}", file.display());
    for cursor in
        ["bytes:5", "bytes:0@exec-0123456789abcdef0123456789abcdef", "nonsense", "bytes:-1"]
    {
        let result = server.tool("shell_exec", json!({"cmd": command, "page": {"cursor": cursor}}));
        assert_eq!(result["isError"], true, "{cursor}");
    }
    assert!(!file.exists());
}

#[test]
fn spill_and_file_paging() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "seq 1 100000"}));
    let uri = reply["spill_uri"].as_str().unwrap().to_owned();
    assert!(uri.starts_with("mcp://tmp/exec-") && uri.ends_with(".out"));
    let mut chunk = read(&mut server, json!({"uri": uri, "limit_bytes": 65536}));
    assert_eq!((&chunk["bytes_start"], &chunk["bytes_end"]), (&json!(0), &json!(65_535)));
    assert_eq!((&chunk["total_bytes"], &chunk["mime"]), (&json!(588_895), &json!("text/plain")));
    assert_eq!(chunk["next_cursor"], "bytes:65536");
    let mut all = chunk["data"].as_str().unwrap().to_owned();
    while let Some(cursor) = chunk["next_cursor"].as_str() {
        chunk = read(&mut server, json!({"uri": uri, "cursor": cursor}));
        all.push_str(chunk["data"].as_str().unwrap());
    }
    assert_eq!(all, (1..=100_000).map(|n| format!("{n}\n")).collect::<String>());
}

#[test]
fn truncate_and_error() {
    let mut server = start();
    let page = json!({"limit_bytes": 10});
    let arguments = |mode| json!({"cmd": "seq 1 100", "page": page, "on_large_output": mode});
    let truncated = exec(&mut server, arguments("truncate"));
    assert_eq!(
        (&truncated["truncated"], &truncated["stdout_chunk"]),
        (&json!(true), &json!("1\n2\n3\n4\n5\n"))
    );
    assert!(truncated["next_cursor"].is_null() && truncated["spill_uri"].is_null());
    let result = server.tool("shell_exec", arguments("error"));
    assert_eq!(result["isError"], true);
    let expected = "the output of 292 bytes is over the limit of 10 bytes and 2000 lines";
    assert_eq!(result["content"][0]["text"], expected);
    let small = json!({"cmd": "echo ab; echo cd", "grep": "a", "on_large_output": "error"});
    assert_eq!(exec(&mut server, small)["stdout_chunk"], "ab\n");
}

#[test]
fn json_path() {
    let mut server = start();
    let json = r#"{"items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]}"#;
    let reply = exec(
        &mut server,
        json!({"cmd": "echo", "args": [json], "json_path": "items[?n > `1`].name"}),
    );
    assert_eq!(
        (&reply["stdout_chunk"], &reply["mime"]),
        (&json!("[\"b\"]\n"), &json!("application/json"))
    );
    let uri = reply["spill_uri"].as_str().unwrap();
    assert_eq!(read(&mut server, json!({"uri": uri, "json_path": "items[0].n"}))["data"], "1\n");
    let wrong = exec(&mut server, json!({"cmd": "echo failed; exit 3", "json_path": "x"}));
    assert!(wrong["message"].as_str().unwrap().starts_with("the output is not JSON"));
    assert_eq!((&wrong["stdout_chunk"], &wrong["exit_code"]), (&json!("failed\n"), &json!(3)));
    let folder = tempfile::tempdir().unwrap();
    let command = format!("touch {}/ran", folder.path().display());
    let result = server.tool("shell_exec", json!({"cmd": command, "json_path": "a[[["}));
    assert_eq!(result["isError"], true);
    assert!(!folder.path().join("ran").exists(), "a path that is none runs nothing");
}

#[test]
fn grep() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "seq 1 100000", "grep": "^9999\\d$"}));
    assert_eq!(reply["line_count"], 10);
    let uri = reply["spill_uri"].as_str().unwrap();
    assert_eq!(read(&mut server, json!({"uri": uri, "grep": "^5$"}))["data"], "5\n");
    let wrong = server.tool("shell_exec", json!({"cmd": "true", "grep": "("}));
    let text = wrong["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("the pattern is not a regular expression"), "{text}");
}

#[test]
fn zip() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "seq 1 100000", "zip": true}));
    let uri = reply["spill_uri"].as_str().unwrap();
    let chunk = read(&mut server, json!({"uri": uri, "limit_bytes": 262_144}));
    assert_eq!(
        (&chunk["mime"], &chunk["encoding"]),
        (&json!("application/gzip"), &json!("base64"))
    );
    assert!(chunk["next_cursor"].is_null());
    let mut gunzip = Command::new("sh")
        .args(["-c", "base64 -d | gunzip"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = gunzip.stdin.take().unwrap();
    let data = chunk["data"].as_str().unwrap().to_owned();
    std::thread::spawn(move || std::io::Write::write_all(&mut stdin, data.as_bytes()));
    let mut unzipped = String::new();
    gunzip.stdout.take().unwrap().read_to_string(&mut unzipped).unwrap();
    gunzip.wait().unwrap();
    assert_eq!(unzipped.lines().count(), 100_000);
}

#[test]
fn mime_detection() {
    let mut server = start();
    let png = r"printf '\211PNG\r\n\032\n\000\000\000\rIHDR'";
    let reply = exec(&mut server, json!({"cmd": png}));
    assert_eq!(reply["mime"], "image/png");
    assert_eq!(reply["stdout_chunk"], "[16 bytes of image/png: read them with read_file_chunk]");
    let uri = reply["spill_uri"].as_str().unwrap();
    let chunk = read(&mut server, json!({"uri": uri}));
    assert_eq!(
        (&chunk["encoding"], &chunk["data"]),
        (&json!("base64"), &json!("iVBORw0KGgoAAAANSUhEUg=="))
    );
}

#[test]
fn summary() {
    let mut server = start();
    let reply = exec(
        &mut server,
        json!({"cmd": "echo ok; echo 'error: x'; echo 'warning: y'", "summary": true}),
    );
    assert_eq!(reply["summary"], json!({"lines": 3, "errors": 1, "warnings": 1}));
}

#[test]
fn ansi_strip_and_newline() {
    let mut server = start();
    let command = r"printf '\033[1mbold\033[0m\r\nnext\n'";
    assert_eq!(exec(&mut server, json!({"cmd": command}))["stdout_chunk"], "bold\nnext\n");
    let kept = exec(&mut server, json!({"cmd": command, "ansi_strip": false}));
    assert_eq!(kept["stdout_chunk"], "\u{1b}[1mbold\u{1b}[0m\nnext\n");
    let windows = exec(&mut server, json!({"cmd": command, "newline": "\r\n"}));
    assert_eq!(windows["stdout_chunk"], "bold\r\nnext\r\n");
}

#[test]
fn output_is_readable_while_the_command_runs() {
    let mut server = start();
    let gate = tempfile::NamedTempFile::new().unwrap();
    let command = "seq 1 20000; while [ -e $GATE ]; do sleep 0.01; done; echo end";
    let arguments = json!({"cmd": command, "env": {"GATE": gate.path()}});
    let call = server.ask("tools/call", json!({"name": "shell_exec", "arguments": arguments}));
    let uri = wait_until("something is printed", || {
        let listed = server.request("resources/list", json!({}));
        let resource = listed["result"]["resources"][0].clone();
        (resource["size"] == 108_894).then(|| resource["uri"].clone())
    });
    let chunk = read(&mut server, json!({"uri": uri, "cursor": "bytes:108888"}));
    assert_eq!((&chunk["data"], &chunk["running"]), (&json!("20000\n"), &json!(true)));
    assert_eq!(chunk["next_cursor"], "bytes:108894");
    drop(gate);
    let reply = server.answer(call)["result"]["structuredContent"].clone();
    assert_eq!((&reply["spill_uri"], &reply["total_bytes"]), (&uri, &json!(108_898)));
    let small = exec(&mut server, json!({"cmd": "echo hi"}));
    assert!(small["spill_uri"].is_null());
    let listed = server.request("resources/list", json!({}));
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn output_is_readable_after_a_timeout_and_on_stderr() {
    let mut server = Server::start(&["--tools", "shell_exec,read_file_chunk", "-t", "1"]);
    let result =
        server.tool("shell_exec", json!({"cmd": "seq 1 50000; seq 1 50000 >&2; sleep 300"}));
    assert_eq!(result["isError"], true);
    let reply = &result["structuredContent"];
    assert_eq!(reply["timed_out"], true);
    for field in ["spill_uri", "stderr_spill_uri"] {
        let chunk = read(&mut server, json!({"uri": reply[field], "cursor": "bytes:288880"}));
        assert!(chunk["data"].as_str().unwrap().ends_with("50000\n"), "{field}: {chunk}");
    }
}

#[test]
fn reading_does_not_let_go_of_what_is_read() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "seq 1 5000"}));
    let cursor = reply["next_cursor"].as_str().unwrap().replace("bytes:8893", "bytes:0");
    for mode in ["spill", "truncate", "error"] {
        let page = json!({"cursor": cursor, "limit_lines": 9999});
        let arguments = json!({"cmd": "seq 1 5000", "page": page, "on_large_output": mode});
        assert_eq!(exec(&mut server, arguments)["line_count"], 5000, "{mode}");
        let chunk = read(&mut server, json!({"uri": reply["spill_uri"], "grep": "^5000$"}));
        assert_eq!(chunk["data"], "5000\n", "{mode}");
    }
}

#[test]
fn output_is_readable_after_a_cancellation() {
    let mut server = start();
    let params = json!({
        "name": "shell_exec", "arguments": {"cmd": "echo begun; sleep 300"},
        "_meta": {"progressToken": "t"},
    });
    let call = server.ask("tools/call", params);
    server.wait_for(|message| message["params"]["message"] == "begun\n");
    server.notify("notifications/cancelled", json!({"requestId": call}));
    let uri = wait_until("it is over", || {
        let listed = server.request("resources/list", json!({}));
        let uri = listed["result"]["resources"][0]["uri"].clone();
        let chunk = read(&mut server, json!({"uri": uri}));
        chunk["running"].is_null().then_some(uri)
    });
    assert_eq!(read(&mut server, json!({"uri": uri}))["data"], "begun\n");
}

#[test]
fn spills_are_resources_of_their_owner_alone() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "seq 1 100000"}));
    let uri = reply["spill_uri"].as_str().unwrap().to_owned();
    let result = server.request("resources/list", json!({}));
    assert_eq!(result["result"]["resources"][0]["uri"], uri);
    assert_eq!(result["result"]["resources"][0]["size"], 588_895);
    let contents =
        server.request("resources/read", json!({"uri": uri}))["result"]["contents"].clone();
    assert!(contents[0]["text"].as_str().unwrap().ends_with("100000\n"));
    let templates = server.request("resources/templates/list", json!({}));
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "mcp://tmp/exec-{id}.{stream}");
    let mut other = start();
    let guessed = "mcp://tmp/exec-0123456789abcdef0123456789abcdef.out";
    for unknown in [uri.as_str(), guessed, "mcp://tmp/../etc/passwd", "file:///etc/passwd"] {
        let refused = other.request("resources/read", json!({"uri": unknown}));
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
        assert_eq!(refused["error"]["message"], format!("there is no kept output {unknown}"));
        let result = other.tool("read_file_chunk", json!({"uri": unknown}));
        assert_eq!(result["content"][0]["text"], format!("there is no kept output {unknown}"));
    }
}

#[test]
fn the_spill_folder_goes_with_the_server_and_after_a_crash_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--tools", "shell_exec"]).env("TMPDIR", folder.path());
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        server
    };
    let others = ["mcpz-notes", "mcpz-spill-notes"].map(|name| folder.path().join(name));
    others.iter().for_each(|other| std::fs::create_dir(other).unwrap());
    let folders = || std::fs::read_dir(folder.path()).unwrap().count() - others.len();
    let mut killed = start();
    exec(&mut killed, json!({"cmd": "seq 1 100000"}));
    killed.signal("KILL");
    killed.wait();
    assert_eq!(folders(), 1, "nobody could remove it");
    let mut next = start();
    let mut beside = start();
    exec(&mut next, json!({"cmd": "seq 1 100000"}));
    exec(&mut beside, json!({"cmd": "seq 1 100000"}));
    assert_eq!(folders(), 2, "one each, and the old one is gone");
    for mut server in [next, beside] {
        server.close_stdin();
        server.wait();
    }
    assert_eq!(folders(), 0);
    assert!(others.iter().all(|other| other.exists()), "what is not ours stays");
}

#[test]
fn a_spill_file_that_is_removed_or_replaced_behind_our_back_is_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "shell_exec,read_file_chunk"]);
    let mut server = Server::from_command(command.env("TMPDIR", folder.path()));
    server.initialize("2025-11-25");
    let uri = exec(&mut server, json!({"cmd": "seq 1 100000"}))["spill_uri"].clone();
    let private = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::read_dir(private).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    let chunk = read(&mut server, json!({"uri": uri, "cursor": "bytes:588890"}));
    assert_eq!(chunk["data"], "0000\n");
}

#[test]
fn a_full_disk_loses_what_does_not_fit_and_says_how_much() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs", path]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all"]).env("TMPDIR", path);
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let reply = exec(&mut server, json!({"cmd": "seq 1 1000000; echo done >&2"}));
    let (total, lost) =
        (reply["total_bytes"].as_u64().unwrap(), reply["lost_bytes"].as_u64().unwrap());
    assert_eq!(total + lost, 6_888_896);
    assert!(total > 900_000, "{total}");
    assert_eq!((&reply["exit_code"], &reply["stderr_chunk"]), (&json!(0), &json!("done\n")));
    assert_eq!(server.run("echo still here")["output"], "still here\n");
    drop(server);
    assert!(Command::new("umount").arg(path).status().unwrap().success());
}

#[test]
fn two_hundred_megabytes_are_paged_byte_for_byte_and_the_command_ran_once() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("runs");
    let mut server = Server::start(&["--tools", "shell_exec,read_file_chunk", "-t", "600"]);
    let command = format!("echo run >> {}; seq -f '%099.0f' 1 2000000", counter.display());
    let reply = exec(
        &mut server,
        json!({"cmd": command, "page": {"limit_bytes": 1 << 18, "limit_lines": 1 << 30}}),
    );
    assert_eq!(reply["total_bytes"], 200_000_000);
    let (mut at, mut next) = (0_u64, 1_u64);
    let mut rest = String::new();
    let mut chunk = json!({"data": reply["stdout_chunk"], "next_cursor": reply["next_cursor"]});
    loop {
        let data = chunk["data"].as_str().unwrap();
        at += data.len() as u64;
        rest.push_str(data);
        let whole = rest.rfind('\n').map_or(0, |end| end + 1);
        for line in rest[..whole].lines() {
            assert_eq!(line.parse::<u64>().unwrap(), next);
            next += 1;
        }
        rest.drain(..whole);
        let Some(cursor) = chunk["next_cursor"].as_str() else { break };
        let cursor = cursor.split('@').next().unwrap();
        chunk = read(
            &mut server,
            json!({"uri": reply["spill_uri"], "cursor": cursor, "limit_bytes": 1 << 18}),
        );
    }
    assert_eq!((at, next), (200_000_000, 2_000_001));
    assert_eq!(std::fs::read_to_string(counter).unwrap(), "run\n");
}
