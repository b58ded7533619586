//! What a policy lets a model type into programs that run: judged by all that may come to read it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;

/// A job in a terminal, once it waits for input.
fn start(server: &mut Server, command: &str) -> Value {
    let job = server.call(json!({"command": command, "tty": true, "timeout": 60}));
    assert_eq!(job["waiting_for_input"], true, "{command}: {job}");
    job["job_id"].clone()
}

fn is_refused(server: &mut Server, id: &Value, text: &str) -> bool {
    let answer = server.tool("write_job", json!({"job_id": id, "text": text}));
    let message = answer["content"][0]["text"].as_str().unwrap_or_default();
    let refused = message.contains("denied by security policy") || message.contains("other keys");
    assert_eq!(refused, answer["isError"] == true, "{answer}");
    refused
}

/// Types the last text of a job, and returns what it printed after that.
fn finish(server: &mut Server, id: &Value, text: &str) -> String {
    let end = json!({"job_id": id, "text": text, "wait_for": "exit", "timeout": 60});
    let answer = server.tool("write_job", end);
    assert_eq!(answer["isError"], false, "{text}: {answer}");
    answer["structuredContent"]["output"].as_str().unwrap_or_default().to_owned()
}

fn script(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("ask.py");
    std::fs::write(&path, text).unwrap();
    format!("python3 {}", path.display())
}

#[test]
fn a_pager_at_the_end_of_a_pipeline_only_moves_and_searches() {
    for pager in ["more", "less"] {
        let mut server = Server::start(&["--deny", "rm"]);
        let job = server.call(
            json!({"command": format!("cat /etc/services | {pager}"), "tty": true, "background": true}),
        );
        let id = job["job_id"].clone();
        let shown = json!({"job_id": id, "wait_for": "text", "pattern": "tcp", "timeout": 60});
        server.tool("read_job", shown);
        assert!(is_refused(&mut server, &id, "!id\n"), "{pager}");
        assert!(!is_refused(&mut server, &id, " "), "{pager}");
        assert!(!is_refused(&mut server, &id, "q"), "{pager}");
    }
}

#[test]
fn what_passes_its_input_on_to_a_terminal_of_its_own_is_judged_like_a_shell() {
    let folder = support::plain_folder();
    let mut server = Server::start(&["--deny", "rm"]);
    let command = script(&folder, "import pty; pty.spawn(['bash', '--norc'])\n");
    let job = server.call(json!({"command": command, "tty": true, "background": true}));
    let id = job["job_id"].clone();
    let shown = json!({"job_id": id, "wait_for": "text", "pattern": "bash.*[$#]", "timeout": 60});
    server.tool("read_job", shown);
    assert!(is_refused(&mut server, &id, "rm x\n"));
    assert!(finish(&mut server, &id, "echo $((6*7)); exit\n").contains("42"));
}

#[test]
fn a_shell_that_reads_later_counts_now() {
    let mut server = Server::start(&["--deny", "rm"]);
    let id = start(&mut server, "bash --norc");
    assert!(!is_refused(&mut server, &id, "sleep 2\n"));
    assert!(is_refused(&mut server, &id, "rm x\n"));
}

#[test]
fn an_editor_that_a_shell_is_about_to_start_counts_until_the_shell_waits_again() {
    let mut server = Server::start(&["--deny", "rm"]);
    let id = start(&mut server, "bash --norc");
    assert!(!is_refused(&mut server, &id, "vi --clean\n"));
    assert!(is_refused(&mut server, &id, ":term id\n"), "whether or not it has started");
    let shown = json!({"job_id": id, "wait_for": "text", "pattern": "~", "timeout": 60});
    server.tool("read_job", shown);
    let left = json!({"job_id": id, "text": ":q\n", "wait_for": "text", "pattern": "[$#] $", "timeout": 60});
    server.tool("write_job", left);
    // vi would take this for a command.
    assert!((0..500).any(|_| !is_refused(&mut server, &id, "echo K\n")));
}

#[test]
fn a_console_within_a_program_is_judged_and_a_question_is_answered() {
    let folder = support::plain_folder();
    let mut server = Server::start(&["--deny", "rm"]);
    let command = script(&folder, "name = input('Name? ')\nbreakpoint()\nprint('hello', name)\n");
    let id = start(&mut server, &command);
    assert!(!is_refused(&mut server, &id, "rm -rf (Ada) & Co.!\n"));
    let shown = json!({"job_id": id, "wait_for": "text", "pattern": "\\(Pdb\\)", "timeout": 60});
    server.tool("read_job", shown);
    assert!(is_refused(&mut server, &id, "import os; os.system('rm x')\n"));
    assert!(finish(&mut server, &id, "c\n").contains("hello rm -rf (Ada) & Co.!"));
}

#[test]
fn a_program_that_reads_keys_gets_plain_answers() {
    let mut server = Server::start(&["--deny", "rm"]);
    let job = server.call(json!({"command": "top", "tty": true, "background": true}));
    let id = job["job_id"].clone();
    let shown = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 200, "timeout": 60});
    server.tool("read_job", shown);
    assert!(is_refused(&mut server, &id, "!rm x\n"));
    finish(&mut server, &id, "q");
}

#[test]
fn questions_passwords_and_data_go_through() {
    let mut server = Server::start(&["--allow", "python3,cat,wc,read,printf,echo"]);
    let asked = "printf 'Go on? [y/N] '; read answer; echo \"you said $answer\"";
    let id = start(&mut server, asked);
    assert!(finish(&mut server, &id, "y\n").contains("you said y"));
    let secret = "python3 -c 'import getpass; print(len(getpass.getpass()))'";
    let id = start(&mut server, secret);
    assert!(finish(&mut server, &id, ":!;$(x)\n").contains('7'));
    let id = start(&mut server, "wc -l");
    assert!(finish(&mut server, &id, "!a\n:b; c\n\u{4}").contains('2'));
    let mut server = Server::start(&["--deny", "rm"]);
    let id = start(&mut server, "python3 -q");
    assert!(!is_refused(&mut server, &id, "print('su' + 'm')\n"));
    assert!(is_refused(&mut server, &id, "import os; os.system('rm x')\n"));
}
