//! The policy through the server: what is refused does not run, and what runs is what was judged.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{MCPZ, Server};
use tempfile::TempDir;

/// A server with a policy, in a directory of its own.
fn start(folder: &TempDir, policy: &str) -> Server {
    let file = folder.path().join("config.toml");
    std::fs::write(&file, policy).unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let flags = ["--tools", "all", "-s", "bash", "-w", work.to_str().unwrap()];
    Server::start(&[&flags[..], &["--config", file.to_str().unwrap()]].concat())
}

fn refused(reply: &Value) -> bool {
    reply["output"].as_str().unwrap_or_default().starts_with("Command denied by security policy")
}

#[test]
fn a_refusal_tells_what_to_do_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(
        &folder,
        "[[policy.deny]]\nrule = \"git push\"\nreason = \"nobody pushes from here\"\n\
         instead = \"git format-patch\"\n",
    );
    let reply = server.run("cd . && git -C . push --force");
    assert_eq!(
        reply["output"],
        "Command denied by security policy: `git -C . push --force` (at 8) is denied by the rule \
         `git push`: nobody pushes from here; instead: git format-patch"
    );
    assert_eq!(server.run("git --version")["return_code"], 0);
}

#[test]
fn whatever_a_script_would_run_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder, "[policy]\ndeny = [\"touch\"]\n");
    for command in [
        "ls | touch x",
        "echo $(touch x)",
        "for i in 1; do touch x; done",
        "bash -c 'touch x'",
        "t=touch; $t x",
        "find . -exec touch x ';'",
        "bash <<'E'\ntouch x\nE",
        "x='a[$(touch x)]'; echo $((x))",
        "trap 'touch x' EXIT",
    ] {
        assert!(refused(&server.run(command)), "{command}");
    }
    assert_eq!(server.run("ls -A")["output"], "");
    let fine = "f() { for i in 1 2; do echo \"$1 $i\"; done; }; f a | sort -r | head -n 1";
    assert_eq!(server.run(fine)["output"], "a 2\n");
}

#[test]
fn redirections_write_where_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    let mut server = start(&folder, &format!("[policy]\nwrite_dirs = [\"{}\"]\n", work.display()));
    assert_eq!(server.run("echo hi > f; cat f; echo x > /dev/null")["output"], "hi\n");
    for command in ["echo hi > ../g", "cd ..; echo hi > g", "echo hi > $f", "echo hi | tee ../g"] {
        assert!(refused(&server.run(command)), "{command}");
    }
    assert!(!folder.path().join("g").exists());
}

#[test]
fn what_only_the_run_will_know_can_be_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder, "[policy]\ndeny = [\"touch\"]\nunresolved = \"allow\"\n");
    assert_eq!(server.run("t=echo; $t hi")["output"], "hi\n");
    assert!(refused(&server.run("touch x")));
}

#[test]
fn a_shell_that_is_judged_is_told_nothing_else_by_our_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("startup");
    std::fs::write(&file, "echo from the startup file\n").unwrap();
    let outputs = |flags: &[&str]| {
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "-s", "bash"]).args(flags);
        command.env("BASH_ENV", &file).env("ENV", &file);
        command.env("BASH_FUNC_ls%%", "() { echo from a function; }");
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        server.run("ls /nonexistent 2>/dev/null || echo gone")["output"].clone()
    };
    assert_eq!(outputs(&["--allow", "ls,echo"]), "gone\n");
    // Without a policy, the environment is as the owner has it.
    assert_eq!(outputs(&[]), "from the startup file\nfrom a function\n");
}

#[test]
fn what_looks_like_an_attack_is_told_in_the_result_of_every_tool() {
    const WARNING: &str = "it reads a file with credentials";
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder, "");
    let command = "cat ~/.netrc 2>/dev/null; true";
    for (tool, arguments) in [
        ("execute_command", json!({"command": command})),
        ("shell", json!({"command": command})),
        ("execute", json!({"command": command})),
        ("run_shell_command", json!({"command": command, "is_background": false})),
        ("shell_exec", json!({"cmd": command})),
    ] {
        let result = server.tool(tool, arguments);
        assert_eq!(result["structuredContent"]["warnings"], json!([WARNING]), "{tool}: {result}");
        assert!(result["content"].to_string().contains(WARNING), "{tool}: {result}");
    }
    let mut server = start(&folder, "[policy]\nthreats = \"deny\"\n");
    assert!(refused(&server.run(command)));
    let mut server = start(&folder, "[policy]\nthreats = \"off\"\n");
    assert_eq!(server.run(command)["warnings"], Value::Null);
}

#[test]
fn the_record_names_the_rule_that_decided() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder, "[policy]\nallow = [\"ls*\", \"echo\"]\ndeny = [\"rm\"]\n");
    server.run("ls; echo hi");
    server.run("echo $(rm x)");
    let file = server.state.path().join("mcpz/audit.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decided: Vec<_> = records
        .filter(|record| record["event"] != "end")
        .map(|record| (record["decision"].clone(), record["rule"].clone()))
        .collect();
    assert_eq!(decided, [(json!("allow"), json!("ls*, echo")), (json!("deny"), json!("rm"))]);
}
