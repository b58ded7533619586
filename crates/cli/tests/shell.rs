//! The `shell` tool, example by example of its document.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use support::{MCPZ, Server, mark, survivors};

fn start(flags: &[&str]) -> Server {
    Server::start(&[&["--tools", "shell"], flags].concat())
}

fn sentence(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn parameters() {
    let mut server = start(&[]);
    let listed = server.request("tools/list", json!({}));
    let schema = &listed["result"]["tools"][0]["inputSchema"];
    assert_eq!(schema["required"], json!(["command"]));
    assert_eq!(schema["properties"]["command"]["minLength"], 1);
    let timeout = &schema["properties"]["timeout"];
    assert_eq!(
        (&timeout["minimum"], &timeout["maximum"], &timeout["default"]),
        (&json!(1), &json!(1800), &json!(300))
    );
    assert_eq!(schema["properties"]["environment"]["additionalProperties"]["type"], "string");
    for (arguments, complaint) in [
        (json!({"command": ""}), "`command` is empty"),
        (json!({"command": "x", "timeout": 0}), "`timeout` must be from 1 to 1800 seconds, not 0"),
        (json!({"command": "x", "timeout": 1801}), "not 1801"),
        (json!({"command": "x", "timeout": 1.5}), "`timeout` must be a whole number, not 1.5"),
        (json!({"command": "x", "shell": "zsh"}), "unknown field `shell`"),
    ] {
        let result = server.tool("shell", arguments);
        assert_eq!(result["isError"], true);
        assert!(sentence(&result).contains(complaint), "{}", sentence(&result));
    }
}

#[test]
fn successful_execution() {
    let mut server = start(&["-w", "/"]);
    let result = server.tool("shell", json!({"command": "echo hi"}));
    assert_eq!(sentence(&result), "Command executed successfully");
    assert_eq!(result["content"][1]["text"], "hi\n");
    assert_eq!(result["isError"], false);
    let metadata = &result["structuredContent"];
    assert_eq!(metadata["command"], "echo hi");
    assert_eq!(metadata["exit_code"], 0);
    assert_eq!((&metadata["stdout"], &metadata["stderr"]), (&json!("hi\n"), &json!("")));
    assert_eq!(metadata["working_directory"], "/");
    assert!(metadata["execution_time_ms"].is_u64());
}

#[test]
fn command_failure() {
    let mut server = start(&[]);
    let result = server.tool("shell", json!({"command": "ls /nonexistent"}));
    assert_eq!(sentence(&result), "Command failed with exit code 2");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["exit_code"], 2);
    let stderr = result["structuredContent"]["stderr"].as_str().unwrap();
    assert!(stderr.ends_with("No such file or directory\n"));
}

#[test]
fn timeout_error() {
    let mark = mark();
    let mut server = start(&[]);
    let arguments = json!({
        "command": "echo out; echo err >&2; sleep 300", "timeout": 1, "environment": {"MARK": mark},
    });
    let result = server.tool("shell", arguments);
    let expected = "Command timed out after 1 second. Pass a larger `timeout` (up to 1800 seconds), or run \
                    it in the background with `&`";
    assert_eq!(sentence(&result), expected);
    assert_eq!(result["isError"], true);
    let metadata = &result["structuredContent"];
    assert_eq!(metadata["timeout_seconds"], 1);
    assert_eq!(metadata["partial_stdout"], "out\n");
    assert_eq!(metadata["partial_stderr"], "err\n");
    assert!(metadata["exit_code"].is_null() && metadata["stdout"].is_null());
    assert_eq!(survivors(&mark), [""; 0]);
}

#[test]
fn development_workflow() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "[package]\nname = \"tiny\"\nedition = \"2024\"\n[workspace]\n";
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), "#[test]\nfn it_works() {}\n").unwrap();
    let mut server = start(&[]);
    let arguments =
        json!({"command": "cargo test", "working_directory": folder.path(), "timeout": 600});
    let result = server.tool("shell", arguments);
    let stdout = result["structuredContent"]["stdout"].as_str().unwrap();
    assert!(stdout.contains("test it_works ... ok"), "{result}");
}

#[test]
fn system_information() {
    let mut server = start(&[]);
    let result = server.tool("shell", json!({"command": "uname -a && df -h", "timeout": 30}));
    assert!(result["content"][1]["text"].as_str().unwrap().starts_with("Linux"));
}

#[test]
fn build_automation() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("build.sh"), "echo $1 $RUST_LOG $BUILD_ENV").unwrap();
    let mut server = start(&["-w", folder.path().to_str().unwrap()]);
    let environment = json!({"RUST_LOG": "debug", "BUILD_ENV": "production"});
    let arguments =
        json!({"command": "sh ./build.sh --release", "environment": environment, "timeout": 900});
    let result = server.tool("shell", arguments);
    assert_eq!(result["structuredContent"]["stdout"], "--release debug production\n");
    let refused = server.tool("shell", json!({"command": "./build.sh --release"}));
    assert!(sentence(&refused).starts_with("Command failed with exit code 126"), "{refused}");
    assert!(sentence(&refused).contains("chmod +x"));
}

#[test]
fn file_operations() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/a.rs"), "").unwrap();
    let mut server = start(&["-w", folder.path().to_str().unwrap()]);
    let command = "find . -name '*.rs' -type f | wc -l";
    let result = server.tool("shell", json!({"command": command, "working_directory": "src"}));
    assert_eq!(result["structuredContent"]["stdout"], "1\n");
}

#[test]
fn command_not_found() {
    let mut server = start(&[]);
    let result = server.tool("shell", json!({"command": "lss -la"}));
    let said = sentence(&result);
    assert!(
        said.starts_with(
            "Command failed with exit code 127: `lss` is not on the PATH. Did you mean"
        ),
        "{said}"
    );
    assert!(said.contains("ls"));
    let result = server.tool("shell", json!({"command": "no-such-command-anywhere"}));
    let expected =
        "Command failed with exit code 127: `no-such-command-anywhere` is not on the PATH";
    assert_eq!(sentence(&result), expected);
}

#[test]
fn permission_denied() {
    let folder = support::open_folder();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).unwrap();
    let mut server = Server::start_ordinary(folder.path());
    let reply = server.call(json!({"command": "true", "working_directory": closed}));
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let output = reply["output"].as_str().unwrap();
    let expected = format!(
        "Failed to execute: cannot enter the working directory {}: Permission denied",
        closed.display()
    );
    assert!(output.starts_with(&expected), "{output}");
    let mut server = start(&[]);
    let result = server.tool("shell", json!({"command": "true", "working_directory": "/no/such"}));
    let expected = "Failed to execute: cannot enter the working directory /no/such: No such file";
    assert!(sentence(&result).starts_with(expected), "{result}");
}

#[test]
fn global_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let allowed = folder.path().join("project");
    std::fs::create_dir(&allowed).unwrap();
    let text = format!(
        "[shell_tool]\ndefault_timeout = 1\nmax_timeout = 2\nmax_output_size = \"100KB\"\n\
         allowed_directories = [\"{}\"]\nblocked_commands = [\"rm -rf\", \"format\", \"dd\"]\n\
         log_commands = true\n",
        allowed.display()
    );
    std::fs::write(&file, text).unwrap();
    let path = allowed.to_str().unwrap();
    let mut server = start(&["--config", file.to_str().unwrap(), "-w", path]);
    let listed = server.request("tools/list", json!({}))["result"]["tools"][0].clone();
    let timeout = &listed["inputSchema"]["properties"]["timeout"];
    assert_eq!((&timeout["default"], &timeout["maximum"]), (&json!(1), &json!(2)));
    let slow = server.tool("shell", json!({"command": "sleep 300"}));
    assert!(sentence(&slow).starts_with("Command timed out after 1 second. "), "{slow}");
    let long = server.tool("shell", json!({"command": "true", "timeout": 3}));
    assert!(sentence(&long).contains("from 1 to 2 seconds"));
    for blocked in ["rm -rf x", "rm -fr x", "dd if=x", "/bin/dd if=x"] {
        let result = server.tool("shell", json!({"command": blocked}));
        assert!(sentence(&result).starts_with("Command denied by security policy"), "{result}");
    }
    let elsewhere = server.tool("shell", json!({"command": "pwd", "working_directory": "/"}));
    let expected = format!("/ is outside of {path}; add it to allowed_directories to allow it");
    assert_eq!(sentence(&elsewhere), format!("Failed to execute: {expected}"));
    std::os::unix::fs::symlink("/", allowed.join("out")).unwrap();
    let through = server.tool("shell", json!({"command": "pwd", "working_directory": "out"}));
    assert_eq!(through["isError"], true);
    let much = server.tool("shell", json!({"command": "seq 1 100000"}));
    let reply = &much["structuredContent"];
    assert_eq!(reply["lost_bytes"], Value::Null);
    assert!(reply["omitted_bytes"].as_u64().unwrap() > 560_000);
    std::fs::write(&file, "[shell_tool]\nmax_output_size = \"1KB\"\n").unwrap();
    let mut server = start(&["--config", file.to_str().unwrap()]);
    let little = server.tool("shell", json!({"command": "seq 1 1000 | tr 0-9 g-p"}));
    let reply = &little["structuredContent"];
    assert!((900..=1000).contains(&reply["stdout"].as_str().unwrap().len()), "{reply}");
    let wrong = std::process::Command::new(MCPZ)
        .args(["server", "shell", "--config"])
        .arg({
            std::fs::write(&file, "[shell_tool]\nmax_output_size = \"10 monkeys\"\n").unwrap();
            &file
        })
        .output()
        .unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.contains("`10 monkeys` is not a size") && said.contains("line 2"), "{said}");
}
