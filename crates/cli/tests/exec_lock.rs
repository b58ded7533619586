//! What the policy did not see coming is not executed: the kernel asks before every program.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use support::audit;
use support::sandbox::{Place, warnings};
use support::{MCPZ, Server, wait_until};
use tempfile::TempDir;

/// A server with a policy, whose records are in a folder.
fn server(state: &TempDir, policy: &str) -> Server {
    audit::start(state, &format!("[policy]\n{policy}\n"))
}

/// A program for an interpreter, in a file that the policy does not read.
fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Ways to execute a file, each of which prints a line if it does.
const WAYS: &str = r##"
import ctypes, os, subprocess, sys, threading
denied = "/usr/bin/id"
here = sys.argv[1]

def attempt(name, start):
    child = os.fork()
    if child == 0:
        try:
            start()
        except OSError as error:
            print(name, "failed", error.errno, flush=True)
        os._exit(9)
    os.waitpid(child, 0)

def copy(path, of=denied):
    with open(of, "rb") as source, open(path, "wb") as target:
        target.write(source.read())
    os.chmod(path, 0o755)
    return path

def linked(make, name):
    path = os.path.join(here, name)
    make(denied, path)
    return path

def memory_file():
    memory = os.memfd_create("x")
    os.write(memory, open(denied, "rb").read())
    return memory

def threaded():
    def start():
        try:
            subprocess.run([denied])
        except OSError as error:
            print("thread failed", error.errno, flush=True)
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

libc = ctypes.CDLL(None, use_errno=True)

def execveat():
    path = os.open(denied, os.O_RDONLY)
    argv = (ctypes.c_char_p * 2)(b"x", None)
    libc.syscall(322, path, b"", argv, None, 0x1000)
    raise OSError(ctypes.get_errno(), "execveat")

def x32():
    libc.syscall(0x40000000 | 520, denied.encode(), None, None)
    raise OSError(ctypes.get_errno(), "x32")

def in_32_bits():
    import mmap
    size, flags = 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, size, 7, flags, -1, 0)
    path = at + 512
    ctypes.memmove(path, denied.encode() + b"\0", len(denied) + 1)
    code = (b"\x53\xb8\x0b\x00\x00\x00\xbb" + path.to_bytes(4, "little")
            + b"\x31\xc9\x31\xd2\xcd\x80\x5b\xc3")
    ctypes.memmove(at, code, len(code))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
    raise OSError(-result, "int 0x80")

loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
attempt("path", lambda: os.execv(denied, ["x"]))
attempt("symlink", lambda: os.execv(linked(os.symlink, "soft"), ["x"]))
attempt("copy", lambda: os.execv(copy(os.path.join(here, "copied")), ["x"]))
attempt("memory", lambda: os.execve(memory_file(), ["x"], {}))
attempt("descriptor", lambda: os.execv("/proc/self/fd/%d" % os.open(denied, os.O_RDONLY), ["x"]))
attempt("loader", lambda: os.execv(loader, [loader, denied]))
attempt("copied loader", lambda: os.execv(copy(os.path.join(here, "loads"), loader), ["x", denied]))
attempt("execveat", execveat)
attempt("spawn", lambda: os._exit(os.waitpid(os.posix_spawn(denied, ["x"], {}), 0)[1] and 9))
attempt("thread", threaded)
attempt("hidden link", lambda: (os.symlink("/proc/self/exe", here + "/self"), os.execv(here + "/self", ["x"])))
if os.uname().machine == "x86_64":
    attempt("x32", x32)
    attempt("32 bits", in_32_bits)
print("allowed:", subprocess.run(["true"]).returncode)
"##;

#[test]
fn a_denied_program_is_not_executed_by_whatever_path_copy_or_call() {
    let folder = support::plain_folder();
    let ways = file(&folder, "ways.py", WAYS);
    let mut server = server(&folder, "deny = [\"id\"]");
    let command = format!("python3 {} {}", ways.display(), folder.path().display());
    let reply = server.run(&command);
    let output = reply["output"].as_str().unwrap();
    assert!(!output.contains("uid="), "{output}");
    for way in [
        "path",
        "symlink",
        "copy",
        "memory",
        "descriptor",
        "loader",
        "copied loader",
        "execveat",
        "spawn",
        "thread",
    ] {
        assert!(output.contains(&format!("{way} failed 13")), "{way}: {output}");
    }
    if cfg!(target_arch = "x86_64") {
        assert!(
            output.contains("x32 failed 13") && output.contains("32 bits failed 13"),
            "{output}"
        );
    }
    assert!(output.ends_with("allowed: 0\n"), "{output}");
    assert!(warnings(&reply).contains("the rule `id` denies it"), "{reply}");
}

#[test]
fn a_denied_program_is_not_run_in_place_of_a_script() {
    let folder = support::plain_folder();
    let script = file(&folder, "greet", "#!/usr/bin/id\n");
    let inner = file(&folder, "again", &format!("#!{}\n", script.display()));
    let mut server = server(&folder, "deny = [\"id\"]");
    for script in [script, inner] {
        let reply = server.run(&format!("{}", script.display()));
        assert!(!reply["output"].as_str().unwrap().contains("uid="), "{reply}");
        assert!(warnings(&reply).contains("the rule `id` denies it"), "{reply}");
    }
}

#[test]
fn a_pattern_denies_the_files_of_all_programs_that_it_matches() {
    let folder = support::plain_folder();
    let copy = folder.path().join("copy");
    std::fs::copy("/usr/bin/id", &copy).unwrap();
    let mut server = server(&folder, "deny = [\"id*\"]");
    let reply = server.run(&format!("{}", copy.display()));
    assert!(!reply["output"].as_str().unwrap().contains("uid="), "{reply}");
}

#[test]
fn a_denied_name_that_leads_to_another_program_denies_only_that_name() {
    let folder = support::plain_folder();
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/usr/bin/id", programs.join("whoisit")).unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[policy]\ndeny = [\"whoisit\"]\n").unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--config"]).arg(config);
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    assert!(server.run("id")["output"].as_str().unwrap().contains("uid="));
    let ways = file(&folder, "way.py", "import os\nos.execvp('whoisit', ['whoisit'])\n");
    let reply = server.run(&format!("python3 {}", ways.display()));
    assert!(!reply["output"].as_str().unwrap().contains("uid="), "{reply}");
}

#[test]
fn what_a_file_tells_an_allowed_program_to_run_is_not_run() {
    let folder = support::plain_folder();
    let here = folder.path().display();
    let policy = format!("allow = [\"git\", \"printf\", \"python3 --version\", \"{here}/id\"]");
    let mut server = server(&folder, &policy);
    let alias = |text: &str| {
        format!(
            "git init -q {here}/r; printf '[alias]\\n x = !{text}\\n' > {here}/r/.git/config; \
             git -C {here}/r x"
        )
    };
    for command in [
        // Out of the folder where git's own programs are.
        alias("/usr/lib/git-core/../../bin/id"),
        alias("/usr/bin/id"),
        // A program that is allowed with other arguments, or by another path.
        format!("python3 --version; {}", alias("python3 -m this")),
        format!("{here}/id; {}", alias("/usr/bin/id")),
    ] {
        let reply = server.run(&command);
        let output = reply["output"].as_str().unwrap();
        assert!(!output.contains("uid=") && !output.contains("Zen"), "{command}: {reply}");
        assert!(warnings(&reply).contains("was not allowed to execute"), "{command}: {reply}");
    }
    let reply = server.run("python3 --version");
    assert!(reply["output"].as_str().unwrap().starts_with("Python"), "{reply}");
}

#[test]
fn a_program_that_nobody_knows_executes_nothing_else_until_a_rule_says_so() {
    let folder = support::plain_folder();
    let tool = file(&folder, "mytool", "#!/bin/sh\necho begun; id -u; echo ended\n");
    let allow = format!("allow = [\"{}\"]", tool.display());
    let command = tool.display().to_string();
    let reply = server(&folder, &allow).run(&command);
    assert!(reply["output"].as_str().unwrap().contains("Permission denied"), "{reply}");
    let said = warnings(&reply);
    assert!(said.contains("[[policy.runs]] program = \"mytool\", may_run = [\"id\"]"), "{said}");
    assert!(said.contains("execute `/usr/bin/id -u`"), "{said}");
    for may_run in ["id", "*"] {
        let policy =
            format!("{allow}\n[[policy.runs]]\nprogram = \"mytool\"\nmay_run = [\"{may_run}\"]");
        let reply = server(&folder, &policy).run(&command);
        let output = reply["output"].as_str().unwrap();
        assert!(output.starts_with("begun\n") && output.ends_with("\nended\n"), "{reply}");
        assert!(!output.contains("denied"), "{reply}");
    }
}

#[test]
fn for_a_script_whose_interpreter_is_looked_up_the_rule_names_the_script() {
    let folder = support::plain_folder();
    for (name, text) in [
        ("run", "#!/usr/bin/env bash\nid -u\n"),
        ("run.pl", "#!/usr/bin/env perl\nexit system qw(id -u);\n"),
    ] {
        let command = file(&folder, name, text).display().to_string();
        let allow = format!("allow = [\"{command}\"]");
        let said = warnings(&server(&folder, &allow).run(&command));
        let told = format!("[[policy.runs]] program = \"{command}\", may_run = [\"");
        assert!(said.contains(&told), "{said}");
        let policy =
            format!("{allow}\n[[policy.runs]]\nprogram = \"{command}\"\nmay_run = [\"id\"]");
        let reply = server(&folder, &policy).run(&command);
        assert_eq!((&reply["return_code"], &*warnings(&reply)), (&json!(0), ""), "{reply}");
    }
}

#[test]
fn an_allowed_program_executes_what_the_command_names_and_what_it_needs_and_no_more() {
    let folder = support::plain_folder();
    std::fs::write(folder.path().join("a.txt"), "hello\n").unwrap();
    let mut server =
        server(&folder, "allow = [\"tar\", \"git\", \"find\", \"cat\", \"sh\", \"cd\", \"env\"]");
    let here = folder.path().display();
    for honest in [
        format!("cd {here}; tar czf a.tgz a.txt && tar tzf a.tgz"),
        format!("git init -q {here}/repository && git -C {here}/repository status"),
        format!("git clone -q {here}/repository {here}/clone"),
        format!("find {here} -name a.txt -exec cat {{}} +"),
        format!("sh -c 'env cat {here}/a.txt'"),
    ] {
        let reply = server.run(&honest);
        assert_eq!(reply["return_code"], 0, "{reply}");
        assert_eq!(warnings(&reply), "", "{reply}");
    }
    // A hook comes from a file that the policy does not read.
    let hook = folder.path().join("repository/.git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nid > /dev/null && touch ran\n").unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let commit = format!(
        "git -C {here}/repository -c user.name=a -c user.email=a@b commit --allow-empty -m x"
    );
    let reply = server.run(&commit);
    assert!(warnings(&reply).contains("pre-commit"), "{reply}");
    assert!(
        warnings(&reply).contains("program = \"git\", may_run = [\"*\"] lets `git`"),
        "{reply}"
    );
    assert!(!folder.path().join("repository/ran").exists());
}

#[test]
fn build_tools_and_interpreters_run_whatever_is_not_denied() {
    let folder = support::plain_folder();
    // The second command has lost its parent by the time it executes something.
    let makefile = "all:\n\t@id -u\n\t@sh -c '(sleep 0.2; id -g > group) &'\n\t@uname || true\n";
    std::fs::write(folder.path().join("Makefile"), makefile).unwrap();
    let mut server = server(&folder, "allow = [\"make\", \"python3\"]\ndeny = [\"uname\"]");
    let reply = server.run(&format!("make -C {}", folder.path().display()));
    let output = reply["output"].as_str().unwrap();
    assert!(
        output.contains("\n0\n") || output.lines().any(|line| line.parse::<u32>().is_ok()),
        "{output}"
    );
    assert!(warnings(&reply).contains("the rule `uname` denies it"), "{reply}");
    let group = folder.path().join("group");
    wait_until("what was left running has executed it", || {
        std::fs::read_to_string(&group).ok().filter(|text| !text.is_empty())
    });
}

#[test]
fn a_call_that_fails_gains_nothing() {
    let folder = support::plain_folder();
    let text = "#!/usr/bin/python3\nimport os\n\
        try:\n    os.execv('/usr/bin/make', ['x' * 3000000])\nexcept OSError: pass\n\
        try:\n    os.execv('/usr/bin/id', ['id'])\nexcept OSError as e: print('refused', e.errno)\n";
    let tool = file(&folder, "tool.py", text);
    let mut server = server(&folder, &format!("allow = [\"{}\", \"make\"]", tool.display()));
    let reply = server.run(&format!("{}; make --version > /dev/null", tool.display()));
    assert_eq!(reply["output"], "refused 13\n", "{reply}");
}

#[test]
fn jobs_terminals_sessions_arguments_and_detached_jobs_are_held_as_well() {
    let folder = support::plain_folder();
    let tool = file(&folder, "mytool", "#!/bin/sh\nid -u; echo ended\n");
    let tool = tool.display().to_string();
    let mut server = server(&folder, &format!("allow = [\"{tool}\", \"ls\", \"echo\"]"));
    let refused = |reply: &Value| {
        assert!(warnings(reply).contains("not allowed to execute `/usr/bin/id"), "{reply}");
    };
    let session = |server: &mut Server, command: &str| {
        server.call(json!({"command": command, "session": "one"}))
    };
    assert_eq!(session(&mut server, "ls -d /")["output"], "/\n");
    refused(&session(&mut server, &tool));
    assert_eq!(warnings(&session(&mut server, "echo one; ls -d /")), "");
    let reply = server.tool("shell_exec", json!({"cmd": tool, "args": ["x"]}));
    assert!(reply.to_string().contains("not allowed to execute"), "{reply}");
    for how in ["background", "detach", "tty"] {
        let job = server.call(json!({"command": tool, how: true}));
        let output = match job["job_id"].is_string() {
            true => server.tool("read_job", json!({"job_id": job["job_id"], "wait_for": "exit"})),
            false => json!({"structuredContent": job}),
        };
        let output = &output["structuredContent"]["output"];
        let output = format!("{}{}", job["output"].as_str().unwrap_or_default(), output);
        assert!(output.contains("Permission denied"), "{how}: {output}");
    }
}

#[test]
fn what_is_typed_may_be_executed_and_nothing_else() {
    let folder = support::plain_folder();
    let tool = file(&folder, "mytool", "#!/bin/sh\nid -u; echo ended\n");
    let tool = tool.display().to_string();
    let mut server = server(&folder, &format!("allow = [\"{tool}\", \"ls\", \"bash\"]"));
    let job = server.call(json!({"command": "bash", "tty": true, "background": true}));
    let id = &job["job_id"];
    let mut typed = |text: &str, pattern: &str| {
        let typed = json!({"job_id": id, "text": text, "wait_for": "text", "pattern": pattern, "timeout": 60});
        server.tool("write_job", typed)["structuredContent"].clone()
    };
    let reply = typed("ls -d /usr\n", "(?m)^/usr");
    assert!(reply["matched"].is_string(), "{reply}");
    let reply = typed(&format!("{tool}\n"), "Permission denied");
    assert!(reply["matched"].is_string(), "{reply}");
}

#[test]
fn a_job_says_while_it_runs_what_was_refused() {
    let state = support::state();
    let mut server = server(&state, "deny = [\"id\"]");
    let folder = tempfile::tempdir().unwrap();
    let script = file(&folder, "job.sh", "#!/bin/sh\nid\necho done\nexec sleep 300\n");
    let command = format!("sh {}", script.display());
    let reply = server.call(json!({"command": command, "background": true}));
    let wait = json!({"job_id": reply["job_id"], "wait_for": "text", "pattern": "done"});
    let reply = server.tool("read_job", wait);
    assert!(warnings(&reply["structuredContent"]).contains("the rule `id` denies it"), "{reply}");
    let job = json!({"job_id": reply["structuredContent"]["job_id"]});
    let reply = server.tool("stop_job", job);
    assert!(warnings(&reply["structuredContent"]).contains("the rule `id` denies it"), "{reply}");
}

#[test]
fn the_trail_says_who_tried() {
    let folder = support::plain_folder();
    let tool = file(&folder, "mytool", "#!/bin/sh\nid -u\n");
    let mut server = server(&folder, &format!("allow = [\"{}\"]", tool.display()));
    server.run(&format!("{} first second", tool.display()));
    let records = audit::settled(&folder);
    let end = records.iter().find(|record| record["event"] == "end").unwrap();
    let refused = end["refused"][0].as_str().unwrap();
    for part in ["`mytool`", "mytool first second", "/usr/bin/id -u"] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn a_thousand_programs_at_once_are_all_answered() {
    let folder = support::plain_folder();
    let mut server =
        server(&folder, "allow = [\"seq\", \"xargs\", \"expr\", \"sort\", \"md5sum\"]");
    let reply = server.call(json!({
        "command": "seq 1000 | xargs -P 100 -n 1 expr 1000 + | sort -n | md5sum; seq 1001 2000 | md5sum",
        "timeout": 120,
    }));
    let output = reply["output"].as_str().unwrap();
    let sums: Vec<_> = output.lines().collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{reply}");
}

#[test]
fn without_rules_there_is_no_filter() {
    let folder = support::plain_folder();
    let filters = |policy: &str| {
        let reply = server(&folder, policy).run("grep Seccomp_filters /proc/self/status");
        reply["output"].as_str().unwrap().trim().to_owned()
    };
    let none = filters("");
    assert_eq!(filters("deny = [\"id\"]\nlock = false"), none);
    assert_ne!(filters("deny = [\"id\"]"), none);
}

#[test]
fn it_holds_in_a_sandbox_and_outside_for_root_and_for_others() {
    for place in [Place::new(), Place::ordinary()] {
        let tool = place.write("work/mytool", "#!/bin/sh\nid -u; echo ended\n");
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
        let config = "[policy]\nallow = [\"./mytool\", \"ls\"]\n";
        for flags in [&["--sandbox", "workspace"][..], &[]] {
            let mut server = place.start(flags, config);
            assert_eq!(server.run("ls -d /")["output"], "/\n");
            let reply = server.run("./mytool");
            assert!(warnings(&reply).contains("not allowed to execute `/usr/bin/id"), "{reply}");
        }
    }
}
