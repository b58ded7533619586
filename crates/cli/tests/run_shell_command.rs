//! The `run_shell_command` tool, example by example of its document.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Server, mark, survivors, wait_until};

fn start(flags: &[&str]) -> Server {
    Server::start(&[&["--tools", "run_shell_command"], flags].concat())
}

fn run(server: &mut Server, arguments: Value) -> Value {
    server.tool("run_shell_command", arguments)
}

fn report(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn execution_information_a_line_a_field() {
    let mut server = start(&[]);
    let result = run(
        &mut server,
        json!({"command": "echo out; echo err >&2; exit 2", "is_background": false}),
    );
    let expected = "Command: echo out; echo err >&2; exit 2\nDirectory: (root)\nStdout: out\n\
                    Stderr: err\nError: (none)\nExit Code: 2\nSignal: (none)\nBackground PIDs: (none)";
    assert_eq!(report(&result), expected);
    assert_eq!(result["isError"], false);
    let fields = &result["structuredContent"];
    assert_eq!((&fields["stdout"], &fields["exit_code"]), (&json!("out\n"), &json!(2)));
    assert_eq!(fields["background_pids"], json!([]));
    let result = run(&mut server, json!({"command": "kill -TERM $$", "is_background": false}));
    assert!(report(&result).contains("Stdout: (empty)\n"));
    assert!(report(&result).contains("Exit Code: (none)\nSignal: 15\n"));
}

#[test]
fn is_background_is_required() {
    let mut server = start(&[]);
    let result = run(&mut server, json!({"command": "ls -la"}));
    assert_eq!(result["isError"], true);
    assert!(report(&result).contains("missing field `is_background`"));
}

#[test]
fn list_the_files_of_the_current_directory() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a file"), "").unwrap();
    let mut server = start(&["-w", folder.path().to_str().unwrap()]);
    let result = run(&mut server, json!({"command": "ls -la", "is_background": false}));
    assert!(report(&result).contains("a file"));
}

#[test]
fn run_a_script_in_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("scripts");
    std::fs::create_dir(&scripts).unwrap();
    std::fs::write(scripts.join("my_script.sh"), "echo \"in $(basename \"$PWD\")\"").unwrap();
    let mut server = start(&["-w", folder.path().to_str().unwrap()]);
    let result = run(
        &mut server,
        json!({"command": "bash ./my_script.sh", "directory": "scripts",
               "description": "Run my custom script", "is_background": false}),
    );
    assert!(report(&result).contains("Directory: scripts\nStdout: in scripts\n"));
    assert_eq!(result["structuredContent"]["description"], "Run my custom script");
    std::os::unix::fs::symlink("/", scripts.join("out")).unwrap();
    for outside in ["..", "/", "/tmp", "scripts/../..", "scripts/out", "nowhere"] {
        let arguments = json!({"command": "pwd", "directory": outside, "is_background": false});
        let result = run(&mut server, arguments);
        assert_eq!(result["isError"], true, "{outside}");
        let error = result["structuredContent"]["error"].as_str().unwrap();
        assert!(error.contains("outside of") || outside == "nowhere", "{error}");
    }
}

#[test]
fn start_a_server_in_the_background() {
    let mark = mark();
    let mut server = start(&[]);
    let command = format!("export MARK={mark}; sleep 300");
    let result = run(
        &mut server,
        json!({"command": command, "description": "Start development server", "is_background": true}),
    );
    let pid = result["structuredContent"]["background_pids"][0].as_u64().unwrap();
    assert!(report(&result).ends_with(&format!("Background PIDs: {pid}")));
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    let description = &result["structuredContent"]["description"];
    assert_eq!(description, "Start development server [background]");
    wait_until("it runs", || (!survivors(&mark).is_empty()).then_some(()));
    server.close_stdin();
    server.wait();
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn start_a_server_in_the_background_with_an_ampersand() {
    let mut server = start(&[]);
    let result = run(&mut server, json!({"command": "sleep 300 &", "is_background": false}));
    let pid = result["structuredContent"]["background_pids"][0].as_u64().unwrap();
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(result["structuredContent"]["exit_code"], 0);
}

#[test]
fn run_a_build_command_in_the_foreground() {
    let folder = tempfile::tempdir().unwrap();
    let package = r#"{"name": "tiny", "version": "1.0.0", "scripts": {"build": "echo built"}}"#;
    std::fs::write(folder.path().join("package.json"), package).unwrap();
    let mut server = start(&["-w", folder.path().to_str().unwrap()]);
    let result = run(
        &mut server,
        json!({"command": "npm run build", "description": "Build the project", "is_background": false}),
    );
    assert!(report(&result).contains("built"), "{}", report(&result));
    assert_eq!(result["structuredContent"]["exit_code"], 0);
}

#[test]
fn start_several_services_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("docker-compose");
    std::fs::write(&program, "#!/bin/sh\nsleep 300 & sleep 300 & wait\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mark = mark();
    let mut command = std::process::Command::new(support::MCPZ);
    command.args(["server", "shell", "--tools", "run_shell_command"]);
    let mut server = Server::from_command(command.env("PATH", path).env("MARK", &mark));
    server.initialize("2025-11-25");
    let arguments = json!({
        "command": "docker-compose up", "description": "Start all services", "is_background": true,
    });
    let result = run(&mut server, arguments);
    assert_eq!(result["structuredContent"]["description"], "Start all services [background]");
    let sleeping = |all: Vec<String>| all.iter().filter(|line| line.contains("sleep 300")).count();
    wait_until("both run", || (sleeping(survivors(&mark)) == 2).then_some(()));
    server.close_stdin();
    server.wait();
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn it_is_bash_and_tells_scripts_so() {
    let mut server = start(&["-s", "/bin/sh"]);
    let command = "echo $QWEN_CODE ${BASH_VERSION:+bash}";
    let result = run(&mut server, json!({"command": command, "is_background": false}));
    assert_eq!(result["structuredContent"]["stdout"], "1 bash\n");
}

/// Whether each command may run under the settings.
fn restricted(settings: &str, cases: &[(&str, bool)]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    std::fs::write(&file, settings).unwrap();
    let flags = ["--settings", file.to_str().unwrap(), "-w", folder.path().to_str().unwrap()];
    let mut server = start(&flags);
    for (command, allowed) in cases {
        let result = run(&mut server, json!({"command": command, "is_background": false}));
        let denied = report(&result).contains("Error: Command denied by security policy");
        assert_eq!(!denied, *allowed, "{command}: {}", report(&result));
        assert_eq!(result["isError"], !*allowed);
    }
}

#[test]
fn what_it_tells_scripts_is_no_reason_to_refuse_a_command() {
    for rule in ["ls*", "ls,npm run lint"] {
        let mut server = start(&["--allow", rule]);
        let result = run(&mut server, json!({"command": "ls -d /", "is_background": false}));
        assert_eq!(result["structuredContent"]["stdout"], "/\n", "{rule}: {result}");
    }
}

#[test]
fn allow_only_certain_command_prefixes() {
    restricted(
        r#"{"coreTools": ["run_shell_command(git)", "run_shell_command(npm)"]}"#,
        &[
            ("git status", true),
            ("npm --version", true),
            ("ls -l", false),
            ("git status; ls", false),
        ],
    );
}

#[test]
fn block_certain_command_prefixes() {
    restricted(
        r#"{"coreTools": ["run_shell_command"], "excludeTools": ["run_shell_command(rm)"]}"#,
        &[("rm -rf /nowhere", false), ("git status", true), ("ls && rm x", false)],
    );
}

#[test]
fn each_part_of_a_chain_is_validated() {
    restricted(
        r#"{"coreTools": ["run_shell_command(git)", "run_shell_command(echo)"]}"#,
        &[
            ("git --version && echo a; echo b", true),
            ("git --version || echo 'not; here'", true),
            ("echo a && ls", false),
            ("ls || echo a", false),
            ("echo a; ls", false),
        ],
    );
}

#[test]
fn the_block_list_comes_first() {
    restricted(
        r#"{"coreTools": ["run_shell_command(git)"], "excludeTools": ["run_shell_command(git push)"]}"#,
        &[("git push origin main", false), ("git status", true)],
    );
}

#[test]
fn block_all_shell_commands() {
    restricted(
        r#"{"excludeTools": ["run_shell_command"]}"#,
        &[("ls -l", false), ("any other command", false), ("/bin/ls", false)],
    );
}

#[test]
fn what_a_command_in_the_background_prints_can_be_read() {
    let mut server = Server::start(&["--tools", "run_shell_command,read_file_chunk"]);
    let arguments = json!({"command": "echo up; sleep 300 &", "is_background": true});
    let result = run(&mut server, arguments);
    let pid = result["structuredContent"]["background_pids"][0].as_u64().unwrap();
    let uri = result["structuredContent"]["spill_uri"].clone();
    let chunk = wait_until("it has printed", || {
        let chunk =
            server.tool("read_file_chunk", json!({"uri": uri}))["structuredContent"].clone();
        (chunk["data"] == "up\n").then_some(chunk)
    });
    assert_eq!(chunk["running"], true);
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "the one that was named");
}
