//! Sessions, terminals and jobs inside a sandbox, and that nothing outlives it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::http::{HttpServer, Request, call};
use support::sandbox::{Place, fails, tool, warnings, works};
use support::{Server, agents, children, kill, mark, name, survivors, wait_until};

/// Processes that leave their parent, their group and their session, and do not mind being asked.
const TREE: &str = "trap '' TERM; sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & sleep 300' &); \
    nohup sleep 300 >/dev/null 2>&1 & echo ready; sleep 300";

/// Starts such processes and waits until they stand.
fn plant(server: &mut Server, mark: &str) -> i64 {
    let call = server.start_call(json!({"command": TREE, "environment": {"MARK": mark}}));
    server.wait_for_output(call, "ready");
    wait_until("the processes stand", || (survivors(mark).len() >= 5).then_some(()));
    call
}

/// The processes of a sandbox from outside: what bubblewrap is, what is first inside, the agent.
fn ring(server: &Server) -> [u32; 3] {
    let only = |pids: Vec<u32>| match pids[..] {
        [only] => only,
        ref all => panic!("there should be one: {all:?}"),
    };
    let outer = only(agents(server));
    let first = only(children(outer));
    [outer, first, only(children(first))]
}

/// Whether commands of a server are confined: they cannot write where it starts from.
fn assert_confined(server: &mut Server, arguments: Value) -> Value {
    let mut arguments = arguments;
    arguments["command"] = json!("echo x > ../outside; echo \"code $?\"; ls /tmp");
    let reply = server.call(arguments);
    let output = reply["output"].as_str().unwrap();
    assert!(output.contains("code 1") || output.contains("code 2"), "{reply}");
    reply
}

#[test]
fn a_session_remembers_where_it_is_and_stays_inside() {
    for place in [Place::new(), Place::ordinary()] {
        let mut server = place.workspace();
        let order = |text: &str| json!({"command": text, "session": "s", "timeout": 20});
        server.call(order("mkdir sub; cd sub; x=1"));
        assert_eq!(
            server.call(order("echo $x; pwd"))["output"].as_str().unwrap().lines().count(),
            2
        );
        server.call(order("cd .."));
        assert_confined(&mut server, json!({"session": "s"}));
    }
}

#[test]
fn a_command_in_a_session_ends_at_its_deadline_and_the_session_goes_on() {
    for place in [Place::new(), Place::ordinary()] {
        let mark = mark();
        let mut server = place.workspace();
        server.call(json!({"command": "x=kept", "session": "s"}));
        let command = format!("MARK={mark} sleep 300");
        let slow = server.call(json!({"command": command, "session": "s", "timeout": 1}));
        assert_eq!((&slow["timed_out"], &slow["session"]), (&json!(true), &json!("s")));
        assert_eq!(survivors(&mark), [""; 0]);
        let after = server.call(json!({"command": "echo $x", "session": "s"}));
        assert_eq!(after["output"], "kept\n", "{after}");
    }
}

#[test]
fn a_program_that_asks_in_a_sandbox_is_known_to_ask() {
    for place in [Place::new(), Place::ordinary()] {
        let mut server = place.workspace();
        let command = "printf 'Your name: '; read name; echo \"hello $name\"; tty";
        let asked = server.call(json!({"command": command, "tty": true}));
        assert_eq!(
            (&asked["waiting_for_input"], &asked["prompt"]),
            (&json!(true), &json!("Your name:"))
        );
        let typed = json!({"job_id": asked["job_id"], "text": "ada\n", "wait_for": "exit"});
        let told = tool(&mut server, "write_job", typed);
        assert!(told["screen"].as_str().unwrap().contains("hello ada"), "{told}");
        assert_eq!(told["exit_code"], 0, "{told}");
    }
}

#[test]
fn a_job_is_told_things_and_stopped_with_all_it_started() {
    for place in [Place::new(), Place::ordinary()] {
        let mark = mark();
        let mut server = place.workspace();
        let command = format!("export X={mark}; setsid sleep 300 & cat");
        let job = server.call(json!({"command": command, "background": true}))["job_id"].clone();
        let typed = json!({"job_id": job, "text": "line\n", "wait_for": "text", "pattern": "line"});
        assert_eq!(tool(&mut server, "write_job", typed)["matched"], "line");
        assert_eq!(tool(&mut server, "stop_job", json!({"job_id": job}))["survivors"], 0);
        assert_eq!(survivors(&mark), [""; 0]);
    }
}

#[test]
fn what_a_command_leaves_running_is_a_job_and_ends_with_the_server() {
    let (place, mark) = (Place::new(), mark());
    let mut server = place.workspace();
    let command =
        json!({"command": "sleep 300 & setsid sleep 300 & true", "environment": {"MARK": mark}});
    let reply = server.call(command);
    assert_eq!(reply["background_pids"].as_array().unwrap().len(), 2, "{reply}");
    assert_eq!(survivors(&mark).len(), 2);
    let stopped = tool(&mut server, "stop_job", json!({"job_id": reply["background_job"]}));
    assert_eq!(stopped["survivors"], 0);
    assert_eq!(survivors(&mark), [""; 0]);
    plant(&mut server, &mark);
    server.close_stdin();
    assert!(server.wait().success());
    assert_eq!(survivors(&mark), [""; 0]);
    place.wait_until_tidy(&mark, &[]);
}

#[test]
fn a_deadline_and_a_cancellation_leave_nothing_behind() {
    for place in [Place::new(), Place::ordinary()] {
        let mark = mark();
        let mut server = place.workspace();
        let late =
            server.call(json!({"command": TREE, "environment": {"MARK": mark}, "timeout": 1}));
        assert_eq!((&late["timed_out"], &late["output"]), (&json!(true), &json!("ready\n")));
        assert_eq!(survivors(&mark), [""; 0]);
        let call = plant(&mut server, &mark);
        server.notify("notifications/cancelled", json!({"requestId": call}));
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
        assert_eq!(works(&mut server, "echo still here"), "still here\n");
    }
}

#[test]
fn a_killed_server_leaves_nothing_behind_but_names_that_the_next_one_takes() {
    for place in [Place::new(), Place::ordinary()] {
        let mark = mark();
        let mut server = place.workspace();
        plant(&mut server, &mark);
        let ring = ring(&server);
        server.signal("KILL");
        server.wait();
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
        wait_until("the sandbox is gone", || ring.iter().all(|it| is_gone(*it)).then_some(()));
        let mut server = place.workspace();
        fails(&mut server, "echo x > .vscode/settings.json");
        drop(server);
        place.wait_until_tidy(&mark, &[]);
    }
}

#[test]
fn a_sandbox_of_which_a_part_is_killed_is_ended_and_the_next_command_has_another() {
    let place = Place::new();
    for part in 0..3 {
        let mark = mark();
        let mut server = place.workspace();
        let call = plant(&mut server, &mark);
        let ring = ring(&server);
        kill("KILL", ring[part]);
        let reply = server.answer(call)["result"]["structuredContent"].clone();
        assert_eq!(reply["return_code"], -1, "{part}: {reply}");
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
        wait_until("the sandbox is gone", || ring.iter().all(|it| is_gone(*it)).then_some(()));
        assert_confined(&mut server, json!({}));
        drop(server);
        place.wait_until_tidy(&mark, &[]);
    }
}

#[test]
fn a_new_sandbox_tells_why_and_which_jobs_are_out_of_reach() {
    let place = Place::new();
    let config = place.write("work/.mcp.json", "{}");
    let mut server = place.workspace();
    let job = server.call(json!({"command": "sleep 300", "background": true}))["job_id"].clone();
    std::fs::write(config.with_extension("new"), "{}").unwrap();
    std::fs::rename(config.with_extension("new"), &config).unwrap();
    let told = warnings(&server.run("true"));
    for part in [config.to_str().unwrap(), "/tmp is empty now", job.as_str().unwrap()] {
        assert!(told.contains(part), "{told}");
    }
    assert!(server.run("true")["warnings"].is_null(), "it is told once");
    assert_eq!(tool(&mut server, "stop_job", json!({"job_id": job}))["survivors"], 0);
}

#[test]
fn a_command_cannot_end_what_keeps_it() {
    let (place, mark) = (Place::new(), mark());
    let mut server = place.workspace();
    // Never outside: what it would end there is the machine.
    let command = "test -x /run/mcpz || exit 9; kill -KILL 1 2 $PPID; kill -KILL -1; echo alone";
    let reply = server.call(json!({"command": command, "environment": {"MARK": mark}}));
    assert_ne!(reply["return_code"], 9, "{reply}");
    assert_eq!(works(&mut server, "echo still here"), "still here\n", "{reply}");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
}

/// What a detached job does until it is let go: a file in its folder says when.
const DETACHED: &str = "echo begun; until [ -e go ]; do sleep 0.02; done; echo x > ../outside; \
    echo x > .vscode/settings.json; echo x > inside; ls -A /tmp; exit 7";

#[test]
fn a_detached_job_is_still_confined_when_its_server_was_killed() {
    for place in [Place::new(), Place::ordinary()] {
        let mark = mark();
        let mut server = place.workspace();
        let command = json!({"command": DETACHED, "detach": true, "environment": {"MARK": mark}});
        let job = server.call(command);
        assert_eq!(job["state"], "running", "{job}");
        server.signal("KILL");
        server.wait();
        let mut server = place.workspace();
        std::fs::write(place.work().join("go"), "").unwrap();
        let wait = json!({"job_id": job["job_id"], "wait_for": "exit", "cursor": "bytes:0"});
        let told = tool(&mut server, "read_job", wait);
        assert_eq!((&told["state"], &told["exit_code"]), (&json!("exited"), &json!(7)), "{told}");
        assert!(warnings(&told).contains("outside the writable directories"), "{told}");
        assert!(!place.home().join("outside").exists() && place.work().join("inside").exists());
        drop(server);
        place.wait_until_tidy(&mark, &["go", "inside"]);
    }
}

#[test]
fn a_detached_job_that_is_stopped_leaves_nothing_behind() {
    let place = Place::new();
    let mut server = place.workspace();
    for part in ["nothing", "recorder"] {
        let mark = mark();
        let command = json!({"command": TREE, "detach": true, "environment": {"MARK": mark}});
        let job = server.call(command);
        wait_until("the processes stand", || (survivors(&mark).len() >= 5).then_some(()));
        let [first, ..] = &survivors(&mark)[..] else { panic!("there are some") };
        let recorder = recorder_above(first);
        let mut below: Vec<_> = children(recorder).into_iter().map(name).collect();
        below.sort();
        // Not even what has ended.
        assert_eq!(below, ["bwrap", "mcpz-homes"], "nothing but the sandbox");
        match part {
            "recorder" => {
                kill("KILL", recorder);
                let wait = json!({"job_id": job["job_id"], "wait_for": "exit"});
                assert_eq!(tool(&mut server, "read_job", wait)["state"], "lost");
            }
            _ => {
                let stopped = tool(&mut server, "stop_job", json!({"job_id": job["job_id"]}));
                assert_eq!(stopped["survivors"], 0);
            }
        }
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    }
    drop(server);
    place.wait_until_tidy(&mark(), &[]);
}

/// The recorder of a process, as `survivors` shows that.
fn recorder_above(process: &str) -> u32 {
    let mut pid = process.split(['/', ':']).nth(2).unwrap().parse().unwrap();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        if stat.contains("(mcpz-record)") {
            return pid;
        }
        pid = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    }
}

fn is_gone(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_sandbox_whose_owner_was_not_heard_of_is_let_go() {
    let place = Place::new();
    let directory = place.work();
    let flags = ["--sandbox", "workspace", "--working-dir", directory.to_str().unwrap()];
    let server = HttpServer::start_with(&flags, "[http]\nsession_time = 1\n");
    let request = Request::alone(call(1, "execute_command", json!({"command": "echo here"})));
    let ask = || server.send(&request).messages().pop().unwrap().to_string();
    assert!(ask().contains("here"));
    assert!(!children(server.child.id()).is_empty());
    let gone = || children(server.child.id()).is_empty().then_some(());
    wait_until("the sandbox is gone", gone);
    assert!(ask().contains("here"));
}
