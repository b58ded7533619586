//! What people are told when something is wrong: what it is, with what value, and what to do.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::json;
use support::MCPZ;
use support::http::{HttpServer, Request, initialize};

/// What is done, and all that has to be in what is said then.
type Case<'a> = (&'a [&'a str], &'a [&'a str]);

/// What is said, and the exit code, where there is nothing but what the test has put there.
fn said(arguments: &[&str], variables: &[(&str, &str)], stdin: &str) -> (String, i32) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(MCPZ);
    command.args(arguments).current_dir(folder.path());
    for unset in ["MCPZ_CONFIG", "MCP_HTTP_TOKEN", "MCP_HTTP_BIND", "OTEL_EXPORTER_OTLP_ENDPOINT"] {
        command.env_remove(unset);
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", folder.path());
    command.envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who complains about flags does not read.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8(said).unwrap(), output.status.code().unwrap())
}

fn check(cases: &[Case<'_>], variables: &[(&str, &str)], code: i32) {
    for (arguments, parts) in cases {
        let (text, ended) = said(arguments, variables, "");
        assert_eq!(ended, code, "{arguments:?}: {text}");
        for part in *parts {
            assert!(text.contains(part), "{arguments:?}: `{part}` is not in {text}");
            assert_eq!(text.matches(part).count(), 1, "{arguments:?} says it twice: {text}");
        }
        assert!(!text.contains("panicked") && !text.contains("Error {"), "{text}");
    }
}

#[test]
fn flags_that_are_wrong() {
    check(
        &[
            (&["nonsense"], &["unrecognized subcommand 'nonsense'", "try '--help'"]),
            (&["server", "shell", "--timout", "3"], &["'--timout'", "exists: '--timeout'"]),
            (&["server", "shell", "--timeout", "0"], &["'0'", "seconds from 1 to 86400"]),
            (&["server", "shell", "--timeout", "soon"], &["'soon'", "seconds from 1 to 86400"]),
            (&["server", "shell", "--background-after", "-1"], &["'-1'", "'--help'"]),
            (&["server", "shell", "--sandbox", "tight"], &["'tight'", "off, read-only, workspace"]),
            (&["server", "shell", "--log-format", "xml"], &["'xml'", "text, json"]),
            (&["server", "shell", "--memory", "much"], &["'much'", "write it as \"10MB\""]),
            (&["server", "shell", "--bind", "127.0.0.1:1"], &["not provided", "\n  --http\n"]),
            (&["audit", "tail", "-n", "all"], &["'all'", "it must be a whole number"]),
            (&["completions", "csh"], &["'csh'", "bash, elvish, fish, powershell, zsh"]),
            (&["install", "emacs"], &["'emacs'", "claude-desktop, claude-code, codex"]),
        ],
        &[],
        2,
    );
}

#[test]
fn a_server_that_cannot_start() {
    let shell = ["server", "shell"];
    let with = |flags: &[&'static str]| [&shell[..], flags].concat();
    let cases: [(Vec<&str>, &[&str]); 12] = [
        (with(&["--tools", "bash"]), &["no tool `bash`", "available: default, all, "]),
        (with(&["--shell", "nosuch"]), &["cannot use nosuch as the shell", "give its full path"]),
        (with(&["--working-dir", "/no"]), &["use /no as the working directory", "No such file"]),
        (with(&["--allow", ","]), &["the allow list is empty", "leave it out to allow everything"]),
        (with(&["--deny", "/(/"]), &["the rule `/(/` is not a valid regular", "unclosed group"]),
        (
            with(&["--settings", "/no"]),
            &["the settings file /no named by --settings", "No such file"],
        ),
        (with(&["--net", "on"]), &["--net needs a sandbox", "add --sandbox workspace"]),
        (
            with(&["--sandbox", "workspace", "--net", "http://x"]),
            &["--net is invalid", "`http://x`: use a host without scheme"],
        ),
        (
            with(&["--sandbox", "workspace", "--working-dir", "/"]),
            &["/ is too broad to be writable", "choose a project folder"],
        ),
        (with(&["--config", "/no"]), &["cannot read the configuration file /no", "No such file"]),
        (with(&["--http", "--bind", "here"]), &["`here` is not an address", "127.0.0.1:8000"]),
        (with(&["--http", "--path", "mcp"]), &["the path is `mcp`", "must begin with a slash"]),
    ];
    for (arguments, parts) in &cases {
        check(&[(arguments, parts)], &[], 1);
    }
}

#[test]
fn a_server_over_http_that_cannot_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let junk = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(junk.path(), "junk").unwrap();
    let junk = junk.path().to_str().unwrap();
    let http = ["server", "shell", "--http", "--bind"];
    let with = |flags: &[&'static str]| [&http[..], &["127.0.0.1:0"], flags].concat();
    let taken = [&http[..], &[&address]].concat();
    let listening = format!("cannot listen on {address}");
    check(
        &[(&taken, &[&listening, "choose another address with --bind", "already in use"])],
        &[],
        1,
    );
    let odd = with(&["--allowed-host", "http://x"]);
    check(&[(&odd, &["`http://x` is not a valid host", "such as mcp.example.org"])], &[], 1);
    check(&[(&with(&["--tls-cert", "x"]), &["a certificate and a key", "add --tls-key"])], &[], 1);
    check(&[(&with(&["--tls-key", "x"]), &["a certificate and a key", "add --tls-cert"])], &[], 1);
    let pair = |cert, key| [&with(&[])[..], &["--tls-cert", cert, "--tls-key", key]].concat();
    let named = format!("cannot use the certificate {junk}, which must be a PEM file");
    check(&[(&pair(junk, junk), &[&named, "no items found"])], &[], 1);
    let missing = "cannot use the certificate /no, which must be a PEM file";
    check(&[(&pair("/no", junk), &[missing, "No such file"])], &[], 1);
    let short = ("MCP_HTTP_TOKEN", "0123456789");
    let parts: &[&str] = &["$MCP_HTTP_TOKEN has 10 characters", "at least 16 characters"];
    check(&[(&with(&[]), parts)], &[short], 1);
    let (text, _) = said(&with(&[]), &[short], "");
    assert!(!text.contains("0123456789"), "what it is, is secret: {text}");
    let open = with(&["--auth", "none"]);
    let token = ("MCP_HTTP_TOKEN", "0123456789abcdef");
    check(&[(&open, &["--auth none lets everyone in", "keep only one of the two"])], &[token], 1);
}

#[test]
fn a_configuration_that_is_wrong() {
    for (content, parts) in [
        ("[", &["line 1, column 2", "unquoted keys cannot be empty"][..]),
        ("[shell_tool]\ntimout = 1", &["unknown field `timout`", "expected one of", "line 2"]),
        ("[shell_tool]\ntimeout = \"x\"", &["string \"x\", expected u64", "line 2"]),
        ("[shell_tool]\ntimeout = 0", &["the timeout is 0 seconds", "from 1 to 86400"]),
        ("[shell_tool]\nlog_format = \"xml\"", &["variant `xml`", "expected `text` or `json`"]),
        (
            "[shell_tool]\nmax_timeout = 5\ndefault_timeout = 6",
            &["default_timeout is 6 seconds", "the max_timeout of 5; change one"],
        ),
        ("[shell_tool]\nenv_pass = [\"a b\"]", &["`a b` in env_pass", "not a variable name"]),
        ("[limits]\nmemory = \"x\"", &["`x` is not a size", "write it as \"10MB\"", "line 2"]),
        ("[limits]\nnice = 20", &["nice of [limits] is 20", "from 0 to 19"]),
        ("[limits]\nruns = 0", &["runs is 0", "at least 1"]),
        ("[audit]\nmax_size = 1", &["max_size of [audit] is 1,", "at least 4096"]),
        ("[[policy.deny]]\nrule = \"\"", &["a rule is empty", "such as `git push`"]),
        ("[policy]\nunresolved = \"maybe\"", &["variant `maybe`", "expected `deny` or `allow`"]),
        (
            "[[policy.deny]]\nrule = \"rm\"\nmatch = [\"ls\"]",
            &["the rule `rm` should match its example `ls`, but does not"],
        ),
        (
            "[sandbox]\nmode = \"workspace\"\nwrite_dirs = [\"/no\"]",
            &["cannot find /no; create it, or remove it from the settings"],
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let arguments = ["server", "shell", "--config", file.path().to_str().unwrap()];
        check(&[(&arguments, parts)], &[], 1);
    }
}

#[test]
fn a_settings_file_with_an_entry_that_is_not_understood() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"excludeTools": ["run_shell_command(rm"]}"#).unwrap();
    let arguments = ["server", "shell", "--settings", file.path().to_str().unwrap()];
    let parts: &[&str] =
        &["not understood: run_shell_command(rm; ", "or run_shell_command(COMMAND)"];
    check(&[(&arguments, parts)], &[], 1);
}

#[test]
fn commands_for_people() {
    check(
        &[
            (&["call", "bash"], &["no tool `bash` here", "available: execute_command, "]),
            (&["call", "execute_command", "ls"], &["`ls` is not an argument", "as KEY=VALUE"]),
            (
                &["call", "execute_command", "command=ls", "timeout=-1"],
                &["`timeout` must be more than 0 and at most 86400 seconds"],
            ),
            (
                &["call", "execute_command", "comand=ls"],
                &["unknown field `comand`", "expected one of `command`"],
            ),
            (
                &["call", "execute_command", "command=ls", "working_directory=/no"],
                &["cannot enter the working directory /no", "No such file"],
            ),
            (
                &["call", "--deny", "rm*", "execute_command", "command=rm x"],
                &["`rm x` (at 0) is denied", "the rule `rm*`"],
            ),
            (&["jobs", "logs", "job-9"], &["no job `job-9`", "`mcpz jobs list` shows all"]),
            (&["jobs", "attach", "job-9"], &["attaching is interactive", "must be a terminal"]),
            (
                &["audit", "tail", "--folder", "/no"],
                &["cannot read the records in /no", "--folder or --config"],
            ),
            (
                &["audit", "verify"],
                &["choose others with --folder or --config", "audit.key: No such"],
            ),
            (&["health", "here"], &["`here` is not a URL", "http://127.0.0.1:8000/healthz"]),
            (&["policy", "test", "/no"], &["configuration file /no", "No such file"]),
            (
                &["install", "cursor", "--name", "a b"],
                &["`a b` is not a valid name", "use letters"],
            ),
            (
                &["install", "cursor", "--http", "here"],
                &["`here` is not the URL of a server", "/mcp"],
            ),
            (&["install", "cursor", "--project", "/no"], &["/no is not a folder", "--project"]),
            (
                &["install", "goose", "--project", "."],
                &["Goose has no configuration file", "leave out --project"],
            ),
        ],
        &[],
        1,
    );
}

#[test]
fn what_is_missing_around_it() {
    let nowhere = [("HOME", ""), ("XDG_STATE_HOME", "")];
    check(
        &[
            (
                &["call", "execute_command", "command=ls"],
                &["no folder for the audit records", "set HOME or XDG_STATE_HOME, or folder"],
            ),
            (&["jobs", "list"], &["no folder for jobs", "set HOME or XDG_STATE_HOME"]),
            (&["install", "cursor"], &["no home directory", "set HOME"]),
        ],
        &nowhere,
        1,
    );
    let number = [("MCP_EXEC_MAX_OUTPUT_BYTES", "many")];
    let parts: &[&str] = &["MCP_EXEC_MAX_OUTPUT_BYTES is `many`", "must be a whole number"];
    check(&[(&["server", "shell"], parts)], &number, 1);
    let unwritable = [("XDG_STATE_HOME", "/proc")];
    let parts: &[&str] =
        &["cannot write the audit record to /proc/mcpz/", "no command runs without one"];
    check(&[(&["call", "execute_command", "command=ls"], parts)], &unwritable, 1);
}

#[test]
fn a_batch_with_a_line_that_is_no_case() {
    let case = json!({"policy": {}, "command": "ls", "shell": "sh"});
    let (text, code) = said(&["check", "--batch"], &[], &format!("{case}\nnonsense\n"));
    assert!(text.contains("line 2 of the batch is not a case such as {\"policy\": {}"), "{text}");
    assert!(text.ends_with(": expected ident at line 1 column 2\n") && code == 1, "{text}");
}

#[test]
fn requests_over_http_that_are_not_served() {
    let server = HttpServer::start(&[]);
    let first = Request::post(&initialize("2025-11-25"));
    let refused = [
        (first.clone().without("authorization"), 401, "send a valid token"),
        (
            first.clone().without("host").with("host", "elsewhere"),
            403,
            "allow it with --allowed-host",
        ),
        (first.clone().with("origin", "http://evil"), 403, "allow it with --allowed-origin"),
        (Request { path: "/".into(), ..first.clone() }, 404, "the endpoint is at /mcp"),
        (first.without("accept"), 406, "must accept application/json and text/event-stream"),
        (Request::get("no-such-session"), 404, "unknown session; start one with initialize"),
    ];
    for (request, status, part) in refused {
        let response = server.send(&request);
        let text = response.text();
        assert!(response.status == status && text.contains(part), "{}: {text}", response.status);
    }
}

#[test]
fn who_has_read_enough_hears_no_complaint() {
    let policy = "for i in $(seq 400); do set -- \"$@\" 'rm -rf /tmp/x'; done; \
        \"$MCPZ\" check --deny rm \"$(printf '%s;' \"$@\")\"";
    for command in ["\"$MCPZ\" man", "\"$MCPZ\" completions bash", policy] {
        // Nobody reads from the beginning.
        let script = format!("{{ sleep 0.1; {command}; }} | true");
        let output = Command::new("bash").args(["-c", &script]).env("MCPZ", MCPZ).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{command}");
    }
}
