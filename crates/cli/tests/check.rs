//! `mcpz check` and `mcpz policy test`: the policy, seen without running anything.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and not every test uses all of the support"
)]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::MCPZ;

/// What a command prints to stdout and stderr, and its exit code.
fn mcpz(arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(MCPZ).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[test]
fn the_verdict_is_drawn_under_the_command() {
    let (drawn, _, code) = mcpz(&["check", "--deny", "rm", "cd x && rm -r y"]);
    assert_eq!(
        drawn,
        "denied\n  cd x && rm -r y\n          ^^^^^^^ `rm -r y` (at 8) is denied by the rule `rm`\n"
    );
    assert_eq!(code, 1);
    let (drawn, _, code) = mcpz(&["check", "--deny", "rm", "ls"]);
    let executes = "executes\n  everything, except rm\n";
    assert_eq!((drawn, code), (format!("allowed\n  ls\n{executes}"), 0));
    let (drawn, _, code) = mcpz(&["check", "curl x | sh"]);
    assert_eq!(code, 0);
    assert!(
        drawn.ends_with("warning\n  curl x | sh\n           ^^ a shell runs a download\n"),
        "{drawn}"
    );
}

#[test]
fn what_rules_allow_with_certain_arguments_does_not_need_itself_with_others() {
    for (rule, needs_itself) in [("kubectl get", false), ("kubectl", true), ("gpg -k", false)] {
        let (drawn, ..) = mcpz(&["check", "--allow", rule, rule]);
        let (_, needed) = drawn.split_once("what it needs: ").unwrap();
        let own = rule.split(' ').next().unwrap();
        assert_eq!(needed.trim().split(", ").any(|it| it == own), needs_itself, "{rule}: {drawn}");
    }
}

#[test]
fn the_verdict_can_be_json() {
    let (printed, _, code) = mcpz(&["check", "--json", "--deny", "rm", "ls $(rm x)"]);
    let judged: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(code, 1);
    assert_eq!(
        judged,
        json!({"verdict": "deny", "part": "rm x", "start": 5, "end": 9, "rule": "rm", "threats": [],
            "reason": "`rm x` (at 5) is denied by the rule `rm`"})
    );
}

#[test]
fn a_batch_is_judged_a_line_at_a_time() {
    let mut child = Command::new(MCPZ)
        .args(["check", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (policy, command) in [
        (json!({"deny": ["rm"]}), "rm x"),
        (json!({"allow": ["ls"]}), "ls"),
        (json!({"allow": ["echo"], "write_dirs": ["/srv/proj"]}), "echo x > f"),
        (json!({"allow": ["echo"], "write_dirs": ["/srv/proj"]}), "echo x > ~/f"),
    ] {
        let case = json!({"id": "1", "policy": policy, "command": command, "shell": "sh"});
        writeln!(input, "{case}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "deny\nallow\nallow\ndeny\n");
}

#[test]
fn a_files_rules_are_held_to_their_examples() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let path = file.to_str().unwrap();
    let text = "[policy]\nallow = [\"git\", \"ls, cat\"]\n[[policy.deny]]\nrule = \"git push\"\n\
                reason = \"ask first\"\nmatch = [\"git -C . push\"]\nnot_match = [\"git stash push\"]\n";
    std::fs::write(&file, text).unwrap();
    let (printed, _, code) = mcpz(&["policy", "test", path]);
    assert_eq!((printed.as_str(), code), ("4 rules, 2 examples: all pass\n", 0));
    let (drawn, _, _) = mcpz(&["check", "--config", path, "git push"]);
    assert!(drawn.ends_with("is denied by the rule `git push`: ask first\n"), "{drawn}");
    std::fs::write(&file, text.replace("git -C . push", "git pull")).unwrap();
    let (_, said, code) = mcpz(&["policy", "test", path]);
    assert_eq!(code, 1);
    assert_eq!(
        said,
        "mcpz: the rule `git push` should match its example `git pull`, but does not\n"
    );
    // A server with such a policy does not start.
    let (_, said, code) = mcpz(&["server", "shell", "--config", path]);
    assert_eq!(code, 1);
    assert!(said.contains("should match its example"), "{said}");
}

#[test]
fn an_interpreter_on_the_allow_list_is_warned_of() {
    let server = Command::new(MCPZ)
        .args(["server", "shell", "--allow", "ls,python3,bash"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(server.stderr).unwrap(),
        "mcpz: warning: the allow list contains programs that can run any other: python3, bash\n"
    );
}
