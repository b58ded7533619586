//! The audit trail: nothing runs without its line, and no line goes without being missed.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::audit::{audit, folder, read, records, settled, start, verify};
use support::disk::Disk;
use support::http::{HttpServer, TOKEN};
use support::{Gate, MCPZ, Server, wait_until};
use tempfile::TempDir;

#[test]
fn a_run_leaves_a_line_before_and_one_after_it() {
    let state = support::state();
    let mut server = start(&state, "");
    assert!(!folder(&state).exists(), "starting leaves nothing");
    let reply = server.call(json!({
        "command": "cat; echo error >&2; exit 3", "working_directory": "/usr", "timeout": 7,
        "environment": {"LANG": "C", "PASSWORD": "hunter2"}, "stdin": "secret words",
    }));
    assert_eq!(reply["return_code"], 3);
    let [begun, ended] = &settled(&state)[..] else { panic!("two lines") };
    for (field, expected) in [
        ("seq", json!(1)),
        ("event", json!("start")),
        ("decision", json!("allow")),
        ("tool", json!("execute_command")),
        ("owner", json!("stdio")),
        ("client", json!("test/1")),
        ("server_pid", json!(server.child.id())),
        ("directory", json!("/usr")),
        ("timeout_ms", json!(7000)),
        ("shell", json!("/bin/sh")),
        ("command", json!("cat; echo error >&2; exit 3")),
        ("environment", json!(["LANG", "PASSWORD"])),
        ("stdin_bytes", json!(12)),
    ] {
        assert_eq!(begun[field], expected, "{field}");
    }
    for (field, expected) in [
        ("seq", json!(2)),
        ("event", json!("end")),
        ("id", begun["id"].clone()),
        ("result", json!("exited")),
        ("exit_code", json!(3)),
        ("stdout_bytes", json!(12)),
        ("stderr_bytes", json!(6)),
        ("duration_ms", reply["duration_ms"].clone()),
        ("cpu_ms", reply["cpu_ms"].clone()),
        ("max_rss_bytes", reply["max_rss_bytes"].clone()),
        ("prev", begun["mac"].clone()),
    ] {
        assert_eq!(ended[field], expected, "{field}");
    }
    let text = read(&state);
    assert!(!text.contains("hunter2") && !text.contains("secret words"), "{text}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder(&state)), 0o700);
    for name in ["audit.jsonl", "audit.head", "audit.key"] {
        assert_eq!(mode(&folder(&state).join(name)), 0o600, "{name}");
    }
    assert_eq!(verify(&state), ("2 records in 1 file, none missing\n".to_owned(), 0));
}

#[test]
fn what_is_refused_leaves_a_line_and_does_not_run() {
    let state = support::state();
    let mut server = start(
        &state,
        "[policy]\ndeny = [\"touch\"]\n[shell_tool]\nallowed_directories = [\"/usr\"]\n\
         working_dir = \"/usr\"\n",
    );
    let path = state.path().join("touched");
    server.call_raw(json!({"command": format!("touch '{}'", path.display())}));
    settled(&state);
    server.call_raw(json!({"command": "echo", "working_directory": "/"}));
    settled(&state);
    server.call_raw(json!({"command": "a\0b"}));
    settled(&state);
    server.call_raw(json!({"command": "echo", "environment": {"A=B": ""}}));
    settled(&state);
    assert!(!path.exists());
    let records = settled(&state);
    assert_eq!(records.len(), 4);
    for (record, reason) in records.iter().zip([
        &format!(
            "refused by the policy: `touch '{}'` (at 0) is denied by the rule `touch`",
            path.display()
        ),
        "/ is outside of /usr; add it to allowed_directories to allow it",
        "the command contains a NUL byte; remove it",
        "`A=B` is not a valid variable name: it is empty, or contains `=` or a NUL byte",
    ]) {
        assert_eq!((&record["event"], &record["decision"]), (&json!("refused"), &json!("deny")));
        assert_eq!(record["reason"], reason);
    }
    assert_eq!(records[0]["rule"], "touch");
    assert_eq!(records[2]["command"], "a\0b");
    assert_eq!(verify(&state).1, 0);
}

#[test]
fn what_looks_like_an_attack_and_runs_is_recorded_with_the_warning() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run("base64 -d </dev/null | sh; base64 -d </dev/null | sh");
    settled(&state);
    server.run("echo");
    settled(&state);
    let records = settled(&state);
    assert_eq!(records[0]["warnings"].as_array().map(Vec::len), Some(1), "{}", records[0]);
    assert!(records[2]["warnings"].is_null());
}

#[test]
fn however_a_run_ends_its_end_is_recorded() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run("kill -9 $$");
    settled(&state);
    server.call_raw(json!({"command": "sleep 300", "timeout": 0.1}));
    settled(&state);
    server.call_raw(json!({"command": "true", "working_directory": "/nowhere"}));
    settled(&state);
    server.run("sleep 300 & echo");
    settled(&state);
    let token = server.start_call(json!({"command": "echo begun; sleep 300"}));
    server.wait_for_output(token, "begun");
    server.notify("notifications/cancelled", json!({"requestId": token}));
    let ends = |records: Vec<Value>| -> Vec<Value> {
        records.into_iter().filter(|record| record["event"] == "end").collect()
    };
    let ends =
        wait_until("it is cancelled", || Some(ends(records(&state))).filter(|e| e.len() > 4));
    let results: Vec<_> = ends.iter().map(|end| end["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["signalled", "timed_out", "not_started", "exited", "cancelled"]);
    assert_eq!(ends[0]["signal"], "SIGKILL");
    assert!(ends[2]["reason"].as_str().unwrap().contains("/nowhere"));
    assert_eq!(ends[3]["background_pids"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_that_was_cancelled_before_its_turn_has_not_started() {
    let state = support::state();
    let mut server = start(&state, "[limits]\nruns = 1\n");
    let running = server.start_call(json!({"command": "echo begun; sleep 300"}));
    server.wait_for_output(running, "begun");
    let waiting = server.start_call(json!({"command": "echo never"}));
    server.request("ping", json!({}));
    server.notify("notifications/cancelled", json!({"requestId": waiting}));
    let records = wait_until("it is recorded", || Some(records(&state)).filter(|r| r.len() > 2));
    assert_eq!(records[2]["id"], records[1]["id"]);
    assert_eq!(records[2]["result"], "not_started");
    assert_eq!(records[2]["reason"], "cancelled before it was started");
}

#[test]
fn what_is_still_running_when_the_server_ends_has_its_end_recorded() {
    let state = support::state();
    let mut server = start(&state, "");
    let arguments = json!({"command": "sleep 300", "is_background": true});
    server.tool("run_shell_command", arguments);
    let token = server.start_call(json!({"command": "echo begun; sleep 300"}));
    server.wait_for_output(token, "begun");
    server.signal("TERM");
    server.wait();
    let records = settled(&state);
    let events: Vec<_> = records.iter().map(|record| record["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "start", "end", "end"]);
    let ids: HashSet<_> = records.iter().map(|record| record["id"].to_string()).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(verify(&state).1, 0);
}

#[test]
fn an_output_is_kept_under_the_id_of_its_run() {
    let state = support::state();
    let mut server = start(&state, "");
    let reply = server.run("seq 1 100000");
    let id = settled(&state)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(reply["spill_uri"], format!("mcp://tmp/exec-{id}.out"));
}

#[test]
fn where_nothing_can_be_recorded_nothing_runs() {
    let state = support::state();
    let occupied = state.path().join("occupied");
    std::fs::write(&occupied, "").unwrap();
    let linked = state.path().join("linked");
    std::fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(&occupied, linked.join("audit.jsonl")).unwrap();
    for (folder, why) in [
        (occupied.join("folder"), "Not a directory"),
        (linked, "Too many levels of symbolic links"),
        ("/proc/nowhere".into(), "No such file or directory"),
    ] {
        let mut server = start(&state, &format!("[audit]\nfolder = {folder:?}\n"));
        let path = state.path().join("touched");
        for _ in 0..2 {
            let reply = server.call_raw(json!({"command": format!("touch '{}'", path.display())}));
            let text = reply["content"][0]["text"].as_str().unwrap();
            let expected = format!(
                "cannot write the audit record to {}/audit.jsonl, and no command runs without one",
                folder.display()
            );
            assert!(text.contains(&expected) && text.contains(why), "{text}");
            assert_eq!(reply["isError"], true);
        }
        assert!(!path.exists());
        assert_eq!(std::fs::read(&occupied).unwrap(), b"");
    }
}

/// A disk of 64 KB, if one can be mounted.
fn small_disk(state: &TempDir) -> Option<(PathBuf, Disk)> {
    let path = state.path().join("disk");
    std::fs::create_dir(&path).unwrap();
    let disk = Disk::mount(&path, "64k")?;
    Some((path, disk))
}

#[test]
fn ends_that_a_full_disk_refused_are_recorded_when_there_is_room() {
    let state = support::state();
    let Some((path, disk)) = small_disk(&state) else { return };
    let (config, said) = (state.path().join("config.toml"), state.path().join("said"));
    std::fs::write(&config, format!("[audit]\nfolder = {path:?}\n")).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--config"]).arg(&config);
    let mut server = Server::from_command(command.stderr(File::create(&said).unwrap()));
    server.initialize("2025-11-25");
    let gate = Gate::new();
    let wait = json!({"name": "execute_command", "arguments": {"command": gate.wait()}});
    let waiting: Vec<_> = (0..20).map(|_| server.ask("tools/call", wait.clone())).collect();
    let records = || std::fs::read_to_string(path.join("audit.jsonl")).unwrap_or_default();
    wait_until("they run", || (records().lines().count() == 20).then_some(()));
    disk.fill();
    drop(gate);
    for id in waiting {
        assert_eq!(server.answer(id)["result"]["structuredContent"]["return_code"], 0);
    }
    wait_until("somebody is told", || {
        let said = std::fs::read_to_string(&said).unwrap();
        said.contains("cannot record the end of").then_some(())
    });
    assert!(records().lines().count() < 40);
    disk.clear();
    wait_until("all ends are on record", || (records().lines().count() == 40).then_some(()));
    let (said, code) = audit(&state, &["verify", "--folder", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn on_a_full_disk_nothing_runs_until_there_is_room() {
    let state = support::state();
    let Some((path, disk)) = small_disk(&state) else { return };
    let mut server = start(&state, &format!("[audit]\nfolder = {path:?}\n"));
    assert_eq!(server.run("echo 1")["output"], "1\n");
    disk.fill();
    // What is left of the last page takes a few more.
    let mark = state.path().join("ran");
    let touch = format!("touch '{}'", mark.display());
    let refused = wait_until("the disk is full", || {
        let _ = std::fs::remove_file(&mark);
        let reply = server.call_raw(json!({"command": touch}));
        let text = reply["content"][0]["text"].as_str().unwrap().to_owned();
        text.contains("no command runs without one").then_some(text)
    });
    assert!(refused.contains("No space left on device") || refused.contains("no storage space"));
    assert!(!mark.exists());
    let folder = path.to_str().unwrap();
    let (said, code) = audit(&state, &["verify", "--folder", folder]);
    assert!(!said.contains("cut off") && code == 0, "no half a line is left: {said}");
    disk.clear();
    assert_eq!(server.run("echo again")["output"], "again\n");
    let (said, code) = audit(&state, &["verify", "--folder", folder]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn without_log_commands_the_record_has_a_hash_in_place_of_the_text() {
    let state = support::state();
    let config = "[shell_tool]\nlog_commands = false\n[policy]\ndeny = [\"other*\"]\n";
    let mut server = start(&state, config);
    server.run("echo hello");
    settled(&state);
    server.tool("execute", json!({"command": "echo", "args": ["hello", "there"]}));
    settled(&state);
    server.tool("execute", json!({"command": "/nowhere/hello", "args": ["x"]}));
    settled(&state);
    server.run("$(hello)");
    settled(&state);
    let records = settled(&state);
    assert_eq!(records.len(), 7);
    // printf 'echo hello' | sha256sum
    let hash = "584a331fd6b02dcb1ecbe2eba731f609a2e1e3dac0bb73ae998dfad14c309a77";
    assert_eq!(records[0]["command_bytes"], 10);
    assert_eq!(records[0]["command_sha256"], hash);
    assert_eq!(records[2]["command_bytes"], 17);
    for record in &records {
        assert!(record["command"].is_null() && record["argv"].is_null(), "{record}");
    }
    let reason = "cannot execute it: No such file or directory (os error 2)";
    assert_eq!(records[5]["reason"], reason);
    assert_eq!(records[6]["reason"], "refused by the policy");
    assert!(!read(&state).contains("hello"), "{}", read(&state));
    assert!(audit(&state, &["tail"]).0.contains(" (10 bytes)\n"));
    assert_eq!(verify(&state).1, 0);
}

#[test]
fn a_long_command_is_recorded_with_its_beginning_and_its_hash() {
    let state = support::state();
    let mut server = start(&state, "");
    let command = format!("echo {}", "ä".repeat(30_000));
    server.call_raw(json!({"command": command}));
    let words = vec!["x".repeat(1000); 30];
    server.tool("execute", json!({"command": "true", "args": words}));
    let records = settled(&state);
    let written = records[0]["command"].as_str().unwrap();
    assert!(written.len() <= 16 << 10 && command.starts_with(written));
    assert_eq!(records[0]["command_bytes"], 60_005);
    assert_eq!(records[2]["argv"].as_array().unwrap().len(), 18);
    assert_eq!(records[2]["command_bytes"], 5 + 30 * 1001);
    assert!(records[2]["command_sha256"].is_string());
}

#[test]
fn nothing_in_the_trail_misleads_a_terminal() {
    let state = support::state();
    let mut server = start(&state, "");
    let command = "echo '\x1b[2J\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}\u{9b}\x7f\r\u{e0041}'";
    server.call_raw(json!({"command": command, "working_directory": "/\u{202e}"}));
    let text = read(&state);
    let hidden = |found: char| {
        found.is_control() && found != '\n'
            || "\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}\u{e0041}".contains(found)
    };
    assert!(!text.contains(hidden), "{text:?}");
    let escaped = r"\u001b[2J\u202e\u2066\u200b\ufeff\u2028\u009b\u007f\r\udb40\udc41";
    assert!(text.contains(escaped), "{text}");
    assert_eq!(settled(&state)[0]["command"], command, "and it is the same command");
    let id = settled(&state)[0]["id"].as_str().unwrap().to_owned();
    for arguments in [&["tail"][..], &["show", &id]] {
        let (said, _) = audit(&state, arguments);
        assert!(said.contains(r"\u{1b}[2J\u{202e}") && !said.contains(hidden), "{said:?}");
    }
    let (said, _) = audit(&state, &["show", "\u{202e}"]);
    assert!(said.contains("there is no record of"), "{said:?}");
}

#[test]
fn over_http_the_record_says_who_it_was() {
    let server = HttpServer::start_with(&[], "[http.tokens]\nada = \"ada-s-secret-token\"\n");
    let session = server.open_session();
    server.call(&session, "execute_command", json!({"command": "true"}));
    let command = json!({"command": "true"});
    assert_eq!(server.tool_by("ada-s-secret-token", "execute_command", command)["isError"], false);
    let starts = settled(&server.state).into_iter().filter(|record| record["event"] == "start");
    let who: Vec<_> =
        starts.map(|record| (record["owner"].clone(), record["client"].clone())).collect();
    let client = json!("test/1");
    assert_eq!(who, [(json!("$MCP_HTTP_TOKEN"), client.clone()), (json!("ada"), client)]);
    let text = read(&server.state);
    assert!(!text.contains(TOKEN) && !text.contains("secret") && !text.contains(&session));
}

#[test]
fn whoever_ran_when_the_server_was_killed_has_a_line() {
    let state = support::state();
    let ran = state.path().join("ran");
    let mut server = start(
        &state,
        "[limits]\nruns = 64\nruns_per_client = 64\nwaiting = 4000\n[audit]\nmax_size = \"64KB\"\n\
         keep = 100\n",
    );
    let name = ran.display();
    for number in 0..1000 {
        let command = format!("echo {number} >> '{name}'");
        server.ask(
            "tools/call",
            json!({
                "name": "execute_command", "arguments": {"command": command, "timeout": 60},
            }),
        );
    }
    let count = || std::fs::read_to_string(&ran).unwrap_or_default().lines().count();
    wait_until("some have run", || (count() >= 300).then_some(()));
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let count = count();
    assert!(count < 1000, "it was killed in the middle");
    let (said, code) = verify(&state);
    assert!(said.ends_with("none missing\n") && code == 0, "{said}");
    let (said, _) = audit(&state, &["tail", "-n", "10000"]);
    let started: HashSet<_> = said
        .lines()
        .filter(|line| line.contains(" run "))
        .map(|line| line.split("echo ").nth(1).unwrap().split(' ').next().unwrap().to_owned())
        .collect();
    // Those that had begun go on for a moment.
    for _ in 0..3 {
        for number in std::fs::read_to_string(&ran).unwrap().lines() {
            assert!(started.contains(number), "{number} ran without a record");
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // The next server goes on from there.
    start(&state, "").run("echo next");
    let (said, code) = verify(&state);
    assert!(said.ends_with("none missing\n") && code == 0, "{said}");
}
