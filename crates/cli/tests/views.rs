//! Shorter forms of an output: similar lines folded, or only its errors.

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
