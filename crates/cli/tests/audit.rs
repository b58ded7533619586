//! The audit trail: nothing runs without its line, and no line goes without being missed.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::http::{HttpServer, Request, TOKEN, call};
use support::{MCPZ, Server, wait_until};
use tempfile::TempDir;

/// The folder of a server's records.
fn folder(state: &TempDir) -> PathBuf {
    state.path().join("mcpz")
}

fn file(state: &TempDir) -> PathBuf {
    folder(state).join("audit.jsonl")
}

fn read(state: &TempDir) -> String {
    std::fs::read_to_string(file(state)).unwrap_or_default()
}

fn records(state: &TempDir) -> Vec<Value> {
    read(state).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records once every run has its end among them: an answer does not wait for that.
fn settled(state: &TempDir) -> Vec<Value> {
    let count = |records: &[Value], event| records.iter().filter(|r| r["event"] == event).count();
    wait_until("every end is recorded", || {
        let records = records(state);
        (count(&records, "start") == count(&records, "end")).then_some(records)
    })
}

/// Starts a server with a configuration and shakes hands.
fn start(state: &TempDir, config: &str) -> Server {
    let path = state.path().join("config.toml");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all", "--config"]).arg(path);
    let mut server = Server::from_command(command.env("XDG_STATE_HOME", state.path()));
    server.initialize("2025-11-25");
    server
}

/// What `mcpz audit` prints, and its exit code.
fn audit(state: &TempDir, arguments: &[&str]) -> (String, i32) {
    let mut command = Command::new(MCPZ);
    command.arg("audit").args(arguments).env("XDG_STATE_HOME", state.path());
    let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (said, output.status.code().unwrap())
}

fn verify(state: &TempDir) -> (String, i32) {
    audit(state, &["verify"])
}

/// Changes the lines of a file as whoever can write to it could.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

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
    server.call_raw(json!({"command": format!("touch {}", path.display())}));
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
            "refused by the policy: `touch {}` (at 0) is denied by the rule `touch`",
            path.display()
        ),
        "/ is not within the allowed directories",
        "the command contains a NUL byte, which no program can be given",
        "`A=B` is not the name of an environment variable",
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
    server.run("base64 -d </dev/null | sh");
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
            let reply = server.call_raw(json!({"command": format!("touch {}", path.display())}));
            let text = reply["content"][0]["text"].as_str().unwrap();
            let expected = format!(
                "nothing runs without an audit record, and none can be written to {}/audit.jsonl",
                folder.display()
            );
            assert!(text.contains(&expected) && text.contains(why), "{text}");
            assert_eq!(reply["isError"], true);
        }
        assert!(!path.exists());
        assert_eq!(std::fs::read(&occupied).unwrap(), b"");
    }
}

#[test]
fn on_a_full_disk_nothing_runs_until_there_is_room() {
    let state = support::state();
    let path = state.path().join("disk");
    std::fs::create_dir(&path).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&path).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    let mut server = start(&state, &format!("[audit]\nfolder = {path:?}\n"));
    assert_eq!(server.run("echo 1")["output"], "1\n");
    let filler = path.join("filler");
    let mut all = std::fs::File::create(&filler).unwrap();
    while all.write_all(&[0; 512]).is_ok() {}
    drop(all);
    // What is left of the last page takes a few more.
    let mark = state.path().join("ran");
    let touch = format!("touch {}", mark.display());
    let refused = wait_until("the disk is full", || {
        let _ = std::fs::remove_file(&mark);
        let reply = server.call_raw(json!({"command": touch}));
        let text = reply["content"][0]["text"].as_str().unwrap().to_owned();
        text.contains("nothing runs without an audit record").then_some(text)
    });
    assert!(refused.contains("No space left on device") || refused.contains("no storage space"));
    assert!(!mark.exists());
    let folder = path.to_str().unwrap();
    let (said, code) = audit(&state, &["verify", "--folder", folder]);
    assert!(!said.contains("cut off") && code == 0, "no half a line is left: {said}");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(server.run("echo again")["output"], "again\n");
    let (said, code) = audit(&state, &["verify", "--folder", folder]);
    assert_eq!(code, 0, "{said}");
    drop(server);
    assert!(Command::new("umount").arg(&path).status().unwrap().success());
}

#[test]
fn verify_tells_what_is_wrong_and_where() {
    type Case = (fn(&mut Vec<String>), &'static str);
    let cases: [Case; 5] = [
        (
            |lines| lines[2] = lines[2].replace("echo 2", "echo 3"),
            ", line 3: this record was changed, or was not written with this key\n",
        ),
        (|lines| drop(lines.remove(3)), ", line 4: record 4 is missing before this one\n"),
        (|lines| drop(lines.drain(4..)), ": records 5 to 6 are missing at the end\n"),
        (|lines| lines.swap(0, 1), ", line 2: record 1 is out of order\n"),
        (|lines| lines.push("{\"seq\":7}".into()), ", line 7: this is no record\n"),
    ];
    for (change, expected) in cases {
        let state = support::state();
        let mut server = start(&state, "");
        for number in 1..=3 {
            server.run(&format!("echo {number}"));
        }
        drop(server);
        assert_eq!(verify(&state), ("6 records in 1 file, none missing\n".to_owned(), 0));
        edit(&file(&state), change);
        let (said, code) = verify(&state);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(&format!("{}{expected}", file(&state).display())), "{said}");
        assert!(said.ends_with("not all of them are as they were written\n"), "{said}");
        // Going on hides nothing.
        start(&state, "").run("echo more");
        assert_eq!(verify(&state).1, 1);
    }
    let state = support::state();
    let (said, code) = verify(&state);
    assert!(said.contains("audit.key: No such file or directory") && code == 1, "{said}");
}

#[test]
fn a_line_that_was_torn_is_repaired_and_told_of() {
    let state = support::state();
    start(&state, "").run("echo 1");
    let mut torn = std::fs::OpenOptions::new().append(true).open(file(&state)).unwrap();
    torn.write_all(b"{\"seq\":3,\"time\":\"2026-0").unwrap();
    start(&state, "").run("echo 2");
    let told = "cut off while they were written: 1 line\n\
                5 records in 1 file, none missing\n";
    assert_eq!(verify(&state), (told.to_owned(), 0));
    let records = settled(&state);
    assert_eq!((&records[2]["event"], &records[2]["what"]), (&json!("repaired"), &json!("torn")));
    assert_eq!(records[3]["command"], "echo 2");
}

#[test]
fn files_are_put_away_at_their_size_and_the_oldest_go() {
    let state = support::state();
    let mut server = start(&state, "[audit]\nmax_size = \"8KB\"\nkeep = 2\n");
    for _ in 0..40 {
        server.run("echo some words to fill the line");
    }
    drop(server);
    let mut names: Vec<_> = std::fs::read_dir(folder(&state))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".jsonl"))
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 3, "{names:?}");
    let (said, code) = verify(&state);
    assert!(said.contains("were let go of, as `keep` says\n"), "{said}");
    assert!(said.contains(" records in 3 files, none missing\n") && code == 0, "{said}");
    let old = folder(&state).join(&names[1]);
    let mut changed = 0;
    edit(&old, |lines| {
        changed = lines.iter().position(|line| line.contains("words")).unwrap();
        lines[changed] = lines[changed].replace("words", "swords");
    });
    let (said, code) = verify(&state);
    let expected = format!("{}, line {}: this record was changed", old.display(), changed + 1);
    assert!(said.contains(&expected) && code == 1, "{said}");
    std::fs::remove_file(&old).unwrap();
    let (said, code) = verify(&state);
    assert!(said.contains(&format!("{}: this file is missing\n", old.display())), "{said}");
    assert_eq!(code, 1);
}

#[test]
fn several_servers_share_a_trail() {
    let state = support::state();
    start(&state, "").run("echo some words");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10 {
                let (said, code) = verify(&state);
                assert!(said.ends_with("none missing\n") && code == 0, "while they write: {said}");
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                let mut server = start(&state, "[audit]\nmax_size = \"16KB\"\nkeep = 100\n");
                let calls: Vec<_> = (0..40)
                    .map(|_| server.start_call(json!({"command": "echo some words"})))
                    .collect();
                for call in calls {
                    assert!(server.answer(call)["error"].is_null());
                }
            });
        }
    });
    let (said, code) = verify(&state);
    assert!(said.ends_with("none missing\n") && code == 0, "{said}");
    let lines = audit(&state, &["tail", "-n", "1000"]).0;
    assert_eq!(lines.lines().filter(|line| line.contains(" run ")).count(), 121);
    assert_eq!(lines.lines().filter(|line| line.contains(" exit 0 ")).count(), 121);
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
    let request = Request::alone(call(1, "execute_command", json!({"command": "true"})));
    let request = request.without("authorization");
    let request = request.with("authorization", "Bearer ada-s-secret-token");
    assert_eq!(server.send(&request).status, 200);
    let starts = settled(&server.state).into_iter().filter(|record| record["event"] == "start");
    let who: Vec<_> =
        starts.map(|record| (record["owner"].clone(), record["client"].clone())).collect();
    let client = json!("test/1");
    assert_eq!(who, [(json!("$MCP_HTTP_TOKEN"), client.clone()), (json!("ada"), client)]);
    let text = read(&server.state);
    assert!(!text.contains(TOKEN) && !text.contains("secret") && !text.contains(&session));
}

#[test]
fn tail_and_show_are_for_people() {
    let state = support::state();
    let mut server = start(&state, "[policy]\ndeny = [\"rm*\"]\n");
    server.run("echo one");
    settled(&state);
    server.tool("execute", json!({"command": "echo", "args": ["two", "words"]}));
    settled(&state);
    server.call_raw(json!({"command": "rm -r x"}));
    let (said, code) = audit(&state, &["tail"]);
    assert_eq!(code, 0);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    let id = settled(&state)[0]["id"].as_str().unwrap().to_owned();
    for (line, part) in lines.iter().zip([
        format!(" {} execute_command   run          echo one", &id[..8]),
        format!(" {} execute_command   exit 0 ", &id[..8]),
        " execute           run          echo two words".to_owned(),
        " execute           exit 0 ".to_owned(),
        " execute_command   refused      rm -r x (refused by the policy: `rm -r x` (at 0) is denied".to_owned(),
    ]) {
        assert!(line.contains(&part), "no {part:?} in {line:?}");
    }
    assert!(lines[3].ends_with("ms echo two words") || lines[3].ends_with("ms  echo two words"));
    let (last, _) = audit(&state, &["tail", "-n", "3"]);
    assert_eq!(last.lines().collect::<Vec<_>>(), lines[2..]);
    let (one, _) = audit(&state, &["tail", "-n", "2"]);
    assert!(one.lines().next().unwrap().ends_with("echo two words"), "what has ended: {one}");

    let (shown, code) = audit(&state, &["show", &id[..10]]);
    assert_eq!(code, 0);
    assert!(shown.contains(" start\n") && shown.contains(" end\n"), "{shown}");
    assert!(shown.contains("  command          echo one\n"), "{shown}");
    assert!(shown.contains("  result           exited\n"), "{shown}");
    assert!(!shown.contains("two"), "{shown}");
    let (said, code) = audit(&state, &["show", ""]);
    assert!(said.contains("is the beginning of 3 runs, such as") && code == 1, "{said}");
    let (said, code) = audit(&state, &["show", "nobody"]);
    assert_eq!((said.as_str(), code), ("mcpz: there is no record of `nobody`\n", 1));
}

#[test]
fn tail_follows_what_is_written_into_the_next_file() {
    let state = support::state();
    let mut server = start(&state, "[audit]\nmax_size = \"4096\"\nkeep = 100\n");
    server.run("echo 0");
    settled(&state);
    let mut tail = Command::new(MCPZ)
        .args(["audit", "tail", "-f", "-n", "1", "--folder"])
        .arg(folder(&state))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("echo 0"));
    for number in 1..=30 {
        server.run(&format!("echo {number}"));
    }
    assert!(folder(&state).join("audit.2.jsonl").exists());
    let lines = lines.map_while(Result::ok).filter(|line| !line.contains(" rotated"));
    let lines: Vec<_> = lines.take(60).collect();
    for number in 1..=30 {
        let about = lines.iter().filter(|line| line.ends_with(&format!("echo {number}")));
        assert_eq!(about.count(), 2, "{number}: {lines:#?}");
    }
    tail.kill().unwrap();
    tail.wait().unwrap();
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
        let command = format!("echo {number} >> {name}");
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
