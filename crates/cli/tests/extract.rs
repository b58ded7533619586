//! What outputs say, as data: results of tests, diagnostics, tables and JSON.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;

/// What `cargo test` prints for many tests, two of which fail. More than an answer has room for.
const RUN: &str = "echo; echo 'running 2002 tests'; i=0; \
    while [ $i -lt 2000 ]; do i=$((i+1)); echo \"test tests::case_$i ... ok\"; done; \
    echo 'test tests::adds ... FAILED'; echo 'test tests::divides ... FAILED'; echo; echo 'failures:'; echo; \
    echo '---- tests::adds stdout ----'; echo; echo \"thread 'tests::adds' panicked at src/lib.rs:14:9:\"; \
    echo 'assertion `left == right` failed'; echo; echo '---- tests::divides stdout ----'; echo; \
    echo \"thread 'tests::divides' panicked at src/lib.rs:20:9:\"; echo 'attempt to divide by zero'; echo; echo; \
    echo 'failures:'; echo '    tests::adds'; echo '    tests::divides'; echo; \
    echo 'test result: FAILED. 2000 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'; echo";

/// A command that runs a script, as a person would run tests.
fn script(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("run");
    std::fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

fn extract(server: &mut Server, uri: &Value, mut arguments: Value) -> Value {
    arguments["uri"] = uri.clone();
    server.tool("read_file_chunk", arguments)["structuredContent"].clone()
}

fn uri(server: &mut Server, command: &str) -> Value {
    let reply = server.call_raw(json!({"command": command}))["structuredContent"].clone();
    assert!(reply["spill_uri"].is_string(), "{reply}");
    reply["spill_uri"].clone()
}

#[test]
fn the_results_of_tests_are_counted_and_failures_are_named() {
    let mut server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&mut server, &script(&folder, &format!("{RUN}; exit 101")));
    let reply = extract(&mut server, &uri, json!({"extract": "tests"}));
    let found = &reply["extracted"];
    let counts = ["passed", "failed", "skipped", "complete"].map(|name| found[name].clone());
    assert_eq!(counts, [json!(2000), json!(2), json!(0), json!(true)], "{reply}");
    assert_eq!(found["failures"][0]["name"], "tests::adds", "{reply}");
    assert_eq!(found["failures"][1]["file"], "src/lib.rs", "{reply}");
    assert_eq!(found["failures"][1]["line"], 20, "{reply}");
    let names =
        extract(&mut server, &uri, json!({"extract": "tests", "json_path": "failures[].name"}));
    assert_eq!(names["extracted"], json!(["tests::adds", "tests::divides"]), "{names}");
}

#[test]
fn what_was_not_seen_to_be_green_is_not_called_green() {
    let mut server = Server::start(&[]);
    let passing = RUN.replace("FAILED", "ok").replace("; 2 failed", "; 0 failed");
    let cut = passing.split("; echo; echo 'failures:'").next().unwrap();
    for (text, filter, why) in [
        (format!("{cut}; exit 1"), "", "the exit code says that something failed"),
        (cut.to_owned(), "", "there is no summary"),
        (format!("{RUN}; exit 101"), " | grep -v FAILED", "lines may be missing"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let command = script(&folder, &text) + filter;
        let uri = uri(&mut server, &command);
        let reply = extract(&mut server, &uri, json!({"extract": "tests"}));
        assert_ne!(reply["extracted"]["complete"], true, "{why}: {reply}");
        assert!(reply["message"].is_string(), "{why}: {reply}");
    }
}

#[test]
fn a_job_is_asked_for_its_diagnostics_and_what_it_printed_is_still_read_later() {
    let mut server = Server::start(&[]);
    let errors = "echo \"main.c:3:5: error: expected ';' before 'x'\" >&2; echo done; exit 1";
    let job = server.call(json!({"command": errors, "background": true}))["job_id"].clone();
    let wait = json!({"job_id": job, "wait_for": "exit", "extract": "diagnostics"});
    let report = server.tool("read_job", wait)["structuredContent"].clone();
    let expected = json!({"file": "main.c", "line": 3, "column": 5, "severity": "error"});
    let found = &report["extracted"][0];
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{report}");
    }
    assert_eq!(report["exit_code"], 1, "{report}");
    let path = json!({"job_id": job, "extract": "diagnostics", "json_path": "[].line"});
    let lines = server.tool("read_job", path)["structuredContent"].clone();
    assert_eq!(lines["extracted"], json!([3]), "{lines}");
    let alone = server.tool("read_job", json!({"job_id": job, "json_path": "[]"}));
    assert!(
        alone["content"][0]["text"].as_str().unwrap().contains("only with `extract`"),
        "{alone}"
    );
    let whole =
        server.tool("read_job", json!({"job_id": job, "cursor": "bytes:0"}))["structuredContent"]
            .clone();
    assert!(whole["output"].as_str().unwrap().contains("done\n"), "{whole}");
}

#[test]
fn tables_and_json_become_data() {
    let mut server = Server::start(&[]);
    let table = "printf '%-10s %-6s %s\\n' NAME READY AGE; for i in $(seq 3000); do printf '%-10s %-6s %s\\n' web-$i yes 3d; done";
    let uri_of_table = uri(&mut server, table);
    let arguments = json!({"extract": "table", "json_path": "[2999]"});
    let row = extract(&mut server, &uri_of_table, arguments);
    assert_eq!(row["extracted"], json!({"NAME": "web-3000", "READY": "yes", "AGE": "3d"}), "{row}");
    let lines = "for i in $(seq 3000); do echo \"{\\\"id\\\": $i}\"; done";
    let uri_of_lines = uri(&mut server, lines);
    let ids =
        extract(&mut server, &uri_of_lines, json!({"extract": "json", "json_path": "[-1].id"}));
    assert_eq!(ids["extracted"], 3000, "{ids}");
    let all = extract(&mut server, &uri_of_lines, json!({"extract": "json"}));
    assert!(
        all.to_string().len() < 24_000 && all["message"].as_str().unwrap().contains("left out"),
        "{all}"
    );
}

#[test]
fn nothing_else_is_asked_for_at_the_same_time_and_what_is_not_found_is_said() {
    let mut server = Server::start(&[]);
    let uri = uri(&mut server, "seq 20000");
    let both = json!({"uri": uri, "extract": "tests", "view": "folded"});
    let said = server.tool("read_file_chunk", both).to_string();
    assert!(said.contains("`extract` works only without `grep`, `view` and `cursor`"), "{said}");
    let none = extract(&mut server, &uri, json!({"extract": "tests"}));
    assert_eq!(none["extracted"], Value::Null, "{none}");
    assert_eq!(none["total_bytes"], 108_894, "{none}");
    assert!(none["data"].as_str().unwrap().ends_with("20000"), "{none}");
    assert!(none["message"].is_string(), "{none}");
}

#[test]
fn a_path_that_selects_keeps_digits_and_what_the_value_lacks_is_said() {
    let mut server = Server::start(&[]);
    let ids = r#"{"ids": [12345678901234567890, 123456789012345678901], "x": 1, "x": 1.25}"#;
    let reply = server.call(json!({"command": format!("echo '{ids}'"), "extract": "json"}));
    let kept = json!({"ids": [12345678901234567890_u64, "123456789012345678901"], "x": 1.25});
    assert_eq!(reply["extracted"], kept);
    let said =
        "repeated keys: `x` (the last value counts); 1 integer is a string, to keep its digits";
    assert_eq!(reply["message"], said);
    let job = server.call(json!({"command": format!("echo '{ids}'"), "background": true}));
    let id = &job["job_id"];
    server.tool("read_job", json!({"job_id": id, "wait_for": "exit"}));
    let select = json!({"job_id": id, "extract": "json", "json_path": "ids[?@ != `1`]"});
    let found = server.tool("read_job", select)["structuredContent"].clone();
    assert_eq!((&found["extracted"], &found["message"]), (&kept["ids"], &json!(said)), "{found}");
}
