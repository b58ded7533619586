//! The work people do goes on inside a sandbox, and each owner has a sandbox of their own.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::http::HttpServer;
use support::sandbox::{Place, fails, tool, warnings, works};
use support::{MCPZ, Server};

const COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -q";

#[test]
fn a_commit_is_made_in_a_repository_that_is_there() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    let mut server = place.workspace();
    works(&mut server, &format!("echo x > file && git add -A && {COMMIT} -m one"));
    works(&mut server, "git checkout -qb other && git gc -q && git status");
    assert_eq!(place.git(&["show", "--format=%s", "--name-only"]), "one\n\nfile\n");
    drop(server);
    assert_eq!(place.left(), [".git", "file"]);
}

#[test]
fn a_program_that_may_not_trace_is_explained() {
    let place = Place::new();
    let mut server = place.workspace();
    let trace = "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True); \
                 sys.exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else f'ptrace: {os.strerror(ctypes.get_errno())}')";
    let refused = fails(&mut server, &format!("python3 -c \"{trace}\""));
    assert!(warnings(&refused).contains("processes cannot trace each other"), "{refused}");
}

#[test]
fn harmless_settings_of_git_are_changed_and_no_others() {
    let place = Place::new();
    place.git(&["init", "-qb", "main"]);
    place.git(&["config", "alias.one", "!echo one"]);
    for config in ["", "[policy]\ndeny = [\"curl\"]\n"] {
        let mut server = place.start(&["--sandbox", "workspace"], config);
        works(&mut server, "git config user.name Ann && git config user.email a@b.c");
        works(&mut server, "git commit -q --allow-empty -m one && git switch -qC two");
        works(&mut server, "git branch -q --set-upstream-to=main && git config --unset user.email");
        works(&mut server, "cd .git && git remote add origin https://example.org/x");
        works(&mut server, "git remote remove origin && test ! -e .git/config.lock");
        let expected = place.git(&["config", "--local", "--list"]);
        let text = fs::read(place.work().join(".git/config")).unwrap();
        for command in [
            "git config core.pager evil",
            "git config alias.one '!echo two'",
            "git config --unset alias.one",
            "git remote add evil 'ext::sh -c evil'",
            "printf '[user]\\n\\tname = x\\n' > .git/x && mv .git/x .git/config",
            "printf '' > .git/x && mv .git/x .git/config",
            "mv .git/HEAD .git/config",
        ] {
            let refused = server.run(command);
            assert_ne!(refused["return_code"], 0, "{refused}");
            let is_judged = refused["return_code"] == -1;
            assert!(is_judged || warnings(&refused).contains("`--unprotect .git`"), "{refused}");
            assert_eq!(fs::read(place.work().join(".git/config")).unwrap(), text, "{command}");
        }
        assert!(expected.contains("alias.one=!echo one\nuser.name=Ann\n"), "{expected}");
    }
}

#[test]
fn a_repository_that_is_made_works_and_runs_nothing() {
    let place = Place::new();
    let mut server = place.workspace();
    works(
        &mut server,
        "git init -qb main && git config user.name Ann && git config user.email a@b.c",
    );
    works(&mut server, "git remote add origin https://example.org/x && touch file && git add -A");
    works(&mut server, "git commit -qm one && git switch -qc two && git worktree add -q tree main");
    let before = fs::read_to_string(place.work().join(".git/config")).unwrap();
    let configured = server.run("git config core.pager evil");
    assert!(warnings(&configured).contains("was put back"), "{configured}");
    assert_eq!(fs::read_to_string(place.work().join(".git/config")).unwrap(), before);
    // What comes from outside while nothing runs is the user's.
    place.git(&["config", "alias.one", "!echo one"]);
    place.write("work/.git/hooks/pre-commit", "#!/bin/sh\ntouch ran\n");
    let hook = place.work().join(".git/hooks/pre-commit");
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    works(&mut server, "git config user.name Bob && git commit -q --allow-empty -m x && rm ran");
    assert_eq!(works(&mut server, "git one"), "one\n");
    let changed = fails(&mut server, "echo evil >> .git/hooks/pre-commit");
    assert!(warnings(&changed).contains("pre-commit is write-protected"), "{changed}");
    drop(server);
    assert_eq!(place.left(), [".git", "file", "tree"]);
}

#[test]
fn hooks_in_another_folder_are_protected() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.git(&["config", "core.hooksPath", "tools/hooks"]);
    place.write("work/tools/hooks/pre-commit", "#!/bin/sh\n");
    let mut server = place.workspace();
    works(&mut server, "touch tools/other");
    fails(&mut server, "echo evil >> tools/hooks/pre-commit");
    fails(&mut server, "mv tools/hooks tools/old");
    fails(&mut server, "mv tools old");
}

#[test]
fn a_folder_below_its_repository_can_commit() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.write("work/a/file", "");
    let mut command = place.command(&["--sandbox", "workspace"], "");
    let mut server = Server::from_command(command.current_dir(place.work().join("a")));
    server.initialize("2025-11-25");
    works(&mut server, &format!("git add . && {COMMIT} -m one && git switch -qc two"));
    works(&mut server, "echo x > file && git stash -q && git stash pop -q");
    fails(&mut server, "echo x > ../.git/hooks/pre-commit");
    fails(&mut server, "echo x >> ../.git/config");
    fails(&mut server, "echo x > ../other");
    assert_eq!(place.git(&["log", "--format=%s"]), "one\n");
}

#[test]
fn a_work_tree_elsewhere_can_commit_if_its_repository_knows_it() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.git(&["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m0"]);
    place.git(&["worktree", "add", "-q", "../tree"]);
    let start = |folder: &str| {
        let mut command = place.command(&["--sandbox", "workspace"], "");
        let mut server = Server::from_command(command.current_dir(place.home().join(folder)));
        server.initialize("2025-11-25");
        server
    };
    let mut server = start("tree");
    works(&mut server, &format!("touch x && git add x && {COMMIT} -m one"));
    fails(&mut server, "echo x > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"");
    drop(server);
    // A file that a command could have written leads to a repository that does not lead back.
    place.write("other/.git", &format!("gitdir: {}", place.work().join(".git").display()));
    let mut server = start("other");
    fails(&mut server, &format!("git status && {COMMIT} --allow-empty -m evil"));
}

#[test]
fn programs_are_compiled() {
    let place = Place::new();
    place.write("work/a.c", "int main(void) { return 0; }");
    place.write("work/Makefile", "all: x y z\nx y z: a.c\n\tcc $< -o $@ && ./$@\n");
    let manifest = "[package]\nname = \"a\"\nedition = \"2024\"\n[workspace]\n";
    place.write("work/Cargo.toml", manifest);
    place.write("work/src/lib.rs", "#[test]\nfn works() {}\n");
    let mut server = place.workspace();
    works(&mut server, "make -j4");
    let tests = works(&mut server, "unset CARGO_TARGET_DIR; cargo test --lib --offline");
    assert!(tests.contains("1 passed"), "{tests}");
}

#[test]
fn packages_are_tested_by_npm_if_it_is_there() {
    if Command::new("npm").arg("--version").output().is_err() {
        return;
    }
    let place = Place::new();
    place.write(".npmrc", "//registry.npmjs.org/:_authToken=secret\n");
    place.write("work/package.json", "{\"scripts\": {\"test\": \"node test.js\"}}");
    place.write("work/test.js", "require('fs').writeFileSync('result', 'fine')");
    let mut server = place.start_at_home(&["--sandbox", "workspace"], "");
    works(&mut server, "npm test && cat result");
}

#[test]
fn an_environment_for_python_is_made() {
    let place = Place::new();
    let mut server = place.workspace();
    let made = "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'";
    let prefix = works(&mut server, made);
    assert_eq!(prefix.trim(), place.work().join("v").to_str().unwrap());
}

#[test]
fn work_goes_on_for_somebody_ordinary_too() {
    let place = Place::ordinary();
    let mut server = place.workspace();
    works(&mut server, "echo x > file && cat file && echo y > /tmp/y && cat /tmp/y");
    works(&mut server, "mkdir r && cd r && git init -q && touch f && git add f");
    works(&mut server, &format!("cd r && {COMMIT} -m one"));
    assert_ne!(works(&mut server, "id -u").trim(), "0");
}

const SERVE: &str = "python3 -u -m http.server --bind 127.0.0.1 0";

/// Asks for the port in the first line that such a server prints.
fn wait_for_port(job: &Value) -> Value {
    json!({"job_id": job, "wait_for": "text", "pattern": "port \\d+", "cursor": "bytes:0"})
}

fn port(told: &Value) -> u16 {
    let (_, port) = told["matched"].as_str().unwrap().split_once(" port ").unwrap();
    port.split(' ').next().unwrap().parse().unwrap()
}

/// Succeeds if a server is there.
fn reach(port: u16) -> String {
    format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\"")
}

#[test]
fn a_server_is_reached_by_the_next_command_and_not_from_outside() {
    for place in [Place::new(), Place::ordinary()] {
        let mut server = place.workspace();
        let job = server.call(json!({"command": SERVE, "background": true}))["job_id"].clone();
        let port = port(&tool(&mut server, "read_job", wait_for_port(&job)));
        works(&mut server, &reach(port));
        let ready = json!({"job_id": job, "wait_for": "port", "port": port, "timeout": 10});
        let told = tool(&mut server, "read_job", ready);
        assert!(told["timed_out"].is_null(), "{told}");
        let other = json!({"job_id": job, "wait_for": "port", "port": 1, "timeout": 0.2});
        assert_eq!(tool(&mut server, "read_job", other)["timed_out"], true);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
        assert_eq!(tool(&mut server, "stop_job", json!({"job_id": job}))["survivors"], 0);
        fails(&mut server, &reach(port));
    }
}

#[test]
fn owners_share_neither_processes_nor_temporary_files_nor_loopback() {
    let place = Place::new();
    let tokens = "[http.tokens]\nada = \"ada-0123456789abcdef\"\nbob = \"bob-0123456789abcdef\"\n";
    let mut command = Command::new(MCPZ);
    command.current_dir(place.work());
    let server = HttpServer::start_command(&mut command, &["--sandbox", "workspace"], tokens);
    let ask = |who: &str, name: &str, arguments: Value| {
        let answer = server.tool_by(&format!("{who}-0123456789abcdef"), name, arguments);
        answer["structuredContent"].clone()
    };
    let run = |who: &str, command: &str| ask(who, "execute_command", json!({"command": command}));
    let job = ask("ada", "execute_command", json!({"command": SERVE, "background": true}));
    let port = port(&ask("ada", "read_job", wait_for_port(&job["job_id"])));
    assert_eq!(run("ada", "echo hers > /tmp/note; cat /tmp/note")["output"], "hers\n");
    let sees = "grep -aqs 'http[.]server' /proc/[0-9]*/cmdline";
    for command in ["cat /tmp/note", &reach(port), sees] {
        assert_eq!(run("ada", command)["return_code"], 0, "{command}");
        assert!(run("bob", command)["return_code"].as_i64().unwrap() > 0, "{command}");
    }
    // What they work in is the same folder.
    assert_eq!(run("ada", "echo shared > file")["return_code"], 0);
    assert_eq!(run("bob", "cat file")["output"], "shared\n");
}

/// Ends the load when it is dropped, also when a test fails.
struct Rest<'a>(&'a AtomicBool);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_sandbox_is_made_while_sockets_come_and_go() {
    let place = Place::new();
    let busy = AtomicBool::new(true);
    std::thread::scope(|scope| {
        // One of them is always gone between the moment it is found and the one it is covered.
        for who in 1..=24 {
            let (home, busy) = (place.home(), &busy);
            scope.spawn(move || {
                for number in (0..).take_while(|_: &u32| busy.load(Ordering::Relaxed)) {
                    let path = home.join(format!("{who}-{number}.sock"));
                    let _bound = UnixListener::bind(&path).unwrap();
                    std::thread::sleep(Duration::from_millis(who));
                    fs::remove_file(&path).unwrap();
                }
            });
        }
        let _rest = Rest(&busy);
        for _ in 0..3 {
            assert_eq!(works(&mut place.workspace(), "echo made"), "made\n");
        }
    });
}

#[test]
fn what_comes_and_goes_elsewhere_does_not_take_a_sandbox_away() {
    let place = Place::new();
    let sockets = tempfile::tempdir().unwrap();
    let elsewhere = [sockets.path().join("a"), place.home().join("b")];
    let bound = elsewhere.clone().map(|it| UnixListener::bind(it).unwrap());
    let mut server = place.workspace();
    works(&mut server, "echo kept > /tmp/note");
    drop(bound);
    elsewhere.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(works(&mut server, "cat /tmp/note"), "kept\n");
}
