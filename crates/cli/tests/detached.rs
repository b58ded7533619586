//! Jobs that outlive the client and the server.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::http::HttpServer;
use support::{Gate, MCPZ, Server, audit, children, kill, mark, survivors, wait_until};
use tempfile::TempDir;

/// A server that keeps its state in a folder.
fn server_in(state: &Path) -> Server {
    server_with(state, &[])
}

fn server_with(state: &Path, variables: &[(&str, &str)]) -> Server {
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell"]).env("XDG_STATE_HOME", state);
    command.envs(variables.iter().copied());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}

fn state() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn detach(server: &mut Server, command: &str) -> Value {
    let reply = server.call(json!({"command": command, "detach": true}));
    assert_eq!(reply["state"], "running", "{reply}");
    reply
}

fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

/// Kills a server, which can do nothing about it.
fn kill_server(mut server: Server) {
    server.signal("KILL");
    server.wait();
}

/// All a job has printed, page by page, once it has ended.
fn all_output(server: &mut Server, id: &Value) -> String {
    let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:0"});
    let mut told = tool(server, "read_job", wait);
    assert_ne!(told["state"], "running", "{told}");
    let mut whole = String::new();
    while told["output"] != "" {
        whole.push_str(told["output"].as_str().unwrap());
        let next = json!({"job_id": id, "cursor": told["next_cursor"]});
        told = tool(server, "read_job", next);
    }
    whole
}

/// The folders of detached jobs.
fn folders(state: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(state.join("mcpz/jobs")).unwrap().flatten();
    all.map(|entry| entry.path()).filter(|path| path.join("job.json").exists()).collect()
}

#[test]
fn a_detached_job_goes_on_without_its_server_and_nothing_it_prints_is_lost() {
    let (state, gate, mark) = (state(), Gate::new(), mark());
    let mut server = server_in(state.path());
    let command = format!("export X={mark}; seq 20000; {}; seq 20001 40000; exit 7", gate.wait());
    let job = detach(&mut server, &command);
    let id = &job["job_id"];
    let half = json!({"job_id": id, "wait_for": "text", "pattern": "^20000$", "cursor": "bytes:0"});
    assert_eq!(tool(&mut server, "read_job", half)["matched"], "20000");
    kill_server(server);

    let mut server = server_in(state.path());
    let listed = tool(&mut server, "list_jobs", json!({}))["jobs"][0].clone();
    assert_eq!((&listed["job_id"], &listed["state"]), (id, &json!("running")));
    assert_eq!((&listed["pid"], &listed["detached"]), (&job["pid"], &json!(true)));
    assert_eq!(listed["command"], command);
    drop(gate);
    let expected: String = (1..=40_000).map(|n| format!("{n}\n")).collect();
    assert!(all_output(&mut server, id) == expected);
    server.close_stdin();
    server.wait();

    let mut server = server_in(state.path());
    let listed = tool(&mut server, "list_jobs", json!({}))["jobs"][0].clone();
    assert_eq!((&listed["state"], &listed["exit_code"]), (&json!("exited"), &json!(7)));
    assert!(all_output(&mut server, id) == expected);
    let grep = json!({"job_id": id, "cursor": "bytes:0", "grep": "^39999$"});
    assert_eq!(tool(&mut server, "read_job", grep)["output"], "39999\n");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
}

#[test]
fn of_forty_jobs_the_detached_half_survives_a_killed_server_and_the_other_half_does_not() {
    let (state, gate) = (state(), Gate::new());
    let (plain, detached) = (mark(), mark());
    let mut server = server_in(state.path());
    let mut ids = Vec::new();
    for number in 0..20 {
        let command = format!(
            "export X={detached}; echo begin {number}; {}; seq 5000; echo end {number}",
            gate.wait()
        );
        ids.push(detach(&mut server, &command)["job_id"].clone());
        // One that leaves its group, and does not mind being asked to end.
        let command =
            format!("export X={plain}; trap '' TERM; setsid sleep 1000 & sleep 1000 & wait");
        server.call(json!({"command": command, "background": true}));
    }
    kill_server(server);
    wait_until("the plain ones are gone", || survivors(&plain).is_empty().then_some(()));

    let mut server = server_in(state.path());
    let listed = tool(&mut server, "list_jobs", json!({}));
    let running = listed["jobs"].as_array().unwrap().iter();
    assert_eq!(running.filter(|job| job["state"] == "running").count(), 20, "{listed}");
    drop(gate);
    let numbers: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    for (number, id) in ids.iter().enumerate() {
        let expected = format!("begin {number}\n{numbers}end {number}\n");
        assert!(all_output(&mut server, id) == expected, "{number}");
    }
    wait_until("all have ended", || survivors(&detached).is_empty().then_some(()));
}

#[test]
fn a_detached_program_is_typed_into_and_stopped_by_the_next_server() {
    let (state, mark) = (state(), mark());
    let mut server = server_in(state.path());
    let command = format!("export X={mark}; stty -echo; sleep 1000 & cat");
    let job = server.call(json!({"command": command, "detach": true, "tty": true}));
    let id = &job["job_id"];
    let ready = json!({"job_id": id, "wait_for": "exit"});
    assert_eq!(tool(&mut server, "read_job", ready)["waiting_for_input"], true);
    kill_server(server);

    let mut server = server_in(state.path());
    let typed = json!({
        "job_id": id, "rows": 40, "columns": 100, "text": "typed\n", "wait_for": "text", "pattern": "typed",
    });
    let told = tool(&mut server, "write_job", typed);
    assert_eq!(told["screen"], "typed", "{told}");
    let stop = json!({"job_id": id, "signal": "SIGHUP"});
    let stopped = tool(&mut server, "stop_job", stop);
    assert_eq!((&stopped["state"], &stopped["survivors"]), (&json!("stopped"), &json!(0)));
    assert!(survivors(&mark).is_empty());
    drop(server);

    let mut server = server_in(state.path());
    let listed = tool(&mut server, "list_jobs", json!({}))["jobs"][0].clone();
    assert_eq!((&listed["state"], &listed["tty"]), (&json!("stopped"), &json!(true)));
    assert_eq!(listed["signal"], "SIGHUP");
}

#[test]
fn two_servers_see_the_same_job() {
    let state = state();
    let (mut one, mut other) = (server_in(state.path()), server_in(state.path()));
    let id = detach(&mut one, "cat")["job_id"].clone();
    let write = |text: &str| {
        let pattern = text.trim_end();
        json!({"job_id": id, "text": text, "wait_for": "text", "pattern": pattern})
    };
    assert_eq!(tool(&mut one, "write_job", write("from one\n"))["matched"], "from one");
    let told = tool(&mut other, "write_job", write("from the other\n"));
    assert_eq!(told["output"], "from one\nfrom the other\n");
    let both = json!({"job_id": id, "wait_for": "text", "pattern": "other"});
    assert_eq!(tool(&mut one, "read_job", both)["matched"], "from the other");
    assert_eq!(tool(&mut other, "stop_job", json!({"job_id": id}))["survivors"], 0);
    let ended = json!({"job_id": id, "wait_for": "exit"});
    assert_eq!(tool(&mut one, "read_job", ended)["state"], "stopped");
}

#[test]
fn what_was_typed_for_another_server_is_not_forgotten_by_the_policy() {
    let (state, file) = (state(), tempfile::NamedTempFile::new().unwrap());
    let rules = "[policy]\ndeny = [\"rm\"]\n";
    let mut server = audit::start(&state, rules);
    let id = detach(&mut server, "bash")["job_id"].clone();
    tool(
        &mut server,
        "write_job",
        json!({"job_id": id, "text": "echo begun\nr", "wait_for": "output"}),
    );
    kill_server(server);
    let mut server = audit::start(&state, rules);
    let rest = format!("m '{}'\n", file.path().display());
    let refused = server.tool("write_job", json!({"job_id": id, "text": rest}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("a continuation of what someone else typed"), "{refused}");
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": id}))["survivors"], 0);
    assert!(file.path().exists());
}

#[test]
fn a_job_that_is_about_to_begin_is_not_taken_for_a_lost_one() {
    let state = state();
    let (mut one, mut other) = (server_in(state.path()), server_in(state.path()));
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let call = json!({"name": "execute_command", "arguments": {"command": "sleep 300", "detach": true}});
            one.ask("tools/call", call)
        })
        .collect();
    let mut listed = Value::Null;
    let mut begun = Vec::new();
    for id in asked {
        listed = tool(&mut other, "list_jobs", json!({}));
        let told = one.answer(id)["result"]["structuredContent"].clone();
        assert_eq!(told["state"], "running", "{told}");
        begun.push(told["job_id"].clone());
    }
    assert!(!listed.to_string().contains("lost"), "{listed}");
    for id in begun {
        assert_eq!(tool(&mut other, "stop_job", json!({"job_id": id}))["survivors"], 0);
    }
}

#[test]
fn a_job_that_floods_still_reads_what_is_typed() {
    let state = state();
    let mut server = server_in(state.path());
    let id = detach(&mut server, "yes & read line; kill $!; exit 5")["job_id"].clone();
    let typed = json!({"job_id": id, "text": "enough\n", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", typed)["exit_code"], 5);
}

#[test]
fn what_a_detached_job_has_left_running_costs_nothing_and_is_stopped_with_it() {
    let (state, mark) = (state(), mark());
    let mut server = server_in(state.path());
    let command = format!("MARK={mark} sleep 1000 >/dev/null 2>&1 & exit 3");
    let id = server.call(json!({"command": command, "detach": true}))["job_id"].clone();
    let left = wait_until("it is left running", || survivors(&mark).pop());
    let sleeper: u32 =
        left.split(':').next().unwrap().trim_start_matches("/proc/").parse().unwrap();
    let recorder = parent(parent(sleeper));
    let before = ticks(recorder);
    let quiet = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 1500});
    assert_eq!(tool(&mut server, "read_job", quiet)["state"], "running");
    assert!(ticks(recorder) - before < 20, "the recorder is busy with nothing");
    let stopped = tool(&mut server, "stop_job", json!({"job_id": id}));
    assert_eq!((&stopped["state"], &stopped["survivors"]), (&json!("stopped"), &json!(0)));
    assert!(survivors(&mark).is_empty());
}

/// How much time a process has taken, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_recorder_that_is_stopped_holds_up_nobody() {
    let state = state();
    let mut server = server_in(state.path());
    let job = detach(&mut server, "cat");
    let recorder = parent(parent(job["pid"].as_u64().unwrap() as u32));
    kill("STOP", recorder);
    let written = server.tool("write_job", json!({"job_id": job["job_id"], "text": "x\n"}));
    assert_ne!(written["structuredContent"]["state"], "lost", "{written}");
    let mut other = server_in(state.path());
    let listed = tool(&mut other, "list_jobs", json!({}))["jobs"][0].clone();
    assert_eq!(listed["state"], "running", "{listed}");
    assert_eq!(server.run("echo fine")["output"], "fine\n");
    kill("CONT", recorder);
    let heard =
        json!({"job_id": job["job_id"], "wait_for": "text", "pattern": "x", "cursor": "bytes:0"});
    assert_eq!(tool(&mut other, "read_job", heard)["matched"], "x");
    assert_eq!(tool(&mut other, "stop_job", json!({"job_id": job["job_id"]}))["survivors"], 0);
}

#[test]
fn a_recorder_or_a_keeper_that_is_stopped_is_woken_to_stop_the_job() {
    let state = state();
    let mut server = server_in(state.path());
    for stop in [|keeper| kill("STOP", keeper), |keeper| kill("STOP", parent(keeper))] {
        let job = detach(&mut server, "sleep 1000");
        stop(parent(job["pid"].as_u64().unwrap() as u32));
        let stopped = tool(&mut server, "stop_job", json!({"job_id": job["job_id"]}));
        assert_eq!((&stopped["state"], &stopped["survivors"]), (&json!("stopped"), &json!(0)));
    }
}

#[test]
fn a_recorder_leaves_with_its_job_when_nothing_can_be_recorded_any_more() {
    let state = state();
    let mut server = server_in(state.path());
    let pid = detach(&mut server, "exec sleep 1000")["pid"].as_u64().unwrap() as u32;
    let recorder = parent(parent(pid));
    std::fs::remove_dir_all(state.path()).unwrap();
    std::fs::write(state.path(), "no folder can be made here").unwrap();
    kill("KILL", pid);
    wait_until("it has left", || {
        (!std::fs::exists(format!("/proc/{recorder}")).unwrap()).then_some(())
    });
    std::fs::remove_file(state.path()).unwrap();
}

#[test]
fn a_job_whose_folder_was_removed_can_be_stopped() {
    let (state, mark) = (state(), mark());
    let mut server = server_in(state.path());
    let id = detach(&mut server, &format!("export X={mark}; sleep 1000"))["job_id"].clone();
    std::fs::remove_dir_all(&folders(state.path())[0]).unwrap();
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": id}))["survivors"], 0);
    assert!(survivors(&mark).is_empty());
}

#[test]
fn a_job_whose_recorder_is_killed_is_ended_and_said_to_be_lost() {
    let (state, mark) = (state(), mark());
    let mut server = server_in(state.path());
    let command = format!("export X={mark}; echo before; setsid sleep 1000 & sleep 1000");
    let job = detach(&mut server, &command);
    let keeper = parent(job["pid"].as_u64().unwrap() as u32);
    kill("KILL", parent(keeper));
    let wait = json!({"job_id": job["job_id"], "wait_for": "exit", "cursor": "bytes:0"});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!((&told["state"], &told["output"]), (&json!("lost"), &json!("before\n")));
    assert!(
        told["message"].as_str().unwrap().contains("the job's supervisor was killed"),
        "{told}"
    );
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    drop(server);
    let mut server = server_in(state.path());
    assert_eq!(tool(&mut server, "list_jobs", json!({}))["jobs"][0]["state"], "lost");
}

#[test]
fn a_job_whose_keeper_is_killed_leaves_nothing_behind_either() {
    let (state, mark) = (state(), mark());
    let mut server = server_in(state.path());
    let command = format!("export X={mark}; echo before; setsid sleep 1000 & sleep 1000");
    let job = detach(&mut server, &command);
    kill("KILL", parent(job["pid"].as_u64().unwrap() as u32));
    let wait = json!({"job_id": job["job_id"], "wait_for": "exit"});
    assert_eq!(tool(&mut server, "read_job", wait)["state"], "lost");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap();
    parent.parse().unwrap()
}

#[test]
fn nobody_else_finds_a_detached_job() {
    let state = state();
    let tokens =
        "[http.tokens]\nada = \"ada-0123456789abcdef\"\nstdio = \"bob-0123456789abcdef\"\n";
    let start = || {
        let mut command = Command::new(MCPZ);
        HttpServer::start_command(command.env("XDG_STATE_HOME", state.path()), &[], tokens)
    };
    let ask = |server: &HttpServer, who: &str, name: &str, arguments: Value| {
        server.tool_by(&format!("{who}-0123456789abcdef"), name, arguments)
    };
    let server = start();
    let command = json!({"command": "sleep 300", "detach": true});
    let hers = ask(&server, "ada", "execute_command", command.clone());
    let hers = hers["structuredContent"]["job_id"].clone();
    drop(server);
    let mut local = server_in(state.path());
    let ours = local.call(command)["job_id"].clone();
    let server = start();
    for (job, strangers) in [(&hers, ["bob", "bob"]), (&ours, ["ada", "bob"])] {
        for stranger in strangers {
            let foreign = ask(&server, stranger, "stop_job", json!({"job_id": job}));
            let said = foreign["content"][0]["text"].as_str().unwrap();
            assert_eq!(said, format!("there is no job {}", job.as_str().unwrap()));
        }
    }
    assert_eq!(local.tool("read_job", json!({"job_id": hers}))["isError"], true);
    assert_eq!(ask(&server, "bob", "list_jobs", json!({}))["structuredContent"]["jobs"], json!([]));
    let stopped = ask(&server, "ada", "stop_job", json!({"job_id": hers}));
    assert_eq!(stopped["structuredContent"]["survivors"], 0);
    assert_eq!(tool(&mut local, "stop_job", json!({"job_id": ours}))["survivors"], 0);
}

#[test]
fn what_a_detached_job_prints_is_masked_before_it_is_on_the_disk() {
    let state = state();
    let mut server = server_with(state.path(), &[("SOME_TOKEN", "hunter2hunter2")]);
    let id = detach(&mut server, "echo \"the $SOME_TOKEN\"; sleep 0.1")["job_id"].clone();
    assert_eq!(all_output(&mut server, &id), "the [SOME_TOKEN]\n");
    let files = std::fs::read_dir(&folders(state.path())[0]).unwrap().flatten();
    // A file that is being replaced may be gone by now.
    let bytes = files.filter_map(|file| std::fs::read(file.path()).ok());
    let texts: Vec<_> = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
    assert!(texts.iter().any(|text| text.contains("the [SOME_TOKEN]")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("hunter2")), "{texts:?}");
}

#[test]
fn beginning_and_end_of_a_detached_job_are_on_record_whoever_is_there() {
    let (state, gate) = (state(), Gate::new());
    let mut server = server_in(state.path());
    detach(&mut server, &format!("{}; exit 4", gate.wait()));
    let refused =
        server.call_raw(json!({"command": "true", "detach": true, "working_directory": "/none"}));
    assert_eq!(refused["isError"], true, "{refused}");
    kill_server(server);
    drop(gate);
    let records = audit::settled(&state);
    assert_eq!(records.len(), 4, "{records:?}");
    assert!(records.iter().any(|record| record["exit_code"] == 4), "{records:?}");
    let (said, code) = audit::verify(&state);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_detached_job_holds_nothing_of_its_server() {
    let state = state();
    // One of those who started it has left a descriptor open.
    let line = format!("exec 251>&2; exec '{MCPZ}' server shell");
    let mut command = Command::new("bash");
    command.args(["-c", &line]).env("XDG_STATE_HOME", state.path());
    command.stderr(std::process::Stdio::piped());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let id = detach(&mut server, "sleep 1000")["job_id"].clone();
    let mut stderr = server.child.stderr.take().unwrap();
    server.close_stdin();
    assert!(server.wait().success());
    // Whoever reads what the server logs comes to its end.
    std::io::Read::read_to_end(&mut stderr, &mut Vec::new()).unwrap();
    let mut server = server_in(state.path());
    assert!(children(server.child.id()).len() <= 1);
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": id}))["survivors"], 0);
}

#[test]
fn detached_jobs_count_and_need_a_place() {
    let state = state();
    let mut server = audit::start(&state, "[limits]\njobs = 1\n");
    let id = detach(&mut server, "sleep 1000")["job_id"].clone();
    kill_server(server);
    let mut server = audit::start(&state, "[limits]\njobs = 1\n");
    let more = server.call_raw(json!({"command": "sleep 1000", "detach": true}));
    let said = more["structuredContent"]["output"].as_str().unwrap();
    assert!(more["isError"] == true && said.contains("the limit of running jobs (1) is reached"));
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": id}))["survivors"], 0);

    let config = state.path().join("config.toml");
    let audit = state.path().join("audit");
    std::fs::write(&config, format!("[audit]\nfolder = {audit:?}\n")).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--config"]).arg(config).env("XDG_STATE_HOME", "");
    let mut homeless = Server::from_command(command.env_remove("HOME"));
    homeless.initialize("2025-11-25");
    let refused = homeless.call_raw(json!({"command": "sleep 1000", "detach": true}));
    let said = refused["structuredContent"]["output"].as_str().unwrap();
    assert!(said.contains("set HOME or XDG_STATE_HOME"), "{said}");
}

#[test]
fn what_is_not_allowed_is_not_detached() {
    let state = state();
    let mut server = audit::start(&state, "[policy]\nallow = [\"echo *\"]\n");
    let refused = server.call_raw(json!({"command": "sleep 1000", "detach": true}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!state.path().join("mcpz/jobs").exists());
    let done = server.call(json!({"command": "echo fine", "detach": true}));
    assert_eq!(all_output(&mut server, &done["job_id"]), "fine\n");
}

#[test]
fn what_is_more_than_can_be_kept_of_a_job_is_counted() {
    let state = state();
    let config = "[limits]\nspill_per_run = \"100KB\"\n";
    for kind in ["background", "detach"] {
        let mut server = audit::start(&state, config);
        let command = "yes | head -c 1000000; echo done";
        let id = server.call(json!({"command": command, kind: true}))["job_id"].clone();
        let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:0"});
        let told = tool(&mut server, "read_job", wait);
        let kept = all_output(&mut server, &id);
        let notice = kept.lines().find(|line| line.starts_with('[')).unwrap();
        let kept = kept.len() as u64 - notice.len() as u64;
        assert!(kept >= 100_000, "{kept}");
        // Of the line that the newest begin with, only a part is there.
        let missing = 1_000_005 - kept - told["lost_bytes"].as_u64().unwrap();
        assert!(missing < 4, "{kind}: {missing}");
    }
}
