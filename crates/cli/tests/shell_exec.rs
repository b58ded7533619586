//! The `shell_exec` and `read_file_chunk` tools, example by example of their document.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Read;
use std::process::Command;

use serde_json::json;
use support::{Server, exec, read};

fn start() -> Server {
    Server::start(&["--tools", "shell_exec,read_file_chunk"])
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
    let command = format!("echo run >> '{}'; seq 1 50000", counter.display());
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
    let command = format!("touch '{}'", file.display());
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
    let expected =
        "the output of 292 bytes is over the limit of 10 bytes; the command ended with exit code 0";
    assert_eq!(result["content"][0]["text"], expected);
    let small = json!({"cmd": "echo ab; echo cd", "grep": "a", "on_large_output": "error"});
    assert_eq!(exec(&mut server, small)["stdout_chunk"], "ab\n");
}

#[test]
fn an_error_names_the_limit_that_was_reached() {
    let mut server = start();
    for (cmd, page, expected) in [
        ("seq 5000", json!({}), "the output of 23893 bytes is over the limit of 2000 lines"),
        (
            "seq 5000",
            json!({"limit_bytes": 20, "limit_lines": 5}),
            "the output of 23893 bytes is over the limits of 20 bytes and 5 lines",
        ),
        (
            "echo out; seq 5000 >&2",
            json!({"limit_bytes": 1000}),
            "the output of 23897 bytes is over the limit of 1000 bytes",
        ),
    ] {
        let arguments = json!({"cmd": cmd, "page": page, "on_large_output": "error"});
        let result = server.tool("shell_exec", arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, format!("{expected}; the command ended with exit code 0"));
    }
}

#[test]
fn binary_output_can_be_read_by_its_uri_in_every_mode() {
    let mut server = start();
    for mode in ["spill", "truncate", "error"] {
        let cmd = r"printf 'a\000\000b'; printf 'c\000\001' >&2";
        let reply = exec(&mut server, json!({"cmd": cmd, "on_large_output": mode}));
        assert!(reply["stdout_chunk"].as_str().unwrap().contains("read_file_chunk"), "{reply}");
        assert_eq!(reply["truncated"], false);
        for (field, data) in [("spill_uri", "YQAAYg=="), ("stderr_spill_uri", "YwAB")] {
            let chunk = read(&mut server, json!({"uri": reply[field]}));
            assert_eq!(chunk["data"], data, "{mode}: {field}");
        }
    }
    let large = json!({"cmd": "head -c 300000 /dev/urandom", "on_large_output": "truncate"});
    let reply = exec(&mut server, large);
    assert_eq!(reply["truncated"], true);
    assert_eq!(read(&mut server, json!({"uri": reply["spill_uri"]}))["total_bytes"], 300_000);
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
    let command = format!("touch '{}/ran'", folder.path().display());
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
    assert!(text.starts_with("the pattern is not a valid regular expression"), "{text}");
}

#[test]
fn grep_looks_through_both_streams_and_previews_show_the_whole() {
    let mut server = start();
    let cmd = "seq 1 5000; seq 1 50000 >&2";
    let reply = exec(&mut server, json!({"cmd": cmd, "grep": "^4999\\d?$"}));
    assert_eq!(reply["stdout_chunk"], "4999\n");
    assert_eq!((&reply["line_count"], &reply["stderr_count"]), (&json!(1), &json!(11)));
    assert!(reply["stderr_chunk"].as_str().unwrap().starts_with("4999\n49990\n"));
    assert!(reply["next_cursor"].is_null());
    assert!(reply["head_preview"].as_str().unwrap().starts_with("1\n2\n"));
    let uri = reply["stderr_spill_uri"].as_str().unwrap();
    assert_eq!(read(&mut server, json!({"uri": uri, "grep": "^5$"}))["data"], "5\n");
    // One that was filtered out altogether can still be read.
    let none = exec(&mut server, json!({"cmd": "echo a; echo why >&2", "grep": "a"}));
    assert_eq!((&none["stdout_chunk"], &none["stderr_chunk"]), (&json!("a\n"), &json!("")));
    let chunk = read(&mut server, json!({"uri": none["stderr_spill_uri"]}));
    assert_eq!(chunk["data"], "why\n");
    let json = json!({"cmd": "echo '[1]'; echo why >&2", "json_path": "[0]"});
    assert_eq!(exec(&mut server, json)["stderr_chunk"], "why\n");
}

#[test]
fn pages_of_what_grep_finds_in_both_streams_give_each_line_once() {
    let mut server = start();
    let cmd = "seq 1 20000 | tee /dev/stderr";
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let mut page = json!({"limit_bytes": 2000});
    loop {
        let reply = exec(&mut server, json!({"cmd": cmd, "grep": "7$", "page": page}));
        stdout += reply["stdout_chunk"].as_str().unwrap();
        stderr += reply["stderr_chunk"].as_str().unwrap();
        let Some(cursor) = reply["next_cursor"].as_str() else { break };
        page = json!({"limit_bytes": 2000, "cursor": cursor});
    }
    let expected: String = (0..2000).map(|n| format!("{}\n", n * 10 + 7)).collect();
    assert!(stdout == expected && stderr == expected);
}

#[test]
fn zip_is_for_stdout_and_stderr_is_read_as_it_is() {
    let mut server = start();
    let reply = exec(&mut server, json!({"cmd": "seq 1 5000 | tee /dev/stderr", "zip": true}));
    assert!(reply["spill_uri"].as_str().unwrap().ends_with(".out.gz"));
    let uri = reply["stderr_spill_uri"].as_str().unwrap();
    assert!(uri.ends_with(".err"));
    let chunk = read(&mut server, json!({"uri": uri, "limit_bytes": 4}));
    assert_eq!((&chunk["data"], &chunk["mime"]), (&json!("1\n2\n"), &json!("text/plain")));
    let listed = server.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "shell_exec").unwrap();
    let zip = &tool["inputSchema"]["properties"]["zip"]["description"];
    assert_eq!(zip, "Compress the spill of stdout with gzip");
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
    let build = "echo 'Error count: 0'; echo 'error[E0308]: mismatched types' >&2";
    let asked = json!({"cmd": build, "summary": true});
    let counted = json!({"lines": 2, "errors": 1, "warnings": 0});
    assert_eq!(exec(&mut server, asked.clone())["summary"], counted);
    let mut server = Server::start(&["--tools", "shell_exec", "--no-stderr"]);
    let without = json!({"lines": 1, "errors": 0, "warnings": 0});
    assert_eq!(exec(&mut server, asked)["summary"], without);
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
