//! Values of the server's environment that nobody gets to see in what commands print.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::http::{HttpServer, TOKEN};
use support::{MCPZ, Server, exec, read, wait_until};

/// As long as a name in brackets is not.
const SECRET: &str = "s3cr3t-0123456789";

const TOOLS: &[&str] = &["server", "shell", "--tools", "all"];

fn start() -> Server {
    start_with(&[], &[])
}

fn start_with(flags: &[&str], variables: &[(&str, &str)]) -> Server {
    let mut command = Command::new(MCPZ);
    command.args(TOOLS).args(flags).env("FOO_TOKEN", SECRET).envs(variables.iter().copied());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}

/// Whether the value is nowhere in what was answered.
fn is_masked(answer: &Value) -> bool {
    !answer.to_string().contains(SECRET)
}

#[test]
fn a_command_has_the_value_and_its_output_the_name() {
    let mut server = start();
    let command = "printenv FOO_TOKEN; printenv FOO_TOKEN >&2; echo ${#FOO_TOKEN}";
    assert_eq!(server.run(command)["output"], "[FOO_TOKEN]\n17\n[FOO_TOKEN]\n");
    for (tool, arguments) in [
        ("shell", json!({"command": command})),
        ("execute", json!({"command": command})),
        ("run_shell_command", json!({"command": command, "is_background": false})),
        ("shell_exec", json!({"cmd": command})),
    ] {
        let result = server.tool(tool, arguments);
        let told = result.to_string();
        assert_eq!(told.matches("[FOO_TOKEN]").count(), 4, "{tool}: {told}");
        assert!(is_masked(&result), "{tool}: {told}");
    }
}

#[test]
fn a_value_printed_in_two_halves_is_masked_while_the_command_runs_and_after() {
    let mut server = start();
    let gates = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let command = "printf 'begin s3cr3t-0123'; while [ -e \"$ONE\" ]; do sleep 0.01; done; \
                   echo '456789 end'; while [ -e \"$TWO\" ]; do sleep 0.01; done";
    let environment = json!({"ONE": gates[0].path(), "TWO": gates[1].path()});
    let call = server.start_call(json!({"command": command, "environment": environment}));
    let [one, two] = gates;
    let first = server.wait_for(|message| message["params"]["progressToken"] == call);
    assert_eq!(first["params"]["message"], "begin ");
    drop(one);
    server.wait_for_output(call, "begin [FOO_TOKEN] end\n");
    drop(two);
    let answer = server.answer(call);
    assert_eq!(answer["result"]["structuredContent"]["output"], "begin [FOO_TOKEN] end\n");
}

#[test]
fn half_a_value_is_kept_when_the_command_ends_with_it() {
    let mut server = start();
    let command = "printf 'half: s3cr3t-0123'; printf s3cr >&2";
    assert_eq!(server.run(command)["output"], "half: s3cr3t-0123s3cr");
    let timed_out = server.call(json!({"command": format!("{command}; sleep 300"), "timeout": 1}));
    assert_eq!(timed_out["output"], "half: s3cr3t-0123s3cr");
    // Nobody knows what the one that is left will print.
    let left = server.run("printf 'half: s3cr3t-0123'; (sleep 300; printf 456789) &");
    assert_eq!(left["output"], "half: ");
    let spilled = exec(&mut server, json!({"cmd": "head -c 100000 /dev/zero; printf s3cr3t"}));
    assert_eq!(spilled["total_bytes"], 100_006);
}

#[test]
fn large_outputs_are_masked_wherever_they_are_cut() {
    let mut server = start_with(&["-t", "600"], &[]);
    // Pieces of all lengths before the value: it lies across the border of every buffer there is.
    let line = |n: usize| format!("{}{SECRET}\n", "x".repeat(n % 61));
    let file = tempfile::NamedTempFile::new().unwrap();
    let printed: String = (0..40_000).map(line).collect();
    std::fs::write(file.path(), &printed).unwrap();
    let masked = printed.replace(SECRET, "[FOO_TOKEN]");
    for command in [
        format!("cat '{}'", file.path().display()),
        format!("dd if='{}' bs=65536 status=none", file.path().display()),
        format!("head -c 300000 '{}' | dd bs=17 status=none", file.path().display()),
    ] {
        let page = json!({"limit_bytes": 262_144, "limit_lines": 1_000_000});
        let reply = exec(&mut server, json!({"cmd": command, "page": page}));
        let mut whole = reply["stdout_chunk"].as_str().unwrap().to_owned();
        let mut cursor = reply["next_cursor"].clone();
        while let Some(next) = cursor.as_str().map(str::to_owned) {
            let arguments = json!({
                "uri": reply["spill_uri"], "cursor": next, "limit_bytes": 262_144,
            });
            let chunk = read(&mut server, arguments);
            whole.push_str(chunk["data"].as_str().unwrap());
            cursor = chunk["next_cursor"].clone();
        }
        let length = reply["total_bytes"].as_u64().unwrap() as usize;
        assert_eq!(whole.len(), length, "{command}");
        let expected = match command.starts_with("head") {
            true => printed[..300_000].replace(SECRET, "[FOO_TOKEN]"),
            false => masked.clone(),
        };
        assert!(whole == expected, "{command}: {length} bytes");
    }
}

#[test]
fn what_is_spilled_is_masked_on_disk_and_wherever_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(MCPZ);
    command.args(TOOLS).env("FOO_TOKEN", SECRET).env("TMPDIR", folder.path());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let script = "seq 1 20000; echo $FOO_TOKEN; seq 1 20000 >&2; echo $FOO_TOKEN >&2";
    let reply = exec(&mut server, json!({"cmd": script}));
    for uri in ["spill_uri", "stderr_spill_uri"] {
        let uri = &reply[uri];
        let found = read(&mut server, json!({"uri": uri, "grep": "TOKEN|s3cr3t"}));
        assert_eq!(found["data"], "[FOO_TOKEN]\n");
        let chunk = read(&mut server, json!({"uri": uri, "cursor": "bytes:108888"}));
        assert_eq!(chunk["data"], "20000\n[FOO_TOKEN]\n");
        let resource = server.request("resources/read", json!({"uri": uri}));
        let text = resource["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("20000\n[FOO_TOKEN]\n") && is_masked(&resource));
    }
    let files = files(folder.path());
    assert_eq!(files.len(), 2);
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has("[FOO_TOKEN]") && !has(SECRET));
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.metadata().unwrap().len() > 1000)
        .collect()
}

#[test]
fn a_command_that_names_a_value_is_told_back_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(SECRET);
    std::fs::create_dir(&place).unwrap();
    let flags = ["--deny", "rm", "-w", folder.path().to_str().unwrap()];
    let mut server = start_with(&flags, &[]);
    for (tool, arguments) in [
        ("execute_command", json!({"command": format!("echo {SECRET}")})),
        ("execute_command", json!({"command": format!("rm {SECRET}")})),
        ("execute_command", json!({"command": "ls", "working_directory": format!("/{SECRET}")})),
        ("shell", json!({"command": format!("echo {SECRET}")})),
        ("shell", json!({"command": format!("rm {SECRET}")})),
        ("shell", json!({"command": "ls", "working_directory": format!("/{SECRET}")})),
        ("run_shell_command", json!({"command": format!("echo {SECRET}"), "is_background": false})),
        ("run_shell_command", json!({"command": format!("rm {SECRET}"), "is_background": true})),
        ("shell_exec", json!({"cmd": "ls", "cwd": format!("/{SECRET}")})),
        ("execute", json!({"command": SECRET, "args": []})),
        ("shell", json!({"command": "pwd", "working_directory": &place})),
        (
            "run_shell_command",
            json!({
                "command": "pwd", "directory": SECRET, "description": SECRET, "is_background": false,
            }),
        ),
    ] {
        let result = server.tool(tool, arguments.clone());
        assert!(is_masked(&result), "{tool} {arguments}: {result}");
    }
}

#[test]
fn a_directory_that_is_named_like_a_value_is_told_without_it() {
    let (folder, state) = (tempfile::tempdir().unwrap(), support::state());
    std::fs::create_dir(folder.path().join(SECRET)).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(TOOLS).args(["-v", "-w"]).arg(folder.path()).env("FOO_TOKEN", SECRET);
    support::keep_state_in(&mut command, &state);
    let mut server = Server::from_command(command.stderr(Stdio::piped()));
    server.initialize("2025-11-25");
    let session = json!({"command": format!("cd {SECRET}"), "session": "s"});
    let moved = server.call(session);
    let masked = folder.path().canonicalize().unwrap().join("[FOO_TOKEN]");
    assert_eq!(moved["cwd"], masked.to_str().unwrap());
    let arguments = json!({"command": "true", "working_directory": SECRET});
    assert_eq!(server.call(arguments)["return_code"], 0);
    server.close_stdin();
    server.wait();
    let log = std::io::read_to_string(server.child.stderr.take().unwrap()).unwrap();
    let trail = support::audit::read(&state);
    for told in [log, trail] {
        assert!(told.contains("[FOO_TOKEN]") && !told.contains(SECRET), "{told}");
    }
}

#[test]
fn a_value_that_begins_on_one_stream_and_ends_on_the_other_is_masked_where_they_meet() {
    let mut server = start_with(&["--background-after", "2"], &[]);
    let halves = "printf 'a s3cr3t-0123'; printf '456789 b' >&2";
    assert_eq!(server.run(halves)["output"], "a [FOO_TOKEN] b");
    let shell = server.tool("shell", json!({"command": halves}));
    assert_eq!(shell["content"][1]["text"], "a [FOO_TOKEN] b");
    // The first half shows when its stream ends, while the command goes on.
    let running = format!("{halves}; exec >&- 2>&-; sleep 300");
    let shell = server.tool("shell", json!({"command": running}));
    assert_eq!(shell["content"][1]["text"], "a [FOO_TOKEN] b", "{shell}");
    let handed_over = server.run(&running);
    assert_eq!(handed_over["output"], "a [FOO_TOKEN] b");
    let gates = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let command = "printf 'a s3cr3t-0123'; exec >&-; while [ -e \"$ONE\" ]; do sleep 0.01; done; \
                   printf '456789 b' >&2; while [ -e \"$TWO\" ]; do sleep 0.01; done";
    let environment = json!({"ONE": gates[0].path(), "TWO": gates[1].path()});
    let call = server.start_call(json!({"command": command, "environment": environment}));
    let [one, _two] = gates;
    server.wait_for_output(call, "a s3cr3t-0123");
    drop(one);
    server.wait_for_output(call, "a [FOO_TOKEN] b");
}

#[test]
fn the_log_and_the_audit_trail_say_the_name() {
    for text in [format!("command=echo {SECRET}"), format!("command=rm {SECRET}")] {
        let mut command = Command::new(MCPZ);
        command.args(["call", "-v", "--deny", "rm", "execute_command", &text]);
        let state = support::state();
        command.env("FOO_TOKEN", SECRET).env("XDG_CONFIG_HOME", "/nonexistent");
        command.env("XDG_STATE_HOME", state.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains("[FOO_TOKEN]") && !log.contains(SECRET), "{log}");
        let trail = std::fs::read_to_string(state.path().join("mcpz/audit.jsonl")).unwrap();
        assert!(trail.contains("[FOO_TOKEN]") && !trail.contains(SECRET), "{trail}");
    }
}

#[test]
fn a_private_key_is_masked_as_a_whole() {
    let key = format!("-----BEGIN KEY-----\n{}\n-----END KEY-----", "abc+def/\n".repeat(200));
    let mut server = start_with(&[], &[("DEPLOY_KEY", &key)]);
    let reply = server.run("echo before; printenv DEPLOY_KEY; echo -----BEGIN CERTIFICATE-----");
    assert_eq!(reply["output"], "before\n[DEPLOY_KEY]\n-----BEGIN CERTIFICATE-----\n");
}

#[test]
fn an_ordinary_word_is_masked_only_where_it_is_one() {
    let variables = [("POSTGRES_PASSWORD", "postgres"), ("SHORT_KEY", "abc123")];
    let mut server = start_with(&[], &variables);
    let command = "echo /var/lib/postgresql/data my_postgres abc1234; \
                   echo postgres://me:postgres@db; env | grep ^SHORT_KEY";
    let expected = "/var/lib/postgresql/data my_postgres abc1234\n\
                    [POSTGRES_PASSWORD]://me:[POSTGRES_PASSWORD]@db\nSHORT_KEY=[SHORT_KEY]\n";
    assert_eq!(server.run(command)["output"], expected);
}

/// A token, a JSON Web Token and a private key, and what is shown of them.
fn tokens() -> (String, String) {
    let (token, line) = ("aB3dE6gH9".repeat(4), "aB3dE6gH9jK2mN5p".repeat(4));
    let printed = format!(
        "ghp_{token} task-force\r\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{token}\r\n\
         -----BEGIN RSA PRIVATE KEY-----\r\n{}\r\n-----END RSA PRIVATE KEY-----\r\n",
        vec![line; 2000].join("\r\n")
    );
    let shown = "[GitHub token] task-force\n[JSON Web Token]\n-----BEGIN RSA PRIVATE KEY-----\n\
                 [private key]\n-----END RSA PRIVATE KEY-----\n";
    (printed, shown.to_owned())
}

#[test]
fn tokens_that_no_variable_holds_are_masked_by_their_form() {
    let folder = tempfile::tempdir().unwrap();
    let (printed, shown) = tokens();
    std::fs::write(folder.path().join("tokens"), &printed).unwrap();
    let mut server = start_with(&["-w", folder.path().to_str().unwrap()], &[]);
    for command in ["cat tokens", "dd if=tokens bs=1000 status=none", "cat tokens >&2"] {
        assert_eq!(server.run(command)["output"], shown, "{command}");
    }
    let in_pieces = "head -n 4 tokens | while IFS= read -r -N 1 c; do printf %s \"$c\"; done";
    let reply = server.call(json!({"command": format!("bash -c '{in_pieces}'")}));
    assert!(shown.starts_with(reply["output"].as_str().unwrap().trim_end()), "{reply}");
    let job = json!({"command": "cat tokens", "background": true, "detach": true});
    let job = server.call(job)["job_id"].clone();
    let ended = server.tool("read_job", json!({"job_id": job, "wait_for": "exit", "tail": 9}));
    assert_eq!(ended["structuredContent"]["output"], shown, "{ended}");
    let token = printed.split(' ').next().unwrap();
    let echoed = server.run(&format!("echo {token}"));
    assert_eq!(echoed["command"], "echo [GitHub token]");
}

#[test]
fn tokens_are_shown_where_that_was_said() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[shell_tool]\nmask_tokens = false\n").unwrap();
    let mut server = start_with(&["--config", file.path().to_str().unwrap()], &[]);
    let reply = server.run("echo AKIAIOSFODNN7EXAMPLE $FOO_TOKEN");
    assert_eq!(reply["output"], "AKIAIOSFODNN7EXAMPLE [FOO_TOKEN]\n");
}

#[test]
fn more_variables_can_be_named_and_all_can_be_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let flags = ["--config", file.path().to_str().unwrap()];
    let variables = [("DATABASE_URL", "postgres://me:pw@host"), ("SHORT_KEY", "12345")];
    let command = "echo $DATABASE_URL $FOO_TOKEN $SHORT_KEY";
    std::fs::write(file.path(), "[shell_tool]\nsecrets = [\"DATABASE_URL\"]\n").unwrap();
    let reply = start_with(&flags, &variables).run(command);
    assert_eq!(reply["output"], "[DATABASE_URL] [FOO_TOKEN] 12345\n");
    std::fs::write(file.path(), "[shell_tool]\nmask_secrets = false\n").unwrap();
    let reply = start_with(&flags, &variables).run(command);
    assert_eq!(reply["output"], format!("postgres://me:pw@host {SECRET} 12345\n"));
}

#[test]
fn tokens_that_let_clients_in_are_secret() {
    let config = "[http.tokens]\nada = \"the-token-of-ada-0123\"\n";
    let server = HttpServer::start_with(&[], config);
    let session = server.open_session();
    let command = format!("echo the-token-of-ada-0123 {TOKEN}");
    let result = server.call(&session, "execute_command", json!({"command": command}));
    assert_eq!(result["structuredContent"]["output"], "[http.tokens] [MCP_HTTP_TOKEN]\n");
}

#[test]
fn a_token_the_server_made_is_secret() {
    let mut command = Command::new(MCPZ);
    let server = HttpServer::start_command(command.env_remove("MCP_HTTP_TOKEN"), &[], "");
    let said = server.said.lock().unwrap().recv().unwrap();
    let token = said.strip_prefix("mcpz: token, until the server ends: ").unwrap();
    let token = token.split(' ').next().unwrap();
    let command = json!({"command": format!("echo {token}")});
    let result = server.tool_by(token, "execute_command", command);
    assert_eq!(result["structuredContent"]["output"], "[http.tokens]\n", "{result}");
}

#[test]
fn a_server_without_secrets_shows_what_came() {
    let mut command = Command::new(MCPZ);
    command.args(TOOLS).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    assert_eq!(server.run(&format!("echo {SECRET}"))["output"], format!("{SECRET}\n"));
}

#[test]
fn what_a_left_process_prints_later_is_masked_too() {
    let mut server = start();
    let gate = tempfile::NamedTempFile::new().unwrap();
    let command =
        "printf s3cr3t-0123; (while [ -e \"$GATE\" ]; do sleep 0.01; done; echo 456789) &";
    let environment = json!({"GATE": gate.path()});
    let reply = exec(&mut server, json!({"cmd": command, "env": environment}));
    assert_eq!(reply["stdout_chunk"], "");
    drop(gate);
    let chunk = wait_until("it has printed", || {
        let chunk = read(&mut server, json!({"uri": reply["spill_uri"]}));
        chunk["running"].is_null().then_some(chunk)
    });
    assert_eq!(chunk["data"], "[FOO_TOKEN]\n");
}
