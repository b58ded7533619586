//! Programs that ask, and draw: driven through their terminals.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;

fn start(server: &mut Server, command: &str) -> Value {
    server.call(json!({"command": command, "tty": true, "background": true}))["job_id"].clone()
}

fn tool(server: &mut Server, name: &str, arguments: Value) -> Value {
    server.tool(name, arguments)["structuredContent"].clone()
}

/// Types, and waits until the screen shows something.
fn type_until(server: &mut Server, mut arguments: Value, shows: &str) -> Value {
    let id = arguments["job_id"].clone();
    arguments["wait_for"] = json!("quiet");
    let mut told = tool(server, "write_job", arguments);
    for _ in 0..100 {
        if told["screen"].as_str().unwrap().contains(shows) {
            return told;
        }
        let wait = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 100});
        told = tool(server, "read_job", wait);
    }
    panic!("the screen does not show {shows:?}: {told}");
}

#[test]
fn a_python_prompt_is_told_of_and_answers() {
    let mut server = Server::start(&[]);
    let id = start(&mut server, "python3 -q");
    let wait = json!({"job_id": id, "wait_for": "exit", "cursor": "bytes:0"});
    let asked = tool(&mut server, "read_job", wait);
    assert_eq!((&asked["waiting_for_input"], &asked["prompt"]), (&json!(true), &json!(">>>")));
    assert_eq!((&asked["timed_out"], &asked["state"]), (&Value::Null, &json!("running")));
    let told = type_until(&mut server, json!({"job_id": id, "text": "6 * 7\n"}), "42");
    assert_eq!(told["prompt"], ">>>");
    let sum = json!({"job_id": id, "text": "print('su' + 'm')", "keys": ["enter"]});
    type_until(&mut server, sum, "\nsum\n");
    let end = json!({"job_id": id, "keys": ["ctrl-d"], "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", end)["exit_code"], 0);
}

#[test]
fn a_question_of_node_is_told_of_and_answered() {
    let mut server = Server::start(&[]);
    let question = "require('readline').createInterface(process.stdin, process.stdout)\
                    .question('Your name? ', name => { console.log(`Hello ${name}`); process.exit(4) })";
    let command = format!("node -e \"{}\"", question.replace('`', "\\`").replace('$', "\\$"));
    let asked = server.call(json!({"command": command, "tty": true, "timeout": 300}));
    assert_eq!(
        (&asked["waiting_for_input"], &asked["prompt"]),
        (&json!(true), &json!("Your name?"))
    );
    let answer = json!({"job_id": asked["job_id"], "text": "Ada\n", "wait_for": "exit"});
    let told = tool(&mut server, "write_job", answer);
    assert_eq!((&told["exit_code"], &told["timed_out"]), (&json!(4), &Value::Null), "{told}");
    // It may also come by a pipe.
    let id = server.call(json!({"command": command, "background": true}))["job_id"].clone();
    while tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}))["waiting_for_input"]
        != true
    {}
    let told =
        tool(&mut server, "write_job", json!({"job_id": id, "text": "Ada\n", "wait_for": "exit"}));
    assert_eq!(told["output"], "Hello Ada\n", "{told}");
}

#[test]
fn what_is_typed_after_the_end_is_said_to_be_late() {
    let mut server = Server::start(&[]);
    let id = start(&mut server, "read answer; exit 3");
    let first =
        tool(&mut server, "write_job", json!({"job_id": id, "text": "x\n", "wait_for": "exit"}));
    assert_eq!((&first["exit_code"], &first["message"]), (&json!(3), &Value::Null), "{first}");
    let late = tool(&mut server, "write_job", json!({"job_id": id, "text": "x\n"}));
    assert!(late["message"].as_str().unwrap().contains("had ended before"), "{late}");
    let looked = tool(&mut server, "write_job", json!({"job_id": id}));
    assert_eq!(looked["message"], Value::Null, "{looked}");
    let id = start(&mut server, "(trap '' HUP; exec sleep 300) & read answer; exit 3");
    tool(&mut server, "write_job", json!({"job_id": id, "text": "x\n", "wait_for": "exit"}));
    let late = tool(&mut server, "write_job", json!({"job_id": id, "text": "x\n"}));
    assert!(late["message"].as_str().unwrap().contains("left running may read it"), "{late}");
}

#[test]
fn a_command_that_asks_is_handed_over_at_once() {
    let mut server = Server::start(&[]);
    let command = "printf 'Continue? [y/N] '; read answer; echo \"you said $answer\"";
    let asked = server.call(json!({"command": command, "tty": true, "timeout": 300}));
    assert_eq!(asked["prompt"], "Continue? [y/N]");
    assert_eq!((&asked["waiting_for_input"], &asked["state"]), (&json!(true), &json!("running")));
    let yes = json!({"job_id": asked["job_id"], "text": "y\n", "wait_for": "exit"});
    let told = tool(&mut server, "write_job", yes);
    assert!(told["output"].as_str().unwrap().ends_with("you said y\n"), "{told}");
    let quick = server.call(json!({"command": "test -t 1 && stty size", "tty": true}));
    assert_eq!((&quick["output"], &quick["job_id"]), (&json!("24 80\n"), &Value::Null));
}

#[test]
fn a_password_is_asked_for_without_being_shown() {
    let mut server = Server::start(&[]);
    let command = "python3 -c 'import getpass; print(len(getpass.getpass()))'";
    let asked = server.call(json!({"command": command, "tty": true}));
    assert_eq!(asked["prompt"], "Password:");
    let secret = json!({"job_id": asked["job_id"], "text": "hunter2\n", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", secret)["screen"], "Password:\n7");
}

#[test]
fn a_question_on_a_pipe_is_told_of_too() {
    let mut server = Server::start(&[]);
    let command =
        json!({"command": "printf 'Name: '; read name; echo \"hello $name\"", "background": true});
    let id = server.call(command)["job_id"].clone();
    let quiet = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 300, "cursor": "bytes:0"});
    let told = tool(&mut server, "read_job", quiet);
    assert_eq!(
        (&told["waiting_for_input"], &told["prompt"]),
        (&json!(true), &json!("Name:")),
        "{told}"
    );
    let busy = server.call(json!({"command": "sleep 300", "background": true}))["job_id"].clone();
    let told = tool(&mut server, "read_job", json!({"job_id": busy}));
    assert_eq!(told["waiting_for_input"], Value::Null);
}

#[test]
fn vim_writes_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    let mut server = Server::start(&[]);
    let id = start(&mut server, &format!("vi -u NONE -n '{}'", file.display()));
    type_until(&mut server, json!({"job_id": id}), "~");
    let insert = json!({"job_id": id, "text": "ifirst line", "keys": ["enter"]});
    let told = type_until(&mut server, insert, "first line\n");
    assert_eq!((&told["cursor_row"], &told["cursor_column"]), (&json!(2), &json!(1)));
    let second = json!({"job_id": id, "text": "second", "keys": ["escape", "up"]});
    type_until(&mut server, second, "second");
    let write = json!({"job_id": id, "text": ":wq", "keys": ["enter"], "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", write)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "first line\nsecond\n");
}

#[test]
fn less_pages_and_top_redraws() {
    let mut server = Server::start(&[]);
    let pager = start(&mut server, "seq 1 100 | less");
    type_until(&mut server, json!({"job_id": pager}), "23\n:");
    type_until(&mut server, json!({"job_id": pager, "keys": ["space"]}), "46\n:");
    type_until(&mut server, json!({"job_id": pager, "text": "G"}), "100");
    let quit = json!({"job_id": pager, "text": "q", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", quit)["state"], "exited");
    let top = start(&mut server, "top -d 1");
    type_until(&mut server, json!({"job_id": top}), "load average");
    type_until(&mut server, json!({"job_id": top, "text": "h"}), "Help");
}

#[test]
fn a_terminal_can_be_resized_and_interrupted() {
    let mut server = Server::start(&[]);
    let id = start(&mut server, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    type_until(&mut server, json!({"job_id": id}), "ready");
    let resize = json!({"job_id": id, "rows": 40, "columns": 132});
    type_until(&mut server, resize, "40 132");
    let interrupt = json!({"job_id": id, "keys": ["ctrl-c"], "wait_for": "exit"});
    let told = tool(&mut server, "write_job", interrupt);
    assert_eq!(told["state"], "exited", "{told}");
}

#[test]
fn a_port_that_a_job_listens_on_is_waited_for() {
    let mut server = Server::start(&[]);
    let command = "exec python3 -c 'import socket, time; time.sleep(0.3); s = socket.socket(); \
                   s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1], flush=True); time.sleep(0.3); \
                   s.listen(); time.sleep(300)'";
    let id = server.call(json!({"command": command, "background": true}))["job_id"].clone();
    let line = json!({"job_id": id, "wait_for": "text", "pattern": "^[0-9]+$"});
    let port: u16 =
        tool(&mut server, "read_job", line)["matched"].as_str().unwrap().parse().unwrap();
    let early = json!({"job_id": id, "wait_for": "port", "port": 1, "timeout": 0.1});
    assert_eq!(tool(&mut server, "read_job", early)["timed_out"], true);
    let wait = json!({"job_id": id, "wait_for": "port", "port": port});
    assert_eq!(tool(&mut server, "read_job", wait)["timed_out"], Value::Null);
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let other = server.call(json!({"command": "sleep 300", "background": true}))["job_id"].clone();
    let foreign = json!({"job_id": other, "wait_for": "port", "port": port, "timeout": 0.2});
    assert_eq!(tool(&mut server, "read_job", foreign)["timed_out"], true, "another job's port");
}

#[test]
fn what_is_typed_for_a_shell_is_judged() {
    let mut server = Server::start(&["--deny", "rm"]);
    let id = start(&mut server, "bash --norc");
    type_until(&mut server, json!({"job_id": id}), "bash");
    let mut complaint = |arguments: Value| {
        let mut arguments = arguments;
        arguments["job_id"] = id.clone();
        let answer = server.tool("write_job", arguments);
        (answer["isError"] == true)
            .then(|| answer["content"][0]["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(complaint(json!({"text": "echo fine\n"})), None);
    let refused = complaint(json!({"text": "rm -rf nothing\n"})).unwrap();
    assert!(refused.starts_with("Command denied by security policy"), "{refused}");
    assert_eq!(complaint(json!({"text": "r"})), None);
    assert!(complaint(json!({"text": "m nothing\n"})).is_some(), "in two parts");
    let keys = complaint(json!({"keys": ["up", "enter"]})).unwrap();
    assert!(keys.contains("send no other keys"), "{keys}");
    assert!(complaint(json!({"text": "x\u{7f}rm y\n"})).is_some(), "edited");
}

#[test]
fn what_is_typed_for_other_programs_is_not() {
    let mut server = Server::start(&["--allow", "cat,vi"]);
    let id = server.call(json!({"command": "cat", "background": true}))["job_id"].clone();
    let told = tool(&mut server, "write_job", json!({"job_id": id, "text": "rm -rf x\n"}));
    assert_eq!(told["output"], "rm -rf x\n");
}

#[test]
fn what_is_typed_for_a_pager_only_moves_and_searches() {
    let mut server = Server::start(&["--deny", "rm"]);
    let id = start(&mut server, "less /etc/passwd");
    type_until(&mut server, json!({"job_id": id}), "root");
    let refused = server.tool("write_job", json!({"job_id": id, "text": "!id\n"}));
    assert_eq!(refused["isError"], true, "{refused}");
    let left = json!({"job_id": id, "text": "/root\nq", "wait_for": "exit"});
    assert_eq!(tool(&mut server, "write_job", left)["state"], "exited");
}

#[test]
fn with_a_policy_pagers_run_nothing_and_shells_recall_nothing() {
    let command = json!({"command": "echo \"$LESSSECURE,${histchars-unset}\""});
    assert_eq!(Server::start(&["--deny", "rm"]).call(command.clone())["output"], "1,\n");
    assert_eq!(Server::start(&[]).call(command)["output"], ",unset\n");
}

/// A program that prints the next part whenever it is given a line.
fn start_in_steps(server: &mut Server, tty: bool, steps: &[&str]) -> Value {
    let steps: Vec<_> = steps.iter().map(|step| format!("printf '{step}'; read line")).collect();
    // What is typed must not be seen, or it would end the line.
    let command = format!("test -t 0 && stty -echo; {}", steps.join("; "));
    server.call(json!({"command": command, "tty": tty, "background": true}))
}

/// What is told of a job until it waits for the next line.
fn heard_until_it_asks(server: &mut Server, id: &Value) -> String {
    let mut heard = String::new();
    for _ in 0..200 {
        let wait = json!({"job_id": id, "wait_for": "quiet", "quiet_ms": 50});
        let told = tool(server, "read_job", wait);
        heard.push_str(told["output"].as_str().unwrap());
        if told["waiting_for_input"] == true {
            return heard;
        }
    }
    panic!("it does not ask: {heard:?}");
}

#[test]
fn a_progress_bar_that_is_read_while_it_runs_is_told_in_its_newest_state() {
    let mut server = Server::start(&[]);
    let steps = ["one\\n\\rprogress 10%%", "\\rprogress 50%%", "\\rcomplete\\n", "two\\n"];
    for tty in [true, false] {
        let begun = start_in_steps(&mut server, tty, &steps);
        let id = &begun["job_id"];
        let first = begun["output"].as_str().unwrap().to_owned();
        let first = first + &heard_until_it_asks(&mut server, id);
        assert_eq!(first, "one\nprogress 10%", "tty: {tty}");
        for (newest, is_new) in [("progress 50%", true), ("complete 50%\n", true), ("two\n", false)]
        {
            let line = json!({"job_id": id, "text": "\n"});
            let told = tool(&mut server, "write_job", line)["output"].as_str().unwrap().to_owned();
            let told = told + &heard_until_it_asks(&mut server, id);
            // On a slow machine it may have been looked at in between.
            assert!(told.ends_with(newest) && (is_new || told == newest), "tty: {tty}: {told:?}");
        }
        let all = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
        assert_eq!(all["output"], "one\ncomplete 50%\ntwo\n");
    }
}

#[test]
fn a_cursor_in_a_line_that_was_written_over_leads_to_its_beginning() {
    let mut server = Server::start(&[]);
    let steps = ["one\\nfirst state", "\\r\\033[Klast\\n"];
    let id = start_in_steps(&mut server, true, &steps)["job_id"].clone();
    heard_until_it_asks(&mut server, &id);
    let all = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
    assert_eq!(all["output"], "one\nfirst state");
    let again = json!({"job_id": id, "cursor": all["next_cursor"]});
    assert_eq!(tool(&mut server, "read_job", again.clone())["output"], "", "nothing is new");
    tool(&mut server, "write_job", json!({"job_id": id, "text": "\n"}));
    heard_until_it_asks(&mut server, &id);
    assert_eq!(tool(&mut server, "read_job", again)["output"], "last\n");
    let wrong = json!({"job_id": id, "cursor": "bytes:5~x.1"});
    let said = server.tool("read_job", wrong);
    assert!(said["content"][0]["text"].as_str().unwrap().contains("is not a cursor"), "{said}");
}

#[test]
fn a_prompt_is_told_once_also_when_its_line_goes_on() {
    let mut server = Server::start(&[]);
    let id = start(&mut server, "printf 'Name: '; read name; echo \"hello $name\"; read end");
    let mut heard = heard_until_it_asks(&mut server, &id);
    let all = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
    assert_eq!(all["output"], "Name: ", "{heard}");
    heard = heard_until_it_asks(&mut server, &id);
    assert_eq!(heard, "");
    let typed = json!({"job_id": id, "text": "ada\n"});
    heard.push_str(tool(&mut server, "write_job", typed)["output"].as_str().unwrap());
    heard.push_str(&heard_until_it_asks(&mut server, &id));
    assert_eq!(heard, "ada\nhello ada\n");
}

#[test]
fn what_is_drawn_on_the_screen_is_not_in_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    let mut server = Server::start(&[]);
    let command = format!("echo before; vi -u NONE -n '{}'; echo after", file.display());
    let id = start(&mut server, &command);
    type_until(&mut server, json!({"job_id": id}), "~");
    type_until(
        &mut server,
        json!({"job_id": id, "text": "ione line", "keys": ["escape"]}),
        "one line",
    );
    // What is on the screen can still be waited for.
    let wait = json!({"job_id": id, "wait_for": "text", "pattern": "^one l", "cursor": "bytes:0"});
    let told = tool(&mut server, "read_job", wait);
    assert_eq!((&told["matched"], &told["output"]), (&json!("one line"), &json!("before\n")));
    let end = json!({"job_id": id, "text": ":q!", "keys": ["enter"], "wait_for": "exit"});
    tool(&mut server, "write_job", end);
    let all = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
    assert_eq!(all["output"], "before\nafter\n");
}

#[test]
fn what_is_drawn_again_and_again_is_told_by_the_screen() {
    let mut server = Server::start(&[]);
    let frame = "\\033[Hframe %s\\033[K\\nrest\\033[K\\n\\033[J";
    let command = format!(
        "echo before; clear; for i in 1 2 3 4 5 6 7; do printf '{frame}' $i; done; read line; \
         printf '\\033[24;1H\\n'; echo after; read end"
    );
    let id = start(&mut server, &command);
    let told = type_until(&mut server, json!({"job_id": id}), "frame 7");
    assert_eq!(told["screen"], "frame 7\nrest", "{told}");
    type_until(&mut server, json!({"job_id": id, "text": "\n"}), "after");
    let all = tool(&mut server, "read_job", json!({"job_id": id, "cursor": "bytes:0"}));
    assert_eq!(all["output"], "before\nframe 1\nrest\nafter\n");
}

#[test]
fn what_waited_in_an_editor_without_a_terminal_is_told_what_to_do() {
    let mut server = Server::start(&[]);
    let waited = [1, 5, 25].iter().find_map(|seconds| {
        let reply = server.call(json!({"command": "vi -u NONE -n x", "timeout": seconds}));
        let has_begun = reply["output"].as_str().unwrap().contains("Vim: Warning");
        has_begun.then(|| reply["message"].as_str().unwrap().to_owned())
    });
    assert!(waited.unwrap().contains("an editor waited for somebody to type; pass the text"));
}
