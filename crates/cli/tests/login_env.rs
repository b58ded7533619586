//! The environment of the user's login shell, whatever its files do.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Gate, MCPZ, Server, children, kill, mark, survivors, wait_until};
use tempfile::TempDir;

/// How long a shell may take.
const TIME: Duration = Duration::from_secs(5);

/// A user with a home, a shell and a poor environment.
struct User {
    home: TempDir,
    shell: PathBuf,
    variables: Vec<(String, String)>,
}

impl User {
    fn new(shell: &str) -> Self {
        Self { home: tempfile::tempdir().unwrap(), shell: shell.into(), variables: Vec::new() }
    }

    /// One of `bash` who has this in their profile.
    fn with_profile(text: &str) -> Self {
        let user = Self::new("/bin/bash");
        user.write(".bash_profile", text);
        user
    }

    fn having(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.home.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A server of this user that has shaken hands.
    fn start(&self, flags: &[&str]) -> Server {
        let mut server = Server::from_command(&mut self.command(flags));
        server.initialize("2025-11-25");
        server
    }

    fn command(&self, flags: &[&str]) -> Command {
        // The test's client has no configuration for anybody; shells have.
        let home = self.home.path();
        let mut command = Command::new("env");
        command.arg(format!("XDG_CONFIG_HOME={}", home.join(".config").display()));
        command.args([MCPZ, "server", "shell", "--tools", "all", "--login-env"]).args(flags);
        command.current_dir(home).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
        command.env("SHELL", &self.shell).envs(self.variables.iter().cloned());
        command.stderr(File::create(self.said_file()).unwrap());
        command
    }

    /// What the server has said to whoever started it.
    fn said(&self) -> String {
        std::fs::read_to_string(self.said_file()).unwrap()
    }

    fn said_file(&self) -> PathBuf {
        self.home.path().join("stderr")
    }
}

fn output(server: &mut Server, command: &str) -> String {
    server.run(command)["output"].as_str().unwrap().to_owned()
}

#[test]
fn every_shell_tells_what_its_files_set() {
    let export = "export GREETING='two  words' PATH=\"/home/me/bin:$PATH\"\n";
    let fish = "set -gx GREETING 'two  words'; set -gx PATH /home/me/bin $PATH\n";
    for (shell, file, text) in [
        ("/bin/bash", ".bash_profile", export),
        ("/bin/bash", ".profile", ". ~/.bashrc"),
        ("/bin/dash", ".profile", export),
        ("/bin/zsh", ".zprofile", export),
        ("/bin/zsh", ".zshrc", export),
        ("/usr/bin/fish", ".config/fish/config.fish", fish),
    ] {
        if !Path::new(shell).exists() {
            assert_eq!(shell, "/usr/bin/fish");
            continue;
        }
        let user = User::new(shell).having("PATH", "/opt/mine:/usr/bin:/bin");
        user.write(file, text);
        user.write(".bashrc", &format!("case $- in *i*) ;; *) return;; esac\n{export}"));
        let mut server = user.start(&[]);
        assert_eq!(output(&mut server, "echo \"$GREETING\""), "two  words\n", "{shell} {file}");
        let path = output(&mut server, "echo $PATH");
        assert!(path.starts_with("/home/me/bin:"), "{shell} {file}: {path}");
        assert!(path.trim().split(':').any(|folder| folder == "/opt/mine"), "{shell}: {path}");
        assert_eq!(user.said(), "", "{shell} {file}");
    }
}

#[test]
fn what_its_files_print_is_not_taken_for_variables() {
    let noise = "printf 'PATH=/noise\\0FAKE=1\\0'; seq 200000; seq 200000 >&2; env -0\n\
                 (while :; do echo noise; done) &\n\
                 export GREETING=hello ODD=$'a=b\\nFAKE=2\\nc' RAW=$'\\xff\\xfe'\n";
    let user = User::with_profile(noise);
    let mut server = user.start(&[]);
    let printed =
        output(&mut server, "echo \"$GREETING|$ODD|$FAKE\"; printf %s \"$RAW\" | od -An -tx1");
    assert_eq!(printed, "hello|a=b\nFAKE=2\nc|\n ff fe\n");
}

#[test]
fn the_client_is_answered_while_the_shell_starts_and_commands_wait_for_it() {
    let gate = Gate::new();
    let user = User::with_profile(&format!("{}; export GREETING=hello\n", gate.wait()));
    let began = Instant::now();
    let mut server = user.start(&[]);
    let cancelled = server.start_call(json!({"command": "touch cancelled"}));
    let first = server.start_call(json!({"command": "echo $GREETING"}));
    let second = server.start_call(json!({"command": "echo $GREETING $GREETING"}));
    server.notify("notifications/cancelled", json!({"requestId": cancelled}));
    assert!(server.request("tools/list", json!({}))["result"]["tools"].is_array());
    assert!(began.elapsed() < TIME, "the client had to wait");
    drop(gate);
    for (call, expected) in [(first, "hello\n"), (second, "hello hello\n")] {
        let answer = server.answer(call);
        assert_eq!(answer["result"]["structuredContent"]["output"], expected, "{answer}");
    }
    assert_eq!(output(&mut server, "ls cancelled 2>/dev/null; echo $GREETING"), "hello\n");
}

#[test]
fn a_shell_that_takes_too_long_is_ended_with_all_it_started() {
    let mark = mark();
    let profile = format!(
        "export MARK={mark} GREETING=never\ntrap '' TERM HUP\nsetsid sleep 300 & \n\
         (trap '' TERM; sleep 300) &\nsleep 300\n"
    );
    let user = User::with_profile(&profile);
    let mut server = user.start(&[]);
    wait_until("it has begun", || (!survivors(&mark).is_empty()).then_some(()));
    assert_eq!(output(&mut server, "echo .$GREETING. $PATH"), ".. /usr/bin:/bin\n");
    assert_eq!(survivors(&mark), [""; 0]);
    assert_eq!(
        user.said(),
        "mcpz: warning: commands get the server's own environment: the login shell /bin/bash took \
         longer than 5 s to start\n"
    );
}

#[test]
fn what_a_shell_leaves_in_the_background_is_gone_before_the_first_command_runs() {
    let mark = mark();
    let profile = format!(
        "export MARK={mark}\nsleep 300 &\n(trap '' TERM; setsid sleep 300 &) \n\
         nohup sleep 300 >/dev/null 2>&1 & disown\nexport GREETING=hello\n"
    );
    let user = User::with_profile(&profile);
    let mut server = user.start(&[]);
    assert_eq!(output(&mut server, "echo $GREETING"), "hello\n");
    // The agent and its keepers have the variable, too.
    let left = survivors(&mark).into_iter().filter(|process| process.contains("sleep"));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_shell_that_tells_nothing_leaves_commands_with_the_servers_environment() {
    for (profile, how) in [
        ("export GREETING=hello; exit 3\n", "with exit code 3"),
        ("exec false\n", "with exit code 1"),
        ("kill -9 $$\n", "was ended by SIGKILL"),
    ] {
        let user = User::with_profile(profile);
        let mut server = user.start(&[]);
        assert_eq!(output(&mut server, "echo .$GREETING. $PATH"), ".. /usr/bin:/bin\n");
        let said = user.said();
        assert!(said.contains("warning") && said.contains(how), "{profile}: {said}");
    }
    for shell in ["/no/such/shell", "/bin/true", "/dev/null"] {
        let user = User::new(shell);
        let mut server = user.start(&[]);
        assert_eq!(output(&mut server, "echo $PATH"), "/usr/bin:/bin\n");
        assert!(user.said().contains(shell), "{}", user.said());
    }
}

#[test]
fn a_shell_that_asks_something_gets_no_answer_and_goes_on() {
    for shell in ["/bin/bash", "/bin/zsh"] {
        let user = User::new(shell);
        let text = "printf 'Update? [Y/n] '; read answer; read other </dev/tty\n\
                    stty -echo; export GREETING=hello.$answer$other\n";
        user.write(".bash_profile", text);
        user.write(".zshrc", text);
        let mut server = user.start(&[]);
        assert_eq!(output(&mut server, "echo $GREETING"), "hello.\n", "{shell}");
    }
}

#[test]
fn a_server_that_goes_meanwhile_takes_the_shell_along() {
    for signal in ["KILL", "TERM", "stdin"] {
        let mark = mark();
        let user = User::with_profile(&format!(
            "export MARK={mark}\ntrap '' TERM HUP\nsetsid sleep 300 &\nsleep 300\n"
        ));
        let mut server = user.start(&[]);
        wait_until("it sleeps", || (survivors(&mark).len() == 2).then_some(()));
        match signal {
            "stdin" => server.close_stdin(),
            signal => server.signal(signal),
        }
        server.wait();
        assert_eq!(user.said(), "");
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    }
}

#[test]
fn an_agent_that_is_killed_meanwhile_leaves_commands_with_the_servers_environment() {
    let mark = mark();
    let user = User::with_profile(&format!("export MARK={mark}\nsleep 300\n"));
    let mut server = user.start(&[]);
    wait_until("it sleeps", || (survivors(&mark).len() == 1).then_some(()));
    let agents = children(server.child.id());
    assert_eq!(agents.len(), 1);
    kill("KILL", agents[0]);
    assert_eq!(output(&mut server, "echo .$MARK."), "..\n");
    assert_eq!(survivors(&mark), [""; 0]);
    assert!(user.said().contains("warning"), "{}", user.said());
}

#[test]
fn what_is_the_shells_own_is_not_taken() {
    let profile =
        "export SEEN=$MCPZ_LOGIN_ENV.$PWD.$TERM SHLVL=7 PWD=/x OLDPWD=/x TERM=vt100 COLUMNS=7\n";
    let user = User::with_profile(profile).having("TERM", "dumb");
    let mut server = user.start(&[]);
    let seen = format!("1.{}.xterm-256color\n", user.home.path().display());
    assert_eq!(output(&mut server, "echo $SEEN"), seen);
    let expected = ".dumb..\n";
    assert_eq!(output(&mut server, "echo .$TERM.$COLUMNS.$OLDPWD$MCPZ_LOGIN_ENV"), expected);
    assert_eq!(output(&mut server, "env | grep -c DISABLE_AUTO_UPDATE"), "0\n");
}

#[test]
fn secrets_of_the_shell_are_masked_from_the_first_call_on() {
    let profile = "export FOO_TOKEN=s3cr3t-0123456789\n";
    for (tool, arguments) in [
        ("execute_command", json!({"command": "echo $FOO_TOKEN; echo s3cr3t-0123456789"})),
        ("execute_command", json!({"command": "rm s3cr3t-0123456789"})),
        ("shell", json!({"command": "ls", "working_directory": "/s3cr3t-0123456789"})),
        ("shell_exec", json!({"cmd": "echo s3cr3t-0123456789 >&2"})),
    ] {
        let user = User::with_profile(profile);
        let mut server = user.start(&["--deny", "rm"]);
        let told = server.tool(tool, arguments).to_string();
        assert!(told.contains("[FOO_TOKEN]") && !told.contains("s3cr3t"), "{tool}: {told}");
    }
}

#[test]
fn secrets_of_the_shell_are_not_on_record() {
    let user = User::with_profile("export FOO_TOKEN=s3cr3t-0123456789\n");
    let mut server = user.start(&["--deny", "rm"]);
    server.run("echo s3cr3t-0123456789");
    server.call_raw(json!({"command": "rm s3cr3t-0123456789"}));
    let trail = std::fs::read_to_string(server.state.path().join("mcpz/audit.jsonl")).unwrap();
    assert!(trail.contains("[FOO_TOKEN]") && !trail.contains("s3cr3t"), "{trail}");
}

#[test]
fn the_same_rules_hold_for_variables_of_the_shell() {
    let profile = "export MCP_HTTP_TOKEN=0123456789abcdef BASH_ENV=\"$HOME/none\" AWS_REGION=north \
                   EDITOR=ed\nls() { echo fooled; }; export -f ls\n";
    let command = "echo $MCP_HTTP_TOKEN.$BASH_ENV.$AWS_REGION.$EDITOR; bash -c 'ls -d /'";
    let user = User::with_profile(profile);
    user.write("config.toml", "[shell_tool]\nenv_drop = [\"AWS_*\"]\n");
    let config = user.home.path().join("config.toml");
    let flags = ["--config", config.to_str().unwrap(), "--shell", "bash", "--deny", "rm"];
    assert_eq!(output(&mut user.start(&flags), command), "...ed\n/\n");
    let passed = format!(".{}/none..ed\nfooled\n", user.home.path().display());
    assert_eq!(output(&mut user.start(&flags[..4]), command), passed);
    user.write("config.toml", "[shell_tool]\nenv_pass = [\"AWS_*\"]\n");
    assert_eq!(output(&mut user.start(&flags), command), "..north.\n/\n");
}

#[test]
fn programs_and_the_shell_itself_are_found_on_the_new_path() {
    let user = User::with_profile("export PATH=\"$HOME/bin:$PATH\"\n");
    for (name, text) in
        [("frobnicate", "#!/bin/sh\n"), ("mysh", "#!/bin/sh\nshift\necho mysh: \"$1\"\n")]
    {
        user.write(&format!("bin/{name}"), text);
        let file = user.home.path().join("bin").join(name);
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    let told = user.start(&[]).tool("shell", json!({"command": "frobnicat"})).to_string();
    assert!(told.contains("frobnicate"), "{told}");
    assert_eq!(output(&mut user.start(&["--shell", "mysh"]), "ls"), "mysh: ls\n");
    let missing = user.start(&["--shell", "nosuchsh"]).call_raw(json!({"command": "ls"}));
    assert_eq!(missing["isError"], true);
    assert!(missing.to_string().contains("nosuchsh"), "{missing}");
}

#[test]
fn it_is_on_record_and_the_file_can_ask_for_it() {
    let user = User::with_profile("export GREETING=hello\n");
    user.write("config.toml", "[shell_tool]\nlogin_env = true\n");
    let state = support::state();
    let mut command = Command::new(MCPZ);
    command.args(["call", "execute_command", "command=echo $GREETING", "--config"]);
    command.arg(user.home.path().join("config.toml"));
    command.env("HOME", user.home.path()).env("SHELL", "/bin/bash");
    let output = command.env("XDG_STATE_HOME", state.path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello\n");
    let trail = std::fs::read_to_string(state.path().join("mcpz/audit.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(trail.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["tool"], &first["event"]),
        (&json!("login_env"), &json!("start")),
        "{first}"
    );
}
