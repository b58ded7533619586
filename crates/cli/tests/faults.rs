//! What a server does when the machine gives it nothing more.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::json;
use support::{Server, open_folder, read, wait_until};

/// Has a server that an ordinary user has make no more threads. Root's may make any number.
fn forbid_threads(server: &Server) {
    let mut command = Command::new("prlimit");
    command.args(["--nproc=1", "--pid", &server.child.id().to_string()]);
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    assert!(command.status().unwrap().success());
}

#[test]
fn without_a_thread_to_be_had_every_call_is_answered() {
    let folder = open_folder();
    let mut server = Server::start_ordinary(folder.path());
    server.run("true");
    wait_until("it has one thread", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap();
        (threads.count() == 1).then_some(())
    });
    forbid_threads(&server);
    // The output of this goes to the disk.
    let long = server.call(json!({"command": "seq 300000"}));
    assert!(long["output"].as_str().unwrap().ends_with("300000\n"), "{long}");
    let found = read(&mut server, json!({"uri": long["spill_uri"], "grep": "^29999.$"}));
    assert_eq!(found["data"].as_str().unwrap().lines().count(), 10, "{found}");
    let whole = server.request("resources/read", json!({"uri": long["spill_uri"]}));
    assert!(whole["result"]["contents"].is_array(), "{whole}");
    let job = server.call(json!({"command": "echo begun; cat", "background": true}));
    let told =
        json!({"job_id": job["job_id"], "text": "hello\n", "wait_for": "text", "pattern": "hello"});
    assert_eq!(server.tool("write_job", told)["structuredContent"]["matched"], "hello");
    assert_eq!(server.tool("list_jobs", json!({}))["isError"], false);
    assert_eq!(server.run("echo after")["output"], "after\n");
}
