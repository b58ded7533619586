//! What changed in an output since the run before: `view: changes`.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;

/// A folder with a file of many lines, which do not fit into an answer, and a command that shows it.
struct Work {
    folder: TempDir,
}

impl Work {
    const COMMAND: &str = "cat lines; exit $(cat code)";

    fn new() -> Self {
        let work = Self { folder: tempfile::tempdir().unwrap() };
        work.write(3000, "", 0);
        work
    }

    /// Lines that do not fold, a last one, and the exit code.
    fn write(&self, lines: usize, last: &str, code: i32) {
        let line = |n: usize| format!("step {n} of the long work is done\n");
        let text: String = (0..lines).map(line).chain([last.to_owned()]).collect();
        std::fs::write(self.folder.path().join("lines"), text).unwrap();
        self.write_code(code);
    }

    fn write_code(&self, code: i32) {
        std::fs::write(self.folder.path().join("code"), code.to_string()).unwrap();
    }

    fn replace(&self, from: &str, to: &str) {
        let path = self.folder.path().join("lines");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    fn call(&self, mut arguments: Value) -> Value {
        arguments["command"] = json!(Self::COMMAND);
        arguments["working_directory"] = json!(self.folder.path());
        arguments
    }

    fn run(&self, server: &mut Server, arguments: Value) -> Value {
        server.call_raw(self.call(arguments))["structuredContent"].clone()
    }

    /// Runs it, and returns the URI of what it printed.
    fn uri(&self, server: &mut Server) -> Value {
        self.run(server, json!({}))["spill_uri"].clone()
    }
}

fn chunk(server: &mut Server, arguments: Value) -> Value {
    server.tool("read_file_chunk", arguments)["structuredContent"].clone()
}

fn has(reply: &Value, key: &str, parts: &[&str]) {
    let text = reply[key].as_str().unwrap();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} in {reply}"));
}

#[test]
fn a_second_run_is_told_by_what_changed_with_both_ends() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    let first = work.uri(&mut server);
    work.replace("step 1500 ", "STEP 1500 ");
    work.write_code(3);
    let second = work.uri(&mut server);
    let changed = chunk(&mut server, json!({"uri": second, "view": "changes"}));
    assert_eq!(
        changed["data"],
        "… 1498 lines the same …\n \
         step 1498 of the long work is done\n \
         step 1499 of the long work is done\n\
         -step 1500 of the long work is done\n\
         +STEP 1500 of the long work is done\n \
         step 1501 of the long work is done\n \
         step 1502 of the long work is done\n\
         … 1497 lines the same …\n"
    );
    let compared = format!("; compared with {}, which ended ", first.as_str().unwrap());
    let omitted = "; 2995 of 3000 lines not shown; omit `view` to read them";
    has(
        &changed,
        "message",
        &["ran again ", ": exit code 3;", &compared, ": exit code 0;", omitted],
    );
    assert_eq!(changed["next_cursor"], Value::Null, "{changed}");
    assert_eq!(changed["bytes_end"].as_u64().unwrap() + 1, changed["total_bytes"]);
}

#[test]
fn the_first_run_is_shown_as_it_is_and_the_same_output_has_no_changes() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    let first = work.uri(&mut server);
    let alone = chunk(&mut server, json!({"uri": first, "view": "changes"}));
    has(&alone, "data", &["step 0 of the long work is done\nstep 1 of"]);
    has(&alone, "message", &["ran just now: exit code 0; there is no earlier run of this command"]);
    let again = work.uri(&mut server);
    let same = chunk(&mut server, json!({"uri": again, "view": "changes"}));
    assert_eq!(same["data"], "no changes in 3000 lines\n");
    has(&same, "message", &["exit code 0; compared with ", "; no changes; 3000 of 3000 lines"]);
    // The oldest still has none before it, and another command or directory is not the same.
    let alone = chunk(&mut server, json!({"uri": first, "view": "changes"}));
    has(&alone, "message", &["there is no earlier run of this command"]);
    let elsewhere = Work::new().uri(&mut server);
    let elsewhere = chunk(&mut server, json!({"uri": elsewhere, "view": "changes"}));
    has(&elsewhere, "message", &["there is no earlier run of this command"]);
}

#[test]
fn many_changes_are_read_page_by_page_against_the_same_run() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    work.uri(&mut server);
    work.replace("7 of", "seven of");
    let uri = work.uri(&mut server);
    let (mut cursor, mut new, mut pages) = (Value::Null, 0, 0);
    loop {
        let mut arguments = json!({"uri": uri, "view": "changes", "limit_bytes": 4000});
        if cursor.is_string() {
            arguments["cursor"] = cursor.clone();
        }
        let page = chunk(&mut server, arguments);
        let data = page["data"].as_str().unwrap();
        assert!(data.len() <= 4000, "{page}");
        new += data.lines().filter(|line| line.starts_with("+step ")).count();
        has(&page, "message", &["ran again", "compared with"]);
        pages += 1;
        // A later run changes nothing about what the pages compare.
        work.uri(&mut server);
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((new, pages > 5), (300, true));
    let refused = json!({"uri": uri, "view": "changes", "cursor": "bytes:100"});
    let said = server.tool("read_file_chunk", refused).to_string();
    assert!(said.contains("next_cursor of an answer that shows changes"), "{said}");
}

#[test]
fn a_job_is_compared_while_it_runs_and_after_it() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    let go = work.folder.path().join("go");
    let command = "head -n 2000 lines; while [ ! -e go ]; do sleep 0.05; done; tail -n +2001 lines; exit $(cat code)";
    let start =
        json!({"command": command, "working_directory": work.folder.path(), "background": true});
    std::fs::write(&go, "").unwrap();
    let first = server.call(start.clone())["job_id"].clone();
    server.tool("read_job", json!({"job_id": first, "wait_for": "exit", "limit_bytes": 1}));
    std::fs::remove_file(&go).unwrap();
    work.replace("step 7 of", "step seven of");
    work.write_code(9);
    let job = server.call(start)["job_id"].clone();
    let text =
        json!({"job_id": job, "wait_for": "text", "pattern": "step 1999 ", "limit_bytes": 1});
    server.tool("read_job", text);
    let look = |server: &mut Server, arguments: Value| {
        server.tool("read_job", arguments)["structuredContent"].clone()
    };
    let running = look(&mut server, json!({"job_id": job, "view": "changes"}));
    has(&running, "output", &["\n-step 7 of", "\n+step seven of", "… 1990 lines the same …\n"]);
    assert!(!running["output"].as_str().unwrap().contains("-step 2000"), "{running}");
    has(&running, "message", &["still running", "is not shown as gone", ": exit code 0;"]);
    std::fs::write(&go, "").unwrap();
    let ended = json!({"job_id": job, "wait_for": "exit", "view": "changes"});
    let ended = look(&mut server, ended);
    assert_eq!(ended["exit_code"], 9, "{ended}");
    has(&ended, "output", &["\n-step 7 of", "… 2990 lines the same …\n"]);
    has(&ended, "message", &["ran again", ": exit code 9; compared with", ": exit code 0;"]);
    let refused = json!({"job_id": job, "view": "changes", "cursor": "bytes:0"});
    let said = server.tool("read_job", refused).to_string();
    assert!(said.contains("works only without `cursor`"), "{said}");
}

#[test]
fn a_command_answers_with_what_changed_in_one_call() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    work.write(100, "1 test passed\n", 0);
    let first = work.run(&mut server, json!({"view": "changes"}));
    has(&first, "output", &["step 0 ", "step 99 ", "1 test passed\n"]);
    has(&first, "message", &["ran just now: exit code 0; there is no earlier run"]);
    work.write(100, "1 test failed\n", 1);
    let second = work.run(&mut server, json!({"view": "changes"}));
    assert_eq!(second["return_code"], 1);
    assert_eq!(
        second["output"],
        "… 98 lines the same …\n step 98 of the long work is done\n step 99 of the long work is done\n\
         -1 test passed\n+1 test failed\n"
    );
    has(&second, "message", &["ran again just now: exit code 1; compared with mcp://tmp/exec-"]);
    let shown =
        "step 98 of the long work is done\nstep 99 of the long work is done\n1 test failed\n";
    let size = std::fs::metadata(work.folder.path().join("lines")).unwrap().len();
    assert_eq!(second["omitted_bytes"], size - shown.len() as u64, "{second}");
    let whole = chunk(&mut server, json!({"uri": second["spill_uri"]}));
    assert_eq!(whole["total_bytes"], size);
    let keys: Vec<_> = second.as_object().unwrap().keys().take(3).collect();
    assert_eq!(keys, ["command", "output", "return_code"]);
}

#[test]
fn changes_that_are_no_shorter_than_the_output_are_not_shown() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    work.write(0, "one\n", 0);
    work.run(&mut server, json!({"view": "changes"}));
    work.write(0, "two\n", 0);
    let second = work.run(&mut server, json!({"view": "changes"}));
    assert_eq!(second["output"], "two\n");
    has(&second, "message", &["compared with", "this is all of the output"]);
    let third = work.run(&mut server, json!({"view": "changes"}));
    assert_eq!(third["output"], "two\n");
    has(&third, "message", &["; no changes; this is all of the output"]);
}

#[test]
fn binary_output_is_not_compared_and_the_answer_says_so() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    let path = work.folder.path().join("lines");
    std::fs::write(&path, b"\0\x01\x02\xff".repeat(100)).unwrap();
    work.run(&mut server, json!({"view": "changes"}));
    work.write(1, "text\n", 0);
    let second = work.run(&mut server, json!({"view": "changes"}));
    has(&second, "output", &["text\n"]);
    has(&second, "message", &["the earlier output is binary"]);
    std::fs::write(&path, b"\0\x01\x02\xff".repeat(100)).unwrap();
    let third = work.run(&mut server, json!({"view": "changes"}));
    has(&third, "message", &["ran again just now: exit code 0", "this output is binary"]);
}

#[test]
fn a_session_is_compared_where_its_shell_was() {
    let (mut server, work) = (Server::start(&[]), Work::new());
    let other = Work::new();
    let run = |server: &mut Server, command: &str| {
        let call = json!({"command": command, "session": "s", "view": "changes"});
        server.call_raw(call)["structuredContent"].clone()
    };
    let go = |work: &Work| format!("cd '{}'", work.folder.path().display());
    run(&mut server, &go(&work));
    has(&run(&mut server, "cat lines"), "message", &["there is no earlier run"]);
    run(&mut server, &go(&other));
    has(&run(&mut server, "cat lines"), "message", &["there is no earlier run"]);
    run(&mut server, &go(&work));
    has(&run(&mut server, "cat lines"), "output", &["no changes in 3000 lines"]);
}
