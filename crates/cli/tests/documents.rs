//! The examples of the five documents, as they stand there: sent all at once to a server whose input ends
//! right after. What is not on every machine has a stand-in.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and not every test uses all of the support"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};
use support::piped::{answer, calls, pipe, server};
use support::{Server, exec, read};
use tempfile::TempDir;

/// The example session of `execute_command`.
const EXAMPLE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"1.0"}}}
{"jsonrpc":"2.0","method":"initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"execute_command","arguments":{"command":"echo hello"}}}
"#;

/// How often the example is piped, and how many at once.
const ROUNDS: usize = 200;
const AT_ONCE: usize = 2;

/// How often the other documents' examples are.
const OTHER_ROUNDS: usize = 10;

#[test]
fn the_example_session_is_answered_completely_200_times() {
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            scope.spawn(move || (first..ROUNDS).step_by(AT_ONCE).for_each(example_session));
        }
    });
}

fn example_session(round: usize) {
    let said = pipe(server(&[]), EXAMPLE);
    assert_eq!(said.len(), 3, "round {round}: {said:?}");
    assert_eq!(answer(&said, 1)["result"]["serverInfo"]["name"], "mcpz-shell", "round {round}");
    let tools = &answer(&said, 2)["result"]["tools"];
    assert_eq!(tools[0]["name"], "execute_command", "round {round}");
    let text = answer(&said, 3)["result"]["content"][0]["text"].as_str().unwrap();
    let reply: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (&reply["command"], &reply["output"], &reply["return_code"]),
        (&json!("echo hello"), &json!("hello\n"), &json!(0)),
        "round {round}: {text}"
    );
}

/// A folder with programs and files of the names the documents have.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new(programs: &[(&str, &str)]) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["bin", "scripts", "src/inner"] {
            std::fs::create_dir_all(project.folder.path().join(folder)).unwrap();
        }
        for (name, script) in programs {
            let path = project.folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        project
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A server in it that has a tool, and time for it however busy the machine is.
    fn server(&self, tool: &str) -> Command {
        let mut command = server(&["--tools", tool, "--finish-time", "60"]);
        let path = format!("{}:{}", self.path("bin"), std::env::var("PATH").unwrap());
        command.current_dir(self.folder.path()).env("PATH", path);
        command
    }
}

#[test]
fn the_use_cases_of_shell() {
    let project = Project::new(&[
        ("bin/cargo", "echo \"$@: ok, in $PWD\""),
        ("build.sh", "echo \"$@ $RUST_LOG $BUILD_ENV\""),
    ]);
    for name in ["src/a.rs", "src/inner/b.rs", "src/c.txt"] {
        std::fs::write(project.path(name), "").unwrap();
    }
    let (root, src) = (project.path(""), project.path("src"));
    let cases = [
        json!({"command": "cargo test", "working_directory": root, "timeout": 600}),
        json!({"command": "uname -a && df -h", "timeout": 30}),
        json!({
            "command": "./build.sh --release",
            "environment": {"RUST_LOG": "debug", "BUILD_ENV": "production"},
            "timeout": 900,
        }),
        json!({"command": "find . -name '*.rs' -type f | wc -l", "working_directory": src}),
    ];
    for _ in 0..OTHER_ROUNDS {
        let answers = calls(project.server("shell"), "shell", &cases);
        let stdout = |at: usize| answers[at]["structuredContent"]["stdout"].as_str().unwrap();
        assert!(stdout(0).starts_with("test: ok, in "), "{answers:?}");
        assert!(stdout(1).starts_with("Linux "), "{answers:?}");
        assert_eq!(stdout(2), "--release debug production\n");
        assert_eq!(stdout(3).trim(), "2");
        for at in [0, 2, 3] {
            assert_eq!(answers[at]["content"][0]["text"], "Command executed successfully");
        }
    }
}

#[test]
fn the_usage_patterns_of_execute() {
    let project = Project::new(&[("bin/perl", "printf 1")]);
    let cases =
        [json!({"command": "echo", "args": ["hello"]}), json!({"command": "perl -e \"print 1;\""})];
    for _ in 0..OTHER_ROUNDS {
        let answers = calls(project.server("execute"), "execute", &cases);
        for (answer, stdout) in answers.iter().zip(["hello\n", "1"]) {
            let reply = &answer["structuredContent"];
            assert_eq!((&reply["stdout"], &reply["exit_code"]), (&json!(stdout), &json!(0)));
            assert_eq!(answer["isError"], false);
        }
    }
}

#[test]
fn the_examples_of_run_shell_command() {
    let serves = "case \"$2\" in build) echo built;; *) echo serving; exec sleep 300;; esac";
    let project = Project::new(&[
        ("bin/npm", serves),
        ("bin/docker-compose", "exec sleep 300"),
        ("scripts/my_script.sh", "echo mine in ${PWD##*/}"),
    ]);
    let (server_in, build) = ("Start development server in background", "Build the project");
    let cases = [
        json!({"command": "ls -la", "is_background": false}),
        json!({
            "command": "./my_script.sh", "directory": "scripts",
            "description": "Run my custom script", "is_background": false,
        }),
        json!({"command": "npm run dev", "description": server_in, "is_background": true}),
        json!({"command": "npm run dev &", "description": server_in, "is_background": false}),
        json!({"command": "npm run build", "description": build, "is_background": false}),
        json!({
            "command": "docker-compose up", "description": "Start all services",
            "is_background": true,
        }),
    ];
    for _ in 0..OTHER_ROUNDS {
        let answers = calls(project.server("run_shell_command"), "run_shell_command", &cases);
        let reply = |at: usize| &answers[at]["structuredContent"];
        for (at, part) in [(0, "scripts"), (1, "mine in scripts\n"), (4, "built\n")] {
            assert!(reply(at)["stdout"].as_str().unwrap().contains(part), "{}", answers[at]);
            assert_eq!(reply(at)["exit_code"], 0, "{}", answers[at]);
        }
        for at in [2, 3, 5] {
            let pids = reply(at)["background_pids"].as_array().unwrap();
            assert!(!pids.is_empty(), "{}", answers[at]);
            assert_eq!(answers[at]["isError"], false, "{}", answers[at]);
        }
    }
}

#[test]
fn the_testing_commands_of_shell_exec() {
    let project = Project::new(&[]);
    let log: String = (0..40_000).map(|line| format!("line {line}\n")).collect();
    std::fs::write(project.path("huge.log"), &log).unwrap();
    let cases = [
        json!({"cmd": "echo 'hi'"}),
        json!({"cmd": "cat", "args": ["huge.log"]}),
        json!({"cmd": "ls", "args": ["-la"], "page": {"limit_bytes": 65536}}),
    ];
    for _ in 0..OTHER_ROUNDS {
        let answers = calls(project.server("shell_exec,read_file_chunk"), "shell_exec", &cases);
        let reply = |at: usize| &answers[at]["structuredContent"];
        assert_eq!(reply(0)["stdout_chunk"], "hi\n");
        assert!(reply(0)["next_cursor"].is_null());
        assert_eq!(reply(1)["total_bytes"], log.len());
        assert!(reply(1)["next_cursor"].is_string() && reply(1)["spill_uri"].is_string());
        assert!(reply(2)["stdout_chunk"].as_str().unwrap().contains("huge.log"));
        assert!(reply(2)["next_cursor"].is_null(), "{}", answers[2]);
    }
}

#[test]
fn the_loops_of_shell_exec_end_with_everything_read() {
    let project = Project::new(&[]);
    let log: String = (0..40_000).map(|line| format!("line {line}\n")).collect();
    std::fs::write(project.path("huge.log"), &log).unwrap();
    let mut server = Server::from_command(&mut project.server("shell_exec,read_file_chunk"));
    server.initialize("2025-11-25");

    let (cmd, args) = (json!("cat"), json!(["huge.log"]));
    let mut reply =
        exec(&mut server, json!({"cmd": cmd, "args": args, "page": {"limit_bytes": 65536}}));
    let uri = reply["spill_uri"].clone();
    let mut paged = reply["stdout_chunk"].as_str().unwrap().to_owned();
    while reply["next_cursor"].is_string() {
        let page = json!({"cursor": reply["next_cursor"]});
        reply = exec(&mut server, json!({"cmd": cmd, "args": args, "page": page}));
        paged += reply["stdout_chunk"].as_str().unwrap();
        assert!(paged.len() <= log.len(), "it does not end");
    }
    assert_eq!(paged, log);

    let mut chunk = read(&mut server, json!({"uri": uri, "limit_bytes": 65536}));
    let mut spilled = chunk["data"].as_str().unwrap().to_owned();
    while chunk["next_cursor"].is_string() {
        chunk = read(&mut server, json!({"uri": uri, "cursor": chunk["next_cursor"]}));
        spilled += chunk["data"].as_str().unwrap();
        assert!(spilled.len() <= log.len(), "it does not end");
    }
    assert_eq!(spilled, log);
}
