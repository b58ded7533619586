//! Jobs: commands that run while the client does something else.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::http::{HttpServer, Request, call};
use support::{Gate, Server, mark, survivors, wait_until};

/// Starts a job and returns what is told of it.
fn start(server: &mut Server, command: &str) -> Value {
    let reply = server.call(json!({"command": command, "background": true}));
    assert_eq!(reply["job_id"].as_str().map(|id| id.starts_with("job-")), Some(true), "{reply}");
    reply
}

/// The structure of a tool's answer.
fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

/// The text of an answer that only complains.
fn complaint(server: &mut Server, name: &str, arguments: Value) -> String {
    let answer = server.tool(name, arguments);
    assert_eq!(answer["isError"], true, "{answer}");
    answer["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_job_answers_at_once_with_its_first_output_and_goes_on() {
    let mut server = Server::start(&[]);
    let job = start(&mut server, "echo first; read line; echo \"got $line\"; exit 3");
    assert_eq!((&job["output"], &job["state"]), (&json!("first\n"), &json!("running")));
    assert!(job["pid"].as_i64().unwrap() > 1 && job["next_cursor"] == "bytes:6");
    let id = &job["job_id"];
    tool(&mut server, "write_job", json!({"job_id": id, "text": "a line\n"}));
    let told = tool(
        &mut server,
        "read_job",
        json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:6"}),
    );
    assert_eq!(told["output"], "got a line\n");
    assert_eq!((&told["state"], &told["exit_code"]), (&json!("exited"), &json!(3)));
    assert_eq!(told["timed_out"], Value::Null);
}

#[test]
fn what_a_job_prints_is_read_on_from_where_the_last_answer_ended() {
    let mut server = Server::start(&[]);
    let job = start(&mut server, "cat");
    let id = &job["job_id"];
    let write = |server: &mut Server, text: &str| {
        let arguments = json!({
            "job_id": id, "text": text, "wait_for": "text", "pattern": text.trim_end(),
        });
        tool(server, "write_job", arguments)
    };
    assert_eq!(write(&mut server, "one\n")["output"], "one\n");
    let two = write(&mut server, "two\n");
    assert_eq!((&two["output"], &two["matched"]), (&json!("two\n"), &json!("two")));
    let again = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
    assert_eq!(again["output"], "one\ntwo\n");
    let last = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0", "tail": 1}));
    assert_eq!(last["output"], "two\n");
    let found =
        tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0", "grep": "^o"}));
    assert_eq!(found["output"], "one\n");
    let ended =
        tool(&mut server, "write_job", json!({"job_id": id, "eof": true, "wait_for": "exit"}));
    assert_eq!((&ended["state"], &ended["exit_code"]), (&json!("exited"), &json!(0)));
}

#[test]
fn a_line_that_is_waited_for_is_found_when_it_comes() {
    let mut server = Server::start(&[]);
    let job =
        start(&mut server, "echo compiling; sleep 0.3; echo 'error: no such thing' >&2; sleep 100");
    let wait = json!({
        "job_id": job["job_id"], "wait_for": "text", "pattern": "^error: (.*)", "cursor": "bytes:0",
    });
    let told = tool(&mut server, "read_job", wait);
    assert_eq!(told["matched"], "error: no such thing");
    assert_eq!(told["state"], "running");
    let never = json!({
        "job_id": job["job_id"], "wait_for": "text", "pattern": "never", "timeout": 0.1,
    });
    assert_eq!(tool(&mut server, "read_job", never)["timed_out"], true);
}

/// Whoever starts a server and waits until it is ready may be told that it is by the first answer.
#[test]
fn a_line_that_came_with_the_first_answer_is_found_once() {
    let mut server = Server::start(&[]);
    let job = start(&mut server, "echo ready; cat");
    let begun = json!({"job_id": job["job_id"], "cursor": "bytes:0", "wait_for": "output"});
    let wait = json!({"job_id": job["job_id"], "wait_for": "text", "pattern": "ready"});
    let none = json!({
        "job_id": job["job_id"], "wait_for": "text", "pattern": "ready", "timeout": 0.1,
    });
    // What is not understood is no visit.
    let odd = json!({"job_id": job["job_id"], "wait_for": "text", "pattern": "("});
    assert_eq!(server.tool("read_job", odd)["isError"], true);
    assert_eq!(tool(&mut server, "read_job", wait)["matched"], "ready");
    assert_eq!(tool(&mut server, "read_job", none)["timed_out"], true);
    assert_eq!(tool(&mut server, "read_job", begun)["output"], "ready\n");
}

#[test]
fn a_prompt_without_an_end_of_line_is_seen() {
    let mut server = Server::start(&[]);
    let job = start(&mut server, "sleep 0.2; printf 'Name: '; read name; echo \"hello $name\"");
    let wait = json!({
        "job_id": job["job_id"], "wait_for": "text", "pattern": "Name: $", "cursor": "bytes:0",
    });
    assert_eq!(tool(&mut server, "read_job", wait)["output"], "Name: ");
    let write = json!({"job_id": job["job_id"], "text": "Ada\n", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", write)["output"], "hello Ada\n");
}

#[test]
fn silence_and_more_output_can_be_waited_for() {
    let mut server = Server::start(&[]);
    let job = start(&mut server, "for i in 1 2 3; do echo $i; sleep 0.05; done; sleep 100");
    let id = &job["job_id"];
    let quiet = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 1000, "cursor": "bytes:0"});
    assert_eq!(tool(&mut server, "read_job", quiet)["output"], "1\n2\n3\n");
    let more = json!({"job_id": id, "wait_for": "output", "timeout": 0.1});
    assert_eq!(tool(&mut server, "read_job", more)["timed_out"], true);
}

#[test]
fn several_jobs_are_waited_for_any_or_all() {
    let mut server = Server::start(&[]);
    let slow = start(&mut server, "read x; echo slow")["job_id"].clone();
    let fast = start(&mut server, "echo fast; exit 1")["job_id"].clone();
    let ids = json!([slow, fast]);
    let any = tool(&mut server, "read_job", json!({"job_ids": ids, "wait_for": "exit"}));
    assert_eq!(
        (&any["jobs"][0]["state"], &any["jobs"][1]["state"]),
        (&json!("running"), &json!("exited"))
    );
    assert_eq!(any["jobs"][0]["timed_out"], Value::Null, "it was not waited for any more");
    let all = json!({"job_ids": ids, "wait_for": "exit", "all": true, "timeout": 0.2});
    assert_eq!(tool(&mut server, "read_job", all)["jobs"][0]["timed_out"], true);
    tool(&mut server, "write_job", json!({"job_id": slow, "eof": true}));
    let all = json!({"job_ids": ids, "wait_for": "exit", "all": true});
    let all = tool(&mut server, "read_job", all);
    assert!(all["jobs"].as_array().unwrap().iter().all(|job| job["state"] == "exited"), "{all}");
}

#[test]
fn stopping_a_job_leaves_nothing_of_it() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let command = format!(
        "export MARK={mark}; trap '' TERM INT; (setsid sleep 300 &) ; sleep 300 & echo ready; while :; do sleep 1; done"
    );
    let job = start(&mut server, &command);
    wait_until("its processes", || (survivors(&mark).len() >= 3).then_some(()));
    let stopped = tool(&mut server, "stop_job", json!({"job_id": job["job_id"], "grace_ms": 100}));
    assert_eq!((&stopped["survivors"], &stopped["state"]), (&json!(0), &json!("stopped")));
    assert_eq!(stopped["signal"], "SIGKILL");
    assert!(survivors(&mark).is_empty());
}

#[test]
fn a_signal_is_sent_first_where_one_is_named() {
    let mut server = Server::start(&[]);
    let job =
        start(&mut server, "trap 'echo bye; exit 7' INT; echo ready; while :; do sleep 0.05; done");
    let stop = json!({"job_id": job["job_id"], "signal": "int", "grace_ms": 10_000});
    let stopped = tool(&mut server, "stop_job", stop);
    assert_eq!((&stopped["exit_code"], &stopped["state"]), (&json!(7), &json!("stopped")));
    let told = tool(&mut server, "read_job", json!({"job_id": job["job_id"]}));
    assert_eq!(told["output"], "bye\n");
    let unknown = json!({"job_id": job["job_id"], "signal": "SIGNOPE"});
    assert_eq!(
        complaint(&mut server, "stop_job", unknown),
        "Invalid arguments: unknown signal `SIGNOPE`"
    );
}

#[test]
fn what_a_command_leaves_running_is_a_job() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let reply =
        server.run(&format!("MARK={mark} sh -c 'sleep 0.3; echo later; sleep 300' & echo now"));
    assert_eq!(reply["output"], "now\n");
    let id = &reply["background_job"];
    let told = json!({"job_id": id, "wait_for": "text", "pattern": "later"});
    assert_eq!(tool(&mut server, "read_job", told)["state"], "running");
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": id}))["survivors"], 0);
    assert!(survivors(&mark).is_empty());
    let listed = tool(&mut server, "list_jobs", json!({}));
    assert_eq!(listed["jobs"][0]["state"], "stopped");
}

#[test]
fn a_call_that_takes_long_becomes_a_job() {
    let mut server = Server::start(&["--background-after", "1"]);
    let reply = server.call(json!({"command": "echo begun; sleep 1.5; echo done", "timeout": 2}));
    assert_eq!((&reply["output"], &reply["state"]), (&json!("begun\n"), &json!("running")));
    let wait = json!({"job_id": reply["job_id"], "wait_for": "exit"});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!((&told["output"], &told["exit_code"]), (&json!("done\n"), &json!(0)));
}

#[test]
fn whoever_follows_the_output_of_a_job_is_told_when_it_prints() {
    let mut server = Server::start(&[]);
    let gate = Gate::new();
    let command = format!("echo one; {}; echo two; sleep 300", gate.wait());
    let begun = server.call_raw(json!({"command": command, "background": true}));
    let uri = &begun["content"][1]["uri"];
    let listed = tool(&mut server, "list_jobs", json!({}));
    assert_eq!(&listed["jobs"][0]["output_uri"], uri);
    let subscribed = server.request("resources/subscribe", json!({"uri": uri}));
    assert_eq!(subscribed["result"], json!({}));
    drop(gate);
    let told = server.wait_for(|message| message["method"] == "notifications/resources/updated");
    assert_eq!(&told["params"]["uri"], uri);
    wait_until("all of it can be read", || {
        let read = server.request("resources/read", json!({"uri": uri}));
        (read["result"]["contents"][0]["text"] == "one\ntwo\n").then_some(())
    });
}

#[test]
fn jobs_end_with_the_connection() {
    let mark = mark();
    let mut server = Server::start(&[]);
    start(&mut server, &format!("MARK={mark} setsid sleep 300"));
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    server.close_stdin();
    server.wait();
    assert!(survivors(&mark).is_empty());
}

#[test]
fn there_is_a_limit_and_it_is_told() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&config, "[limits]\njobs = 1\n").unwrap();
    let mut server = Server::start(&["--config", config.path().to_str().unwrap()]);
    let job = start(&mut server, "sleep 300");
    let refused = server.call(json!({"command": "sleep 300", "background": true}));
    let text = "Failed to execute: the limit of running jobs (1) is reached; stop one, or wait for one to end";
    assert_eq!(refused["output"], text);
    tool(&mut server, "stop_job", json!({"job_id": job["job_id"]}));
    start(&mut server, "sleep 300");
}

#[test]
fn what_is_wrong_with_a_request_is_told() {
    let mut server = Server::start(&[]);
    let job = start(&mut server, "sleep 300")["job_id"].clone();
    for (name, arguments, expected) in [
        ("read_job", json!({"job_id": "job-99"}), "there is no job job-99"),
        ("read_job", json!({"job_id": "../1"}), "there is no job ../1"),
        ("read_job", json!({}), "Invalid arguments: pass either `job_id` or `job_ids`"),
        (
            "read_job",
            json!({"job_id": job, "wait_for": "text"}),
            "Invalid arguments: this `wait_for` needs `pattern`",
        ),
        (
            "read_job",
            json!({"job_id": job, "cursor": "x"}),
            "`x` is not a cursor; pass next_cursor unchanged",
        ),
    ] {
        assert_eq!(complaint(&mut server, name, arguments), expected);
    }
    let text = complaint(&mut server, "read_job", json!({"job_id": job, "lines": 3}));
    assert!(text.contains("unknown field `lines`, expected one of `job_id`, "), "{text}");
    let pattern = json!({"job_id": job, "wait_for": "text", "pattern": "("});
    let text = complaint(&mut server, "read_job", pattern);
    assert!(text.starts_with("the pattern is not a valid regular expression"), "{text}");
    let key = complaint(&mut server, "write_job", json!({"job_id": job, "keys": ["hyper-x"]}));
    assert!(key.starts_with("Invalid arguments: unknown key `hyper-x`; available: "), "{key}");
    let left = server.run("sleep 300 & true")["background_job"].clone();
    let deaf = complaint(&mut server, "write_job", json!({"job_id": left, "text": "x"}));
    assert!(deaf.starts_with("this job has no input"), "{deaf}");
}

#[test]
fn a_job_is_refused_like_any_command() {
    let mut server = Server::start(&["--deny", "rm"]);
    let reply = server.call(json!({"command": "rm -rf x", "background": true}));
    assert!(reply["output"].as_str().unwrap().starts_with("Command denied by security policy"));
    assert_eq!(tool(&mut server, "list_jobs", json!({}))["jobs"], json!([]));
}

#[test]
fn a_job_is_nobody_elses() {
    let tokens = "[http.tokens]\nada = \"ada-0123456789abcdef\"\nbob = \"bob-0123456789abcdef\"\n";
    let server = HttpServer::start_with(&[], tokens);
    let ask = |who: &str, name: &str, arguments: Value| {
        server.tool_by(&format!("{who}-0123456789abcdef"), name, arguments)
    };
    let job = ask("ada", "execute_command", json!({"command": "sleep 300", "background": true}));
    let id = &job["structuredContent"]["job_id"];
    let foreign = ask("bob", "read_job", json!({"job_id": id}));
    let missing = ask("bob", "read_job", json!({"job_id": "job-77"}));
    assert_eq!(foreign["content"][0]["text"], format!("there is no job {}", id.as_str().unwrap()));
    assert_eq!(missing["content"][0]["text"], "there is no job job-77");
    assert_eq!(ask("bob", "list_jobs", json!({}))["structuredContent"]["jobs"], json!([]));
    assert_eq!(
        ask("ada", "read_job", json!({"job_id": id}))["structuredContent"]["state"],
        "running"
    );
}

#[test]
fn jobs_of_somebody_who_is_not_heard_of_any_more_are_ended() {
    let mark = mark();
    let server = HttpServer::start_with(&[], "[http]\nsession_time = 1\n");
    let command = format!("MARK={mark} sleep 300");
    let job = json!({"command": command, "background": true});
    server.send(&Request::alone(call(1, "execute_command", job)));
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    wait_until("its end", || survivors(&mark).is_empty().then_some(()));
}

#[test]
fn a_job_that_does_not_read_is_not_sent_more_and_more() {
    let mut server = Server::start(&[]);
    let id = start(&mut server, "sleep 300")["job_id"].clone();
    let text = "x".repeat(500_000);
    let quiet =
        |text: &str| json!({"job_id": id, "text": text, "wait_for": "output", "timeout": 0.01});
    let answers: Vec<_> = (0..6).map(|_| server.tool("write_job", quiet(&text))).collect();
    assert_ne!(answers[0]["isError"], true);
    let text = answers[5]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("has not read its earlier input"), "{text}");
}
