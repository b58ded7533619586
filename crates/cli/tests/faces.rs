//! What is set for the server, and what a command does, means the same in every tool that runs one.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Gate, MCPZ, Server};

/// A tool that runs commands, and how it names what all of them have.
struct Face {
    tool: &'static str,
    command: &'static str,
    /// Where the command runs, if that can be said.
    directory: Option<&'static str>,
    /// What it printed, while it runs or when it ended, and after a timeout.
    stdout: [&'static str; 2],
    stderr: [&'static str; 2],
    /// What to do about a timeout.
    advice: &'static [&'static str],
}

const FACES: [Face; 5] = [
    Face {
        tool: "execute_command",
        command: "command",
        directory: Some("working_directory"),
        stdout: ["output"; 2],
        stderr: ["output"; 2],
        advice: &["`timeout`", "`background`"],
    },
    Face {
        tool: "shell",
        command: "command",
        directory: Some("working_directory"),
        stdout: ["stdout", "partial_stdout"],
        stderr: ["stderr", "partial_stderr"],
        advice: &["`timeout` (up to 1800 seconds)", "background with `&`"],
    },
    Face {
        tool: "execute",
        command: "command",
        directory: None,
        stdout: ["stdout"; 2],
        stderr: ["stderr"; 2],
        advice: &["`timeout_ms`", "background with `&`"],
    },
    Face {
        tool: "run_shell_command",
        command: "command",
        directory: Some("directory"),
        stdout: ["stdout"; 2],
        stderr: ["stderr"; 2],
        advice: &["`is_background`", "`--timeout`"],
    },
    Face {
        tool: "shell_exec",
        command: "cmd",
        directory: Some("cwd"),
        stdout: ["stdout_chunk"; 2],
        stderr: ["stderr_chunk"; 2],
        advice: &["background with `&`", "`--timeout`"],
    },
];

impl Face {
    fn arguments(&self, command: &str) -> Value {
        let mut arguments = json!({ self.command: command });
        if self.tool == "run_shell_command" {
            arguments["is_background"] = false.into();
        }
        arguments
    }

    fn run(&self, server: &mut Server, command: &str) -> Value {
        server.tool(self.tool, self.arguments(command))
    }

    /// Where a command runs that is to run in that directory, or why it does not.
    fn place(&self, server: &mut Server, directory: &str) -> Result<String, String> {
        let mut arguments = self.arguments("pwd -P");
        arguments[self.directory.unwrap()] = directory.into();
        let result = server.tool(self.tool, arguments);
        match result["isError"] == true {
            true => Err(text(&result)),
            false => Ok(result["structuredContent"][self.stdout[0]].as_str().unwrap().to_owned()),
        }
    }

    /// Starts a call and returns its id.
    fn ask(&self, server: &mut Server, command: &str) -> i64 {
        let arguments = self.arguments(command);
        server.ask("tools/call", json!({"name": self.tool, "arguments": arguments}))
    }
}

/// All a client that ignores structure sees.
fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

fn with_directory() -> impl Iterator<Item = &'static Face> {
    FACES.iter().filter(|face| face.directory.is_some())
}

/// A folder with `project/below`, a link out of it, and `elsewhere`.
fn ground() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("project/below")).unwrap();
    fs::create_dir(root.join("elsewhere")).unwrap();
    symlink(root.join("elsewhere"), root.join("project/out")).unwrap();
    symlink("below", root.join("project/in")).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    (folder, text("project"), text("elsewhere"))
}

fn with_file(folder: &Path, text: &str) -> Server {
    let file = folder.join("config.toml");
    fs::write(&file, text).unwrap();
    Server::start(&["--tools", "all", "--config", file.to_str().unwrap()])
}

#[test]
fn a_working_directory_keeps_every_face_within_it() {
    let (folder, project, elsewhere) = ground();
    let by_flag = Server::start(&["--tools", "all", "-w", &project]);
    let by_file = with_file(folder.path(), &format!("[shell_tool]\nworking_dir = {project:?}\n"));
    for mut server in [by_flag, by_file] {
        for face in &FACES {
            let result = face.run(&mut server, "pwd -P");
            let place = &result["structuredContent"][face.stdout[0]];
            assert_eq!(*place, format!("{project}\n"), "{}", face.tool);
        }
        for face in with_directory() {
            for inside in ["below", "in", "./below/../below", &format!("{project}/below")] {
                let place = face.place(&mut server, inside).unwrap();
                assert_eq!(place, format!("{project}/below\n"), "{}", face.tool);
            }
            for outside in ["..", "out", "below/../..", "/", &elsewhere] {
                let why = face.place(&mut server, outside).unwrap_err();
                let expected =
                    format!(" is outside of {project}; add it to allowed_directories to allow it");
                assert!(why.contains(&expected), "{}: {why}", face.tool);
            }
        }
    }
}

#[test]
fn sessions_jobs_and_detached_jobs_are_kept_within_as_well() {
    let (_folder, project, elsewhere) = ground();
    let mut server = Server::start(&["-w", &project]);
    for how in [json!({"session": "a"}), json!({"background": true}), json!({"detach": true})] {
        let mut arguments = json!({"command": "pwd -P", "working_directory": elsewhere});
        arguments.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        let reply = server.call(arguments);
        let output = reply["output"].as_str().unwrap();
        let expected = format!(
            "Failed to execute: {elsewhere} is outside of {project}; add it to allowed_directories \
             to allow it"
        );
        assert_eq!(output, expected, "{how}");
    }
    let inside = json!({"command": "pwd -P", "session": "b", "working_directory": "below"});
    assert_eq!(server.call(inside)["output"], format!("{project}/below\n"));
}

#[test]
fn allowed_directories_widen_what_a_working_directory_restricts() {
    let (folder, project, elsewhere) = ground();
    let text =
        format!("[shell_tool]\nworking_dir = {project:?}\nallowed_directories = [{elsewhere:?}]\n");
    let mut server = with_file(folder.path(), &text);
    for face in with_directory() {
        for (directory, place) in [("out", &elsewhere), (&elsewhere, &elsewhere), (".", &project)] {
            let ran = face.place(&mut server, directory).unwrap();
            assert_eq!(ran, format!("{place}\n"), "{}", face.tool);
        }
        assert!(face.place(&mut server, "/").is_err(), "{}", face.tool);
    }
}

#[test]
fn without_a_working_directory_nothing_is_restricted() {
    let mut server = Server::start(&["--tools", "all"]);
    for face in with_directory() {
        assert_eq!(face.place(&mut server, "/usr"), Ok("/usr\n".to_owned()), "{}", face.tool);
    }
}

#[test]
fn allowed_directories_alone_are_all_there_are() {
    let (folder, project, _) = ground();
    let text = format!("[shell_tool]\nallowed_directories = [{project:?}]\n");
    let mut server = with_file(folder.path(), &text);
    for face in with_directory() {
        let ran = face.place(&mut server, &project).unwrap();
        assert_eq!(ran, format!("{project}\n"), "{}", face.tool);
        let why = face.place(&mut server, "/usr").unwrap_err();
        assert!(
            why.contains("/usr is not within the allowed directories; add it to allowed_dir"),
            "{}: {why}",
            face.tool
        );
    }
}

#[test]
fn a_blank_command_is_refused_and_nothing_runs() {
    let mut server = Server::start(&["--tools", "all"]);
    for face in &FACES {
        for command in ["", " \n\t"] {
            let result = face.run(&mut server, command);
            let expected = match face.tool {
                "execute" => "Error: command: empty".to_owned(),
                _ => format!("Invalid arguments: `{}` is empty", face.command),
            };
            assert_eq!((&result["isError"], text(&result)), (&json!(true), expected));
        }
    }
    let ran = support::audit::records(&server.state);
    assert!(!ran.iter().any(|record| record["event"] == "start"), "{ran:?}");
}

#[test]
fn stderr_is_left_out_of_every_face() {
    let mut server = Server::start(&["--tools", "all", "--no-stderr"]);
    for face in &FACES {
        let result = face.run(&mut server, "echo kept; echo le''ft-out >&2");
        assert_eq!(result["structuredContent"][face.stdout[0]], "kept\n", "{}", face.tool);
        assert!(!result.to_string().contains("left-out"), "{}: {result}", face.tool);
    }
    let arguments = json!({"command": "echo kept; sleep 300", "is_background": true});
    let result = server.tool("run_shell_command", arguments);
    assert!(result["structuredContent"]["stderr_spill_uri"].is_null(), "{result}");
}

#[test]
fn a_timeout_of_the_server_holds_in_every_face_and_says_what_to_do() {
    let mut server = Server::start(&["--tools", "all", "-t", "1"]);
    let asked = FACES.map(|face| {
        let id = face.ask(&mut server, "echo begun; sleep 300");
        (face, id)
    });
    for (face, id) in asked {
        let result = server.answer(id)["result"].clone();
        let (reply, text) = (&result["structuredContent"], text(&result));
        assert_eq!(result["isError"], true, "{}", face.tool);
        assert_eq!(reply[face.stdout[1]], "begun\n", "{}", face.tool);
        assert_eq!(reply["timed_out"], true, "{}", face.tool);
        let message = reply["message"].as_str().or(reply["error"].as_str()).unwrap();
        for told in [&text, message] {
            assert!(told.contains("timed out after 1 second"), "{}: {told}", face.tool);
            assert!(!told.contains("1 seconds"), "{}: {told}", face.tool);
            for advice in face.advice {
                assert!(told.contains(advice), "{}: {advice} is not in {told}", face.tool);
            }
        }
    }
}

#[test]
fn every_tool_says_what_its_timeout_is() {
    let told = |flags: &[&str], expected: [&str; 5]| {
        let mut server = Server::start(&[&["--tools", "all"], flags].concat());
        let listed = server.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        for (face, expected) in FACES.iter().zip(expected) {
            let tool = tools.iter().find(|tool| tool["name"] == face.tool).unwrap();
            let arguments = &tool["inputSchema"]["properties"];
            let of = ["timeout", "timeout_ms"].map(|name| arguments[name]["description"].as_str());
            let said = of.into_iter().flatten().next().or(tool["description"].as_str()).unwrap();
            assert!(said.contains(expected), "{}: {said}", face.tool);
        }
    };
    let ended = "Commands are killed after 600 seconds.";
    told(&[], ["[default: 30]", "300 seconds / 5 minutes", "[default: 600000]", ended, ended]);
    let ended = "Commands are killed after 7 seconds.";
    told(&["-t", "7"], ["[default: 7]", "defaults to 7 seconds", "[default: 7000]", ended, ended]);
}

#[test]
fn the_timeout_of_the_server_is_that_of_shell_within_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let default = |text: &str, flags: &[&str]| {
        fs::write(&file, format!("[shell_tool]\n{text}\n")).unwrap();
        let named = ["--tools", "shell", "--config", file.to_str().unwrap()];
        let mut server = Server::start(&[&named, flags].concat());
        let listed = server.request("tools/list", json!({}));
        listed["result"]["tools"][0]["inputSchema"]["properties"]["timeout"]["default"].clone()
    };
    assert_eq!(default("", &[]), 300);
    assert_eq!(default("timeout = 40", &[]), 40);
    assert_eq!(default("timeout = 40\ndefault_timeout = 50", &[]), 50);
    assert_eq!(default("timeout = 40\ndefault_timeout = 50", &["-t", "60"]), 60);
    assert_eq!(default("max_timeout = 20", &["-t", "60"]), 20);
}

#[test]
fn a_call_that_takes_long_is_handed_over_in_every_face() {
    let mut server = Server::start(&["--tools", "all", "--background-after", "2"]);
    let gate = Gate::new();
    let command = format!("echo begun; echo said >&2; {}; echo done; exit 3", gate.wait());
    let asked = FACES.map(|face| {
        let id = face.ask(&mut server, &command);
        (face, id)
    });
    let jobs = asked.map(|(face, id)| {
        let result = server.answer(id)["result"].clone();
        let (reply, text) = (&result["structuredContent"], text(&result));
        assert_eq!(result["isError"], false, "{}: {result}", face.tool);
        assert_eq!(reply["state"], "running", "{}: {reply}", face.tool);
        assert!(reply["pid"].is_i64(), "{}: {reply}", face.tool);
        assert!(reply[face.stdout[0]].as_str().unwrap().starts_with("begun\n"), "{reply}");
        assert!(reply[face.stderr[0]].as_str().unwrap().ends_with("said\n"), "{reply}");
        let job = reply["job_id"].as_str().unwrap();
        let way = format!(
            "still running after 2 seconds; it continues as {job}, without a timeout; wait for it with read_job"
        );
        assert!(text.contains(&way), "{}: {text}", face.tool);
        assert!(reply["message"].as_str().unwrap().contains(&way), "{}: {reply}", face.tool);
        (face, reply.clone())
    });
    drop(gate);
    for (face, reply) in jobs {
        let wait = json!({"job_id": reply["job_id"], "wait_for": "exit"});
        let told = server.tool("read_job", wait)["structuredContent"].clone();
        assert_eq!(told["exit_code"], 3, "{}", face.tool);
        let output = told["output"].as_str().unwrap();
        // What pages are read of, is read from its beginning.
        assert!(output.contains("done\n"), "{}: {output}", face.tool);
        assert!(face.tool == "shell_exec" || output == "done\n", "{}: {output}", face.tool);
    }
}

#[test]
fn the_pages_of_a_command_that_was_handed_over_tell_its_end() {
    let mut server = Server::start(&["--tools", "all", "--background-after", "2"]);
    let gate = Gate::new();
    let command = format!("echo begun; {}; echo done; exit 3", gate.wait());
    let first = support::exec(&mut server, json!({"cmd": command, "on_large_output": "truncate"}));
    assert_eq!((&first["stdout_chunk"], &first["exit_code"]), (&json!("begun\n"), &Value::Null));
    drop(gate);
    server.tool("read_job", json!({"job_id": first["job_id"], "wait_for": "exit"}));
    let page = json!({"cursor": first["next_cursor"]});
    let second = support::exec(&mut server, json!({"cmd": command, "page": page}));
    assert_eq!((&second["stdout_chunk"], &second["exit_code"]), (&json!("done\n"), &json!(3)));
}

#[test]
fn without_tools_for_jobs_nothing_is_handed_over() {
    let tools = FACES.map(|face| face.tool).join(",");
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", &tools, "--background-after", "1"]);
    let mut server = Server::from_command(command.stderr(Stdio::piped()));
    server.initialize("2025-11-25");
    let asked = FACES.map(|face| {
        let id = face.ask(&mut server, "sleep 1.5; echo done");
        (face, id)
    });
    for (face, id) in asked {
        let result = server.answer(id)["result"].clone();
        assert_eq!(result["structuredContent"][face.stdout[0]], "done\n", "{}", face.tool);
    }
    server.close_stdin();
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("add read_job and stop_job to --tools"), "{said}");
}

/// Has `mcpz call` run a command with a tool: what it printed on both streams, and its exit code.
fn call(face: &Face, flags: &[&str], command: &str) -> (String, String, i32) {
    let mut call = Command::new(MCPZ);
    call.args(["call", "--tools", "all"]).args(flags);
    call.arg(face.tool).arg(format!("{}={command}", face.command));
    if face.tool == "run_shell_command" {
        call.arg("is_background=false");
    }
    let state = support::state();
    call.env("XDG_STATE_HOME", state.path()).env("XDG_CONFIG_HOME", "/nonexistent");
    let output = call.env_remove("MCPZ_CONFIG").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[test]
fn a_call_from_the_command_line_is_the_command_in_every_face() {
    for face in &FACES {
        let (stdout, stderr, code) = call(face, &[], "echo out; echo err >&2; exit 7");
        let expected = match face.tool {
            "execute_command" => ("out\nerr\n", ""),
            _ => ("out\n", "err\n"),
        };
        assert_eq!((stdout.as_str(), stderr.as_str()), expected, "{}", face.tool);
        assert_eq!(code, 7, "{}", face.tool);
        assert_eq!(call(face, &[], "kill -TERM $$").2, 143, "{}", face.tool);
    }
}

#[test]
fn a_call_from_the_command_line_that_times_out_ends_with_124_in_every_face() {
    for face in &FACES {
        let (stdout, stderr, code) = call(face, &["-t", "1"], "echo begun; sleep 300");
        assert_eq!((stdout.as_str(), code), ("begun\n", 124), "{}: {stderr}", face.tool);
        assert!(stderr.starts_with("mcpz: "), "{}: {stderr}", face.tool);
        assert!(stderr.contains("timed out after 1 second"), "{}: {stderr}", face.tool);
    }
}

#[test]
fn a_call_from_the_command_line_that_is_refused_ends_with_1_in_every_face() {
    for face in &FACES {
        let (stdout, stderr, code) = call(face, &["--deny", "rm*"], "rm x");
        let expected =
            "Command denied by security policy: `rm x` (at 0) is denied by the rule `rm*`\n";
        assert_eq!((stdout.as_str(), stderr.as_str(), code), (expected, "", 1), "{}", face.tool);
    }
}

#[test]
fn a_call_from_the_command_line_is_waited_for() {
    for face in &FACES {
        let (stdout, _, code) =
            call(face, &["--background-after", "1"], "sleep 1.5; echo done; exit 3");
        assert_eq!((stdout.as_str(), code), ("done\n", 3), "{}", face.tool);
    }
}
