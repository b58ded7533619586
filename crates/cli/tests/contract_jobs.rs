//! In every place: jobs go on after their call is answered, and can be waited for, listed and stopped.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::place::{job, place, prepared, tool};
use support::{Gate, mark, open_folder, survivors, wait_until};

#[test]
fn a_job_answers_at_once_goes_on_and_takes_input() {
    let mut server = prepared();
    let command = "echo first; read line; echo \"got $line\"; exit 3";
    let begun = server.call(json!({"command": command, "background": true}));
    assert_eq!((&begun["output"], &begun["state"]), (&json!("first\n"), &json!("running")));
    let id = &begun["job_id"];
    tool(&mut server, "write_job", json!({"job_id": id, "text": "a line\n"}));
    let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:6"});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!(told["output"], "got a line\n");
    assert_eq!((&told["state"], &told["exit_code"]), (&json!("exited"), &json!(3)));
}

#[test]
fn the_input_of_a_job_can_be_ended() {
    let mut server = prepared();
    let id = job(&mut server, "wc -c");
    tool(&mut server, "write_job", json!({"job_id": id, "text": "four"}));
    let end = json!({"job_id": id, "eof": true, "wait_for": "exit"});
    let told = tool(&mut server, "write_job", end);
    assert_eq!((&told["output"], &told["exit_code"]), (&json!("4\n"), &json!(0)));
}

#[test]
fn exit_output_text_and_silence_are_waited_for() {
    let mut server = prepared();
    let gate = Gate::new();
    let command = format!("echo compiling; {}; echo 'error: no' >&2; cat; exit 4", gate.wait());
    let id = job(&mut server, &command);
    let wait = |what: &str| json!({"job_id": id, "wait_for": what, "cursor": "bytes:0"});
    let told = tool(&mut server, "read_job", wait("output"));
    assert_eq!((&told["output"], &told["state"]), (&json!("compiling\n"), &json!("running")));
    let mut never = wait("text");
    (never["pattern"], never["timeout"]) = (json!("never"), json!(0.1));
    assert_eq!(tool(&mut server, "read_job", never)["timed_out"], true);
    drop(gate);
    let mut error = wait("text");
    error["pattern"] = json!("^error: (.*)");
    assert_eq!(tool(&mut server, "read_job", error)["matched"], "error: no");
    let mut quiet = wait("quiet");
    quiet["quiet_ms"] = json!(300);
    assert_eq!(tool(&mut server, "read_job", quiet)["output"], "compiling\nerror: no\n");
    tool(&mut server, "write_job", json!({"job_id": id, "eof": true}));
    let told = tool(&mut server, "read_job", wait("exit"));
    assert_eq!((&told["state"], &told["exit_code"]), (&json!("exited"), &json!(4)));
}

#[test]
fn a_port_that_a_job_listens_on_is_waited_for() {
    let mut server = prepared();
    let command = "exec python3 -c 'import socket, sys, time; s = socket.socket(); \
                   s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1], flush=True); \
                   sys.stdin.readline(); s.listen(); time.sleep(300)'";
    let id = job(&mut server, command);
    let line =
        json!({"job_id": id, "wait_for": "text", "pattern": "^[0-9]+$", "cursor": "bytes:0"});
    let port: u16 =
        tool(&mut server, "read_job", line)["matched"].as_str().unwrap().parse().unwrap();
    let early = json!({"job_id": id, "wait_for": "port", "port": port, "timeout": 0.2});
    assert_eq!(tool(&mut server, "read_job", early)["timed_out"], true);
    tool(&mut server, "write_job", json!({"job_id": id, "text": "\n"}));
    let wait = json!({"job_id": id, "wait_for": "port", "port": port});
    assert_eq!(tool(&mut server, "read_job", wait)["timed_out"], Value::Null);
    let other = job(&mut server, "sleep 300");
    let foreign = json!({"job_id": other, "wait_for": "port", "port": port, "timeout": 0.2});
    assert_eq!(tool(&mut server, "read_job", foreign)["timed_out"], true, "another job's port");
}

#[test]
fn several_jobs_are_waited_for_any_or_all() {
    let mut server = prepared();
    let slow = job(&mut server, "read x; echo slow");
    let fast = job(&mut server, "exit 1");
    let ids = json!([slow, fast]);
    let any = tool(&mut server, "read_job", json!({"job_ids": ids, "wait_for": "exit"}));
    let states = [&any["jobs"][0]["state"], &any["jobs"][1]["state"]];
    assert_eq!(states, [&json!("running"), &json!("exited")]);
    tool(&mut server, "write_job", json!({"job_id": slow, "eof": true}));
    let all = json!({"job_ids": ids, "wait_for": "exit", "all": true});
    let all = tool(&mut server, "read_job", all);
    assert!(all["jobs"].as_array().unwrap().iter().all(|job| job["state"] == "exited"), "{all}");
}

#[test]
fn what_a_command_leaves_running_is_told_and_is_a_job() {
    let (mark, mut server) = (mark(), prepared());
    let folder = open_folder();
    let fifo = folder.path().join("fifo");
    let path = fifo.display();
    let command =
        format!("mkfifo '{path}'; (read x <'{path}'; echo later; exec sleep 300) & echo $!");
    let reply = server.call(json!({"command": command, "environment": {"MARK": mark}}));
    let pid: u32 = reply["output"].as_str().unwrap().trim().parse().unwrap();
    assert_eq!((&reply["return_code"], &reply["background_pids"]), (&json!(0), &json!([pid])));
    let id = &reply["background_job"];
    std::fs::write(&fifo, "\n").unwrap();
    let told = json!({"job_id": id, "wait_for": "text", "pattern": "later"});
    assert_eq!(tool(&mut server, "read_job", told)["state"], "running");
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": id}))["survivors"], 0);
    assert_eq!(survivors(&mark), [""; 0]);
    assert_eq!(tool(&mut server, "list_jobs", json!({}))["jobs"][0]["state"], "stopped");
}

#[test]
fn a_job_whose_command_leaves_something_running_runs_on() {
    let (mark, mut server) = (mark(), prepared());
    let gate = Gate::new();
    let command =
        format!("export MARK={mark}; ({}; echo later; exec sleep 300) & exit 3", gate.wait());
    let id = job(&mut server, &command);
    let wait = |what: &str| json!({"job_id": id, "wait_for": what, "pattern": "later"});
    let told = tool(&mut server, "read_job", wait("exit"));
    assert_eq!((&told["state"], &told["exit_code"]), (&json!("running"), &json!(3)), "{told}");
    assert!(told["background_pids"].is_array(), "{told}");
    drop(gate);
    assert_eq!(tool(&mut server, "read_job", wait("text"))["matched"], "later");
    let told = tool(&mut server, "stop_job", json!({"job_id": id}));
    assert_eq!((&told["state"], &told["survivors"]), (&json!("stopped"), &json!(0)), "{told}");
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn what_was_left_running_ends_by_itself() {
    let mut server = prepared();
    let gate = Gate::new();
    let reply = server.run(&format!("({}; seq 1 60000) & echo now", gate.wait()));
    assert_eq!(reply["output"], "now\n");
    drop(gate);
    let id = &reply["background_job"];
    let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:0", "tail": 1});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!((&told["state"], &told["output"]), (&json!("exited"), &json!("60000\n")), "{told}");
}

#[test]
fn stopping_a_job_leaves_nothing_of_it() {
    let (mark, mut server) = (mark(), prepared());
    let command = format!(
        "export MARK={mark}; trap '' TERM INT; (setsid sleep 300 &); sleep 300 & while :; do sleep 1; done"
    );
    let id = job(&mut server, &command);
    wait_until("its processes", || (survivors(&mark).len() >= 3).then_some(()));
    let stopped = tool(&mut server, "stop_job", json!({"job_id": id, "grace_ms": 100}));
    assert_eq!((&stopped["survivors"], &stopped["state"]), (&json!(0), &json!("stopped")));
    assert_eq!(stopped["signal"], "SIGKILL");
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_signal_is_sent_first_where_one_is_named() {
    let mut server = prepared();
    let command = "trap 'echo bye; exit 7' USR1; echo ready; while :; do sleep 0.05; done";
    let id = job(&mut server, command);
    let ready = json!({"job_id": id, "wait_for": "text", "pattern": "ready", "cursor": "bytes:0"});
    tool(&mut server, "read_job", ready);
    let stop = json!({"job_id": id, "signal": "SIGUSR1", "grace_ms": 30_000});
    let stopped = tool(&mut server, "stop_job", stop);
    assert_eq!((&stopped["exit_code"], &stopped["state"]), (&json!(7), &json!("stopped")));
    assert_eq!(stopped["survivors"], 0);
    assert_eq!(tool(&mut server, "read_job", json!({"job_id": id}))["output"], "bye\n");
    let unknown = server.tool("stop_job", json!({"job_id": id, "signal": "SIGNOPE"}));
    assert_eq!(unknown["content"][0]["text"], "Invalid arguments: unknown signal `SIGNOPE`");
}

#[test]
fn jobs_are_listed_with_their_place() {
    let mut server = prepared();
    let ids = [job(&mut server, "sleep 300"), job(&mut server, "exit 2")];
    let wait = json!({"job_id": ids[1], "wait_for": "exit"});
    tool(&mut server, "read_job", wait);
    let listed = tool(&mut server, "list_jobs", json!({}));
    let jobs = listed["jobs"].as_array().unwrap();
    let place = place().map_or(Value::Null, |place| json!(place.name));
    for (id, state) in ids.iter().zip(["running", "exited"]) {
        let job = jobs.iter().find(|job| job["job_id"] == *id).unwrap();
        assert_eq!((&job["state"], &job["place"]), (&json!(state), &place), "{job}");
    }
}

#[test]
fn a_call_that_takes_long_becomes_a_job() {
    let mut server = support::Server::start(&["--background-after", "1"]);
    let gate = Gate::new();
    let command = format!("echo begun; {}; echo done", gate.wait());
    let reply = server.call(json!({"command": command, "timeout": 100}));
    assert_eq!((&reply["output"], &reply["state"]), (&json!("begun\n"), &json!("running")));
    drop(gate);
    let wait = json!({"job_id": reply["job_id"], "wait_for": "exit"});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!((&told["output"], &told["exit_code"]), (&json!("done\n"), &json!(0)));
}

#[test]
fn a_job_that_outlives_its_server_is_refused_in_a_place() {
    let Some(place) = place() else {
        // On this machine it is possible, which is what tests/detached.rs is about.
        return;
    };
    let mut server = prepared();
    let reply = server.call(json!({"command": "sleep 300", "detach": true}));
    let expected = format!(
        "Failed to execute: `detach` is not possible in the place `{}`, which ends with this server; `background` is",
        place.name
    );
    assert_eq!(reply["output"], expected);
    assert_eq!(tool(&mut server, "list_jobs", json!({}))["jobs"], json!([]));
}
