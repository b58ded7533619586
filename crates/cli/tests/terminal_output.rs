//! Nothing that is printed to a terminal is lost, however much it is and whoever else prints.
//!
//! `MCPZ_TERMINAL_OUTPUTS` says how many outputs are looked at, in place of a hundred.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashMap;

use serde_json::{Value, json};
use support::Server;

/// How the same command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Foreground,
    Job,
    Detached,
}

/// How many outputs each of the eight checks looks at.
fn outputs() -> u64 {
    let wanted = std::env::var("MCPZ_TERMINAL_OUTPUTS").ok();
    wanted.map_or(100_u64, |wanted| wanted.parse().expect("a number")).div_ceil(8)
}

/// Lengths from 1 KB to 5 MB, of which each tenfold range is as likely as another, without chance.
fn length(number: u64) -> usize {
    let part = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24);
    (1000.0 * 5000_f64.powf(part)) as usize
}

/// A command that prints so many bytes, and all of them as they are shown: no two places are alike.
fn command(number: u64) -> (String, String) {
    let length = length(number);
    let mut expected = String::with_capacity(length + 16);
    for line in 1.. {
        if expected.len() >= length {
            return (format!("seq {}", line - 1), expected);
        }
        expected.push_str(&format!("{line}\n"));
    }
    unreachable!("a line is printed until there are enough")
}

/// All of an output, by its answer.
fn whole(server: &mut Server, reply: &Value) -> String {
    let Some(uri) = reply.get("spill_uri") else {
        return reply["output"].as_str().unwrap().to_owned();
    };
    let (mut all, mut cursor) = (String::new(), json!("bytes:0"));
    while !cursor.is_null() {
        let page = json!({"uri": uri, "cursor": cursor, "limit_bytes": 262_144});
        let page = support::read(server, page);
        all.push_str(page["data"].as_str().unwrap());
        cursor = page["next_cursor"].clone();
    }
    all.replace("\r\n", "\n")
}

/// All that a job has printed, once it has ended.
fn whole_of_job(server: &mut Server, id: &Value) -> String {
    let mut told = json!({"next_cursor": "bytes:0"});
    let mut all = String::new();
    loop {
        let next = json!({
            "job_id": id, "wait_for": "exit", "cursor": told["next_cursor"],
            "limit_bytes": 262_144, "timeout": 100,
        });
        told = server.tool("read_job", next)["structuredContent"].clone();
        assert_eq!((&told["state"], &told["exit_code"]), (&json!("exited"), &json!(0)), "{told}");
        assert!(told["lost_bytes"].is_null(), "{told}");
        match told["output"].as_str().unwrap() {
            "" => return all,
            more => all.push_str(more),
        }
    }
}

/// Runs commands, so many at a time, and compares what is kept of them with what they have printed.
fn check(way: Way, at_once: usize, flags: &[&str]) {
    let mut server = Server::start(flags);
    let mut numbers = 0..outputs();
    let mut asked = HashMap::new();
    loop {
        while asked.len() < at_once
            && let Some(number) = numbers.next()
        {
            let (command, expected) = command(number);
            let arguments = json!({
                "command": command, "tty": true, "timeout": 100,
                "background": way == Way::Job, "detach": way == Way::Detached,
            });
            let call = json!({"name": "execute_command", "arguments": arguments});
            asked.insert(server.ask("tools/call", call), (command, expected));
        }
        if asked.is_empty() {
            return;
        }
        let answer = server
            .wait_for(|message| message["id"].as_i64().is_some_and(|id| asked.contains_key(&id)));
        let (command, expected) = asked.remove(&answer["id"].as_i64().unwrap()).unwrap();
        let reply = &answer["result"]["structuredContent"];
        let kept = match way {
            Way::Foreground => whole(&mut server, reply),
            Way::Job | Way::Detached => whole_of_job(&mut server, &reply["job_id"]),
        };
        assert!(
            kept == expected,
            "{command}: {} of {} bytes were kept, the last of them {:?}: {answer}",
            kept.len(),
            expected.len(),
            &kept[kept.len().saturating_sub(30)..]
        );
    }
}

#[test]
fn a_command_at_a_terminal_loses_nothing() {
    check(Way::Foreground, 1, &[]);
    check(Way::Foreground, 16, &[]);
}

#[test]
fn a_job_at_a_terminal_loses_nothing() {
    check(Way::Job, 1, &[]);
    check(Way::Job, 16, &[]);
}

#[test]
fn a_detached_job_at_a_terminal_loses_nothing() {
    check(Way::Detached, 1, &[]);
    check(Way::Detached, 16, &[]);
}

#[test]
fn a_confined_command_at_a_terminal_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let flags = ["--working-dir", directory, "--sandbox", "workspace"];
    check(Way::Foreground, 1, &flags);
    check(Way::Foreground, 16, &flags);
}
