//! Calls that come at the same time: none is lost, and what there may be only so many of is counted
//! before it is there.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::http::{HttpServer, Request, call};
use support::{Server, audit, children, kill, state};
use tempfile::TempDir;

/// Sends calls of a tool without waiting, then waits for all answers, in the order of the calls.
fn ask_all(server: &mut Server, name: &str, all: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let ask = |arguments| server.ask("tools/call", json!({"name": name, "arguments": arguments}));
    let ids: Vec<_> = all.into_iter().map(ask).collect();
    ids.into_iter().map(|id| server.answer(id)["result"].clone()).collect()
}

fn output(result: &Value) -> &str {
    result["structuredContent"]["output"].as_str().unwrap()
}

#[test]
fn calls_that_begin_a_session_together_share_one_shell_in_the_order_they_came() {
    let mut server = Server::start(&[]);
    let count = json!({"command": "n=$((n+1)); echo $n $$", "session": "work"});
    let answers = ask_all(&mut server, "execute_command", vec![count; 20]);
    let told: Vec<Vec<_>> =
        answers.iter().map(|it| output(it).split_whitespace().collect()).collect();
    let shells: HashSet<_> = told.iter().map(|words| words[1]).collect();
    assert_eq!(shells.len(), 1, "{told:?}");
    let numbers: Vec<_> = told.iter().map(|words| words[0].parse::<u32>().unwrap()).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

#[test]
fn a_session_that_cannot_begin_is_begun_by_the_next_call() {
    let mut server = Server::start(&[]);
    let nowhere = json!({"command": "pwd", "session": "work", "working_directory": "/no/such"});
    let here = json!({"command": "echo here", "session": "work"});
    let answers = ask_all(&mut server, "execute_command", [nowhere, here]);
    assert_eq!(answers[0]["isError"], true, "{answers:?}");
    assert_eq!(output(&answers[1]), "here\n");
}

#[test]
fn what_a_session_is_told_at_the_same_time_is_judged_together() {
    let mut server = Server::start(&["--deny", "rm"]);
    let begun = json!({"command": "true", "session": "work"});
    ask_all(&mut server, "execute_command", [begun]);
    for _ in 0..10 {
        let alias = json!({"command": "x=r; y=m", "session": "work"});
        let used = json!({"command": "$x$y --version", "session": "work"});
        let answers = ask_all(&mut server, "execute_command", [alias, used]);
        assert_eq!(answers[1]["isError"], true, "{answers:?}");
    }
}

#[test]
fn no_more_sessions_begin_together_than_there_may_be() {
    let state = state();
    let mut server = audit::start(&state, "[limits]\nsessions = 4\n");
    let begin = |number| json!({"command": "echo $$", "session": format!("s{number}")});
    let answers = ask_all(&mut server, "execute_command", (0..12).map(begin));
    let refused = answers.iter().filter(|answer| answer["isError"] == true);
    assert_eq!(refused.count(), 8, "{answers:?}");
    // Those that were refused have left nothing reserved.
    ask_all(&mut server, "execute_command", [json!({"command": "exit", "session": "s0"})]);
    let again = ask_all(&mut server, "execute_command", [begin(99)]);
    assert_eq!(again[0]["isError"], false, "{again:?}");
}

#[test]
fn no_more_jobs_start_together_than_there_may_be() {
    for how in ["background", "detach"] {
        let state = state();
        let mut server = audit::start(&state, "[limits]\njobs = 4\n");
        let start = json!({"command": "sleep 1000", how: true});
        let answers = ask_all(&mut server, "execute_command", vec![start; 12]);
        let refused = answers.iter().filter(|answer| answer["isError"] == true);
        assert_eq!(refused.count(), 8, "{how}: {answers:?}");
        let listed = server.tool("list_jobs", json!({}))["structuredContent"].clone();
        let jobs = listed["jobs"].as_array().unwrap();
        let running: Vec<_> = jobs.iter().filter(|job| job["state"] == "running").collect();
        assert_eq!(running.len(), 4, "{how}: {listed}");
        for job in running {
            server.tool("stop_job", json!({"job_id": job["job_id"], "grace_ms": 0}));
        }
        let start = json!({"command": "sleep 1000", how: true});
        let again = ask_all(&mut server, "execute_command", [start]);
        assert_eq!(again[0]["structuredContent"]["state"], "running", "{how}: {again:?}");
        server.tool("stop_job", json!({"job_id": again[0]["structuredContent"]["job_id"]}));
    }
}

#[test]
fn no_more_detached_jobs_run_than_there_may_be_whichever_servers_are_asked() {
    let (state, config) = (state(), "[limits]\njobs = 4\n");
    let mut servers = [audit::start(&state, config), audit::start(&state, config)];
    let start = json!({"command": "sleep 1000", "detach": true});
    let call = json!({"name": "execute_command", "arguments": start});
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(servers.each_mut().map(|server| server.ask("tools/call", call.clone())));
    }
    let mut begun = Vec::new();
    for [one, other] in asked {
        for (server, id) in servers.iter_mut().zip([one, other]) {
            let answer = server.answer(id)["result"].clone();
            match answer["isError"] == true {
                true => {
                    assert!(output(&answer).contains("the limit of running jobs (4)"), "{answer}")
                }
                false => begun.push(answer["structuredContent"]["job_id"].clone()),
            }
        }
    }
    let [stopped, mut server] = servers;
    let listed = server.tool("list_jobs", json!({}))["structuredContent"].clone();
    assert_eq!((begun.len(), listed["jobs"].as_array().unwrap().len()), (4, 4), "{listed}");
    // A server that is stopped does not stand in the way of another one.
    stopped.signal("STOP");
    let stop = |id: &Value| json!({"job_id": id, "grace_ms": 0});
    server.tool("stop_job", stop(&begun.swap_remove(0)));
    let again = ask_all(&mut server, "execute_command", [start]);
    assert_eq!(again[0]["structuredContent"]["state"], "running", "{again:?}");
    begun.push(again[0]["structuredContent"]["job_id"].clone());
    begun.iter().for_each(|id| drop(server.tool("stop_job", stop(id))));
    stopped.signal("CONT");
}

/// Sends 512 calls of two clients at once over HTTP; `meanwhile` begins when all of them run. Commands
/// go on when somebody writes to the pipe of this name.
fn burst(server: &HttpServer, pipe: &Path, meanwhile: impl FnOnce()) -> Vec<Value> {
    let sessions = [server.open_session(), server.open_session()];
    std::thread::scope(|scope| {
        let ask = |number: usize| {
            let session = sessions[number % 2].clone();
            let arguments = json!({"command": format!(": <'{}'; echo {number}", pipe.display())});
            let message = call(number as i64 + 1, "execute_command", arguments);
            scope.spawn(move || server.send(&Request::post(&message).session(&session)))
        };
        let asked: Vec<_> = (0..512).map(ask).collect();
        server.wait_for_metric("mcpz_runs_running 512");
        meanwhile();
        let _writer = std::fs::OpenOptions::new().read(true).write(true).open(pipe).unwrap();
        let answers = asked.into_iter().map(|asked| asked.join().unwrap());
        answers.map(|answer| answer.messages().pop().unwrap()).collect()
    })
}

fn pipe(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Each command has run, and once.
fn assert_all_ran(answers: &[Value]) {
    for (number, answer) in answers.iter().enumerate() {
        let reply = &answer["result"]["structuredContent"];
        assert_eq!(reply["output"], format!("{number}\n"), "{answer}");
    }
}

#[test]
fn a_burst_that_finds_the_agent_stopped_is_answered_to_the_last_call() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = pipe(&folder);
    let server = HttpServer::start_with(&[], "[limits]\nruns_per_client = 512\n");
    server.call(&server.open_session(), "execute_command", json!({"command": "true"}));
    let [agent] = children(server.child.id())[..] else { panic!("there is one agent") };
    kill("STOP", agent);
    assert_all_ran(&burst(&server, &pipe, || ()));
}

#[test]
fn all_commands_run_that_may_however_few_files_a_process_opens_at_first() {
    let mut server = Server::start_limited("-Sn 100");
    let calls: Vec<_> = (0..60)
        .map(|_| server.start_call(json!({"command": "echo begun; sleep 300", "timeout": 300})))
        .collect();
    calls.iter().for_each(|call| server.wait_for_output(*call, "begun"));
    assert_eq!(server.run("ulimit -Sn")["output"], "100\n", "that is not for commands");
}
