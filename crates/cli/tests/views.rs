//! Shorter forms of an output: similar lines folded, or only its errors. They stand for what an answer has no room for.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;

/// Prints 9,000 lines that differ only in digits, and an error after the 6,000th.
const LOG: &str = "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); echo \"2026-11-18 10:00:00 request $i took 5 ms\"; \
                   [ $i != 6000 ] || echo 'ERROR: connection refused'; done";

fn chunk(server: &mut Server, arguments: Value) -> Value {
    server.tool("read_file_chunk", arguments)["structuredContent"].clone()
}

fn data(reply: &Value) -> &str {
    reply["data"].as_str().unwrap()
}

#[test]
fn a_long_log_is_folded_to_a_few_lines_with_exact_counts() {
    let mut server = Server::start(&[]);
    let uri = server.run(LOG)["spill_uri"].clone();
    let folded = chunk(&mut server, json!({"uri": uri, "view": "folded"}));
    assert_eq!(
        data(&folded),
        "2026-11-18 10:00:00 request 1 took 5 ms\n\
         … 5998 more lines like this …\n\
         2026-11-18 10:00:00 request 6000 took 5 ms\n\
         ERROR: connection refused\n\
         2026-11-18 10:00:00 request 6001 took 5 ms\n\
         … 2998 more lines like this …\n\
         2026-11-18 10:00:00 request 9000 took 5 ms\n"
    );
    assert_eq!(folded["message"], "8996 of 9001 lines not shown; omit `view` to read them");
    assert_eq!(folded["next_cursor"], Value::Null, "{folded}");
    assert_eq!(folded["bytes_end"].as_u64().unwrap() + 1, folded["total_bytes"]);
}

#[test]
fn only_errors_are_shown_with_their_line_numbers() {
    let mut server = Server::start(&[]);
    let uri = server.run(LOG)["spill_uri"].clone();
    let errors = chunk(&mut server, json!({"uri": uri, "view": "errors"}));
    let lines: Vec<_> = data(&errors).lines().collect();
    assert_eq!(lines[0], "… 5998 lines without errors …", "{errors}");
    assert!(lines.contains(&"6001:ERROR: connection refused"), "{errors}");
    assert_eq!(lines.len(), 7, "two lines around it: {errors}");
}

#[test]
fn a_running_job_can_be_read_folded() {
    let mut server = Server::start(&[]);
    let command = format!("{LOG}; echo ready; sleep 300");
    let job = server.call(json!({"command": command, "background": true}))["job_id"].clone();
    let wait = json!({"job_id": job, "cursor": "bytes:0", "wait_for": "text", "pattern": "ready", "limit_bytes": 1});
    server.tool("read_job", wait);
    let read =
        server.tool("read_job", json!({"job_id": job, "cursor": "bytes:0", "view": "folded"}));
    let report = &read["structuredContent"];
    let output = report["output"].as_str().unwrap();
    assert!(output.contains("… 5998 more lines like this …"), "{report}");
    assert!(output.ends_with("request 9000 took 5 ms\nready\n"), "{report}");
    assert_eq!(report["message"], "8996 of 9002 lines not shown; omit `view` to read them");
}

#[test]
fn a_view_does_not_go_with_a_search() {
    let mut server = Server::start(&[]);
    let uri = server.run(LOG)["spill_uri"].clone();
    let refused = json!({"uri": uri, "view": "folded", "grep": "x"});
    let said = server.tool("read_file_chunk", refused).to_string();
    assert!(said.contains("`view` works only without `grep` and `json_path`"), "{said}");
}

#[test]
fn the_middle_of_an_answer_that_is_cut_is_folded() {
    let mut server = Server::start(&[]);
    let reply = server.run(LOG);
    let output = reply["output"].as_str().unwrap();
    let opening = format!(
        "[... {} bytes left out; lines that are alike are folded: ...]\n",
        reply["omitted_bytes"]
    );
    let (start, rest) = output.split_once(&opening).unwrap();
    let (between, end) = rest.split_once("[... the end: ...]\n").unwrap();
    assert!(start.starts_with("2026-11-18 10:00:00 request 1 took 5 ms\n"), "{output}");
    assert!(between.contains("\nERROR: connection refused\n"), "{output}");
    assert!(end.ends_with("request 9000 took 5 ms\n"), "{output}");
    let shown = between.lines().filter(|line| !line.starts_with('…'));
    let shown: usize = start.len() + end.len() + shown.map(|line| line.len() + 1).sum::<usize>();
    let whole = server.run(&format!("{{ {LOG}; }} | wc -c"))["output"].clone();
    let whole: u64 = whole.as_str().unwrap().trim().parse().unwrap();
    assert_eq!(shown as u64 + reply["omitted_bytes"].as_u64().unwrap(), whole);
}

#[test]
fn an_error_among_hundreds_of_warnings_is_in_the_answer() {
    let mut server = Server::start(&[]);
    let warnings = |seed: u32| {
        format!(
            "seq {seed} 9999 | tr 0-9 g-p | sed 's/.*/&.c: warning: no use of \\0 after &/' | head -c 60000"
        )
    };
    let error = "echo; echo 'e.c:1:9: error: undeclared identifier'";
    let command = format!("{}; {error}; {}; exit 1", warnings(1), warnings(1));
    let reply = server.call_raw(json!({"command": command}))["structuredContent"].clone();
    let output = reply["output"].as_str().unwrap();
    assert!(output.contains("e.c:1:9: error: undeclared identifier\n"), "{output}");
}

#[test]
fn a_view_that_does_not_fit_says_how_it_goes_on() {
    let mut server = Server::start(&[]);
    let errors = "seq 9999 | tr 0-9 g-p | sed 's/.*/error: no & for &/'";
    let reply =
        server.call_raw(json!({"command": errors, "view": "errors"}))["structuredContent"].clone();
    let message = reply["message"].as_str().unwrap();
    let cursor = message.split("`cursor` ").nth(1).and_then(|it| it.split(' ').next()).unwrap();
    let next =
        chunk(&mut server, json!({"uri": reply["spill_uri"], "view": "errors", "cursor": cursor}));
    let shown = reply["output"].as_str().unwrap().lines().count();
    assert!(data(&next).lines().next().unwrap().starts_with("error: no "), "{next}");
    let line = format!("seq {} {} | tr 0-9 g-p", shown + 1, shown + 1);
    let letters = server.run(&line)["output"].as_str().unwrap().trim().to_owned();
    assert!(data(&next).starts_with(&format!("error: no {letters} for {letters}\n")), "{next}");
}

#[test]
fn a_failure_is_told_with_the_errors_from_the_middle_of_its_output() {
    let mut server = Server::start(&[]);
    // Words do not fold.
    let words = "seq 20000 | tr 0-9 g-p";
    let error = "echo 'src/main.c:12:5: error: expected expression'; echo 'test parses ... FAILED'";
    let command = format!("{words}; {error}; {words}; exit 3");
    let result = server.call_raw(json!({"command": command}));
    let reply = &result["structuredContent"];
    let output = reply["output"].as_str().unwrap();
    assert_eq!(reply["return_code"], 3);
    assert!(output.contains("\n20001:src/main.c:12:5: error: expected expression\n"), "{output}");
    assert!(output.contains("\n20002:test parses ... FAILED\n"), "{output}");
    assert!(output.starts_with("h\ni\n") && output.ends_with("\nigggg\n"), "{output}");
    assert!(
        output.contains("lines among them that look like errors or warnings: ...]\n"),
        "{output}"
    );
    // What succeeds is not searched for errors.
    let fine = server.run(&format!("{words}; {error}; {words}"));
    assert!(!fine["output"].as_str().unwrap().contains("expected expression"), "{fine}");
}
