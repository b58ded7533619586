//! In every place: programs that ask, and draw, are driven through their terminals.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;
use support::place::{prepared, tool};

fn start(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "tty": true, "background": true}))["job_id"].clone()
}

/// Types, and waits until the screen shows something.
fn type_until(server: &mut Server, mut arguments: Value, shows: &str) -> Value {
    let id = arguments["job_id"].clone();
    arguments["wait_for"] = json!("quiet");
    let mut told = tool(server, "write_job", arguments);
    for _ in 0..300 {
        if told["screen"].as_str().unwrap().contains(shows) {
            return told;
        }
        let wait = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 100});
        told = tool(server, "read_job", wait);
    }
    panic!("the screen does not show {shows:?}: {told}");
}

#[test]
fn a_terminal_has_a_size_and_can_be_resized_and_interrupted() {
    let mut server = prepared();
    let command = "tty -s && stty size; trap 'stty size' WINCH; while :; do sleep 0.05; done";
    let id = start(&mut server, command);
    type_until(&mut server, json!({"job_id": id}), "24 80");
    let resize = json!({"job_id": id, "rows": 40, "columns": 132});
    type_until(&mut server, resize, "40 132");
    let interrupt = json!({"job_id": id, "keys": ["ctrl-c"], "wait_for": "exit"});
    let told = tool(&mut server, "write_job", interrupt);
    assert_eq!(told["state"], "exited", "{told}");
}

#[test]
fn a_command_that_asks_is_handed_over_with_its_question() {
    let mut server = prepared();
    let command = "printf 'Continue? [y/N] '; read answer; echo \"you said $answer\"";
    let asked = server.call(json!({"command": command, "tty": true, "timeout": 300}));
    assert_eq!(asked["prompt"], "Continue? [y/N]");
    assert_eq!((&asked["waiting_for_input"], &asked["state"]), (&json!(true), &json!("running")));
    let yes = json!({"job_id": asked["job_id"], "text": "y\n", "wait_for": "exit"});
    let told = tool(&mut server, "write_job", yes);
    assert!(told["output"].as_str().unwrap().ends_with("you said y\n"), "{told}");
}

#[test]
fn a_password_is_asked_for_without_being_shown() {
    let mut server = prepared();
    let command =
        "stty -echo; printf 'Password: '; read -r secret; stty echo; echo; echo ${#secret}";
    let asked = server.call(json!({"command": command, "tty": true, "timeout": 300}));
    assert_eq!(
        (&asked["prompt"], &asked["waiting_for_input"]),
        (&json!("Password:"), &json!(true))
    );
    let secret = json!({"job_id": asked["job_id"], "text": "hunter2\n", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", secret)["screen"], "Password:\n7");
}

#[test]
fn a_question_on_a_pipe_is_told_of_and_work_is_not() {
    let mut server = prepared();
    let question = "printf 'Name: '; read name; echo \"hello $name\"";
    let id = server.call(json!({"command": question, "background": true}))["job_id"].clone();
    let quiet = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 300, "cursor": "bytes:0"});
    let told = tool(&mut server, "read_job", quiet);
    let expected = (&json!(true), &json!("Name:"));
    assert_eq!((&told["waiting_for_input"], &told["prompt"]), expected, "{told}");
    let name = json!({"job_id": id, "text": "Ada\n", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", name)["output"], "hello Ada\n");
    let busy = server.call(json!({"command": "sleep 300", "background": true}))["job_id"].clone();
    let told = tool(&mut server, "read_job", json!({"job_id": busy}));
    assert_eq!(told["waiting_for_input"], Value::Null);
}

#[test]
fn an_interpreter_is_talked_to() {
    let mut server = prepared();
    let id = start(&mut server, "python3 -q");
    let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:0"});
    let asked = tool(&mut server, "read_job", wait);
    assert_eq!((&asked["waiting_for_input"], &asked["prompt"]), (&json!(true), &json!(">>>")));
    type_until(&mut server, json!({"job_id": id, "text": "6 * 7\n"}), "42");
    let sum = json!({"job_id": id, "text": "print('su' + 'm')", "keys": ["enter"]});
    type_until(&mut server, sum, "\nsum\n");
    let end = json!({"job_id": id, "keys": ["ctrl-d"], "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", end)["exit_code"], 0);
}

#[test]
fn a_pager_moves_by_keys_and_what_it_draws_is_on_the_screen() {
    let mut server = prepared();
    let id = start(&mut server, "echo before; seq 1 100 | less; echo after");
    type_until(&mut server, json!({"job_id": id}), "23\n:");
    type_until(&mut server, json!({"job_id": id, "keys": ["space"]}), "46\n:");
    type_until(&mut server, json!({"job_id": id, "text": "G"}), "100");
    let quit = json!({"job_id": id, "text": "q", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", quit)["state"], "exited");
    let all = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
    let output = all["output"].as_str().unwrap();
    assert!(output.starts_with("before\n") && output.ends_with("after\n"), "{all}");
}

#[test]
fn what_is_drawn_again_and_again_is_told_by_the_screen() {
    let mut server = prepared();
    let frame = "\\033[Hframe %s\\033[K\\nrest\\033[K\\n\\033[J";
    let command = format!("clear; for i in 1 2 3 4 5 6 7; do printf '{frame}' $i; done; read line");
    let id = start(&mut server, &command);
    let told = type_until(&mut server, json!({"job_id": id}), "frame 7");
    assert_eq!(told["screen"], "frame 7\nrest", "{told}");
}

#[test]
fn what_a_terminal_gets_and_gives_is_whole() {
    let mut server = prepared();
    // Longer lines are cut by the terminal itself.
    let line = "x".repeat(3000);
    let id = start(&mut server, "stty -echo; echo ready; read -r a; read -r b; echo ${#a} ${#b}");
    type_until(&mut server, json!({"job_id": id}), "ready");
    let typed = format!("{line}\n{line}\n");
    let told = json!({"job_id": id, "text": typed, "wait_for": "exit"});
    let told = tool(&mut server, "write_job", told);
    assert_eq!(told["output"], "3000 3000\n", "{told}");
}
