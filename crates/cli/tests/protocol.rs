//! The protocol over standard input and output, and what it has to bear.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Gate, Server, meta};

/// What the server says it can.
fn served() -> Value {
    json!({"logging": {}, "prompts": {}, "resources": {"subscribe": true}, "tools": {}})
}

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = Server::start_silent(&[]);
        let answer = server.initialize(version);
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "mcpz-shell");
        assert_eq!(answer["result"]["capabilities"], served());
        assert_eq!(server.run("echo hi")["output"], "hi\n");
    }
}

#[test]
fn a_revision_nobody_knows_is_answered_with_one_we_know() {
    let mut server = Server::start_silent(&[]);
    let answer = server.initialize("1999-01-01");
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let mut server = Server::start_silent(&[]);
    let meta = meta();
    let discovered = server.request("server/discover", json!({"_meta": meta}));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    assert_eq!(discovered["result"]["capabilities"], served());
    let listed = server.request("tools/list", json!({"_meta": meta}));
    assert_eq!(listed["result"]["tools"][0]["name"], "execute_command");
    let params =
        json!({"name": "execute_command", "arguments": {"command": "echo hi"}, "_meta": meta});
    let called = server.request("tools/call", params);
    assert_eq!(called["result"]["structuredContent"]["output"], "hi\n");
    assert_eq!(called["result"]["resultType"], "complete");
}

#[test]
fn a_client_that_only_probes_can_still_shake_hands() {
    let mut server = Server::start_silent(&[]);
    server.request("server/discover", json!({"_meta": meta()}));
    let answer = server.initialize("2025-06-18");
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn a_request_of_a_revision_that_needs_more_is_told_so_and_the_next_is_served() {
    let mut server = Server::start_silent(&[]);
    let refused = server.request("tools/list", json!({}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    server.initialize("2025-11-25");
    assert_eq!(server.run("echo hi")["output"], "hi\n");
}

#[test]
fn initialized_without_its_prefix_is_accepted() {
    let mut server = Server::start_silent(&[]);
    server.request(
        "initialize",
        json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        }),
    );
    server.send(&json!({"jsonrpc": "2.0", "method": "initialized"}));
    assert_eq!(server.run("echo hi")["output"], "hi\n");
}

#[test]
fn what_comes_before_the_handshake_does_no_harm() {
    let mut server = Server::start_silent(&[]);
    server.send(&json!({"jsonrpc": "2.0", "method": "initialized"}));
    server.notify("notifications/cancelled", json!({"requestId": 9}));
    server.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    server.initialize("2025-11-25");
    assert_eq!(server.run("echo hi")["output"], "hi\n");
}

#[test]
fn an_early_request_and_then_nothing_does_not_make_the_server_deaf() {
    let mut server = Server::start_silent(&[]);
    server.request("tools/list", json!({}));
    server.notify("notifications/initialized", json!({}));
    server.close_stdin();
    assert!(server.wait().success());
}

#[test]
fn a_batch_without_end_is_refused_as_a_whole() {
    let mut server = Server::start(&[]);
    let batch = vec![json!(1); 100_000];
    server.send(&batch.into());
    let refused = server.wait_for(|message| message["error"]["code"] == -32600);
    assert_eq!(
        refused["error"]["message"],
        "Invalid Request: the batch has more than 100 messages"
    );
}

#[test]
fn the_answer_to_a_call_that_ends_with_the_stream_is_still_given() {
    let mut server = Server::start(&[]);
    let call = server.start_call(json!({"command": "echo begun; sleep 300"}));
    server.wait_for_output(call, "begun");
    server.close_stdin();
    assert_eq!(server.answer(call)["result"]["structuredContent"]["output"], "begun\n");
    server.wait();
}

#[test]
fn the_list_of_tools_is_short() {
    let mut server = Server::start(&[]);
    let answer = server.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let jobs = ["list_jobs", "read_job", "write_job", "stop_job"];
    assert_eq!(names[..2], ["execute_command", "read_file_chunk"]);
    assert_eq!(names[2..], jobs);
    assert!(answer.to_string().len() < 6000);
    let said = ["name", "description", "inputSchema"];
    let said = tools.iter().flat_map(|tool| said.map(|key| tool[key].to_string().len()));
    assert!(said.sum::<usize>() <= 5500);
}

#[test]
fn what_there_is_not_is_refused_by_name() {
    let mut server = Server::start(&[]);
    let unknown = server.request("tools/call", json!({"name": "rm", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(unknown["error"]["message"], "Unknown tool: rm");
    let unknown = server.request("no/such", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(unknown["error"]["message"], "Method not found: no/such");
    let wrong = server.request("tools/call", json!({"arguments": {}}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": ""}});
    assert_eq!(server.request("completion/complete", params)["error"]["code"], -32601);
}

#[test]
fn a_broken_line_is_answered_where_it_has_an_id_and_the_next_is_served() {
    let mut server = Server::start(&[]);
    let mut huge = br#"{"jsonrpc":"2.0","method":"tools/call","params":{"x":""#.to_vec();
    huge.resize(20 << 20, b'x');
    huge.extend(br#""},"id":1004}"#);
    let lines: &[(&[u8], i64, i64)] = &[
        (br#"{"jsonrpc":"2.0","id":1001,"method":"#, 1001, -32700),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"p\xff\",\"id\":1002}", 1002, -32700),
        (br#"{"jsonrpc":"2.0","id":1003}"#, 1003, -32600),
        (&huge, 1004, -32700),
    ];
    for (line, id, code) in lines {
        server.send_bytes(&[line, b"\n".as_slice()].concat());
        let answer = server.answer(*id);
        assert_eq!(answer["error"]["code"], *code, "{answer}");
        assert_eq!(server.run("echo hi")["output"], "hi\n");
    }
}

#[test]
fn a_command_that_is_said_twice_does_not_run() {
    let mut server = Server::start(&[]);
    server.send_bytes(
        br#"{"jsonrpc":"2.0","id":1001,"method":"tools/call","params":{"name":"execute_command","arguments":{"command":"echo one","command":"echo other"}}}
"#,
    );
    let answer = server.answer(1001);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(message, "Invalid Request: the key `command` occurs twice in an object");
    assert_eq!(server.run("echo hi")["output"], "hi\n");
}

#[test]
fn garbage_does_not_end_the_server() {
    let mut server = Server::start(&[]);
    server.send_bytes(b"garbage\n\n\r\n\x00\xff\xfe\n[]\n[1,2]\n{}\nnull\n");
    server.send_bytes(&[b"[".repeat(100_000), b"\n".to_vec()].concat());
    assert_eq!(server.run("echo hi")["output"], "hi\n");
}

#[test]
fn the_messages_of_a_batch_are_all_answered() {
    let mut server = Server::start(&[]);
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1001, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1002, "method": "ping"},
    ]);
    server.send(&batch);
    assert_eq!(server.answer(1002)["result"], json!({}));
    assert_eq!(server.answer(1001)["result"], json!({}));
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let mut server = Server::start(&[]);
    let call = server.start_call(json!({"command": "echo begun; sleep 1; echo done"}));
    server.wait_for_output(call, "begun");
    server.send(&json!({"jsonrpc": "2.0", "id": call, "method": "ping"}));
    assert_eq!(server.answer(call)["error"]["code"], -32600);
    let reply = server.answer(call)["result"]["structuredContent"].clone();
    assert_eq!(reply["output"], "begun\ndone\n");
}

#[test]
fn a_cancelled_call_is_not_answered_and_its_id_stays_taken() {
    let mut server = Server::start(&[]);
    let call = server.start_call(json!({"command": "echo begun; sleep 300"}));
    server.wait_for_output(call, "begun");
    server.notify("notifications/cancelled", json!({"requestId": call, "reason": "test"}));
    server.send(&json!({"jsonrpc": "2.0", "id": call, "method": "ping"}));
    assert_eq!(server.answer(call)["error"]["code"], -32600);
    assert_eq!(server.run("echo hi")["output"], "hi\n");
    assert!(!server.seen.iter().any(|message| message["id"] == call));
}

#[test]
fn a_server_without_a_client_ends_at_once() {
    let mut server = Server::start_silent(&[]);
    server.close_stdin();
    assert!(server.wait().success());
}

#[test]
fn requests_from_a_file_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests");
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "file", "version": "1"},
        },
    });
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    std::fs::write(&file, format!("{hello}\n{list}\n")).unwrap();
    let output = std::process::Command::new(support::MCPZ)
        .args(["server", "shell"])
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let ids: Vec<_> = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn a_client_that_does_not_read_harms_only_itself() {
    let mut server = Server::start(&[]);
    // Far more than a pipe holds; nobody reads until all is asked.
    let calls: Vec<_> = (0..200).map(|_| server.ask("tools/list", json!({}))).collect();
    for call in calls {
        assert!(server.answer(call)["result"]["tools"].is_array());
    }
}

#[test]
fn a_client_that_asks_is_told_about_its_commands() {
    let mut server = Server::start(&[]);
    let level = server.request("logging/setLevel", json!({"level": "notice"}));
    assert_eq!(level["result"], json!({}));
    server.call_raw(json!({"command": "sleep 300", "timeout": 0.2}));
    let told = server.wait_for(|message| message["method"] == "notifications/message");
    assert_eq!(told["params"]["level"], "warning");
    assert_eq!(told["params"]["data"], "the command timed out after 0.2 s");
}

#[test]
fn a_request_without_a_handshake_is_told_about_what_it_asks_for_and_no_other_is() {
    let mut server = Server::start_silent(&[]);
    let mut params = json!({
        "name": "execute_command",
        "arguments": {"command": "sleep 300", "timeout": 0.2},
        "_meta": meta(),
    });
    for (level, told) in [(None, 0), (Some("error"), 0), (Some("warning"), 1)] {
        if let Some(level) = level {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        let answer = server.request("tools/call", params.clone());
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_eq!(server.seen.len(), told, "{level:?}");
    }
    let message = &server.seen[0];
    assert_eq!(message["method"], "notifications/message");
    assert_eq!(message["params"]["level"], "warning");
    assert_eq!(message["params"]["data"], "the command timed out after 0.2 s");
}

#[test]
fn an_output_that_is_followed_is_told_of_until_it_is_not_followed() {
    let mut server = Server::start(&["--tools", "all"]);
    let gate = Gate::new();
    let command = format!("echo one; {}; echo two", gate.wait());
    let arguments = json!({"command": command, "is_background": true});
    let result = server.tool("run_shell_command", arguments);
    let uri = result["structuredContent"]["spill_uri"].clone();
    let subscribed = server.request("resources/subscribe", json!({"uri": uri}));
    assert_eq!(subscribed["result"], json!({}));
    drop(gate);
    let told = server.wait_for(|message| message["method"] == "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], uri);
    let over = server.request("resources/unsubscribe", json!({"uri": uri}));
    assert_eq!(over["result"], json!({}));
}

#[test]
fn a_client_that_listens_is_told_of_its_output_that_grows() {
    let mut server = Server::start_silent(&["--tools", "all"]);
    let gate = Gate::new();
    let command = format!("echo one; {}; echo two", gate.wait());
    let begun = server.request(
        "tools/call",
        json!({
            "name": "run_shell_command",
            "arguments": {"command": command, "is_background": true},
            "_meta": meta(),
        }),
    );
    let uri = begun["result"]["structuredContent"]["spill_uri"].clone();
    let uris = json!([uri, "mcp://tmp/exec-x.out"]);
    let filter = json!({"resourceSubscriptions": uris});
    let listening =
        server.ask("subscriptions/listen", json!({"notifications": filter, "_meta": meta()}));
    let heard = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening
    };
    let acknowledged = server.wait_for(heard);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!([uri]));
    drop(gate);
    let update = server.wait_for(heard);
    assert_eq!(update["method"], "notifications/resources/updated");
    assert_eq!(update["params"]["uri"], uri);
}

#[test]
fn prompts_are_listed_and_filled_in() {
    let mut server = Server::start(&[]);
    let listed = server.request("prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(listed[0]["name"], "find_out_why");
    let params = json!({"name": "find_out_why", "arguments": {"command": "make test"}});
    let filled = server.request("prompts/get", params);
    let text = filled["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("    make test\n"), "{text}");
}
