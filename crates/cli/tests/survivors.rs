//! Nothing survives: whatever ends a command ends all of it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use support::{MCPZ, Server, children, kill, mark, name, survivors, wait_until};

/// Commands whose processes are hard to end. Each says `ready` when they are all there.
const TREES: &[(&str, &str)] = &[
    ("a pipeline", "sleep 300 | sleep 300 | sh -c 'echo ready; sleep 300'"),
    ("a session of its own", "setsid sleep 300 & setsid -f sleep 300; echo ready; wait"),
    (
        "a double fork",
        "(sh -c 'sleep 300 & sleep 300 & wait' &) ; (setsid sh -c '(sleep 300 &)'); echo ready; sleep 300",
    ),
    ("nohup in the background", "nohup sleep 300 >/dev/null 2>&1 & echo ready; sleep 300"),
    ("deaf to TERM", "trap '' TERM HUP INT; sleep 300 & echo ready; while :; do sleep 1; done"),
    ("a stopped child", "sleep 300 & kill -STOP $!; echo ready; wait"),
    ("a stopped shell", "sleep 300 & echo ready; kill -STOP $$; sleep 300"),
    ("job control", "set -m; sleep 300 & sleep 300 & echo ready; wait"),
    (
        "200 processes",
        "i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done; echo ready; wait",
    ),
    (
        "a process that forks away again and again",
        r#"export S='trap "" TERM; sleep 0.05; sh -c "$S" &'; sh -c "$S"; echo ready; sleep 300"#,
    ),
];

/// Starts all trees in one server and waits until they stand.
fn plant(server: &mut Server, mark: &str, timeout: Option<f64>) -> Vec<i64> {
    let calls: Vec<_> = TREES
        .iter()
        .map(|(_, command)| {
            let mut arguments = json!({"command": command, "environment": {"MARK": mark}});
            arguments["timeout"] = timeout.map_or(json!(300), |timeout| json!(timeout));
            server.start_call(arguments)
        })
        .collect();
    if timeout.is_none() {
        for call in &calls {
            server.wait_for_output(*call, "ready");
        }
        assert!(survivors(mark).len() > 200, "the trees stand");
    }
    calls
}

#[test]
fn a_timeout_leaves_no_process_behind() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let calls = plant(&mut server, &mark, Some(2.0));
    for (call, (name, _)) in calls.into_iter().zip(TREES) {
        let answer = server.answer(call);
        let reply = &answer["result"]["structuredContent"];
        assert_eq!(reply["timed_out"], true, "{name}: {answer}");
        assert!(reply["background_pids"].is_null(), "{name}: {answer}");
    }
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_cancellation_leaves_no_process_behind() {
    let mark = mark();
    let mut server = Server::start(&[]);
    for call in plant(&mut server, &mark, None) {
        server.notify("notifications/cancelled", json!({"requestId": call}));
    }
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    let reply = server.run("echo still here");
    assert_eq!(reply["output"], "still here\n", "{reply}");
}

#[test]
fn a_client_that_closes_the_stream_leaves_no_process_behind() {
    let mark = mark();
    let mut server = Server::start(&[]);
    plant(&mut server, &mark, None);
    server.close_stdin();
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_server_told_to_end_leaves_no_process_behind() {
    for signal in ["TERM", "INT", "HUP"] {
        let mark = mark();
        let mut server = Server::start(&[]);
        plant(&mut server, &mark, None);
        server.signal(signal);
        assert!(server.wait().success(), "{signal}");
        assert_eq!(survivors(&mark), [""; 0], "{signal}");
    }
}

#[test]
fn an_agent_that_is_killed_with_all_its_keepers_leaves_no_process_behind() {
    let folder = support::open_folder();
    for start in [Server::start_ordinary, |_: &Path| Server::start(&[])] {
        let mut server = start(folder.path());
        for _ in 0..3 {
            let mark = mark();
            let calls = plant(&mut server, &mark, None);
            let [agent] = children(server.child.id())[..] else { panic!("there is one agent") };
            let ids = children(agent).into_iter().chain([agent]).map(|id| id.to_string());
            assert!(Command::new("kill").arg("-9").args(ids).status().unwrap().success());
            for call in calls {
                let answer = server.answer(call);
                assert_eq!(answer["result"]["structuredContent"]["return_code"], -1, "{answer}");
            }
            wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
            assert_eq!(server.run("echo still here")["output"], "still here\n");
            let only_agent = || (children(server.child.id()).len() == 1).then_some(());
            wait_until("everything that was inherited is reaped", only_agent);
        }
    }
}

#[test]
fn a_recorder_that_is_killed_with_its_keeper_leaves_no_process_behind() {
    let mark = mark();
    let mut server = Server::start(&[]);
    for _ in 0..5 {
        let command = format!("export MARK={mark}; setsid sleep 300 & sleep 300");
        server.call(json!({"command": command, "detach": true}));
        let below = children(server.child.id());
        let recorder = below.into_iter().find(|id| name(*id) == "mcpz-record").unwrap();
        let ids = children(recorder).into_iter().chain([recorder]).map(|id| id.to_string());
        assert!(Command::new("kill").arg("-9").args(ids).status().unwrap().success());
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    }
    server.call(json!({"command": "exit 0", "detach": true}));
    let only_agent = || (children(server.child.id()).len() == 1).then_some(());
    wait_until("all recorders are reaped", only_agent);
}

/// Without the rights to make a cgroup, keepers have to look and signal. Only root can become
/// somebody else; for others, the tests around this one show the same.
#[test]
fn an_ordinary_user_leaves_no_process_behind_either() {
    let folder = support::open_folder();
    let mark = mark();
    let mut server = Server::start_ordinary(folder.path());
    for call in plant(&mut server, &mark, None) {
        server.notify("notifications/cancelled", json!({"requestId": call}));
    }
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    plant(&mut server, &mark, None);
    server.close_stdin();
    server.wait();
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_killed_server_leaves_no_process_behind() {
    let mark = mark();
    let mut server = Server::start(&[]);
    plant(&mut server, &mark, None);
    let agent = children(server.child.id());
    server.signal("KILL");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    wait_until("the agent is gone", || agent.iter().all(|pid| is_gone(*pid)).then_some(()));
}

#[test]
fn a_killed_agent_leaves_no_process_behind() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let calls = plant(&mut server, &mark, None);
    let [agent] = children(server.child.id())[..] else { panic!("a server has one child") };
    kill("KILL", agent);
    for call in calls {
        let answer = server.answer(call);
        let reply = &answer["result"]["structuredContent"];
        assert_eq!(reply["return_code"], -1, "{answer}");
    }
    // Where there are no cgroups, keepers have to notice, look and signal.
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    let reply = server.run("echo still here");
    assert_eq!(reply["output"], "still here\n", "{reply}");
}

#[test]
fn a_command_that_kills_its_keeper_does_not_get_away() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let answer = server.call_raw(json!({
        "command": "sleep 300 & setsid sleep 300 & kill -KILL $PPID; sleep 300",
        "environment": {"MARK": mark},
    }));
    assert_eq!(answer["isError"], true, "{answer}");
    assert_eq!(survivors(&mark), [""; 0]);
    let reply = server.run("echo still here");
    assert_eq!(reply["output"], "still here\n", "{reply}");
}

#[test]
fn a_command_that_stops_its_keeper_does_not_get_away() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let reply = server.call(json!({
        "command": "echo begun; kill -STOP $PPID; setsid sleep 300 & sleep 300",
        "environment": {"MARK": mark},
        "timeout": 1,
    }));
    assert_eq!((&reply["output"], &reply["timed_out"]), (&json!("begun\n"), &json!(true)));
    assert_eq!(survivors(&mark), [""; 0]);
    let call = server.start_call(json!({
        "command": "kill -STOP $PPID; echo begun; sleep 300",
        "environment": {"MARK": mark},
    }));
    server.wait_for_output(call, "begun");
    let [agent] = children(server.child.id())[..] else { panic!("a server has one child") };
    kill("STOP", agent);
    server.signal("TERM");
    server.wait();
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn a_process_whose_first_thread_has_left_does_not_get_away() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let program = "import ctypes, threading, time
threading.Thread(target=time.sleep, args=(300,)).start()
print('begun', flush=True)
ctypes.CDLL(None).pthread_exit(None)";
    let reply = server.call(json!({
        "command": format!("python3 -c \"{program}\""),
        "environment": {"MARK": mark},
        "timeout": 2,
    }));
    assert_eq!((&reply["output"], &reply["timed_out"]), (&json!("begun\n"), &json!(true)));
    assert!(reply["background_pids"].is_null(), "{reply}");
    assert_eq!(server.run("echo still here")["output"], "still here\n");
}

#[test]
fn nothing_is_started_once_the_server_is_ending() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let deaf = server
        .start_call(json!({"command": "trap '' TERM; echo ready; while :; do sleep 1; done"}));
    server.wait_for_output(deaf, "ready");
    server.signal("TERM");
    let arguments = json!({"command": "sleep 300", "environment": {"MARK": mark}});
    let call = json!({
        "jsonrpc": "2.0", "id": "late", "method": "tools/call",
        "params": {"name": "execute_command", "arguments": arguments},
    });
    // Until it has left.
    while server.try_send(&call).is_ok() {}
    server.wait();
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn what_a_command_leaves_running_is_told_and_ends_with_the_server() {
    let mark = mark();
    let mut server = Server::start(&[]);
    let reply = server.call(json!({
        "command": "sleep 300 & echo $!",
        "environment": {"MARK": mark},
    }));
    let pid: u32 = reply["output"].as_str().unwrap().trim().parse().unwrap();
    assert_eq!(reply["return_code"], 0);
    assert_eq!(reply["background_pids"], json!([pid]));
    assert_eq!(survivors(&mark).len(), 1);
    server.close_stdin();
    server.wait();
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn what_was_left_running_can_go_on_printing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("done");
    let mut server = Server::start(&[]);
    // More than a pipe holds: it would stop, or die of SIGPIPE, if nobody read on.
    let command = format!(
        "(sleep 0.3; head -c 300000 /dev/zero && echo yes > '{}') & echo started",
        file.display()
    );
    assert_eq!(server.run(&command)["output"], "started\n");
    wait_until("it is done", || file.exists().then_some(()));
}

/// Where there is a freezer that may be used: version 1 keeps even SIGKILL waiting.
#[test]
fn a_frozen_process_ends_too() {
    let mut server = Server::start(&[]);
    let freezer = Path::new("/sys/fs/cgroup/freezer");
    let folder = freezer.join(format!("mcpz-test-{}", std::process::id()));
    if std::fs::create_dir(&folder).is_err() {
        return;
    }
    let mark = mark();
    let reply = server.call(json!({
        "command": "sleep 300 & echo $! > $FOLDER/cgroup.procs
            echo FROZEN > $FOLDER/freezer.state
            until grep FROZEN $FOLDER/freezer.state; do sleep 0.01; done; wait",
        "environment": {"MARK": mark, "FOLDER": folder},
        "timeout": 3,
    }));
    assert_eq!(reply["output"], "FROZEN\n");
    assert!(reply["background_pids"].is_null(), "{reply}");
    assert_eq!(survivors(&mark), [""; 0]);
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn cgroup_folders_go_with_the_server() {
    let mut server = Server::start(&[]);
    server.run("true");
    let [agent] = children(server.child.id())[..] else { panic!("a server has one child") };
    server.close_stdin();
    server.wait();
    let name = format!("mcpz-{agent}");
    let find = Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&find.stdout), "");
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// The folders in which an agent holds its commands to limits, if it could make any.
fn cgroups(agent: u32) -> String {
    let name = format!("mcpz-{agent}");
    let found = Command::new("find").args(["/sys/fs/cgroup", "-name", &name]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).into_owned()
}

#[test]
fn a_server_with_many_commands_is_not_gone_before_them() {
    for how in ["TERM", "KILL", "closing"] {
        let mark = mark();
        let mut server = Server::start(&[]);
        server.run("true");
        let [agent] = children(server.child.id())[..] else { panic!("there is one agent") };
        let command = format!("export X={mark}; setsid sleep 1000 & sleep 1000");
        for _ in 0..150 {
            let call = json!({"name": "execute_command", "arguments": {"command": command}});
            server.ask("tools/call", call);
        }
        wait_until("all run", || (survivors(&mark).len() >= 300).then_some(()));
        match how {
            "closing" => server.close_stdin(),
            signal => server.signal(signal),
        }
        server.wait();
        if how == "KILL" {
            // Nobody waits for them then but the agent.
            wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
            wait_until("no folder is left", || cgroups(agent).is_empty().then_some(()));
        }
        assert_eq!(survivors(&mark), [""; 0], "{how}");
        assert_eq!(cgroups(agent), "", "{how}");
    }
}

/// The server's agent, and a keeper of it that has nothing to do.
fn agent_and_keeper(server: &mut Server) -> (u32, u32) {
    server.run("true");
    let agent = *children(server.child.id()).first().unwrap();
    (agent, wait_until("there is a keeper", || children(agent).first().copied()))
}

#[test]
fn an_agent_that_is_stopped_when_its_server_is_killed_is_not_left_behind() {
    let mut server = Server::start(&[]);
    let (agent, keeper) = agent_and_keeper(&mut server);
    kill("STOP", agent);
    server.signal("KILL");
    for pid in [agent, keeper] {
        wait_until("they are gone", || is_gone(pid).then_some(()));
    }
}

#[test]
fn a_keeper_that_is_stopped_when_its_agent_is_killed_is_not_left_behind() {
    for after in [false, true] {
        let mut server = Server::start(&[]);
        let (agent, keeper) = agent_and_keeper(&mut server);
        match after {
            // As one process after the other is stopped and killed by somebody else.
            true => {
                kill("KILL", agent);
                let _ = Command::new("kill").args(["-STOP", &keeper.to_string()]).output();
            }
            false => {
                kill("STOP", keeper);
                kill("KILL", agent);
            }
        }
        wait_until("it is gone", || is_gone(keeper).then_some(()));
        assert_eq!(server.run("echo on")["output"], "on\n");
    }
}

/// The first child of a process, as soon as it has executed something.
fn first_child(parent: u32) -> Option<Pid> {
    let listed = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let child = listed.split_whitespace().next()?.parse().ok()?;
    // Until then it has the name of its parent.
    let is_other = name(u32::try_from(child).ok()?) != name(parent);
    Pid::from_raw(child).filter(|_| is_other)
}

#[test]
fn an_agent_that_is_stopped_at_its_first_moment_is_not_left_behind() {
    for _ in 0..5 {
        let mut command = Command::new(MCPZ);
        let mut server = Server::from_command(command.args(["server", "shell"]));
        server.ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}),
        );
        server.ask("tools/call", json!({"name": "execute_command", "arguments": {"command": ":"}}));
        let until = Instant::now() + Duration::from_secs(60);
        let agent = loop {
            match first_child(server.child.id()) {
                Some(agent) => break agent,
                None => assert!(Instant::now() < until, "it has no agent"),
            }
        };
        kill_process(agent, Signal::STOP).unwrap();
        server.signal("KILL");
        let agent = agent.as_raw_nonzero().get().cast_unsigned();
        wait_until("the agent is gone", || is_gone(agent).then_some(()));
    }
}
