//! `max_output_size` of `shell`: how much of an output is shown, while all of it is kept.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{Server, read};

/// What `shell` shows of both streams.
fn output(reply: &Value) -> String {
    ["stdout", "stderr"].iter().filter_map(|field| reply[field].as_str()).collect()
}

#[test]
fn what_shell_shows_is_never_more_than_max_output_size_and_nothing_is_lost_by_it() {
    let mut server = Server::start(&["--tools", "shell,read_file_chunk"]);
    // Words do not fold.
    let command = "seq 20000 | tr 0-9 g-p; seq 5000 | tr 0-9 g-p >&2";
    let result = server.tool("shell", json!({"command": command, "max_output_size": 1000}));
    let reply = &result["structuredContent"];
    let length = |field: &str| reply[field].as_str().unwrap().len() as u64;
    assert!(length("stdout") + length("stderr") <= 1000);
    assert!(reply["omitted_bytes"].as_u64().unwrap() > 100_000);
    let chunk = read(&mut server, json!({"uri": reply["spill_uri"], "grep": "^hpppp$"}));
    assert_eq!(chunk["data"], "hpppp\n");
    let more = json!({"command": command, "max_output_size": 100_000});
    let more = server.tool("shell", more)["structuredContent"].clone();
    assert!(output(&more).len() > 90_000 && output(&more).len() <= 100_000);
    let exact = json!({"command": "yes | head -c 1000", "max_output_size": 1000});
    let exact = server.tool("shell", exact)["structuredContent"].clone();
    assert_eq!((output(&exact).len(), &exact["omitted_bytes"]), (1000, &Value::Null));
}

#[test]
fn a_small_max_output_size_shows_the_beginning_and_the_end() {
    let mut server = Server::start(&["--tools", "shell"]);
    let mut shown = |size: usize| {
        let arguments = json!({"command": "seq 20000", "max_output_size": size});
        let reply = server.tool("shell", arguments)["structuredContent"].clone();
        (output(&reply), reply["omitted_bytes"].as_u64().unwrap())
    };
    assert_eq!(shown(5), ("0000\n".into(), 108_889));
    let text = "1\n2\n3\n4\n5\n6\n7\n...\n19996\n19997\n19998\n19999\n20000\n";
    assert_eq!(shown(50), (text.into(), 108_894 - 14 - 30));
    let (text, omitted) = shown(100);
    let (before, after) = text.split_once("...\n").unwrap();
    assert!(text.len() <= 100 && before.starts_with("1\n2\n") && after.ends_with("\n20000\n"));
    assert!(before.len() > 25 && after.len() > 55, "{text}");
    assert_eq!(omitted as usize, 108_894 - before.len() - after.len());
}

#[test]
fn what_lowers_max_output_size_is_told_in_the_schema_and_in_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[shell_tool]\nmax_output_size = \"1KB\"\n").unwrap();
    let small = ["--tools", "shell", "--config", config.to_str().unwrap()];
    for (flags, most, why) in [
        (&["--tools", "shell"][..], 262_144, "an answer shows"),
        (&small, 1000, "the server's settings allow"),
    ] {
        let mut server = Server::start(flags);
        let listed = server.request("tools/list", json!({}));
        let properties = &listed["result"]["tools"][0]["inputSchema"]["properties"];
        let description = properties["max_output_size"]["description"].as_str().unwrap();
        assert!(description.contains(&format!("at most {most}")), "{description}");
        let mut said = |command: &str, size: f64| {
            let arguments = json!({"command": command, "max_output_size": size});
            server.tool("shell", arguments)["content"].to_string()
        };
        let expected =
            format!("[`max_output_size` lowered from 1000000000 to {most}, the most that {why}]");
        let text = said("seq 200000", 1e9);
        assert!(text.contains(&expected), "{text}");
        assert!(!said("seq 10", 1e9).contains("lowered"));
        assert!(!said("seq 200000", 500.0).contains("lowered"));
    }
}

#[test]
fn max_output_size_in_the_file_is_a_limit_for_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[shell_tool]\nmax_output_size = \"1KB\"\n").unwrap();
    let flags = ["--tools", "shell", "--config", config.to_str().unwrap()];
    let mut server = Server::start(&flags);
    for arguments in [
        json!({"command": "seq 20000 | tr 0-9 g-p"}),
        json!({"command": "seq 20000 | tr 0-9 g-p", "max_output_size": 50_000}),
    ] {
        let reply = server.tool("shell", arguments)["structuredContent"].clone();
        let length = output(&reply).len();
        assert!((900..=1000).contains(&length), "{length}");
        assert_eq!(reply["lost_bytes"], Value::Null);
    }
}
