//! The history: what ran, how it ended, and what it printed, for people.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::audit::{edit, file, folder, settled, start};
use support::{Gate, MCPZ, Server, wait_until};
use tempfile::TempDir;

fn command(state: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(MCPZ);
    command.arg("history").args(arguments).env("XDG_STATE_HOME", state.path());
    command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("MCPZ_CONFIG").stdin(Stdio::null());
    command
}

/// What `mcpz history` prints to stdout and stderr, and whether it succeeds.
fn history(state: &TempDir, arguments: &[&str]) -> (String, String, bool) {
    let output = command(state, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

/// The commands it lists, oldest first.
fn commands(state: &TempDir, arguments: &[&str]) -> Vec<String> {
    let text = |entry: &Value| entry["command"].as_str().unwrap().to_owned();
    entries(state, arguments).iter().map(text).collect()
}

fn entries(state: &TempDir, arguments: &[&str]) -> Vec<Value> {
    let (stdout, stderr, _) = history(state, &[arguments, &["--json"]].concat());
    let entries: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    entries.as_array().unwrap().clone()
}

/// What is shown on a terminal of 60 columns.
fn on_terminal(state: &TempDir, arguments: &str, variables: &[(&str, &str)]) -> String {
    let line = format!("stty cols 60; '{MCPZ}' history {arguments}");
    let mut script = Command::new("script");
    for unset in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "MCPZ_CONFIG"] {
        script.env_remove(unset);
    }
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    script.env("XDG_STATE_HOME", state.path()).env("XDG_CONFIG_HOME", "/nonexistent");
    let output = script.envs(variables.iter().copied()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_command_is_a_line_with_its_end_and_the_newest_is_last() {
    let state = support::state();
    let mut server = start(&state, "[policy]\ndeny = [\"touch\"]\n");
    server.call(json!({"command": "true", "working_directory": "/usr"}));
    server.call(json!({"command": "exit 3", "working_directory": "/usr"}));
    server.call(json!({"command": "kill -KILL $$", "working_directory": "/usr"}));
    server.call(json!({"command": "sleep 100", "timeout": 1, "working_directory": "/usr"}));
    server.tool("execute_command", json!({"command": "touch x", "working_directory": "/usr"}));
    let job = server.call(json!({"command": "cat", "background": true}));
    assert!(job["job_id"].is_string(), "{job}");
    wait_until("all ends are on record", || {
        let ends = support::audit::records(&state).into_iter().filter(|it| it["event"] == "end");
        (ends.count() == 4).then_some(())
    });
    let (text, said, _) = history(&state, &[]);
    assert_eq!(said, "");
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("RUN       TIME (UTC)           RESULT"), "{text}");
    for (line, parts) in lines[1..].iter().zip([
        ["exit 0", "/usr", "true"],
        ["exit 3", "/usr", "exit 3"],
        ["SIGKILL", "/usr", "kill -KILL $$"],
        ["timed out", "/usr", "sleep 100"],
        ["refused", "/usr", "touch x ("],
        ["running", "", "cat"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
        assert!(!line.contains("stdio"), "there is only one owner: {line}");
    }
    assert_eq!(lines.len(), 7, "{text}");
    let failed = commands(&state, &["--failed"]);
    assert_eq!(failed, ["exit 3", "kill -KILL $$", "sleep 100", "touch x"]);
    assert_eq!(commands(&state, &["-n", "2"]), ["touch x", "cat"]);
    assert_eq!(commands(&state, &["--grep", "^(true|cat)$"]), ["true", "cat"]);
    let [refused] = &entries(&state, &["--grep", "touch"])[..] else { panic!("one") };
    assert_eq!((&refused["result"], &refused["owner"]), (&json!("refused"), &json!("stdio")));
    assert!(refused["reason"].as_str().unwrap().contains("denied by the rule `touch`"));
}

#[test]
fn commands_are_chosen_by_their_age() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run("echo old");
    server.run("echo new");
    settled(&state);
    edit(&file(&state), |lines| {
        let year = lines[0].find("\"time\":\"").unwrap() + 8;
        lines[0].replace_range(year..year + 4, "2001");
    });
    assert_eq!(commands(&state, &["--since", "1h"]), ["echo new"]);
    assert_eq!(commands(&state, &["--since", "99999d"]), ["echo old", "echo new"]);
    assert_eq!(commands(&state, &["--since", "0s"]), [""; 0]);
    let (_, said, done) = history(&state, &["--since", "soon"]);
    assert!(!done && said.contains("such as 30s, 10m, 1h or 2d"), "{said}");
}

#[test]
fn outputs_are_searched_while_a_server_keeps_them() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run(
        "for i in $(seq 9000); do echo line $i; done; printf 'the \\033[31mneedle\\033[0m\\n'",
    );
    server.run("echo the needle");
    server.run("seq 9000; echo nothing");
    let job =
        server.call(json!({"command": "seq 50; echo also a needle; cat", "background": true}));
    assert!(job["job_id"].is_string(), "{job}");
    settle(&state, 3);
    let found = entries(&state, &["--grep", "needle$"]);
    let [long, short, job] = &found[..] else { panic!("{found:?}") };
    assert_eq!(long["matches"], json!(["the needle"]));
    assert_eq!((&short["command"], &short["matches"]), (&json!("echo the needle"), &Value::Null));
    assert_eq!(job["matches"], json!(["also a needle"]));
    let (text, said, _) = history(&state, &["--grep", "^line 8..9"]);
    assert_eq!(said, "");
    let lines: Vec<_> = text.lines().skip(2).collect();
    let run = &text.lines().nth(1).unwrap()[..8];
    let expected =
        ["    line 8009", "    line 8019", "    line 8029", "    line 8039", "    line 8049"];
    let more = format!("    … more lines match: mcpz history --output {run}");
    assert_eq!(lines, [&expected[..], &[&more]].concat());
    let (whole, said, done) = history(&state, &["--output", run]);
    assert_eq!((whole.lines().count(), done), (9001, true), "{said}");
    assert!(whole.ends_with("the \u{1b}[31mneedle\u{1b}[0m\n"), "as it was printed, in a pipe");
    let shown = on_terminal(&state, &format!("--output {run}"), &[]);
    assert!(shown.ends_with("the needle\r\n") && !shown.contains('\u{1b}'), "{:?}", &shown[..80]);
    let (_, said, done) = history(&state, &["--output", job["run"].as_str().unwrap()]);
    assert!(!done && said.contains("is a job; `mcpz jobs logs "), "{said}");
    let (_, said, done) = history(&state, &["--output", "nonsense"]);
    assert!(!done && said.contains("no server keeps the output of `nonsense` any more"), "{said}");
    drop(server);
    assert_eq!(commands(&state, &["--grep", "needle$"]), ["echo the needle"]);
}

/// Waits until so many runs have an end on record.
fn settle(state: &TempDir, ends: usize) {
    wait_until("ends are on record", || {
        let records = support::audit::records(state);
        (records.iter().filter(|it| it["event"] == "end").count() == ends).then_some(())
    });
}

#[test]
fn outputs_of_detached_jobs_are_searched_when_their_server_is_gone() {
    let state = support::state();
    let gate = Gate::new();
    let mut server = start(&state, "");
    let wait = gate.wait();
    server.call(
        json!({"command": format!("printf 'a \\033[1mneedle\\033[0m\\n'; {wait}"), "detach": true}),
    );
    drop(server);
    let matches = |state: &TempDir| {
        let found = entries(state, &["--grep", "^a needle$"]);
        found.iter().map(|it| (it["matches"].clone(), it["result"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(matches(&state), [(json!(["a needle"]), json!("running"))]);
    drop(gate);
    settle(&state, 1);
    wait_until("its recorder has left", || {
        let found = matches(&state);
        (found == [(json!(["a needle"]), json!("exited"))]).then_some(())
    });
}

#[test]
fn the_newest_commands_are_found_in_rotated_files() {
    let state = support::state();
    let mut server = start(&state, "[audit]\nmax_size = \"64KB\"\n");
    let padding = "x".repeat(3000);
    let commands_run: Vec<_> = (0..50).map(|n| format!("exit {n} # {padding}")).collect();
    for command in &commands_run {
        server.run(command);
    }
    settle_all(&state, 50);
    assert!(folder(&state).join("audit.1.jsonl").exists());
    let found = entries(&state, &[]);
    assert_eq!(found.len(), 50);
    for (n, entry) in found.iter().enumerate() {
        assert_eq!(entry["command"].as_str().unwrap(), commands_run[n]);
        assert_eq!((&entry["result"], &entry["exit_code"]), (&json!("exited"), &json!(n)));
    }
    assert_eq!(commands(&state, &["-n", "1"]), commands_run[49..]);
    assert_eq!(commands(&state, &["--grep", "^exit [12] "]), commands_run[1..3]);
}

/// The same with records in several files.
fn settle_all(state: &TempDir, ends: usize) {
    wait_until("ends are on record", || {
        let files = fs::read_dir(folder(state)).unwrap().flatten();
        let files = files.filter(|file| file.file_name().to_string_lossy().ends_with(".jsonl"));
        let texts = files.map(|file| fs::read_to_string(file.path()).unwrap_or_default());
        let count: usize = texts.map(|text| text.matches("\"event\":\"end\"").count()).sum();
        (count == ends).then_some(())
    });
}

#[test]
fn a_run_whose_server_was_killed_is_lost_and_broken_lines_are_counted() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run("true");
    settled(&state);
    let job = server.call(json!({"command": "sleep 1000", "background": true}));
    assert!(job["job_id"].is_string(), "{job}");
    server.signal("KILL");
    server.wait();
    edit(&file(&state), |lines| {
        lines.insert(1, "{\"seq\":".to_owned());
        lines.insert(1, "x".repeat(3 << 20));
    });
    let (text, said, done) = history(&state, &["--failed"]);
    assert!(done && text.lines().count() == 2 && text.contains("lost"), "{text}");
    assert!(said.contains("2 lines are not records; `mcpz audit verify`"), "{said}");
}

#[test]
fn without_a_trail_it_says_so_and_shows_what_servers_keep() {
    let state = support::state();
    let (text, said, done) = history(&state, &[]);
    assert_eq!((text.as_str(), done), ("no commands\n", true));
    let (text, _, done) = history(&state, &["--grep", "x"]);
    assert!(done && text.contains("that servers still keep"), "{text}");
    assert!(said.contains("there is no audit trail in ") && said.contains("--folder"), "{said}");
    let elsewhere = support::state();
    let config = format!("[audit]\nfolder = \"{}\"\n", elsewhere.path().join("trail").display());
    let mut server = start(&state, &config);
    server.run("seq 20000; exit 4");
    let job = server.call(json!({"command": "echo ready; cat", "background": true}));
    assert!(job["job_id"].is_string(), "{job}");
    let (text, said, _) = history(&state, &[]);
    assert!(said.contains("there is no audit trail in "), "{said}");
    assert!(text.contains("exit 4") && text.contains("seq 20000; exit 4"), "{text}");
    assert!(text.contains("running") && text.contains("echo ready; cat"), "{text}");
    let trail = elsewhere.path().join("trail");
    let found = commands(&state, &["--folder", trail.to_str().unwrap()]);
    assert_eq!(found, ["seq 20000; exit 4", "echo ready; cat"]);
}

#[test]
fn a_terminal_gets_short_lines_in_colour_and_nothing_that_a_command_says() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run("echo '\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}' grün; exit 1");
    server.run(&format!("seq 9000; printf '\\033]0;x\\007needle\\t\\n' # {}", "y".repeat(200)));
    settled(&state);
    let wishes: [(&[(&str, &str)], bool); 3] =
        [(&[], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)];
    for (variables, coloured) in wishes {
        let text = on_terminal(&state, "--grep 'gr|needle'", variables);
        assert_eq!(text.contains("\u{1b}["), coloured, "{text:?}");
        let plain = support::without_colours(&text);
        assert!(!plain.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{plain:?}");
        for line in plain.lines() {
            assert!(line.trim_end().chars().count() <= 60, "{line:?}");
        }
    }
    let (piped, ..) = history(&state, &["--grep", "gr|needle"]);
    assert!(!piped.contains('\u{1b}') && piped.contains(&"y".repeat(200)), "{piped:?}");
    assert!(piped.contains("\\u{1b}[2J") && piped.contains("grün; exit 1"), "{piped:?}");
}

#[test]
fn the_owner_is_shown_where_there_are_several() {
    let state = support::state();
    let mut server = start(&state, "");
    server.run("true");
    server.run("false");
    settled(&state);
    edit(&file(&state), |lines| lines[2] = lines[2].replace("\"stdio\"", "\"ada\""));
    let (text, ..) = history(&state, &[]);
    assert!(text.contains("  OWNER  RESULT"), "{text}");
    assert!(text.contains("  stdio  exit 0") && text.contains("  ada    exit 1"), "{text}");
}

#[test]
fn commands_cannot_use_it() {
    let mut server = Server::start(&[]);
    server.run("seq 20000");
    let state = server.state.path().display().to_string();
    for arguments in ["", "--grep 1", "--output 1234"] {
        let reply = server.run(&format!("XDG_STATE_HOME='{state}' '{MCPZ}' history {arguments}"));
        assert_eq!(reply["return_code"], 1, "{reply}");
        let said = reply["output"].as_str().unwrap();
        assert!(said.starts_with("mcpz: an mcpz server runs this command"), "{said}");
    }
}

#[test]
fn a_pattern_that_is_wrong_is_explained() {
    let (_, said, done) = history(&support::state(), &["--grep", "("]);
    assert!(
        !done && said.starts_with("mcpz: `--grep`: the pattern is not a valid regular expression"),
        "{said}"
    );
}
