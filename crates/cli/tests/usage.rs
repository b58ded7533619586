//! What a command used: all of its processes count, however they ended, and one that takes too much
//! memory ends the same way each time.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Gate, Server};
use tempfile::TempDir;

/// Uses a fifth of a second of CPU time and 50 MB, says so and stays.
const GREEDY: &str = "python3 -c '
import time
held = bytearray(50_000_000)
while time.process_time() < 0.2: pass
print(\"used\", flush=True)
time.sleep(300)'";

const MEMORY: u64 = 50_000_000;

/// What the kernel kills one process of, while a shell would go on.
const MEMORY_BOMB: &str = "tail /dev/zero; true";

/// Enough to see whether it depends on who is faster.
const TIMES: usize = 8;

fn configured(text: &str, flags: &[&str]) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("usage.toml");
    std::fs::write(&file, text).unwrap();
    let flags = [flags, &["--config", file.to_str().unwrap()]].concat();
    (Server::start(&flags), folder)
}

/// Whether a cgroup counts what each command uses.
fn is_counted(server: &mut Server) -> bool {
    server.run("cat /proc/self/cgroup")["output"].as_str().unwrap().contains("mcpz-")
}

fn assert_used(reply: &Value, cpu_ms: u64, memory: u64) {
    assert!(reply["cpu_ms"].as_u64().unwrap() >= cpu_ms, "{reply}");
    assert!(reply["max_rss_bytes"].as_u64().unwrap() >= memory, "{reply}");
}

#[test]
fn a_timeout_counts_what_all_children_used() {
    let mut server = Server::start(&[]);
    let command = format!("for i in 1 2; do ({GREEDY}) & done; wait");
    let reply = server.call(json!({"command": command, "timeout": 6}));
    assert_eq!((&reply["timed_out"], &reply["output"]), (&json!(true), &json!("used\nused\n")));
    assert_used(&reply, 400, MEMORY);
}

#[test]
fn a_child_whose_parent_left_it_counts() {
    let mut server = Server::start(&[]);
    let lone = GREEDY.replace("time.sleep(300)", "");
    // The fifo is closed when it has ended.
    let command = "mkfifo \"$D/f\"; (setsid sh -c \"exec 3>'$D/f'; $G\" &); cat \"$D/f\"";
    let folder = tempfile::tempdir().unwrap();
    let environment = json!({"D": folder.path(), "G": lone});
    let reply = server.call(json!({"command": command, "environment": environment}));
    assert_eq!((&reply["return_code"], &reply["output"]), (&json!(0), &json!("used\n")));
    assert_used(&reply, 200, MEMORY);
}

#[test]
fn what_is_left_running_counts_with_what_it_used_so_far() {
    let mut server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let command = format!("mkfifo \"$D/f\"; ({GREEDY}) > \"$D/f\" & head -n 1 \"$D/f\"");
    let reply = server.call(json!({"command": command, "environment": {"D": folder.path()}}));
    assert_eq!(reply["output"], "used\n", "{reply}");
    assert!(reply["background_pids"].is_array(), "{reply}");
    // The kernel counts what lives in hundredths of a second.
    assert_used(&reply, 150, MEMORY);
}

#[test]
fn a_limit_of_cpu_time_counts_what_all_children_used() {
    let (mut server, _folder) = configured("[limits]\ncpu_time = 1\n", &[]);
    let reply = server.run("for i in 1 2 3; do while :; do :; done & done; wait");
    assert_eq!(reply["limit"], "cpu_limit", "{reply}");
    assert_used(&reply, 1000, 0);
}

#[test]
fn a_limit_of_processes_counts_what_all_children_used() {
    let (mut server, _folder) = configured("[limits]\nprocesses = 40\n", &[]);
    let folder = tempfile::tempdir().unwrap();
    let many = "while :; do sleep 300 & done";
    let command = format!("mkfifo \"$D/f\"; ({GREEDY}) > \"$D/f\" & head -n 1 \"$D/f\"; {many}");
    let reply = server.call(json!({"command": command, "environment": {"D": folder.path()}}));
    assert_eq!(reply["limit"], "pids_limit", "{reply}");
    assert_used(&reply, 200, MEMORY);
}

#[test]
fn a_limit_of_memory_counts_what_the_child_had_that_was_killed() {
    let (mut server, _folder) = configured("[limits]\nmemory = \"64MB\"\n", &[]);
    if is_counted(&mut server) {
        assert_used(&server.run(MEMORY_BOMB), 0, MEMORY);
    }
}

/// The same of every answer, but for what differs by its nature.
fn result(reply: &Value) -> Value {
    let reply = &reply["structuredContent"];
    let names =
        ["limit", "message", "signal", "return_code", "exit_code", "status", "state", "error"];
    names.iter().map(|name| (name.to_string(), reply[name].clone())).collect()
}

fn assert_the_same_each_time(what: &str, mut run: impl FnMut() -> Value) {
    let first = run();
    assert_eq!(first["limit"], "oom_killed", "{what}: {first}");
    for _ in 1..TIMES {
        assert_eq!(run(), first, "{what}");
    }
}

fn arguments(tool: &str, command: &str) -> Value {
    match tool {
        "run_shell_command" => json!({"command": command, "is_background": false}),
        "shell_exec" => json!({"cmd": command}),
        _ => json!({"command": command}),
    }
}

#[test]
fn oom_killed_is_the_same_each_time_in_every_face() {
    let limits = "[limits]\nmemory = \"64MB\"\n";
    let (mut server, _folder) = configured(limits, &["--tools", "all"]);
    if !is_counted(&mut server) {
        return;
    }
    for tool in ["execute_command", "shell", "execute", "run_shell_command", "shell_exec"] {
        let arguments = arguments(tool, MEMORY_BOMB);
        assert_the_same_each_time(tool, || result(&server.tool(tool, arguments.clone())));
    }
    let told = server.run(MEMORY_BOMB);
    assert_eq!((&told["signal"], &told["return_code"]), (&json!("SIGKILL"), &json!(-1)));
}

#[test]
fn oom_killed_is_the_same_each_time_of_jobs_and_of_what_was_left_running() {
    let (mut server, _folder) = configured("[limits]\nmemory = \"64MB\"\n", &[]);
    if !is_counted(&mut server) {
        return;
    }
    let ended = |server: &mut Server, id: &Value| {
        let told = server.tool("read_job", json!({"job_id": id, "wait_for": "exit"}));
        result(&told)
    };
    for options in [json!({}), json!({"tty": true}), json!({"detach": true})] {
        let mut call = json!({"command": MEMORY_BOMB, "background": true});
        call.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        assert_the_same_each_time(&format!("a job, {options}"), || {
            let id = server.call(call.clone())["job_id"].clone();
            let told = ended(&mut server, &id);
            assert_eq!(told["signal"], "SIGKILL", "{told}");
            told
        });
    }
    assert_the_same_each_time("what was left", || {
        let gate = Gate::new();
        let left = format!("({}; tail /dev/zero) > /dev/null 2>&1 & true", gate.wait());
        let id = server.run(&left)["background_job"].clone();
        drop(gate);
        ended(&mut server, &id)
    });
}

#[test]
fn oom_killed_is_the_same_each_time_in_a_sandbox() {
    let work = tempfile::tempdir().unwrap();
    let flags = ["--sandbox", "workspace", "--working-dir", work.path().to_str().unwrap()];
    let (mut server, _folder) = configured("[limits]\nmemory = \"64MB\"\n", &flags);
    let bomb = "python3 -c 'kept = [bytearray(1000000) for _ in range(1000)]'";
    assert_the_same_each_time("a process", || {
        result(&server.tool("execute_command", json!({"command": bomb})))
    });
    let together = "[limits]\nmemory = 0\nmemory_per_client = \"100MB\"\n";
    if !is_counted(&mut Server::start(&[])) {
        return;
    }
    let (mut server, _folder) = configured(together, &flags);
    assert_the_same_each_time("all together", || {
        result(&server.tool("execute_command", json!({"command": "tail /dev/zero"})))
    });
}
