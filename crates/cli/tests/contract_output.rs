//! In every place: each byte that a command prints is kept, told and found.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use support::place::{job, prepared, tool};
use support::{Server, exec, open_folder, read};

/// All that is kept of an output, as it is shown.
fn whole(server: &mut Server, uri: &Value) -> String {
    let (mut all, mut cursor) = (String::new(), json!("bytes:0"));
    while !cursor.is_null() {
        let page = read(server, json!({"uri": uri, "cursor": cursor, "limit_bytes": 262_144}));
        all.push_str(page["data"].as_str().unwrap());
        cursor = page["next_cursor"].clone();
    }
    all
}

fn numbers(until: u64) -> String {
    (1..=until).map(|number| format!("{number}\n")).collect()
}

#[test]
fn stdout_and_stderr_are_told_apart_and_whole() {
    let mut server = prepared();
    let reply = tool(&mut server, "execute", json!({"command": "echo out; echo err >&2; exit 3"}));
    assert_eq!((&reply["stdout"], &reply["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!(reply["exit_code"], 3);
    assert_eq!(server.run("echo 1 >&2; echo 2; echo 3 >&2; echo 4")["output"], "2\n4\n1\n3\n");
    let both = "seq 1 60000 & seq 1 60000 >&2; wait";
    let reply = exec(&mut server, json!({"cmd": both}));
    for uri in [&reply["spill_uri"], &reply["stderr_spill_uri"]] {
        assert!(whole(&mut server, uri) == numbers(60_000), "{reply}");
    }
}

#[test]
fn twenty_megabytes_arrive_byte_for_byte() {
    let mut server = prepared();
    let command = "seq -f '%099.0f' 1 200000";
    let reply = exec(&mut server, json!({"cmd": command}));
    assert_eq!((&reply["total_bytes"], &reply["lost_bytes"]), (&json!(20_000_000), &Value::Null));
    // A byte too few or too many would move all that follow.
    for at in (0..20_000_000).step_by(250_000).chain([19_995_000]) {
        let page = json!({"uri": reply["spill_uri"], "cursor": format!("bytes:{at}"), "limit_bytes": 5000});
        let page = read(&mut server, page);
        let lines: Vec<u64> =
            page["data"].as_str().unwrap().lines().map(|line| line.parse().unwrap()).collect();
        let first = at / 100 + 1;
        assert_eq!(lines, (first..first + 50).collect::<Vec<_>>(), "at {at}");
    }
}

#[test]
fn a_long_output_is_told_by_its_beginning_and_its_end_and_is_searched() {
    let mut server = prepared();
    let reply = server.run("seq 1 200000 | tr 0-9 g-p; echo end >&2");
    let output = reply["output"].as_str().unwrap();
    assert!(output.starts_with("h\ni\nj\n") && output.ends_with("\niggggg\nend\n"), "{output}");
    let omitted = reply["omitted_bytes"].as_u64().unwrap();
    let notice = format!("\n[... {omitted} bytes left out ...]\n");
    assert_eq!((output.len() - notice.len() + 1) as u64 + omitted, 1_288_895 + 4);
    let found = read(&mut server, json!({"uri": reply["spill_uri"], "grep": "^h?ppppp$"}));
    assert_eq!(found["data"], "ppppp\nhppppp\n");
    let page = json!({"uri": reply["spill_uri"], "cursor": "bytes:1288888"});
    assert_eq!(read(&mut server, page)["data"], "iggggg\n");
}

#[test]
fn pages_follow_one_another() {
    let mut server = prepared();
    let arguments = |page: Value| json!({"cmd": "seq 1 5000", "page": page});
    let mut reply = exec(&mut server, arguments(json!({"limit_lines": 2000})));
    let mut all = reply["stdout_chunk"].as_str().unwrap().to_owned();
    while let Some(cursor) = reply["next_cursor"].as_str() {
        reply = exec(&mut server, arguments(json!({"cursor": cursor, "limit_lines": 2000})));
        all.push_str(reply["stdout_chunk"].as_str().unwrap());
    }
    assert!(all == numbers(5000));
}

#[test]
fn output_can_be_read_while_the_command_runs() {
    let mut server = prepared();
    let id = job(&mut server, "seq 1 20000; read line; echo end");
    let last = json!({"job_id": id, "wait_for": "text", "pattern": "^20000$", "cursor": "bytes:0"});
    assert_eq!(tool(&mut server, "read_job", last)["state"], "running");
    let listed = tool(&mut server, "list_jobs", json!({}));
    let uri = &listed["jobs"][0]["output_uri"];
    let chunk = read(&mut server, json!({"uri": uri, "cursor": "bytes:108888"}));
    assert_eq!((&chunk["data"], &chunk["running"]), (&json!("20000\n"), &json!(true)));
    let line = json!({"job_id": id, "text": "\n", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", line)["exit_code"], 0);
    let last = json!({"job_id": id, "cursor": "bytes:0", "tail": 1});
    assert_eq!(tool(&mut server, "read_job", last)["output"], "end\n");
}

#[test]
fn what_is_no_text_does_not_lose_the_rest() {
    let mut server = prepared();
    let reply = server.run(r"printf 'a\377b\n\033[31mred\033[0m\n10%%\r99%%\n'");
    assert_eq!(reply["output"], "a\u{fffd}b\nred\n99%\n");
    let reply = server.run(r"printf 'h\303\244llo \342\202\254\n'; printf '\303'");
    assert_eq!(reply["output"], "hällo €\n\u{fffd}");
}

#[test]
fn texts_that_nul_bytes_separate_are_shown() {
    let mut server = prepared();
    let reply = server.run(r"mkdir d; cd d; touch 'a b' grün; printf '%s\0' *; cd ..; rm -r d");
    assert_eq!(reply["output"], "a b␀grün␀");
    let many = server.run(r"seq 9000 | sed 's/.*/VARIABLE_&=1/' | tr '\n' '\0'");
    assert!(many["output"].as_str().unwrap().starts_with("VARIABLE_1=1␀VARIABLE_2=1␀"), "{many}");
    let found = read(&mut server, json!({"uri": many["spill_uri"], "grep": "_4711=1␀"}));
    assert!(found["data"].as_str().unwrap().starts_with("VARIABLE_1=1␀"), "one line: {found}");
    let utf16 = server.run(r"printf 's\0o\0m\0e\0 \0t\0e\0x\0t\0'");
    assert_eq!(utf16["output"], "[18 bytes of binary data, not shown]\n");
}

#[test]
fn binary_output_is_kept_as_it_is() {
    let (mut server, folder) = (prepared(), open_folder());
    let bytes: Vec<u8> = (0..300_000_u64).map(|at| ((at * at) >> 7) as u8).collect();
    let file = folder.path().join("bytes");
    std::fs::write(&file, &bytes).unwrap();
    let reply = exec(&mut server, json!({"cmd": format!("cat '{}'", file.display())}));
    assert_eq!(reply["total_bytes"], 300_000, "{reply}");
    let (mut kept, mut cursor) = (Vec::new(), json!("bytes:0"));
    while !cursor.is_null() {
        let page = read(&mut server, json!({"uri": reply["spill_uri"], "cursor": cursor}));
        assert_eq!(page["encoding"], "base64");
        kept.extend(BASE64_STANDARD.decode(page["data"].as_str().unwrap()).unwrap());
        cursor = page["next_cursor"].clone();
    }
    assert!(kept == bytes, "{} bytes are kept", kept.len());
}

#[test]
fn nothing_is_lost_at_the_end_although_a_child_keeps_the_pipes_open() {
    let mut server = prepared();
    for _ in 0..10 {
        let reply =
            server.run("sleep 300 & printf '%05000d' 1; printf '%0100000d' 2 | tail -c 5000 >&2");
        assert_eq!(reply["output"].as_str().unwrap().len(), 10_000, "{reply}");
        assert_eq!(reply["background_pids"].as_array().unwrap().len(), 1, "{reply}");
    }
    for _ in 0..20 {
        let reply = server.run("printf '%05000d' 1; printf '%05000d' 2 >&2; kill -9 $$");
        assert_eq!(reply["output"].as_str().unwrap().len(), 10_000, "{reply}");
        assert_eq!(reply["signal"], "SIGKILL");
    }
}

#[test]
fn a_flood_in_the_background_does_not_hold_up_the_answer() {
    let mut server = prepared();
    let reply = server.run("yes & echo hi");
    assert_eq!(reply["return_code"], 0, "{reply}");
    assert_eq!(reply["background_pids"].as_array().unwrap().len(), 1, "{reply}");
    let stop = json!({"job_id": reply["background_job"], "grace_ms": 100});
    assert_eq!(tool(&mut server, "stop_job", stop)["survivors"], 0);
}

#[test]
fn a_terminal_loses_nothing_at_the_end() {
    let mut server = prepared();
    for until in [1, 700, 9000, 20_000] {
        let reply = server.call(json!({"command": format!("seq {until}"), "tty": true}));
        let kept = match reply["spill_uri"].is_null() {
            true => reply["output"].as_str().unwrap().to_owned(),
            false => whole(&mut server, &reply["spill_uri"]).replace("\r\n", "\n"),
        };
        assert!(kept == numbers(until), "{until}: {} bytes: {reply}", kept.len());
    }
}

#[test]
fn stderr_can_be_left_out() {
    let mut server = Server::start(&["--no-stderr"]);
    assert_eq!(server.run("echo 1 >&2; echo 2")["output"], "2\n");
}
