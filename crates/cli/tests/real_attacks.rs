//! Ways around a policy that a search for them found, each run for real: in bubblewrap, with a program that leaves a
//! mark when it is executed, although the policy does not allow it.
//!
//! `real_attacks/cases.jsonl` has them, and so has the policy's own `attacks.jsonl`. A case with `executed` still gets
//! its program executed: the files that a command may write or the rules that it is given make that possible, its
//! arguments turn out not to be the denied ones, or it does something that the lock does not promise to see, such as a
//! changed copy.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;
use support::MCPZ;

/// How many cases run at once.
const AT_ONCE: usize = 4;

/// How many seconds a command may take.
const TIMEOUT: &str = "8";

const MARKER: &str = r#"
#include <stdio.h>
int main(void) {
    FILE *mark = fopen("/tmp/mark/executed", "a");
    if (mark) fclose(mark);
    return 0;
}
"#;

fn cases() -> Vec<Value> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files =
        [tests.join("real_attacks/cases.jsonl"), tests.join("../../policy/tests/attacks.jsonl")];
    let read = |path| std::fs::read_to_string(path).unwrap();
    let lines = files.map(read).concat();
    let cases = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.filter(|case| case["expect"] != "allow").collect()
}

/// Runs a case, and says whether the program was executed.
fn is_executed(case: &Value, programs: &Path) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (mark, config) = (folder.path().join("mark"), folder.path().join("config.toml"));
    std::fs::create_dir(&mark).unwrap();
    let mut policy = "[policy]\nlock = true\n".to_owned();
    for list in ["allow", "deny", "write_dirs"] {
        let rules = &case["policy"][list];
        if rules.as_array().is_some_and(|rules| !rules.is_empty()) {
            policy = format!("{policy}{list} = {rules}\n");
        }
    }
    std::fs::write(&config, policy).unwrap();
    let shell = format!("/bin/{}", case["shell"].as_str().unwrap());
    let command = format!("command={}", case["command"].as_str().unwrap());
    let mut bubblewrap = Command::new("bwrap");
    bubblewrap.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"]);
    bubblewrap.args([
        "--proc",
        "/proc",
        "--tmpfs",
        "/root",
        "--tmpfs",
        "/home",
        "--dir",
        "/home/dev",
    ]);
    bubblewrap.args([
        "--tmpfs",
        "/srv",
        "--dir",
        "/srv/proj",
        "--tmpfs",
        "/run",
        "--tmpfs",
        "/tmp",
    ]);
    bubblewrap.arg("--bind").arg(&mark).arg("/tmp/mark");
    bubblewrap.arg("--ro-bind").arg(&config).arg("/tmp/config.toml");
    bubblewrap.args(["--ro-bind", MCPZ, "/tmp/mcpz", "--tmpfs", "/usr/local/bin"]);
    bubblewrap.arg("--ro-bind").arg(programs.join("pwned")).arg("/usr/local/bin/pwned");
    bubblewrap.args(["--chdir", "/srv/proj", "--clearenv", "--setenv", "HOME", "/home/dev"]);
    bubblewrap.args(["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"]);
    bubblewrap.args(["--setenv", "XDG_STATE_HOME", "/tmp/state", "/tmp/mcpz", "call"]);
    bubblewrap.args(["--config", "/tmp/config.toml", "-s", &shell, "-t", TIMEOUT]);
    bubblewrap.args(["execute_command", &command]);
    let run = bubblewrap.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(run.is_ok());
    mark.join("executed").exists()
}

#[test]
fn what_a_policy_does_not_allow_is_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("pwned.c");
    std::fs::write(&source, MARKER).unwrap();
    let program = folder.path().join("pwned");
    let compiled = Command::new("cc").arg("-o").arg(&program).arg(&source).status();
    assert!(compiled.unwrap().success());
    let usual = serde_json::json!({"policy": {}, "command": "pwned", "shell": "bash"});
    // Where namespaces are not to be had, nothing can be run safely.
    if !is_executed(&usual, folder.path()) {
        return;
    }
    let (cases, executed) = (Mutex::new(cases()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(case) = cases.lock().unwrap().pop() else { return };
                    if case["executed"] != true && is_executed(&case, folder.path()) {
                        executed.lock().unwrap().push(case);
                    }
                }
            });
        }
    });
    let executed = executed.into_inner().unwrap();
    assert!(executed.is_empty(), "{} executed: {executed:#?}", executed.len());
}
