//! The policy knows how a session or a job began when it judges what comes after: directory, variables, command.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;

/// A server that may write only in `work`, beside `other`, and must not run `touch`.
fn start(folder: &TempDir) -> Server {
    for name in ["work", "other"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let (file, root) = (folder.path().join("config.toml"), folder.path().display());
    let policy = format!("[policy]\ndeny = [\"touch\"]\nwrite_dirs = [\"{root}/work\"]\n");
    let directories = format!("[shell_tool]\nallowed_directories = [\"{root}\"]\n");
    std::fs::write(&file, directories + &policy).unwrap();
    let work = folder.path().join("work");
    let flags = ["--tools", "all", "-s", "bash", "-w", work.to_str().unwrap()];
    Server::start(&[&flags[..], &["--config", file.to_str().unwrap()]].concat())
}

fn is_refused(reply: &Value) -> bool {
    reply.to_string().contains("Command denied by security policy")
}

fn say(server: &mut Server, arguments: Value, command: &str) -> Value {
    let mut arguments = arguments;
    arguments["command"] = json!(command);
    server.call(arguments)
}

/// Types a line into a new job, and stops it.
fn type_into(server: &mut Server, job: Value, line: &str) -> Value {
    let mut arguments = job;
    arguments["background"] = json!(true);
    let started = server.call(arguments);
    let typing = json!({"job_id": started["job_id"], "text": format!("{line}\n")});
    let typed = server.tool("write_job", typing);
    server.tool("stop_job", json!({"job_id": started["job_id"]}));
    typed
}

#[test]
fn variables_that_the_policy_refuses_start_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder);
    let startup = folder.path().join("startup");
    std::fs::write(&startup, "touch pwned\n").unwrap();
    let environment = json!({"BASH_ENV": startup, "LD_PRELOAD": "/no/such.so"});
    let first = json!({"session": "work", "environment": environment});
    assert!(is_refused(&say(&mut server, first, "true")));
    let next = say(&mut server, json!({"session": "work"}), "echo \"[$LD_PRELOAD$BASH_ENV]\"; ls");
    assert_eq!(next["output"], "[]\n");
}

#[test]
fn the_directory_and_variables_of_a_sessions_first_call_count_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder);
    let elsewhere = json!({"session": "a", "working_directory": folder.path().join("other")});
    assert_eq!(say(&mut server, elsewhere, "true")["return_code"], 0);
    assert!(is_refused(&say(&mut server, json!({"session": "a"}), "echo hi >file")));
    let option = json!({"session": "b", "environment": {"x": "--to-command=touch pwned"}});
    assert_eq!(say(&mut server, option, "true")["return_code"], 0);
    assert!(is_refused(&say(&mut server, json!({"session": "b"}), "tar -xf archive \"$x\"")));
    // The same where neither is set.
    assert_eq!(say(&mut server, json!({"session": "c"}), "echo hi >file")["return_code"], 0);
    assert!(!is_refused(&say(&mut server, json!({"session": "c"}), "tar -xf archive \"$x\"")));
}

#[test]
fn the_directory_and_variables_of_a_job_count_for_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder);
    let elsewhere = json!({"command": "bash", "working_directory": folder.path().join("other")});
    assert!(is_refused(&type_into(&mut server, elsewhere, "echo hi >file")));
    let option = json!({"command": "bash", "environment": {"x": "--to-command=touch pwned"}});
    assert!(is_refused(&type_into(&mut server, option, "tar -xf archive \"$x\"")));
    let plain = json!({"command": "bash"});
    assert!(!is_refused(&type_into(&mut server, plain.clone(), "echo hi >file")));
    assert!(!is_refused(&type_into(&mut server, plain, "tar -xf archive \"$x\"")));
}

#[test]
fn what_the_command_of_a_job_sets_counts_for_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder);
    let elsewhere = json!({"command": "env -C ../other bash"});
    assert!(is_refused(&type_into(&mut server, elsewhere, "echo hi >file")));
    let option = json!({"command": "x=--to-command=touch bash"});
    assert!(is_refused(&type_into(&mut server, option, "tar -xf archive \"$x\"")));
    let detached = json!({"command": "env -C ../other bash", "detach": true});
    assert!(is_refused(&type_into(&mut server, detached, "echo hi >file")));
    assert!(!folder.path().join("other/file").exists());
}

#[test]
fn what_was_typed_before_counts_for_what_is_typed_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder);
    let started = server.call(json!({"command": "bash", "background": true}));
    let mut write = |line: &str| {
        let typing = json!({"job_id": started["job_id"], "text": format!("{line}\n")});
        is_refused(&server.tool("write_job", typing))
    };
    assert!(!write("cd ../other; x=--to-command=touch"));
    assert!(write("echo hi >file"));
    assert!(write("tar -xf archive \"$x\""));
}

#[test]
fn a_session_takes_more_commands_than_one_text_may_have() {
    let mut server = Server::start(&["--deny", "sudo"]);
    let call = json!({"session": "long"});
    let many = "true; true; true; true; true; true; true; true; true; true";
    for round in 0..40 {
        let command = format!("{many}; ls -d / > /dev/null; cd /tmp && echo {round}");
        assert_eq!(say(&mut server, call.clone(), &command)["output"], format!("{round}\n"));
    }
}

#[test]
fn what_a_session_was_told_long_ago_still_counts() {
    let mut server = Server::start(&["--deny", "sudo", "-s", "/bin/bash"]);
    let call = |name: &str| json!({"session": name});
    say(&mut server, call("value"), "x=su");
    say(&mut server, call("code"), "setx() { x=$1; }");
    for name in ["value", "code"] {
        for _ in 0..30 {
            say(&mut server, call(name), "ls -d / > /dev/null; true");
        }
    }
    // It looks like a program, and is a function.
    say(&mut server, call("code"), "setx su");
    for name in ["value", "code"] {
        assert!(is_refused(&say(&mut server, call(name), "${x}do id")), "{name}");
        assert_eq!(say(&mut server, call(name), "echo on")["output"], "on\n");
    }
}

#[test]
fn a_file_that_an_earlier_command_of_a_session_made_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().to_str().unwrap();
    let list = ["--allow", "ln,./check"];
    let mut server = Server::start(&[&list[..], &["-w", work, "-s", "/bin/bash"]].concat());
    let call = json!({"session": "links"});
    assert!(!is_refused(&say(&mut server, call.clone(), "ln -s /usr/bin/id check")));
    let refused = say(&mut server, call, "./check");
    assert!(is_refused(&refused), "{refused}");
}

#[test]
fn a_shell_that_has_got_too_many_commands_says_what_to_do() {
    let mut server = Server::start(&["--deny", "sudo"]);
    let call = json!({"session": "full"});
    let many = format!("x=1{}", "; x=1".repeat(249));
    let mut replies = (0..20).map(|_| say(&mut server, call.clone(), &many));
    let refused = replies.find(is_refused).unwrap();
    assert!(refused["output"].as_str().unwrap().contains("start another one"), "{refused}");
    drop(replies);
    assert_eq!(say(&mut server, json!({"session": "other"}), "echo on")["output"], "on\n");
}
