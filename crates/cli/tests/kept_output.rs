//! What is kept of commands' output: how long, how much, for whom, and how it is read.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::disk::Disk;
use support::http::{HttpServer, TOKEN};
use support::{MCPZ, Server, exec, read, wait_until};

fn start() -> Server {
    Server::start(&["--tools", "shell_exec,read_file_chunk"])
}

/// A server whose spill folder is in `folder`, with a configuration.
fn start_in(folder: &Path, config: &str) -> Server {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "shell_exec,read_file_chunk", "--config"]);
    let mut server = Server::from_command(command.arg(file.path()).env("TMPDIR", folder));
    server.initialize("2025-11-25");
    server
}

#[test]
fn output_is_readable_while_the_command_runs() {
    let mut server = start();
    let gate = tempfile::NamedTempFile::new().unwrap();
    let command = "seq 1 20000; while [ -e \"$GATE\" ]; do sleep 0.01; done; echo end";
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
        assert_eq!(refused["error"]["message"], format!("no output is kept at {unknown}"));
        let result = other.tool("read_file_chunk", json!({"uri": unknown}));
        assert_eq!(result["content"][0]["text"], format!("no output is kept at {unknown}"));
    }
}

#[test]
fn the_spill_folder_goes_with_the_server_and_after_a_crash_when_the_next_starts() {
    let folder = tempfile::tempdir().unwrap();
    let others = ["mcpz-notes", "mcpz-spill-notes"].map(|name| folder.path().join(name));
    others.iter().for_each(|other| std::fs::create_dir(other).unwrap());
    let folders = || std::fs::read_dir(folder.path()).unwrap().count() - others.len();
    let mut killed = start_in(folder.path(), "");
    exec(&mut killed, json!({"cmd": "seq 1 100000"}));
    killed.signal("KILL");
    killed.wait();
    assert_eq!(folders(), 1, "nobody could remove it");
    let mut next = start_in(folder.path(), "");
    wait_until("the old one is gone", || (folders() == 0).then_some(()));
    exec(&mut next, json!({"cmd": "seq 1 100000"}));
    let mut beside = start_in(folder.path(), "");
    exec(&mut beside, json!({"cmd": "seq 1 100000"}));
    assert_eq!(folders(), 2, "those that are used stay");
    for mut server in [next, beside] {
        server.close_stdin();
        server.wait();
    }
    assert_eq!(folders(), 0);
    assert!(others.iter().all(|other| other.exists()), "what is not ours stays");
}

/// How much the files in the spill folder take.
fn spilled(folder: &Path) -> u64 {
    let entries = |path| std::fs::read_dir(path).unwrap().flatten();
    let folders = entries(folder.to_owned()).filter(|entry| entry.path().is_dir());
    folders
        .flat_map(|folder| entries(folder.path()))
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

fn is_readable(server: &mut Server, uri: &Value) -> bool {
    server.tool("read_file_chunk", json!({"uri": uri}))["isError"] == false
}

#[test]
fn when_all_room_is_used_the_oldest_output_that_has_ended_goes() {
    for limits in ["spill_per_client = \"2MB\"", "spill_total = \"4MB\""] {
        the_oldest_goes(&format!("[limits]\n{limits}\n"));
    }
}

/// Where there is room for 2 MB.
fn the_oldest_goes(config: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start_in(folder.path(), config);
    let mut print = |number: u64| {
        let command = format!("yes {number} | head -c 800000");
        exec(&mut server, json!({"cmd": command}))["spill_uri"].clone()
    };
    let uris = [1, 2, 3].map(&mut print);
    assert!(!is_readable(&mut server, &uris[0]));
    for (uri, first) in [(&uris[1], "2\n2\n"), (&uris[2], "3\n3\n")] {
        let chunk = read(&mut server, json!({"uri": uri, "cursor": "bytes:700000"}));
        assert!(chunk["data"].as_str().unwrap().starts_with(first), "{chunk}");
        assert_eq!(chunk["total_bytes"], 800_000);
    }
    assert!(spilled(folder.path()) <= 2_000_000);
    let over = exec(&mut server, json!({"cmd": "yes | head -c 3000000"}));
    assert!(over["lost_bytes"].as_u64().unwrap() > 850_000, "nothing is left to evict");
    assert!(!is_readable(&mut server, &uris[2]));
}

#[test]
fn who_prints_much_pushes_out_nothing_of_others() {
    let limits =
        "[limits]\nspill_total = \"4MB\"\n[http.tokens]\nada = \"the-token-of-ada-lovelace\"\n";
    let server = HttpServer::start_with(&["--tools", "shell_exec,read_file_chunk"], limits);
    let print = |bytes: u64, token: &str| {
        let command = json!({"cmd": format!("yes | head -c {bytes}")});
        server.tool_by(token, "shell_exec", command)["structuredContent"].clone()
    };
    let is_kept = |uri: &Value, token: &str| {
        server.tool_by(token, "read_file_chunk", json!({"uri": uri}))["isError"] == false
    };
    let ada = "the-token-of-ada-lovelace";
    let hers = print(800_000, ada)["spill_uri"].clone();
    let ours = print(800_000, TOKEN)["spill_uri"].clone();
    // One alone that is too much is cut, more of them go one after the other.
    assert!(print(5_000_000, TOKEN)["lost_bytes"].as_u64().unwrap() >= 2_850_000);
    assert!(!is_kept(&ours, TOKEN) && is_kept(&hers, ada));
    for _ in 0..8 {
        assert_eq!(print(1_000_000, TOKEN)["lost_bytes"], Value::Null);
    }
    assert!(is_kept(&hers, ada));
}

#[test]
fn when_all_is_used_whoever_has_the_most_makes_room() {
    let ada = "the-token-of-ada-lovelace";
    let limits = "[limits]\nspill_total = \"4MB\"\nspill_per_client = \"4MB\"\n";
    let limits = format!("{limits}[http.tokens]\nada = \"{ada}\"\n");
    let server = HttpServer::start_with(&["--tools", "all"], &limits);
    let print = |bytes: u64, token: &str| {
        let command = json!({"cmd": format!("yes | head -c {bytes}")});
        server.tool_by(token, "shell_exec", command)["structuredContent"].clone()
    };
    let is_kept = |uri: &Value, token: &str| {
        server.tool_by(token, "read_file_chunk", json!({"uri": uri}))["isError"] == false
    };
    let hers = print(800_000, ada)["spill_uri"].clone();
    // What a job has printed makes room as well, although the job is still listed.
    let job = json!({"command": "yes | head -c 1400000", "background": true});
    let job = server.tool_by(TOKEN, "execute_command", job)["structuredContent"]["job_id"].clone();
    let wait = json!({"job_id": job, "wait_for": "exit"});
    server.tool_by(TOKEN, "read_job", wait.clone());
    let ours = print(1_400_000, TOKEN)["spill_uri"].clone();
    assert_eq!(print(1_000_000, ada)["lost_bytes"], Value::Null);
    assert!(is_kept(&hers, ada) && is_kept(&ours, TOKEN));
    let job = server.tool_by(TOKEN, "read_job", wait)["structuredContent"].clone();
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("exited"), &json!(0)), "{job}");
}

#[test]
fn an_output_goes_when_its_time_is_over_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start_in(folder.path(), "[limits]\nspill_time = 1\n");
    let uri = exec(&mut server, json!({"cmd": "seq 1 100000"}))["spill_uri"].clone();
    assert!(spilled(folder.path()) > 500_000);
    // Nobody asks for it: it goes by itself.
    wait_until("its file is gone", || (spilled(folder.path()) == 0).then_some(()));
    assert!(!is_readable(&mut server, &uri));
}

#[test]
fn a_process_that_is_killed_in_the_middle_of_a_page_leaves_every_byte_it_printed() {
    let mut server = start();
    // The page of 1000 bytes that is read last ends within a line and within a character.
    let command = "seq 1 100000; printf 'half a line \\303'; kill -9 $$";
    let mut reply = exec(&mut server, json!({"cmd": command, "page": {"limit_bytes": 262_144}}));
    assert_eq!((&reply["signal"], &reply["exit_code"]), (&json!("SIGKILL"), &Value::Null));
    let mut all = reply["stdout_chunk"].as_str().unwrap().to_owned();
    while let Some(cursor) = reply["next_cursor"].as_str() {
        let page = json!({"cursor": cursor, "limit_bytes": 1000});
        reply = exec(&mut server, json!({"cmd": command, "page": page}));
        all.push_str(reply["stdout_chunk"].as_str().unwrap());
    }
    let numbers: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(all.strip_prefix(&numbers), Some("half a line \u{fffd}"));
    assert!(reply["lost_bytes"].is_null());
}

#[test]
fn who_goes_on_writing_a_little_does_not_hold_up_the_answer() {
    let mut server = start();
    let writer = "import os, time\nos.write(1, b'x' * 400000)\nif os.fork(): os._exit(0)\n\
                  while True: os.write(1, b'0123456789'); time.sleep(0.0002)";
    let asked = Instant::now();
    let reply = exec(&mut server, json!({"cmd": format!("python3 -c \"{writer}\"")}));
    assert_eq!(reply["exit_code"], 0);
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "it would be held for half a minute and more"
    );
}

#[test]
fn a_reader_between_two_pages_gets_on_when_the_process_is_killed() {
    let mut server = start();
    let file = tempfile::NamedTempFile::new().unwrap();
    let command = "echo $$ > \"$PID\"; seq 1 20000; printf 'no end'; exec sleep 300";
    let arguments = json!({"cmd": command, "env": {"PID": file.path()}});
    let call = server.ask("tools/call", json!({"name": "shell_exec", "arguments": arguments}));
    let uri = wait_until("all is printed", || {
        let listed = server.request("resources/list", json!({}));
        let resource = listed["result"]["resources"][0].clone();
        (resource["size"] == 108_900).then(|| resource["uri"].clone())
    });
    let first = read(&mut server, json!({"uri": uri, "cursor": "bytes:108888"}));
    assert_eq!((&first["data"], &first["running"]), (&json!("20000\n"), &json!(true)));
    support::kill("KILL", std::fs::read_to_string(file.path()).unwrap().trim().parse().unwrap());
    let reply = server.answer(call)["result"]["structuredContent"].clone();
    assert_eq!(reply["signal"], "SIGKILL");
    let last = read(&mut server, json!({"uri": uri, "cursor": first["next_cursor"]}));
    assert_eq!((&last["data"], &last["next_cursor"]), (&json!("no end"), &Value::Null));
}

#[test]
fn a_path_is_followed_through_a_document_larger_than_the_server_may_hold() {
    let mut server = Server::start(&["--tools", "shell_exec,read_file_chunk", "-t", "600"]);
    let script = "printf '{\"rows\":['; yes '{\"id\":1,\"name\":\"x\"},' | head -n 1500000; \
                  printf '{\"id\":2,\"name\":\"found\"}]}'";
    let reply = exec(&mut server, json!({"cmd": script, "json_path": "rows[?id==`2`].name"}));
    assert_eq!(reply["stdout_chunk"], "[\"found\"]\n");
    let uri = &reply["spill_uri"];
    let at = read(&mut server, json!({"uri": uri, "json_path": "rows[1500000].name"}));
    assert_eq!(at["data"], "\"found\"\n");
    let whole = json!({"uri": uri, "json_path": "sort_by(rows, &id)[0]"});
    let refused = server.tool("read_file_chunk", whole)["content"][0]["text"].clone();
    assert!(refused.as_str().unwrap().starts_with("the path needs more than"), "{refused}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 150_000, "{peak} kB for a document of 31 MB");
}

#[test]
fn a_cursor_of_another_output_is_refused() {
    let mut server = start();
    let mut print = || exec(&mut server, json!({"cmd": "seq 1 100000"}));
    let (one, other) = (print(), print());
    let arguments = json!({"uri": one["spill_uri"], "cursor": other["next_cursor"]});
    let result = server.tool("read_file_chunk", arguments);
    assert_eq!(
        result["content"][0]["text"],
        "Invalid arguments: `cursor` belongs to another output than `uri`"
    );
    let own = json!({"uri": one["spill_uri"], "cursor": one["next_cursor"]});
    assert_eq!(read(&mut server, own)["bytes_start"], 8893);
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
    let Some(_disk) = Disk::mount(folder.path(), "1m") else { return };
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all"]).env("TMPDIR", path);
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let reply = exec(&mut server, json!({"cmd": "seq 1 1000000; echo done >&2"}));
    let (total, lost) =
        (reply["total_bytes"].as_u64().unwrap(), reply["lost_bytes"].as_u64().unwrap());
    assert_eq!(total, 6_888_896);
    assert!((5_000_000..6_000_000).contains(&lost), "{lost}");
    assert_eq!((&reply["exit_code"], &reply["stderr_chunk"]), (&json!(0), &json!("done\n")));
    assert_eq!(server.run("echo still here")["output"], "still here\n");
}

#[test]
fn two_hundred_megabytes_are_paged_byte_for_byte_and_the_command_ran_once() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("runs");
    let mut server = Server::start(&["--tools", "shell_exec,read_file_chunk", "-t", "600"]);
    let command = format!("echo run >> '{}'; seq -f '%099.0f' 1 2000000", counter.display());
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

#[test]
fn a_spill_folder_that_is_removed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start_in(folder.path(), "");
    exec(&mut server, json!({"cmd": "seq 1 100000"}));
    let private = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_dir_all(private).unwrap();
    let reply = exec(&mut server, json!({"cmd": "seq 1 100000"}));
    assert!(reply["lost_bytes"].is_null(), "{reply}");
    let chunk = read(&mut server, json!({"uri": reply["spill_uri"], "cursor": "bytes:588890"}));
    assert_eq!(chunk["data"], "0000\n");
}

#[test]
fn an_image_without_zero_bytes_is_announced_and_given_as_it_is() {
    let mut server = start();
    let command = "printf '\\377\\330\\377\\340\\001..JFIF\\201\\202'";
    let reply = exec(&mut server, json!({"cmd": command}));
    let announced = "[13 bytes of image/jpeg: read them with read_file_chunk]";
    assert_eq!(reply["stdout_chunk"], announced);
    let chunk = read(&mut server, json!({"uri": reply["spill_uri"]}));
    assert_eq!(
        (&chunk["data"], &chunk["encoding"]),
        (&json!("/9j/4AEuLkpGSUaBgg=="), &json!("base64"))
    );
    let searched = server.tool("read_file_chunk", json!({"uri": reply["spill_uri"], "grep": "J"}));
    assert_eq!(searched["content"][0]["text"], "the output is binary and cannot be searched");
}

#[test]
fn what_was_lost_is_said_wherever_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start_in(folder.path(), "[limits]\nspill_per_run = \"100KB\"\n");
    let reply = exec(&mut server, json!({"cmd": "seq 1 100000"}));
    assert!(reply["lost_bytes"].as_u64().unwrap() > 340_000);
    let chunk = read(&mut server, json!({"uri": reply["spill_uri"], "cursor": "bytes:160000"}));
    assert_eq!(chunk["lost_bytes"], reply["lost_bytes"]);
}

#[test]
fn a_line_of_many_megabytes_is_searched_as_a_whole() {
    let mut server = start();
    let command = "printf X; head -c 20000000 /dev/zero | tr '\\0' a; echo Y";
    let page = json!({"limit_bytes": 100});
    let reply = exec(&mut server, json!({"cmd": command, "page": page, "grep": "^X.*Y$"}));
    assert_eq!((&reply["total_bytes"], &reply["message"]), (&json!(20_000_003), &Value::Null));
    let none = exec(&mut server, json!({"cmd": command, "page": page, "grep": "^a"}));
    assert_eq!(none["total_bytes"], 0);
}
