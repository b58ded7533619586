//! `mcpz install`: clients are told of us in their own files, and nothing else in them changes.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use support::install::{CASES, Home, URL, backup, case, entry, existing, parsed, read};
use support::{MCPZ, Server};

#[test]
fn every_client_finds_us_in_its_own_file() {
    for case in CASES {
        let (home, file) = Home::with(case, None);
        let said = home.installed(&[case.client]);
        assert!(said.contains(file.to_str().unwrap()), "{said}");
        assert_eq!(home.files(), std::slice::from_ref(&file));
        if case.client == "goose" {
            let expected = format!(
                "extensions:\n  shell:\n    enabled: true\n    type: stdio\n    name: shell\n    description: \
                 \"Runs commands\"\n    cmd: {MCPZ}\n    args:\n      - server\n      - shell\n    timeout: 300\n"
            );
            assert_eq!(read(&file), expected);
        } else {
            let expected = json!({case.table: {"shell": entry(case.client, &[])}});
            assert_eq!(parsed(&file), expected, "{}", case.client);
        }
        home.installed(&[case.client, "--remove"]);
        assert!(home.files().is_empty(), "{}", case.client);
    }
}

#[test]
fn all_else_in_a_file_stays_and_comes_back_to_the_byte() {
    for case in CASES {
        let before = existing(case);
        let (home, file) = Home::with(case, Some(&before));
        home.installed(&[case.client, "--sandbox", "workspace"]);
        let after = read(&file);
        let mut lines = after.lines();
        for line in before.lines().filter(|line| !line.starts_with("{\"") && !line.ends_with("{},"))
        {
            let same = |other: &str| {
                other.strip_suffix(',').unwrap_or(other) == line.strip_suffix(',').unwrap_or(line)
            };
            assert!(lines.any(same), "{line:?} is not in {after}");
        }
        if case.client != "goose" {
            let mut expected = {
                let old = home.path(&format!(
                    "before.{}",
                    if case.client == "codex" { "toml" } else { "json" }
                ));
                fs::write(&old, &before).unwrap();
                parsed(&old)
            };
            expected[case.table]["shell"] = entry(case.client, &["--sandbox", "workspace"]);
            assert_eq!(parsed(&file), expected, "{after}");
        }
        assert_eq!(read(&backup(&file)), before);

        let inode = fs::metadata(&file).unwrap().ino();
        let said = home.installed(&[case.client, "--sandbox", "workspace"]);
        assert!(said.contains("nothing was changed"), "{said}");
        assert_eq!((read(&file), fs::metadata(&file).unwrap().ino()), (after, inode));

        home.installed(&[case.client, "--remove"]);
        assert_eq!(read(&file), before, "{}", case.client);
        assert!(!backup(&file).exists());
        let said = home.installed(&[case.client, "--remove"]);
        assert!(said.contains("nothing was changed"), "{said}");
    }
}

#[test]
fn commas_and_remarks_stay_where_they_were() {
    let case = case("zed");
    let before =
        "{\n\t\"a\": 1, // one\n\t\"context_servers\": {\n\t\t\"x\": {}, /* x */\n\t}, // all\n}\n";
    let (home, file) = Home::with(case, Some(before));
    home.installed(&["zed"]);
    let shell = format!(
        "\n\t\t\"shell\": {{\n\t\t\t\"command\": \"{MCPZ}\",\n\t\t\t\"args\": [\"server\", \"shell\"]\n\t\t}},"
    );
    assert_eq!(read(&file), before.replace("/* x */", &format!("/* x */{shell}")));
}

#[test]
fn ours_alone_is_taken_out_of_a_file_that_went_on_changing() {
    for case in CASES.iter().filter(|case| case.client != "goose") {
        let (home, file) = Home::with(case, Some(&existing(case)));
        home.installed(&[case.client]);
        let changed = match case.client {
            "codex" => format!("new = true\n{}", read(&file)),
            _ => read(&file).replacen('{', "{ \"new\": true, ", 1),
        };
        fs::write(&file, changed).unwrap();
        let mut expected = parsed(&file);
        expected[case.table].as_object_mut().unwrap().remove("shell");
        if case.client == "vscode" {
            // The table was not there before.
            expected.as_object_mut().unwrap().remove("servers");
        }
        home.installed(&[case.client, "--remove"]);
        assert_eq!(parsed(&file), expected, "{}", read(&file));
    }
    let (home, file) = Home::with(case("goose"), Some("a: 1\nextensions: {}\n"));
    home.installed(&["goose"]);
    fs::write(&file, read(&file) + "b: 2\n").unwrap();
    home.installed(&["goose", "--remove"]);
    assert_eq!(read(&file), "a: 1\nextensions: {}\nb: 2\n");
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    let broken = [
        ("cursor", "{\"mcpServers\": {"),
        ("cursor", "{\"mcpServers\": []}"),
        ("cursor", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        ("gemini", "{'a': 1}"),
        ("codex", "[mcp_servers\n"),
        ("codex", "mcp_servers = { other = { command = \"x\" } }\n"),
        ("goose", "extensions: [\n"),
        ("goose", "extensions: {a: {b: 1}}\n"),
        ("goose", "extensions: &x\n  a: {}\n"),
        ("goose", "a: 1\n---\nb: 2\n"),
    ];
    for (client, text) in broken {
        let (home, file) = Home::with(case(client), Some(text));
        let (said, code) = home.install(&[client]);
        assert_eq!(code, 1, "{text}: {said}");
        assert!(said.contains("was not changed") && said.contains(MCPZ), "{said}");
        assert_eq!((read(&file), home.files().len()), (text.to_owned(), 1), "{said}");
        home.install(&[client, "--remove"]);
        assert_eq!(read(&file), text);
    }
    let (home, file) = Home::with(case("cursor"), None);
    fs::write(&file, b"{\"a\": \"\xff\"}").unwrap();
    assert_eq!(home.install(&["cursor"]).1, 1);
    assert_eq!(fs::read(&file).unwrap(), b"{\"a\": \"\xff\"}");
}

#[test]
fn print_shows_the_file_and_what_belongs_into_it_and_writes_nothing() {
    for case in CASES {
        let home = Home::new();
        let said = home.installed(&[case.client, "--print"]);
        let (file, fragment) = said.split_once("\n\n").unwrap();
        assert_eq!(Path::new(file), home.path(case.file));
        assert!(home.files().is_empty());

        fs::create_dir_all(home.path(case.folder)).unwrap();
        home.installed(&[case.client]);
        assert_eq!(read(&home.path(case.file)), fragment);
    }
}

#[test]
fn a_server_that_runs_is_written_the_way_each_client_has_it() {
    let env = |value: &str| json!({"Authorization": value});
    let forms = [
        (
            "claude-code",
            json!({"type": "http", "url": URL, "headers": env("Bearer ${MCP_HTTP_TOKEN}")}),
        ),
        ("codex", json!({"url": URL, "bearer_token_env_var": "MCP_HTTP_TOKEN"})),
        ("cursor", json!({"url": URL, "headers": env("Bearer ${env:MCP_HTTP_TOKEN}")})),
        (
            "vscode",
            json!({"type": "http", "url": URL, "headers": env("Bearer ${env:MCP_HTTP_TOKEN}")}),
        ),
        ("gemini", json!({"httpUrl": URL, "headers": env("Bearer ${MCP_HTTP_TOKEN}")})),
        ("qwen", json!({"httpUrl": URL, "headers": env("Bearer ${MCP_HTTP_TOKEN}")})),
    ];
    for (client, expected) in forms {
        let (home, file) = Home::with(case(client), None);
        home.installed(&[client, "--http", URL]);
        assert_eq!(parsed(&file)[case(client).table]["shell"], expected);
        let (said, code) = home.install(&[client, "--remove"]);
        assert!(code == 1 && said.contains("does not look like mcpz"), "{said}");
        home.installed(&[client, "--remove", "--http", URL]);
        assert!(home.files().is_empty());

        home.installed(&[client, "--http", URL, "--token", "a.b-c"]);
        let said = parsed(&file)[case(client).table]["shell"].clone();
        let headers = said.get("headers").or(said.get("http_headers")).unwrap();
        assert_eq!(*headers, env("Bearer a.b-c"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let (home, file) = Home::with(case("goose"), None);
    home.installed(&["goose", "--http", URL, "--token-env", "T"]);
    assert_eq!(
        read(&file),
        "extensions:\n  shell:\n    enabled: true\n    type: streamable_http\n    name: shell\n    description: \"Runs \
         commands\"\n    uri: \"http://127.0.0.1:8000/mcp\"\n    timeout: 300\n    env_keys:\n      - T\n    \
         headers:\n      Authorization: \"Bearer ${T}\"\n"
    );
}

#[test]
fn what_a_client_cannot_do_over_http_is_said() {
    let (home, file) = Home::with(case("zed"), None);
    let (said, code) = home.install(&["zed", "--http", URL]);
    assert!(code == 1 && said.contains("--token"), "{said}");
    home.installed(&["zed", "--http", URL, "--auth", "none"]);
    assert_eq!(parsed(&file), json!({"context_servers": {"shell": {"url": URL}}}));

    let (home, _) = Home::with(case("claude-desktop"), None);
    let (said, code) = home.install(&["claude-desktop", "--http", URL]);
    assert!(code == 1 && said.contains("Connectors"), "{said}");
    assert_eq!(home.install(&["claude-desktop", "--http", "ftp://x"]).1, 1);
    assert_eq!(home.install(&["cursor", "--http", URL, "--sandbox", "workspace"]).1, 2);
    assert!(home.files().is_empty());
}

#[test]
fn a_project_has_a_file_of_its_own() {
    for case in CASES {
        let home = Home::new();
        fs::create_dir(home.path("work")).unwrap();
        let (said, code) = home.install(&[case.client, "--project", "work"]);
        let Some(file) = case.project.map(|file| home.path("work").join(file)) else {
            assert!(code == 1 && said.contains("no configuration file for projects"), "{said}");
            continue;
        };
        assert_eq!(code, 0, "{said}");
        assert_eq!(home.files(), std::slice::from_ref(&file));
        assert_eq!(parsed(&file), json!({case.table: {"shell": entry(case.client, &[])}}));
        home.installed(&[case.client, "--project", "work", "--remove"]);
        assert!(home.files().is_empty());
    }
    assert_eq!(Home::new().install(&["cursor", "--project", "nowhere"]).1, 1);
}

#[test]
fn what_is_configured_answers_to_initialize() {
    for client in ["claude-desktop", "claude-code", "cursor", "gemini"] {
        let (home, file) = Home::with(case(client), None);
        home.installed(&[client, "-w", ".", "--", "--tools", "shell"]);
        let entry = parsed(&file)["mcpServers"]["shell"].clone();
        let args = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        // Where the client is, `.` would be something else.
        let mut command = Command::new(entry["command"].as_str().unwrap());
        let mut server = Server::from_command(command.args(args).current_dir("/"));
        let answer = server.initialize("2025-11-25");
        assert_eq!(answer["result"]["serverInfo"]["name"], "mcpz-shell", "{answer}");
        let tools = server.request("tools/list", json!({}));
        assert_eq!(tools["result"]["tools"][0]["name"], "shell", "{tools}");
        let answer =
            server.request("tools/call", json!({"name": "shell", "arguments": {"command": "pwd"}}));
        let here = fs::canonicalize(home.0.path()).unwrap();
        assert!(answer.to_string().contains(here.to_str().unwrap()), "{answer}");
    }
}

#[test]
fn every_flag_of_a_server_on_standard_input_is_passed_on() {
    let (home, file) = Home::with(case("cursor"), None);
    let flags = ["--log-format", "json", "--max-answer", "30000", "--finish-time", "60"];
    home.installed(&[&["cursor"], &flags[..]].concat());
    assert_eq!(parsed(&file)["mcpServers"]["shell"], entry("cursor", &flags));
    home.installed(&["cursor", "--", "--finish-time", "5"]);
    assert_eq!(parsed(&file)["mcpServers"]["shell"], entry("cursor", &["--finish-time", "5"]));
    assert_eq!(home.install(&["cursor", "--http", URL, "--finish-time", "5"]).1, 2);
}

#[test]
fn flags_the_server_does_not_know_are_refused() {
    let (home, _) = Home::with(case("cursor"), None);
    let (said, code) = home.install(&["cursor", "--", "--sandbox", "tight"]);
    assert!(code == 2 && said.contains("tight"), "{said}");
    assert_eq!(home.install(&["cursor", "--name", "a b"]).1, 1);
    assert!(home.files().is_empty());
}

#[test]
fn a_client_that_is_not_there_is_said_not_to_be() {
    for case in CASES {
        let home = Home::new();
        let (said, code) = home.install(&[case.client]);
        assert_eq!(code, 1, "{said}");
        let folder = home.path(case.folder);
        assert!(said.contains(folder.to_str().unwrap()) && said.contains("--force"), "{said}");
        assert!(home.files().is_empty());
        home.installed(&[case.client, "--force"]);
        assert_eq!(home.files(), [home.path(case.file)]);
    }
}

#[test]
fn a_server_that_would_not_start_is_not_installed_and_says_why() {
    let (home, file) = Home::with(case("claude-code"), None);
    let at_home = home.path("").to_str().unwrap().to_owned();
    let wrong: &[(&[&str], &str)] = &[
        (&["-w", "/nonexistent"], "/nonexistent"),
        (&["-w", &at_home, "--sandbox", "workspace"], "too broad"),
        (&["--net", "example.org"], "--sandbox"),
        (&["--tools", "shel"], "shel"),
        (&["-s", "/nonexistent/sh"], "/nonexistent/sh"),
        (&["--config", "/nonexistent.toml"], "/nonexistent.toml"),
        (&["--allow", "/(/"], "regular expression"),
    ];
    for (flags, why) in wrong {
        let (said, code) = home.install(&[&["claude-code"], *flags].concat());
        assert_eq!(code, 1, "{flags:?}: {said}");
        assert!(said.contains("does not start") && said.contains(why), "{flags:?}: {said}");
        assert!(!file.exists(), "{flags:?}: {said}");
    }
    home.installed(&["claude-code", "--force", "-w", "/nonexistent"]);
    assert!(file.exists());
}

#[test]
fn a_folder_that_is_elsewhere_is_found_there() {
    let moved = [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("goose", "GOOSE_PATH_ROOT", "config/config.yaml"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
    ];
    for (client, variable, file) in moved {
        let (home, other) = (Home::new(), tempfile::tempdir().unwrap());
        let output = Command::new(MCPZ)
            .args(["install", client, "--print"])
            .env("HOME", home.0.path())
            .env(variable, other.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(Path::new(said.lines().next().unwrap()), other.path().join(file));
    }
}

#[test]
fn what_somebody_else_named_so_is_not_overwritten() {
    let theirs = "{\n  \"mcpServers\": {\n    \"shell\": {\"command\": \"bash-mcp\"}\n  }\n}\n";
    let (home, file) = Home::with(case("cursor"), Some(theirs));
    for arguments in [&["cursor"][..], &["cursor", "--remove"]] {
        let (said, code) = home.install(arguments);
        assert!(code == 1 && said.contains("bash-mcp") && said.contains("--force"), "{said}");
        assert_eq!((read(&file), home.files().len()), (theirs.to_owned(), 1));
    }
    home.installed(&["cursor", "--name", "mcpz"]);
    assert_eq!(parsed(&file)["mcpServers"]["shell"], json!({"command": "bash-mcp"}));
    home.installed(&["cursor", "--name", "mcpz", "--remove"]);
    assert_eq!(read(&file), theirs);

    home.installed(&["cursor", "--force"]);
    assert_eq!(parsed(&file)["mcpServers"]["shell"], entry("cursor", &[]));
    assert_eq!(read(&backup(&file)), theirs);
}

#[test]
fn an_entry_of_ours_is_changed_and_keeps_what_the_user_added() {
    for client in ["cursor", "codex"] {
        let case = case(client);
        let (home, file) = Home::with(case, Some(&existing(case)));
        home.installed(&[client]);
        let added = match client {
            "codex" => read(&file) + "env = { A = \"1\" }\n",
            _ => read(&file).replace("\"type\"", "\"env\": {\"A\": \"1\"}, \"type\""),
        };
        fs::write(&file, added).unwrap();
        home.installed(&[client, "--sandbox", "read-only"]);
        let mut expected = entry(client, &["--sandbox", "read-only"]);
        expected["env"] = json!({"A": "1"});
        assert_eq!(parsed(&file)[case.table]["shell"], expected);
        assert_eq!(home.files().len(), 2, "one backup: {:?}", home.files());
    }
}

#[test]
fn a_backup_is_never_written_over() {
    let (home, file) = Home::with(case("cursor"), Some("{\"a\": 1}"));
    fs::write(backup(&file), "older").unwrap();
    home.installed(&["cursor"]);
    assert_eq!(read(&backup(&file)), "older");
    assert_eq!(read(&PathBuf::from(format!("{}-2", backup(&file).display()))), "{\"a\": 1}");
    home.installed(&["cursor", "--remove"]);
    assert_eq!((read(&file), home.files().len()), ("{\"a\": 1}".to_owned(), 2));
}

#[test]
fn a_link_is_followed_and_a_mode_kept() {
    let (home, file) = Home::with(case("cursor"), None);
    let real = home.path("dotfiles.json");
    fs::write(&real, "{}\n").unwrap();
    fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &file).unwrap();
    home.installed(&["cursor"]);
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(parsed(&real)["mcpServers"]["shell"], entry("cursor", &[]));
    for file in [&real, &backup(&file)] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
    }
    home.installed(&["cursor", "--remove"]);
    assert_eq!(read(&real), "{}\n");

    fs::remove_file(&real).unwrap();
    let (said, code) = home.install(&["cursor"]);
    assert!(code == 1 && said.contains("mcp.json"), "{said}");
}

#[test]
fn the_list_says_what_is_found_and_installed() {
    let (home, file) = Home::with(case("cursor"), Some("{\"mcpServers\": {}}"));
    fs::create_dir_all(home.path(".codex")).unwrap();
    fs::create_dir_all(home.path(".gemini")).unwrap();
    fs::write(home.path(".gemini/settings.json"), "{").unwrap();
    home.installed(&["cursor", "--name", "mine"]);
    let said = home.installed(&["--list"]);
    let line = |client: &str| said.lines().find(|line| line.starts_with(client)).unwrap();
    assert!(line("zed").ends_with("not found"), "{said}");
    assert!(line("codex").ends_with("config.toml  not installed"), "{said}");
    assert!(line("gemini").contains("it is not valid JSON"), "{said}");
    let cursor = format!("cursor          {}  mine: {MCPZ} server shell", file.display());
    assert_eq!(line("cursor"), cursor);
    assert_eq!(home.install(&[]).1, 2);
}
