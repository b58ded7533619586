//! Answers that arrive: short enough for every client to pass on, with the rest one call away.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Gate, Server, exec, read};

/// How long a part of an answer is as it is sent.
fn size(part: &Value) -> usize {
    part.to_string().chars().count()
}

fn assert_fits(result: &Value, limit: usize) {
    let (content, structure) = (size(&result["content"]), size(&result["structuredContent"]));
    assert!(content <= limit, "the content has {content} characters");
    assert!(structure <= limit, "the structure has {structure} characters");
}

/// How each tool is asked to run a command.
fn faces(command: &str) -> [(&'static str, Value); 3] {
    [
        ("execute_command", json!({"command": command})),
        ("shell", json!({"command": command})),
        ("run_shell_command", json!({"command": command, "is_background": false})),
    ]
}

/// What is shown of a command's output in the structure of an answer.
fn output(reply: &Value) -> String {
    let fields = ["output", "stdout", "partial_stdout", "stderr", "partial_stderr"];
    fields.iter().filter_map(|field| reply[field].as_str()).collect()
}

/// Outputs that take more room as JSON than as text, and how they end.
const LONG: [(&str, &str); 6] = [
    ("seq 2000000", "1999999\n2000000\n"),
    ("yes '\"\\\"' | head -50000; echo end", "end\n"),
    ("yes 日本語 | head -50000; echo end", "end\n"),
    ("for i in $(seq 9000); do printf '\\t\\t\\tx\\n'; done; echo end", "end\n"),
    ("head -c 300000 /dev/zero | tr '\\0' x; echo; echo end", "end\n"),
    ("for i in $(seq 9000); do printf '\\033[1;31mred %s\\033[0m\\n' $i; done", "red 9000\n"),
];

#[test]
fn a_long_output_arrives_with_its_beginning_and_its_end_in_every_tool() {
    let mut server = Server::start(&["--tools", "all"]);
    for (command, end) in LONG {
        for (tool, arguments) in faces(command) {
            let result = server.tool(tool, arguments);
            assert_fits(&result, 24_000);
            let reply = &result["structuredContent"];
            let shown = output(reply);
            assert!(shown.ends_with(end), "{tool} {command}: …{}", &shown[shown.len() - 40..]);
            assert!(reply["spill_uri"].as_str().unwrap().starts_with("mcp://tmp/exec-"));
            let text = result["content"].to_string();
            assert!(text.contains(reply["spill_uri"].as_str().unwrap()), "{tool} names it in text");
        }
    }
}

#[test]
fn a_third_of_what_is_shown_is_the_beginning_and_what_is_left_out_is_counted_exactly() {
    let mut server = Server::start(&[]);
    // Words instead of numbers do not fold.
    let reply = server.run("seq 2000000 | tr 0-9 g-p");
    let shown = reply["output"].as_str().unwrap();
    let (before, after) = shown.split_once("[... ").unwrap();
    let (count, after) = after.split_once(" bytes left out ...]\n").unwrap();
    assert!(before.starts_with("h\ni\n") && before.ends_with('\n') && after.starts_with('h'));
    let whole: u64 = 14_888_896;
    assert_eq!(reply["omitted_bytes"], whole - (before.len() + after.len()) as u64);
    assert_eq!(count, reply["omitted_bytes"].to_string());
    let escaped = |text: &str| text.len() + 2 * text.lines().count();
    let share = escaped(before) as f64 / (escaped(before) + escaped(after)) as f64;
    assert!((0.31..0.35).contains(&share), "{share}");
    assert!(escaped(shown) > 20_000, "{}", escaped(shown));
    let uri = reply["spill_uri"].clone();
    let next = format!("bytes:{}", before.len());
    let chunk = read(&mut server, json!({"uri": uri, "cursor": next, "limit_bytes": 20}));
    let number = |line: &str| -> u64 {
        let digits: String = line.bytes().map(|letter| char::from(letter - b'g' + b'0')).collect();
        digits.parse().unwrap()
    };
    let next = chunk["data"].as_str().unwrap().lines().next().unwrap();
    assert_eq!(number(next), number(before.lines().last().unwrap()) + 1);
}

#[test]
fn text_and_structure_of_a_long_answer_are_the_same_to_the_letter() {
    let mut server = Server::start(&[]);
    let result = server.call_raw(json!({"command": "seq 2000000"}));
    assert_eq!(result["content"][0]["text"], result["structuredContent"].to_string());
    let short = server.call_raw(json!({"command": "echo hi"}));
    let text = short["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("{\n  \"command\": \"echo hi\",\n  \"output\": \"hi\\n\",\n"),
        "{text}"
    );
}

#[test]
fn an_error_is_shorter_as_clients_pass_on_less_of_it() {
    let mut server = Server::start(&["--tools", "all", "--deny", "sudo"]);
    for (tool, mut arguments) in faces("seq 200000; sleep 300") {
        if tool != "run_shell_command" {
            arguments["timeout"] = json!(1);
            let result = server.tool(tool, arguments);
            assert_eq!(result["isError"], true);
            assert_fits(&result, 8_000);
            let shown = output(&result["structuredContent"]);
            assert!(shown.starts_with("1\n2\n") && shown.ends_with("\n200000\n"), "{tool}");
        }
    }
    let long = format!("sudo {}", "x".repeat(50_000));
    for (tool, arguments) in faces(&long) {
        let result = server.tool(tool, arguments);
        assert_fits(&result, 8_000);
        assert!(result["content"].to_string().contains("denied by the rule `sudo`"), "{tool}");
    }
}

#[test]
fn a_command_that_fails_is_shown_with_as_much_as_an_error_has_room_for() {
    let mut server = Server::start(&["--tools", "all"]);
    let result = server.tool("shell", json!({"command": "seq 20000 | tr 0-9 g-p; exit 1"}));
    assert_eq!(result["isError"], true);
    assert_fits(&result, 8_000);
    let reply = &result["structuredContent"];
    let shown = reply["stdout"].as_str().unwrap();
    let (before, after) = shown.split_once("[... ").unwrap();
    let (count, after) = after.split_once(" bytes left out ...]\n").unwrap();
    assert!(before.starts_with("h\ni\n") && after.ends_with("\nigggg\n"), "{shown}");
    let told = before.len() + after.len();
    assert!(told > 4_800, "{told}");
    assert_eq!(reply["omitted_bytes"], 108_894 - told);
    assert_eq!(count, reply["omitted_bytes"].to_string());
}

#[test]
fn a_long_command_is_told_back_in_part() {
    let mut server = Server::start(&["--tools", "all"]);
    let command = format!(": '{}'; seq 3; echo end", "\\\"x".repeat(40_000));
    for (tool, arguments) in faces(&command) {
        let result = server.tool(tool, arguments);
        assert_fits(&result, 24_000);
        let reply = &result["structuredContent"];
        assert_eq!(output(reply), "1\n2\n3\nend\n");
        assert!(reply["command"].as_str().unwrap().contains("bytes left out"));
    }
}

#[test]
fn the_limit_can_be_set_and_then_holds_for_tools_that_have_one_of_their_own() {
    let mut server = Server::start(&["--tools", "all", "--max-answer", "6000"]);
    for (command, _) in LONG {
        for (tool, arguments) in faces(command) {
            assert_fits(&server.tool(tool, arguments), 6_000);
        }
        for (tool, argument) in [("execute", "command"), ("shell_exec", "cmd")] {
            assert_fits(&server.tool(tool, json!({argument: command})), 6_000);
        }
    }
    let mut large = Server::start(&["--max-answer", "200000"]);
    let result = large.call_raw(json!({"command": "seq 2000000"}));
    assert_fits(&result, 200_000);
    assert!(output(&result["structuredContent"]).len() > 120_000);
}

/// Outputs on both streams, on one, and binary on either.
const BOTH: [&str; 8] = [
    "seq -f %0100g 2000; seq -f %0100g 2000 >&2",
    "seq -f %0100g 2000; seq -f %0100g 2000 >&2; exit 3",
    "seq 3; seq 100000 >&2",
    "yes '\"\\\"' | head -50000 | tee /dev/stderr",
    "yes 日本語 | head -50000 | tee /dev/stderr",
    "yes $(printf '\\001\\002\\033') | head -50000 | tee /dev/stderr",
    "head -c 300000 /dev/urandom | tee /dev/stderr",
    "head -c 300000 /dev/urandom >&2; seq 100000",
];

#[test]
fn both_streams_together_fit_into_an_answer_of_shell_exec() {
    for limit in [6_000, 24_000] {
        let mut server = Server::start(&["--tools", "all", "--max-answer", &limit.to_string()]);
        for cmd in BOTH {
            for strip in [true, false] {
                let asked = json!({"cmd": cmd, "ansi_strip": strip, "summary": true});
                let result = server.tool("shell_exec", asked.clone());
                assert_fits(&result, limit);
                let reply = &result["structuredContent"];
                assert!(reply["stderr_chunk"].as_str().unwrap().len() > 5, "{cmd}: {reply}");
                if let Some(cursor) = reply["next_cursor"].as_str() {
                    let page = json!({"cursor": cursor});
                    let next = json!({"cmd": cmd, "ansi_strip": strip, "page": page});
                    assert_fits(&server.tool("shell_exec", next), limit);
                }
            }
        }
        let long = "x".repeat(20_000);
        let wrong =
            json!({"cmd": "echo '[]'; seq 5000 >&2", "json_path": format!("abs('{long}')")});
        assert_fits(&server.tool("shell_exec", wrong), limit);
    }
}

#[test]
fn both_streams_together_are_no_more_than_limit_bytes() {
    let mut server = Server::start(&["--tools", "all"]);
    let cmd = "seq -f %0100g 2000; seq -f %0100g 2000 >&2";
    for (page, limit) in [(json!({}), 65_536), (json!({"limit_bytes": 1000}), 1000)] {
        let reply = exec(&mut server, json!({"cmd": cmd, "page": page}));
        let length = |field: &str| reply[field].as_str().unwrap().len();
        let (stdout, stderr) = (length("stdout_chunk"), length("stderr_chunk"));
        assert_eq!(stdout + stderr, limit);
        assert_eq!(stderr, limit / 4, "a quarter is for stderr");
    }
}

#[test]
fn a_page_of_a_command_that_timed_out_is_an_error_and_shorter() {
    let flags = ["--tools", "all", "--max-answer", "24000", "--timeout", "1"];
    let mut server = Server::start(&flags);
    let result =
        server.tool("shell_exec", json!({"cmd": "seq 50000 | tee /dev/stderr; sleep 300"}));
    assert_eq!(result["isError"], true);
    assert_fits(&result, 8_000);
    assert!(result["structuredContent"]["spill_uri"].is_string());
}

#[test]
fn a_limit_that_a_document_names_stands_unless_another_is_set() {
    let mut server = Server::start(&["--tools", "all"]);
    let result = server.tool("execute", json!({"command": "seq 2000000"}));
    let shown = result["structuredContent"]["stdout"].as_str().unwrap().len();
    assert!((39_800..=40_000).contains(&shown), "{shown}");
    let page = exec(&mut server, json!({"cmd": "head -c 300000 /dev/zero | tr '\\0' x"}));
    assert_eq!(page["bytes_end"], 65_535);
}

#[test]
fn tools_whose_answers_may_be_long_say_so_to_clients_that_cut() {
    let mut server = Server::start(&["--tools", "all"]);
    let listed = server.request("tools/list", json!({}));
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let short = ["list_jobs", "write_job", "stop_job"].contains(&name);
        let told = &tool["_meta"]["anthropic/maxResultSizeChars"];
        assert_eq!(told.as_u64(), (!short).then_some(500_000), "{name}");
    }
}

#[test]
fn pages_of_kept_output_and_of_jobs_fit_unless_more_is_asked_for() {
    let mut server = Server::start(&[]);
    for (command, _) in LONG {
        let started = server.call(json!({"command": command, "background": true}));
        let job = started["job_id"].clone();
        let wait = json!({"job_id": job, "wait_for": "exit", "cursor": "bytes:0"});
        let result = server.tool("read_job", wait);
        assert_fits(&result, 24_000);
        assert!(size(&result["structuredContent"]) > 4_000, "{command}");
        let tail = server.tool("read_job", json!({"job_id": job, "tail": 100_000}));
        assert_fits(&tail, 24_000);
        let asked = json!({"job_id": job, "cursor": "bytes:0", "limit_bytes": 60_000});
        let asked = server.tool("read_job", asked);
        assert!(asked["structuredContent"]["output"].as_str().unwrap().len() > 40_000, "{command}");
        let uri = server.run(command)["spill_uri"].clone();
        let mut cursor = json!("bytes:0");
        for _ in 0..3 {
            let result = server.tool("read_file_chunk", json!({"uri": uri, "cursor": cursor}));
            assert_fits(&result, 24_000);
            cursor = result["structuredContent"]["next_cursor"].clone();
        }
    }
    let uri = server.run("head -c 200000 /dev/urandom")["spill_uri"].clone();
    let result = server.tool("read_file_chunk", json!({"uri": uri}));
    assert_eq!(result["structuredContent"]["encoding"], "base64");
    assert_fits(&result, 24_000);
}

#[test]
fn the_last_lines_of_a_job_say_how_much_before_them_did_not_fit() {
    let mut server = Server::start(&[]);
    let started = server.call(json!({"command": "seq 100000", "background": true}));
    let job = started["job_id"].clone();
    let mut tail = |lines: usize, more: Value| {
        let mut asked = json!({"job_id": job, "tail": lines, "wait_for": "exit"});
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = server.tool("read_job", asked)["structuredContent"].clone();
        (reply["output"].as_str().unwrap().to_owned(), reply["omitted_bytes"].as_u64())
    };
    let (text, omitted) = tail(100_000, json!({}));
    assert!(text.ends_with("99999\n100000\n"));
    assert_eq!(omitted, Some(588_895 - text.len() as u64));
    let (text, omitted) = tail(3, json!({"limit_bytes": 10}));
    assert_eq!((text.as_str(), omitted), ("100000\n", Some(588_888)));
    let (text, omitted) = tail(3, json!({"limit_bytes": 5}));
    assert_eq!((text.as_str(), omitted), ("0000\n", Some(588_890)));
    let (text, omitted) = tail(2, json!({}));
    assert_eq!((text.as_str(), omitted), ("99999\n100000\n", None));
    let (text, omitted) = tail(2, json!({"grep": "^1.?$"}));
    assert_eq!((text.as_str(), omitted), ("18\n19\n", None));
    let (text, omitted) = tail(9, json!({"grep": "^1.?$", "limit_bytes": 6}));
    assert_eq!((text.as_str(), omitted), ("18\n19\n", Some(26)));
}

#[test]
fn pages_end_with_lines_and_give_every_byte_once() {
    let mut server = Server::start(&[]);
    let uri = server.run("seq 30000")["spill_uri"].clone();
    let (mut text, mut cursor, mut pages) = (String::new(), json!("bytes:0"), 0);
    while cursor.is_string() {
        let chunk = read(&mut server, json!({"uri": uri, "cursor": cursor}));
        let data = chunk["data"].as_str().unwrap();
        assert!(data.ends_with('\n'));
        text.push_str(data);
        (cursor, pages) = (chunk["next_cursor"].clone(), pages + 1);
    }
    assert_eq!(text, (1..=30_000).map(|n| format!("{n}\n")).collect::<String>());
    assert!(pages > 3);
}

#[test]
fn many_jobs_are_listed_as_far_as_they_fit_and_the_running_ones_are_among_them() {
    let mut server = Server::start(&[]);
    server.call(json!({"command": "exec sleep 300", "background": true}));
    let long = format!(": '{}'", "\\\"".repeat(3000));
    for _ in 0..40 {
        let job = server.call(json!({"command": long, "background": true}))["job_id"].clone();
        server.tool("read_job", json!({"job_id": job, "wait_for": "exit"}));
    }
    let result = server.tool("list_jobs", json!({}));
    assert_fits(&result, 24_000);
    let reply = &result["structuredContent"];
    let listed = reply["jobs"].as_array().unwrap();
    assert_eq!(listed[0]["state"], "running");
    assert_eq!(listed.len() as u64 + reply["omitted_jobs"].as_u64().unwrap(), 41);
    server.tool("stop_job", json!({"job_id": "job-1"}));
}

#[test]
fn truncated_means_cut_also_when_a_child_goes_on() {
    let mut server = Server::start(&["--tools", "all"]);
    let command = "echo out; echo err >&2; sleep 300 &";
    let reply = server.tool("execute", json!({"command": command}))["structuredContent"].clone();
    assert_eq!(
        (&reply["stdout_truncated"], &reply["stderr_truncated"]),
        (&json!(false), &json!(false))
    );
    server.tool("stop_job", json!({"job_id": reply["background_job"]}));
}

#[test]
fn the_documents_loop_ends_while_a_child_lives_and_the_answer_names_the_job() {
    let mut server = Server::start(&["--tools", "all"]);
    let arguments = json!({"cmd": "seq 30000; sleep 300 &"});
    let mut reply = exec(&mut server, arguments.clone());
    let (mut text, mut pages) = (String::new(), 0);
    loop {
        text.push_str(reply["stdout_chunk"].as_str().unwrap());
        pages += 1;
        assert!(pages < 100, "it goes on and on");
        let Some(cursor) = reply["next_cursor"].as_str() else { break };
        reply = exec(&mut server, json!({"cmd": arguments["cmd"], "page": {"cursor": cursor}}));
    }
    assert_eq!(text.lines().count(), 30_000);
    assert!(reply["background_job"].as_str().unwrap().starts_with("job-"));
    let (mut chunk, mut chunks) = (read(&mut server, json!({"uri": reply["spill_uri"]})), 1);
    while let Some(cursor) = chunk["next_cursor"].as_str() {
        chunks += 1;
        assert!(chunks < 100, "it goes on and on");
        chunk = read(&mut server, json!({"uri": reply["spill_uri"], "cursor": cursor}));
    }
    assert_eq!(chunk["running"], true);
    server.tool("stop_job", json!({"job_id": reply["background_job"]}));
}

#[test]
fn the_documents_loop_ends_where_the_command_ended_however_fast_its_children_print() {
    let mut server = Server::start(&["--tools", "all"]);
    let gate = Gate::new();
    let cmd = format!("({}; yes | head -c 5000000; sleep 300) & seq 10000", gate.wait());
    let mut reply = exec(&mut server, json!({"cmd": cmd}));
    let (job, uri) = (reply["background_job"].clone(), reply["spill_uri"].clone());
    drop(gate);
    let far = json!({"uri": uri, "cursor": "bytes:5000000", "limit_bytes": 1});
    while read(&mut server, far.clone())["total_bytes"].as_u64().unwrap() < 5_000_000 {}
    let mut text = reply["stdout_chunk"].as_str().unwrap().to_owned();
    while let Some(cursor) = reply["next_cursor"].as_str() {
        reply = exec(&mut server, json!({"cmd": cmd, "page": {"cursor": cursor}}));
        text.push_str(reply["stdout_chunk"].as_str().unwrap());
        assert!(text.len() < 100_000, "what comes later is the job's");
    }
    assert_eq!(text.lines().count(), 10_000);
    server.tool("stop_job", json!({"job_id": job, "grace_ms": 0}));
}

#[test]
fn an_empty_page_of_a_command_that_runs_waits_and_names_its_job() {
    let mut server = Server::start(&["--tools", "all", "--background-after", "1"]);
    let cmd = "seq 5; sleep 4; echo end";
    let mut reply = exec(&mut server, json!({"cmd": cmd}));
    let (job, uri) = (reply["job_id"].clone(), reply["spill_uri"].clone());
    let (mut text, mut pages) = (String::new(), 0);
    loop {
        text.push_str(reply["stdout_chunk"].as_str().unwrap());
        pages += 1;
        assert!(pages < 50, "it spins");
        let Some(cursor) = reply["next_cursor"].as_str() else { break };
        reply = exec(&mut server, json!({"cmd": cmd, "page": {"cursor": cursor}}));
        if reply["exit_code"].is_null() {
            let message = format!("the command is still running as {}", job.as_str().unwrap());
            assert_eq!((&reply["job_id"], &reply["message"]), (&job, &json!(message)));
        }
    }
    assert_eq!((text.as_str(), &reply["exit_code"]), ("1\n2\n3\n4\n5\nend\n", &json!(0)));
    let mut chunk = read(&mut server, json!({"uri": uri}));
    assert_eq!(chunk["data"], text);
    let going =
        exec(&mut server, json!({"cmd": "printf 'dots'; while :; do printf .; sleep 0.01; done"}));
    let mut chunks = 0;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(2);
    while std::time::Instant::now() < until {
        let cursor = chunk["next_cursor"].as_str().unwrap_or("bytes:0");
        chunk = read(&mut server, json!({"uri": going["spill_uri"], "cursor": cursor}));
        chunks += 1;
    }
    assert!(chunks < 50, "{chunks} chunks of a line that has no end");
    server.tool("stop_job", json!({"job_id": going["job_id"], "grace_ms": 0}));
}

#[test]
fn lines_that_are_written_over_and_colours_take_no_room_and_are_not_counted() {
    let mut server = Server::start(&["--tools", "all"]);
    let bar = "awk 'BEGIN { for (i = 0; i < 300; i++) { for (j = 1; j <= 100; j++) \
               printf \"\\rfile progress %d%%\", j; print \"\" } }'";
    for (tool, arguments) in faces(bar) {
        let reply = server.tool(tool, arguments)["structuredContent"].clone();
        assert!(output(&reply) == "file progress 100%\n".repeat(300), "{tool}");
        assert_eq!(reply["omitted_bytes"], Value::Null, "{tool}");
    }
    for many in [
        "for i in $(seq 20000); do printf '\\033[32mline %s\\033[0m\\n' $i; done",
        "yes abc | head -60000 | sed 's/$/\\r/'",
    ] {
        let reply = server.run(many);
        let lines = reply["output"].as_str().unwrap().split_inclusive('\n');
        let shown: u64 =
            lines.filter(|line| !line.starts_with(['[', '…'])).map(|line| line.len() as u64).sum();
        let chunk = read(&mut server, json!({"uri": reply["spill_uri"], "limit_bytes": 1}));
        let all = chunk["total_bytes"].as_u64().unwrap();
        assert_eq!(reply["omitted_bytes"].as_u64().unwrap() + shown, all, "{many}");
    }
    let nothing = server.run("head -c 200000 /dev/zero | tr '\\0' '\\1'");
    assert_eq!((&nothing["output"], &nothing["omitted_bytes"]), (&json!(""), &Value::Null));
}

#[test]
fn a_larger_budget_never_shows_less() {
    let shown = |flags: &[&str], command: &str| {
        let mut server = Server::start(&[&["--tools", "execute"], flags].concat());
        let reply = server.tool("execute", json!({"command": command}));
        reply["structuredContent"]["stdout"].as_str().unwrap().len()
    };
    for command in ["seq 30000 | tr 0-9 g-p", "yes '\"' | head -c 200000 | tr -d '\\n'"] {
        let usual = shown(&[], command);
        assert!((39_000..=40_000).contains(&usual), "{usual}");
        let more = shown(&["--max-answer", "1000000"], command);
        assert!(more.abs_diff(usual) < 100, "{command}: {more} instead of {usual}");
    }
}

#[test]
fn what_a_timeout_left_of_a_long_output_is_short_in_every_tool() {
    let mut server = Server::start(&["--tools", "all", "-t", "1"]);
    let command = "seq 100000; sleep 300";
    for (tool, arguments) in [
        ("execute", json!({"command": command})),
        ("shell_exec", json!({"cmd": command})),
        ("run_shell_command", json!({"command": command, "is_background": false})),
    ] {
        let result = server.tool(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}");
        assert_fits(&result, 8_000);
    }
}

#[test]
fn every_tool_asks_for_long_answers_to_be_passed_on_whole_if_they_are_wanted() {
    let asked = |flags: &[&str]| {
        let mut server = Server::start(&[&["--tools", "all"], flags].concat());
        let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
        let long = "anthropic/maxResultSizeChars";
        tools.as_array().unwrap().iter().filter(|tool| tool["_meta"][long] == 500_000).count()
    };
    assert_eq!((asked(&[]), asked(&["--max-answer", "60000"])), (7, 10));
}
