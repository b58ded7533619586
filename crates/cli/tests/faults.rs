//! What a server does when the machine gives it nothing more.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::json;
use support::{Server, agents, children, kill, open_folder, read, wait_until};

const SANDBOX: [&str; 2] = ["--sandbox", "workspace"];

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
fn after_the_agent_was_killed_its_runs_are_lost_and_the_next_call_is_answered() {
    let mut server = Server::start(&["--tools", "all"]);
    let job = server.call(json!({"command": "trap 'exit 7' TERM; sleep 1000", "background": true}));
    let session = server.call(json!({"command": "echo", "session": "work"}));
    assert_eq!(session["return_code"], 0);
    let left = server.run("sleep 1000 & echo hi");
    assert_eq!((&left["output"], &left["return_code"]), (&json!("hi\n"), &json!(0)));
    let tools = [
        ("execute_command", json!({"command": "sleep 1000"})),
        ("shell", json!({"command": "sleep 1000; true"})),
        ("run_shell_command", json!({"command": "sleep 1000", "is_background": false})),
        ("shell_exec", json!({"cmd": "sleep 1000 | cat"})),
        ("execute", json!({"command": "sleep 1000"})),
    ];
    let asked = tools.map(|(name, arguments)| {
        server.ask("tools/call", json!({"name": name, "arguments": arguments}))
    });
    let [agent] = children(server.child.id())[..] else { panic!("there is one agent") };
    wait_until("all of them run", || {
        let sleeping = survivors_below(agent);
        (sleeping >= 7).then_some(())
    });
    kill("KILL", agent);
    for id in asked {
        let answer = server.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"].to_string();
        assert!(
            text.contains("was killed or is out of reach, which ended the command"),
            "{answer}"
        );
    }
    for job in [&job["job_id"], &left["background_job"]] {
        let wait = json!({"job_id": job, "wait_for": "exit"});
        let told = server.tool("read_job", wait)["structuredContent"].clone();
        assert_eq!(told["state"], "lost", "{told}");
        assert!(told["message"].as_str().unwrap().contains("was killed"), "{told}");
    }
    assert_eq!(server.run("echo again")["output"], "again\n");
    let folder = format!("mcpz-{agent}");
    wait_until("its folders are gone", || {
        let found = Command::new("find").args(["/sys/fs/cgroup", "-name", &folder]).output();
        found.unwrap().stdout.is_empty().then_some(())
    });
}

/// How many processes called `sleep` there are below the keepers of an agent.
fn survivors_below(agent: u32) -> usize {
    let mut found = 0;
    let mut below = children(agent);
    while let Some(pid) = below.pop() {
        found += usize::from(support::name(pid) == "sleep");
        below.extend(children(pid));
    }
    found
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

/// All of ours below a server that are called like this.
fn ours(server: &Server, name: &str) -> Vec<u32> {
    let (mut found, mut below) = (Vec::new(), children(server.child.id()));
    while let Some(pid) = below.pop() {
        if support::name(pid).starts_with(name) {
            found.push(pid);
        }
        below.extend(children(pid));
    }
    found
}

#[test]
fn calls_in_a_sandbox_whose_agent_is_killed_are_started_by_the_next_one_if_they_were_not() {
    let mut server = Server::start(&SANDBOX);
    for round in 0..12 {
        assert_eq!(server.run("echo before")["output"], "before\n");
        let agent = agents(&server)[0];
        let calls: Vec<_> =
            (0..60).map(|_| server.start_call(json!({"command": "echo ran"}))).collect();
        // Sooner or later while they are started.
        std::thread::sleep(std::time::Duration::from_millis(round));
        kill("KILL", agent);
        for id in calls {
            let answer = server.answer(id)["result"]["content"].to_string();
            assert!(!answer.contains("the agent is gone"), "round {round}: {answer}");
        }
    }
}

#[test]
fn an_agent_and_keepers_that_are_all_stopped_are_woken_for_a_call() {
    for flags in [&[][..], &SANDBOX] {
        let mut server = Server::start(flags);
        server.run("true");
        for pid in ours(&server, "mcpz-") {
            kill("STOP", pid);
        }
        assert_eq!(server.run("echo awake")["output"], "awake\n", "{flags:?}");
    }
}

#[test]
fn an_agent_that_is_stopped_is_woken_at_once() {
    let mut server = Server::start(&[]);
    server.run("true");
    let [agent] = children(server.child.id())[..] else { panic!("there is one agent") };
    for _ in 0..20 {
        kill("STOP", agent);
        wait_until("it is awake", || {
            let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
            (!stat.contains(") T ")).then_some(())
        });
    }
}

#[test]
fn a_sandbox_whose_agent_and_keepers_are_all_stopped_ends_with_its_server() {
    let mut server = Server::start(&SANDBOX);
    server.call(json!({"command": "sleep 1000", "background": true}));
    let all = ours(&server, "mcpz-");
    assert!(all.len() >= 2, "{all:?}");
    for pid in &all {
        kill("STOP", *pid);
    }
    let began = std::time::Instant::now();
    server.close_stdin();
    server.wait();
    assert!(began.elapsed().as_secs() < 30, "the server gives up after a minute");
    let left = all.iter().filter(|pid| std::fs::exists(format!("/proc/{pid}")).unwrap());
    assert_eq!(left.count(), 0);
}

#[test]
fn a_run_that_is_lost_tells_how_long_it_took() {
    for flags in [&[][..], &SANDBOX] {
        let mut server = Server::start(flags);
        server.run("true");
        let id = server.start_call(json!({"command": "sleep 1000"}));
        let [agent] = agents(&server)[..] else { panic!("there is one agent") };
        wait_until("it runs", || (survivors_below(agent) > 0).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(300));
        for pid in ours(&server, "mcpz-keeper") {
            kill("KILL", pid);
        }
        let reply = server.answer(id)["result"]["structuredContent"].clone();
        assert!(reply["duration_ms"].as_u64().unwrap() >= 300, "{flags:?}: {reply}");
    }
}
