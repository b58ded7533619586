//! A process may execute what the program may that it really is, whatever it, its parent or its command line became.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::sandbox::warnings;
use support::{MCPZ, Server, audit, wait_until};
use tempfile::TempDir;

/// The beginning of every program here, which may not execute anything by itself, while `python3` may.
const BEGINNING: &str = r#"#!/usr/bin/python3
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
free = os.path.join(os.path.dirname(os.path.abspath(__file__)), "free.py")

def until(holds):
    while not holds():
        time.sleep(0.01)

def line(process):
    return open("/proc/%d/cmdline" % process, "rb").read()

def attempt():
    try:
        os.execv("/usr/bin/id", ["id"])
    except OSError as error:
        print("refused", error.errno, flush=True)
    os._exit(0)

# A command line that is as long as that of this program.
others = ["python3", "--version", "x" * (len(line(os.getpid())) - len("python3 --version ") - 1)]

def take_line_of_others():
    start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45]
    with open("/proc/self/mem", "r+b", 0) as memory:
        memory.seek(int(start))
        memory.write("\0".join(others).encode())

# What holds the other end lives for as long as someone can still try.
end, alive = os.pipe()
os.set_inheritable(end, True)
"#;

/// A program that may execute anything, and waits for the end of the descriptor in its argument.
const FREE: &str = "import os, sys\nos.read(int(sys.argv[1]), 1)\n";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(support::plain_folder());
        place.file("free.py", FREE);
        place
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn server(&self, allow: &[&str]) -> Server {
        audit::start(&self.0, &format!("[policy]\nallow = {allow:?}\n"))
    }

    /// Runs a program that may execute nothing but Python, which may execute anything.
    fn run(&self, program: &str) -> Value {
        let tool = self.file("tool", &format!("{BEGINNING}{program}"));
        let tool = tool.display().to_string();
        let mut server = self.server(&[&tool, "python3"]);
        server.run(&format!("{tool}; python3 --version > /dev/null"))
    }
}

fn is_refused(reply: &Value) {
    assert_eq!(reply["output"], "refused 13\n", "{reply}");
    assert!(warnings(reply).contains("was not allowed to execute `/usr/bin/id`"), "{reply}");
}

#[test]
fn a_child_does_not_become_what_its_parent_executes_later() {
    is_refused(&Place::new().run(
        r#"
if os.fork() == 0:
    os.close(end)
    until(lambda: b"free.py" in line(os.getppid()))
    attempt()
os.execv("/usr/bin/python3", ["python3", free, str(end)])
"#,
    ));
}

#[test]
fn an_orphan_does_not_become_what_adopts_it() {
    is_refused(&Place::new().run(
        r#"
first = os.getpid()
libc.prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    os.close(end)
    until(lambda: b"free.py" in line(first))
    if os.fork() == 0:
        until(lambda: os.getppid() == first)
        attempt()
    os._exit(0)
os.execv("/usr/bin/python3", ["python3", free, str(end)])
"#,
    ));
}

#[test]
fn a_command_line_that_a_process_writes_itself_gains_nothing() {
    let program = r#"
sys.stdout.flush()
if os.fork() == 0:
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    os.execv("/usr/bin/python3", others)
os.wait()
take_line_of_others()
if os.fork() == 0:
    os.close(end)
    first = os.getpid()
    if os.fork() == 0:
        until(lambda: os.getppid() != first)
        attempt()
    os._exit(0)
os.close(alive)
os.read(end, 1)
"#;
    is_refused(&Place::new().run(program));
}

#[test]
fn a_call_that_fails_gains_nothing_even_if_the_command_line_says_that_it_has_succeeded() {
    let program = r#"
try:
    os.execve("/usr/bin/python3", others, {"A": "x" * 200000})
except OSError:
    pass
take_line_of_others()
attempt()
"#;
    is_refused(&Place::new().run(program));
}

#[test]
fn a_process_cannot_change_what_the_kernel_says_about_its_memory() {
    let program = r#"
for option in range(1, 16):
    ctypes.set_errno(0)
    libc.prctl(35, option, 0, 0, 0)
    if ctypes.get_errno() != 13:
        print("changed", option, ctypes.get_errno())
attempt()
"#;
    is_refused(&Place::new().run(program));
}

#[test]
fn an_image_that_others_can_have_as_well_gains_nothing() {
    let place = Place::new();
    let probe = r#"import os, sys
print(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45], flush=True)
os.waitpid(os.posix_spawn("/usr/bin/true", ["true"], {}), 0)
"#;
    place.file("probe.py", probe);
    // Without random places, programs with texts of the same size look the same.
    is_refused(&place.run(
        r#"
if len(sys.argv) > 1 and sys.argv[1][0] == "m":
    print(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45], flush=True)
    os._exit(0)
if len(sys.argv) > 1:
    attempt()
libc.personality(0x0040000)

def start_of_arguments(words):
    read, write = os.pipe()
    if os.fork() == 0:
        os.dup2(write, 1)
        os.execv(words[0], words)
    os.wait()
    return int(os.read(read, 100))

probe = ["/usr/bin/python3", free.replace("free", "probe")]
own = start_of_arguments([sys.argv[0], "m" * 1000])
pad = start_of_arguments(probe + [""]) - own
if start_of_arguments(probe + ["x" * pad]) != own:
    print("not the same", flush=True)
os.execv(sys.argv[0], [sys.argv[0], "g" * 1000])
"#,
    ));
}

#[test]
fn what_a_build_tool_leaves_running_may_still_run_whatever_the_tool_may() {
    let place = Place::new();
    let daemon = r#"import os, sys
if os.fork() == 0:
    first = os.getpid()
    if os.fork() == 0:
        while os.getppid() == first: pass
        os.execv("/bin/sh", ["sh", "-c", "id -u > " + sys.argv[1]])
    os._exit(0)
"#;
    let daemon = place.file("daemon.py", daemon);
    let results = ["one", "two", "three"].map(|name| place.0.path().join(name));
    let [one, two, three] = results.each_ref().map(|path| path.display());
    let makefile = format!(
        "all:\n\t@sh -c '(while [ -d /proc/$$$$ ]; do :; done; id -u > {one}; id -g >> {one}) &'\n\
         \t@id -u > {two} &\n\t@python3 {} {three}\n",
        daemon.display()
    );
    place.file("Makefile", &makefile);
    let mut server = place.server(&["make", "sh"]);
    // Two shells with the same file: this one may run nothing else, those of make may run anything.
    let reply = server.run(&format!("sh -c 'make -C {}; true'", place.0.path().display()));
    assert_eq!(warnings(&reply), "", "{reply}");
    for path in results {
        wait_until("what was left running has executed it", || {
            std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        });
    }
}

#[test]
fn a_program_that_is_run_without_a_shell_may_run_whatever_it_may_from_its_first_moment() {
    let place = Place::new();
    place.file("Makefile", "all:\n\t@id -u\n");
    let mut server = place.server(&["make"]);
    let folder = place.0.path().display().to_string();
    for _ in 0..50 {
        let call = json!({"command": "make", "args": ["-s", "-C", folder]});
        let reply = server.tool("execute", call);
        assert_eq!(reply["structuredContent"]["exit_code"], 0, "{reply}");
    }
}

#[test]
fn what_a_rule_lets_a_shell_run_is_not_for_the_shell_of_the_command() {
    let place = Place::new();
    let tool = place.file("tool", &format!("{BEGINNING}attempt()\n")).display().to_string();
    let script = format!("bash {}", place.file("ok.sh", "id -u\n").display());
    let config = format!(
        "[shell_tool]\nshell = \"bash\"\n[policy]\nallow = {:?}\n[[policy.runs]]\nprogram = \"bash\"\n\
         may_run = [\"*\"]\n",
        [&tool, &script]
    );
    let mut server = audit::start(&place.0, &config);
    let own = rustix::process::getuid().as_raw();
    assert_eq!(server.run(&script)["output"], format!("{own}\n"));
    let reply = server.run(&format!("{tool}; {script}"));
    assert_eq!(reply["output"], format!("refused 13\n{own}\n"), "{reply}");
}

#[test]
fn a_program_that_is_run_without_a_shell_is_the_one_that_was_judged() {
    let place = Place::new();
    let tool = place.file("x/ls", "#!/bin/sh\necho another\n");
    let config = "[policy]\nallow = [\"ls\", \"PATH=*\"]\n";
    let mut server = audit::start(&place.0, config);
    let path = tool.parent().unwrap().display().to_string();
    let arguments = json!({"cmd": "ls", "args": ["-d", "/"], "env": {"PATH": path}});
    let other = server.tool("shell_exec", arguments).to_string();
    assert!(!other.contains("another"), "{other}");
    let own = server.tool("shell_exec", json!({"cmd": "ls", "args": ["-d", "/"]}));
    assert_eq!(own["structuredContent"]["exit_code"], 0, "{own}");
}

#[test]
fn what_cannot_be_executed_does_not_stand_in_for_another_file() {
    let place = Place::new();
    let plain = place.file("plain/tool", "#!/bin/sh\necho own\n");
    let other = place.file("x/tool", "#!/bin/sh\necho another\n");
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
    let config = place.0.path().join("config.toml");
    std::fs::write(&config, "[policy]\nallow = [\"tool\", \"PATH=*\"]\n").unwrap();
    let folder = |file: &Path| file.parent().unwrap().display().to_string();
    let path = format!("{}:/usr/bin:/bin", folder(&plain));
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--tools", "all", "--config"]).arg(config).env("PATH", path);
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    let path = format!("{}:{}", folder(&plain), folder(&other));
    let call = json!({"cmd": "tool", "args": [], "env": {"PATH": path}});
    let reply = server.tool("shell_exec", call.clone()).to_string();
    assert!(!reply.contains("another"), "{reply}");
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o755)).unwrap();
    let reply = server.tool("shell_exec", call).to_string();
    assert!(reply.contains("own"), "{reply}");
}

#[test]
fn a_script_whose_interpreter_is_looked_up_needs_no_shell() {
    let place = Place::new();
    let script = place.file("run", "#!/usr/bin/env perl\nprint \"own\\n\";\nexec 'id';\n");
    let script = script.display().to_string();
    let reply = place.server(&[&script]).tool("shell_exec", json!({"cmd": script, "args": []}));
    let said = reply["structuredContent"]["stdout_chunk"].as_str();
    assert_eq!(said, Some("own\n"), "{reply}");
}

#[test]
fn an_interpreter_is_not_another_file_wherever_a_command_goes() {
    let place = Place::new();
    place.file("bin/interp", "#!/bin/sh\necho own\n");
    place.file("other/bin/interp", "#!/bin/sh\necho another\n");
    let script = place.file("run", "#!bin/interp\n").display().to_string();
    let own = place.file("own", "#!/proc/self/cwd/bin/interp\n").display().to_string();
    let mut server = place.server(&[&script, &own]);
    let folder = place.0.path().join("other");
    for script in [script, own] {
        let reply = server.call(json!({"command": script, "working_directory": folder}));
        assert!(!reply["output"].as_str().unwrap().contains("another"), "{reply}");
        let call = json!({"cmd": script, "args": [], "cwd": folder});
        let reply = server.tool("shell_exec", call).to_string();
        assert!(!reply.contains("another"), "{reply}");
    }
}
