//! What a command may use: whoever takes more is ended, is told what of, and hurts nobody else.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::http::{HttpServer, TOKEN};
use support::{MCPZ, Server, mark, open_folder, survivors, wait_until};
use tempfile::TempDir;

const LIMITS: &str = "[limits]
memory = \"100MB\"
processes = 60
file_size = \"2MB\"
cpu_time = 1
open_files = 80
";

/// As an ordinary user, not even one that is not ended takes all there is. Then it waits, so that it never runs out of
/// CPU time first; a shell that cannot fork would end.
const FORK_BOMB: &str = "ulimit -p 500 2>/dev/null || ulimit -u 500
exec perl -e 'while (1) { sleep 1 unless defined fork }'";
const MEMORY_BOMB: &str = "tail /dev/zero";
const BUSY_LOOP: &str = "while :; do :; done";

/// Held by tests with fork bombs: how many processes a user may have counts all of them.
fn only_bomb() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn config(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("limits.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn limited(text: &str) -> (Server, TempDir) {
    let folder = open_folder();
    let file = config(folder.path(), text);
    (Server::start(&["--config", file.to_str().unwrap()]), folder)
}

/// Does the same as whoever runs this, with cgroups if that is root, and as an ordinary user, without.
fn as_everybody(test: impl Fn(&mut Server, &Path)) {
    let (mut server, folder) = limited(LIMITS);
    test(&mut server, folder.path());
    let folder = open_folder();
    let file = config(folder.path(), LIMITS);
    let home = open_folder();
    let flags = ["--config", file.to_str().unwrap()];
    let mut server = Server::start_ordinary_with(home.path(), &flags);
    test(&mut server, folder.path());
}

/// Runs what goes too far. The limit ends it, and all of it: it would not end by itself.
fn too_far(server: &mut Server, command: &str, limit: &str) -> Value {
    let mark = mark();
    let reply = server.call(json!({"command": command, "environment": {"MARK": mark}}));
    assert_eq!(reply["limit"], limit, "{reply}");
    wait_until("all of it has ended", || survivors(&mark).is_empty().then_some(()));
    // The next one is not taken for it.
    let next = server.run("echo still here; exit 3");
    assert_eq!((&next["output"], &next["return_code"]), (&json!("still here\n"), &json!(3)));
    assert!(next["limit"].is_null(), "{next}");
    reply
}

#[test]
fn a_fork_bomb_ends() {
    let _bomb = only_bomb();
    as_everybody(|server, _| {
        let reply = too_far(server, FORK_BOMB, "pids_limit");
        let told = "too many processes: a command may have 60, threads included";
        assert_eq!(reply["message"], told);
    });
}

#[test]
fn a_fork_bomb_that_hides_in_the_background_ends() {
    let _bomb = only_bomb();
    as_everybody(|server, _| {
        let mark = mark();
        let command =
            "ulimit -p 3000 2>/dev/null || ulimit -u 3000; f() { f | f & }; f; sleep 0.2; true";
        let reply = server.call(json!({"command": command, "environment": {"MARK": mark}}));
        wait_until("all of it has ended", || survivors(&mark).is_empty().then_some(()));
        assert_eq!(server.run("echo still here")["output"], "still here\n", "{reply}");
    });
}

#[test]
fn a_memory_bomb_ends() {
    as_everybody(|server, _| {
        let reply = too_far(server, MEMORY_BOMB, "oom_killed");
        assert_eq!(reply["message"], "out of memory: a command may use 100 MB");
    });
}

#[test]
fn a_disk_filler_ends() {
    as_everybody(|server, folder| {
        let file = folder.join("filler");
        let command = format!("cat /dev/zero > '{}'", file.display());
        let reply = too_far(server, &command, "file_size_limit");
        assert_eq!(
            reply["message"],
            "a file grew too large: a command may write files of up to 2 MB"
        );
        assert_eq!(std::fs::metadata(file).unwrap().len(), 2_000_000);
    });
}

#[test]
fn a_busy_loop_ends() {
    as_everybody(|server, _| {
        let reply = too_far(server, BUSY_LOOP, "cpu_limit");
        assert_eq!(reply["message"], "out of CPU time: a command may use 1 second");
        assert!(reply["cpu_ms"].as_u64().unwrap() < 2500, "{reply}");
    });
}

#[test]
fn a_busy_loop_does_not_get_more_time_by_having_children() {
    as_everybody(|server, _| {
        let many = format!("for i in 1 2 3 4; do {BUSY_LOOP} & done; wait");
        too_far(server, &many, "cpu_limit");
        too_far(server, "while :; do /bin/true; done", "cpu_limit");
    });
}

#[test]
fn a_process_has_no_more_files_than_it_may() {
    as_everybody(|server, _| {
        assert_eq!(server.run("ulimit -n; ulimit -Hn")["output"], "80\n80\n");
    });
}

/// A command that is killed for want of memory must not take along who minds it.
#[test]
fn commands_go_before_whoever_minds_them() {
    as_everybody(|server, _| {
        // A keeper has the same score while it starts a command.
        let ready = "until [ $(cat /proc/$$/oom_score_adj) = 500 ]; do sleep 0.01; done; \
                     until [ $(cat /proc/$PPID/oom_score_adj) != 500 ]; do sleep 0.01; done";
        assert_eq!(server.run(ready)["return_code"], 0);
    });
}

#[test]
fn a_job_is_told_what_ended_it() {
    let _bomb = only_bomb();
    let (mut server, _folder) = limited(LIMITS);
    for (command, detach) in [(BUSY_LOOP, false), (BUSY_LOOP, true), (FORK_BOMB, true)] {
        let begun = server.call(json!({"command": command, "background": true, "detach": detach}));
        let wanted = json!({"job_id": begun["job_id"], "wait_for": "exit"});
        let told = server.tool("read_job", wanted)["structuredContent"].clone();
        let expected = if command == BUSY_LOOP { "cpu_limit" } else { "pids_limit" };
        assert_eq!((&told["state"], &told["limit"]), (&json!("exited"), &json!(expected)));
    }
}

#[test]
fn what_a_command_left_running_is_held_to_its_limits() {
    let (mut server, _folder) = limited(LIMITS);
    let left = server.run(&format!("{{ {BUSY_LOOP}; }} & true"));
    let wanted = json!({"job_id": left["background_job"], "wait_for": "exit"});
    let told = server.tool("read_job", wanted)["structuredContent"].clone();
    assert_eq!(told["limit"], "cpu_limit", "{told}");
}

#[test]
fn a_session_that_ends_at_a_limit_says_so() {
    let (mut server, _folder) = limited(LIMITS);
    let reply = server.call(json!({"command": BUSY_LOOP, "session": "work"}));
    assert_eq!(reply["limit"], "cpu_limit", "{reply}");
    assert!(
        reply["message"].as_str().unwrap().contains("this command ended the session"),
        "{reply}"
    );
    let reply = server.call(json!({"command": "echo anew", "session": "work"}));
    assert_eq!(reply["output"], "anew\n");
}

#[test]
fn every_tool_tells_of_a_limit() {
    let folder = open_folder();
    let file = config(folder.path(), LIMITS);
    let mut server = Server::start(&["--config", file.to_str().unwrap(), "--tools", "all"]);
    for name in ["shell", "execute", "run_shell_command", "shell_exec"] {
        let command = format!("head -c 9000000 /dev/zero > '{}/filler'", folder.path().display());
        let arguments = match name {
            "run_shell_command" => json!({"command": command, "is_background": false}),
            "shell_exec" => json!({"cmd": command}),
            _ => json!({"command": command}),
        };
        let reply = server.tool(name, arguments);
        assert_eq!(reply["structuredContent"]["limit"], "file_size_limit", "{name}: {reply}");
    }
}

/// What a command leaves in memory is not taken from the next one.
#[test]
fn files_in_memory_count_for_who_made_them() {
    let (mut server, _folder) = limited("[limits]\nmemory = \"100MB\"\n");
    let room = tempfile::tempdir_in("/dev/shm").unwrap();
    for name in ["one", "two", "three"] {
        let file = room.path().join(name);
        let reply = server.run(&format!("head -c 60000000 /dev/zero > '{}'", file.display()));
        assert_eq!((&reply["return_code"], &reply["limit"]), (&json!(0), &Value::Null), "{name}");
    }
}

#[test]
fn a_flag_says_how_much_memory_there_is_and_wins() {
    let folder = open_folder();
    let file = config(folder.path(), "[limits]\nmemory = \"1GB\"\n");
    let flags = ["--config", file.to_str().unwrap(), "--memory", "64MiB"];
    let mut server = Server::start(&flags);
    let reply = server.run(MEMORY_BOMB);
    assert_eq!(reply["message"], "out of memory: a command may use 64 MiB", "{reply}");
}

#[test]
fn limits_nobody_can_live_with_are_refused() {
    for (text, complaint) in [
        ("memory = \"1MB\"", "the memory of [limits] must be at least 4000000, or 0 for no limit"),
        ("open_files = 9", "the open_files of [limits] must be at least 64, or 0 for no limit"),
        ("nice = 20", "the nice of [limits] is 20, but must be from 0 to 19"),
    ] {
        let folder = open_folder();
        let file = config(folder.path(), &format!("[limits]\n{text}\n"));
        let output = Command::new(MCPZ)
            .args(["server", "shell", "--config"])
            .arg(file)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(complaint), "{said}");
    }
}

#[test]
fn what_is_nice_stands_back() {
    let (mut server, _folder) = limited("[limits]\nnice = 7\n");
    assert_eq!(server.run("nice")["output"], "7\n");
}

/// What two of everything do at once does not keep somebody else waiting.
#[test]
fn others_hardly_notice() {
    let _bomb = only_bomb();
    let folder = open_folder();
    let tokens = format!("{LIMITS}[http.tokens]\nbad = \"the-token-of-somebody-bad\"\n");
    let mut command = Command::new(MCPZ);
    command.env("MCP_HTTP_TOKEN", TOKEN);
    let server = HttpServer::start_command(&mut command, &[], &tokens);
    let ask = |command: &str, token: &str| {
        let answer = server.tool_by(token, "execute_command", json!({"command": command}));
        answer["structuredContent"].clone()
    };
    let usual = median(20, || drop(ask("true", TOKEN)));
    let filler = format!("cat /dev/zero > '{}/filler'", folder.path().display());
    for bomb in [FORK_BOMB, MEMORY_BOMB, BUSY_LOOP, &filler] {
        let meanwhile = || {
            std::thread::scope(|scope| {
                let bad = scope.spawn(|| {
                    let until = Instant::now() + Duration::from_secs(1);
                    while Instant::now() < until {
                        assert!(ask(bomb, "the-token-of-somebody-bad")["limit"].is_string());
                    }
                });
                std::thread::sleep(Duration::from_millis(50));
                let meanwhile = median(20, || drop(ask("true", TOKEN)));
                bad.join().unwrap();
                meanwhile
            })
        };
        // A busy machine has slow moments, but not five in a row.
        let most = (3 * usual).max(Duration::from_millis(60));
        let soon = (0..5).map(|_| meanwhile()).find(|time| *time < most);
        assert!(soon.is_some(), "{bomb}: five times more than {most:?}, usually {usual:?}");
    }
}

fn median(times: usize, mut run: impl FnMut()) -> Duration {
    let mut all: Vec<_> = (0..times)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        })
        .collect();
    all.sort();
    all[times / 2]
}

#[test]
fn in_a_sandbox_the_same_limits_hold() {
    let (folder, work) = (open_folder(), open_folder());
    let (file, mark) = (config(folder.path(), LIMITS), mark());
    let (file, directory) = (file.to_str().unwrap(), work.path().to_str().unwrap());
    let mut server =
        Server::start(&["--config", file, "--sandbox", "workspace", "--working-dir", directory]);
    let forks = "python3 -c 'import os, time
for _ in range(200): os.fork() or (time.sleep(300), os._exit(0))
time.sleep(300)'";
    let memory = "python3 -c 'kept = [bytearray(1000000) for _ in range(1000)]'";
    for (command, limit) in
        [(forks, "pids_limit"), (memory, "oom_killed"), (BUSY_LOOP, "cpu_limit")]
    {
        let command = format!("export X={mark}; {command}");
        let told = server.call(json!({"command": command, "timeout": 60}));
        assert_eq!(told["limit"], limit, "{told}");
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    }
    assert_eq!(server.run("echo fine")["output"], "fine\n");
}

/// Takes so many bytes, and keeps them for a while.
fn holding(bytes: u64, seconds: u64) -> String {
    format!(
        "python3 -c 'import time; x = bytearray({bytes}); print(1, flush=True); time.sleep({seconds})'"
    )
}

/// Whether what commands use is counted together here.
fn is_counted(server: &mut Server) -> bool {
    server.run("cat /proc/self/cgroup")["output"].as_str().unwrap().contains("mcpz-")
}

const TOGETHER: &str = "[limits]\nmemory = \"100MB\"\nmemory_per_client = \"130MB\"\n";

#[test]
fn what_commands_of_one_client_use_together_has_a_limit() {
    let (mut server, _folder) = limited(TOGETHER);
    if !is_counted(&mut server) {
        return;
    }
    let first = server.call(json!({"command": holding(50_000_000, 300), "background": true}));
    let id = &first["job_id"];
    server.tool("read_job", json!({"job_id": id, "wait_for": "text", "pattern": "1"}));
    let second = server.run(&holding(90_000_000, 0));
    assert_eq!(second["limit"], "oom_killed", "{second}");
    let told = "out of memory: all commands together reached their limit";
    assert_eq!(second["message"], told, "{second}");
    let first = server.tool("read_job", json!({"job_id": id}))["structuredContent"].clone();
    assert_eq!(first["state"], "running", "{first}");
    assert!(server.run(&holding(40_000_000, 0))["limit"].is_null());
}

#[test]
fn a_limit_for_all_holds_where_there_is_none_for_each() {
    let limits =
        "memory = 0\nmemory_per_client = \"100MB\"\nprocesses = 0\nprocesses_per_client = 40\n";
    let (mut server, _folder) = limited(&format!("[limits]\n{limits}"));
    if !is_counted(&mut server) {
        return;
    }
    let told = server.run(&holding(200_000_000, 0));
    assert_eq!(told["limit"], "oom_killed", "{told}");
    let told = server.run("for i in $(seq 60); do sleep 300 & done; wait");
    assert_eq!(told["limit"], "pids_limit", "{told}");
    assert_eq!(server.run("echo fine")["output"], "fine\n");
}

#[test]
fn how_many_processes_commands_of_one_client_have_together_has_a_limit() {
    let (mut server, _folder) = limited("[limits]\nprocesses_per_client = 60\n");
    if !is_counted(&mut server) {
        return;
    }
    let many = |number| format!("for i in $(seq {number}); do sleep 300 & done; echo begun; wait");
    let first = server.call(json!({"command": many(45), "background": true}));
    let state = |server: &mut Server| {
        let job = json!({"job_id": first["job_id"]});
        server.tool("read_job", job)["structuredContent"]["state"].clone()
    };
    let begun = json!({"wait_for": "text", "pattern": "begun", "cursor": "bytes:0", "job_id": first["job_id"]});
    server.tool("read_job", begun);
    let second = server.run(&many(45));
    assert_eq!(second["limit"], "pids_limit", "{second}");
    let told = "too many processes: all commands together reached their limit";
    assert_eq!(second["message"], told, "{second}");
    assert_eq!(state(&mut server), "running");
}

#[test]
fn what_others_use_is_taken_from_nobody() {
    let mut command = Command::new(MCPZ);
    command.env("MCP_HTTP_TOKEN", TOKEN);
    let tokens = format!("{TOGETHER}[http.tokens]\nada = \"the-token-of-ada-lovelace\"\n");
    let server = HttpServer::start_command(&mut command, &[], &tokens);
    let ask = |name: &str, arguments: Value, token: &str| {
        server.tool_by(token, name, arguments)["structuredContent"].clone()
    };
    let job = json!({"command": holding(90_000_000, 300), "background": true});
    let id = ask("execute_command", job, TOKEN)["job_id"].clone();
    let wanted = json!({"job_id": id, "wait_for": "text", "pattern": "1"});
    assert_eq!(ask("read_job", wanted.clone(), TOKEN)["state"], "running");
    let taking = json!({"command": holding(90_000_000, 0)});
    let ada = ask("execute_command", taking, "the-token-of-ada-lovelace");
    assert_eq!((&ada["return_code"], &ada["limit"]), (&json!(0), &Value::Null), "{ada}");
    assert_eq!(ask("read_job", wanted, TOKEN)["state"], "running");
}

#[test]
fn all_of_a_sandbox_has_what_its_owner_may_have() {
    let (folder, work) = (open_folder(), open_folder());
    let file = config(folder.path(), "[limits]\nmemory_per_client = \"150MB\"\n");
    let (file, directory) = (file.to_str().unwrap(), work.path().to_str().unwrap());
    if !is_counted(&mut Server::start(&[])) {
        return;
    }
    let mut server =
        Server::start(&["--config", file, "--sandbox", "workspace", "--working-dir", directory]);
    let told = server.run(MEMORY_BOMB);
    assert_eq!(told["limit"], "oom_killed", "{told}");
    assert_eq!(server.run("echo fine")["output"], "fine\n");
}

/// Keeps two processes busy for three seconds of the clock.
const BUSY: &str = "for i in 1 2; do timeout 3 sh -c 'while :; do :; done' & done; wait";

/// Whether CPU time is shared out in what `cgroups` names.
fn shares_out_cpu(cgroups: &str) -> bool {
    let ours = cgroups.lines().filter(|line| line.contains("mcpz-"));
    let mut ours = ours.filter_map(|line| line.split_once(':')?.1.split_once(":/"));
    ours.any(|(controllers, folder)| match controllers {
        "" => Path::new("/sys/fs/cgroup").join(folder).join("cpu.weight").exists(),
        _ => controllers.split(',').any(|name| name == "cpu"),
    })
}

#[test]
fn who_runs_much_has_no_more_cpu_time_than_others() {
    let (place, ada) = (open_folder(), "the-token-of-ada-lovelace");
    let directory = place.path().to_str().unwrap();
    for flags in [&[][..], &["--sandbox", "workspace", "--working-dir", directory]] {
        let server = HttpServer::start_with(flags, &format!("[http.tokens]\nada = \"{ada}\"\n"));
        let run = |token: &str, command: &str| {
            let answer = server.tool_by(token, "execute_command", json!({"command": command}));
            answer["structuredContent"].clone()
        };
        let cgroups = run(ada, "cat /proc/self/cgroup")["output"].clone();
        // From within a sandbox nobody sees where it is.
        if flags.is_empty() && !shares_out_cpu(cgroups.as_str().unwrap()) {
            return;
        }
        let cpu = |token: &str| run(token, BUSY)["cpu_ms"].as_f64().unwrap();
        let (greedy, modest) = std::thread::scope(|scope| {
            let greedy = [0; 10].map(|_| scope.spawn(|| cpu(TOKEN)));
            let modest = cpu(ada);
            (greedy.into_iter().map(|run| run.join().unwrap()).sum::<f64>(), modest)
        });
        // Without, it would be a tenth.
        assert!(modest > greedy / 3.0, "{modest} {greedy}");
    }
}
