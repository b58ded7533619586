//! In every place: limits end what takes too much, rules hold, and what ran where is on record.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use support::place::{configured, place, prepared};
use support::sandbox::warnings;
use support::{Server, audit, mark, open_folder, survivors, wait_until};

const LIMITS: &str = "[limits]
memory = \"100MB\"
processes = 60
file_size = \"2MB\"
cpu_time = 1
open_files = 80
";

/// Runs what goes too far. The limit ends it, and all of it: it would not end by itself.
fn too_far(server: &mut Server, command: &str, limit: &str, message: &str) {
    let mark = mark();
    // The signals of some limits leave a core file.
    let command = format!("ulimit -c 0; {command}");
    let reply = server.call(json!({"command": command, "environment": {"MARK": mark}}));
    assert_eq!((&reply["limit"], &reply["message"]), (&json!(limit), &json!(message)), "{reply}");
    wait_until("all of it has ended", || survivors(&mark).is_empty().then_some(()));
    let next = server.run("echo still here; exit 3");
    assert_eq!((&next["output"], &next["return_code"]), (&json!("still here\n"), &json!(3)));
    assert!(next["limit"].is_null(), "{next}");
}

#[test]
fn memory_has_a_limit() {
    let (mut server, _folder) = configured("", LIMITS);
    let message = "out of memory: a command may use 100 MB";
    too_far(&mut server, "tail /dev/zero", "oom_killed", message);
}

#[test]
fn processes_have_a_limit() {
    let (mut server, _folder) = configured("", LIMITS);
    let many = "i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done; wait; sleep 300";
    let message = "too many processes: a command may have 60, threads included";
    too_far(&mut server, many, "pids_limit", message);
}

#[test]
fn cpu_time_and_open_files_have_a_limit() {
    let (mut server, _folder) = configured("", LIMITS);
    let message = "out of CPU time: a command may use 1 second";
    too_far(&mut server, "while :; do :; done", "cpu_limit", message);
    assert_eq!(server.run("ulimit -n; ulimit -Hn")["output"], "80\n80\n");
}

#[test]
fn files_have_a_limit() {
    let (mut server, folder) = configured("", LIMITS);
    let file = folder.path().join("filler");
    let command = format!("cat /dev/zero > '{}'", file.display());
    let message = "a file grew too large: a command may write files of up to 2 MB";
    too_far(&mut server, &command, "file_size_limit", message);
    assert_eq!(fs::metadata(file).unwrap().len(), 2_000_000);
}

#[test]
fn a_job_and_a_session_are_told_what_ended_them() {
    let (mut server, _folder) = configured("", LIMITS);
    let busy = "ulimit -c 0; while :; do :; done";
    let begun = server.call(json!({"command": busy, "background": true}));
    let wanted = json!({"job_id": begun["job_id"], "wait_for": "exit"});
    let told = server.tool("read_job", wanted)["structuredContent"].clone();
    assert_eq!((&told["state"], &told["limit"]), (&json!("exited"), &json!("cpu_limit")));
    let reply = server.call(json!({"command": busy, "session": "work"}));
    assert_eq!(reply["limit"], "cpu_limit", "{reply}");
    assert!(reply["message"].as_str().unwrap().contains("this command ended the session"));
    let reply = server.call(json!({"command": "echo again", "session": "work"}));
    assert_eq!(reply["output"], "again\n");
}

#[test]
fn commands_start_only_where_they_may() {
    let ground = open_folder();
    let at = |name: &str| ground.path().canonicalize().unwrap().join(name);
    for name in ["allowed/inside", "outside"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    symlink("inside", at("allowed/within")).unwrap();
    symlink(at("outside"), at("allowed/out")).unwrap();
    symlink("/proc/self/root", at("allowed/magic")).unwrap();
    let keys = format!("allowed_directories = [{:?}]", at("allowed"));
    let (mut server, _folder) = configured(&keys, "");
    let mut pwd = |name: &str| {
        server.call(json!({"command": "pwd -P", "working_directory": at(name)}))["output"].clone()
    };
    for (name, real) in [
        ("allowed", "allowed"),
        ("allowed/inside", "allowed/inside"),
        ("allowed/within", "allowed/inside"),
        ("allowed/inside/../within", "allowed/inside"),
    ] {
        assert_eq!(pwd(name), format!("{}\n", at(real).display()));
    }
    for name in ["outside", "", "allowed/..", "allowed/../outside", "allowed/out", "allowed/magic"]
    {
        let said = pwd(name);
        let said = said.as_str().unwrap();
        let end =
            "is not within the allowed directories; add it to allowed_directories to allow it";
        assert!(said.starts_with("Failed to execute: ") && said.ends_with(end), "{name}: {said}");
    }
}

#[test]
fn what_the_policy_denies_is_not_run_in_any_way_to_call() {
    let folder = open_folder();
    let mut server = Server::start(&["--tools", "all", "--deny", "touch,id"]);
    let file = folder.path().join("x");
    let touch = format!("touch '{}'", file.display());
    let denied = |reply: &Value| {
        let output = reply["output"].as_str().unwrap();
        assert!(output.starts_with("Command denied by security policy"), "{reply}");
    };
    for command in
        [&touch, &format!("env {touch}"), &format!("true; {touch}"), &format!("$({touch})")]
    {
        denied(&server.run(command));
        denied(&server.call(json!({"command": command, "background": true})));
        denied(&server.call(json!({"command": command, "session": "work"})));
    }
    assert!(!file.exists());
    assert_eq!(server.run("echo fine")["output"], "fine\n");
}

#[test]
fn what_the_policy_did_not_see_is_not_executed() {
    let folder = open_folder();
    let mut server = Server::start(&["--deny", "id"]);
    let here = folder.path();
    let write = |name: &str, text: &str| fs::write(here.join(name), text).unwrap();
    write("way.py", "import os, sys\nsys.stdout.flush()\nos.execvp(sys.argv[1], sys.argv[1:])\n");
    write("script.sh", "env id\n");
    let here = here.display();
    for command in [
        format!("python3 '{here}/way.py' id"),
        format!("python3 '{here}/way.py' env id"),
        format!("sh '{here}/script.sh'"),
        "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=id /etc/hostname".to_owned(),
    ] {
        let reply = server.run(&command);
        assert!(!reply["output"].as_str().unwrap().contains("uid="), "{command}: {reply}");
        assert!(warnings(&reply).contains("the rule `id` denies it"), "{command}: {reply}");
    }
    let reply = server.run(&format!("python3 '{here}/way.py' echo fine"));
    assert_eq!(reply["output"], "fine\n", "{reply}");
}

#[test]
fn what_is_typed_for_a_shell_is_judged() {
    let mut server = Server::start(&["--deny", "rm"]);
    let shell = json!({"command": "sh", "background": true});
    let id = server.call(shell)["job_id"].clone();
    let mut typed = |text: &str| {
        let echo = json!({"job_id": id, "text": text, "wait_for": "output", "timeout": 5});
        server.tool("write_job", echo)
    };
    assert_eq!(typed("echo fine\n")["structuredContent"]["output"], "fine\n");
    let refused = typed("rm -rf nothing\n");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Command denied by security policy"), "{refused}");
}

#[test]
fn records_name_the_place() {
    let mut server = prepared();
    server.call(json!({"command": "exit 3"}));
    server.call(json!({"command": "echo here", "session": "work"}));
    let expected = place().map_or(Value::Null, |place| json!(place.name));
    let records = wait_until("the end is recorded", || {
        let records = audit::records(&server.state);
        records.iter().any(|record| record["exit_code"] == 3).then_some(records)
    });
    let starts: Vec<_> = records.iter().filter(|record| record["event"] == "start").collect();
    assert!(starts.len() >= 3, "{records:?}");
    for start in starts {
        assert_eq!(start["place"], expected, "{start}");
    }
}
