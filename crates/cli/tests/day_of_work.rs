//! A day of ordinary work in a sandbox goes as it does without one, and nobody notices the sandbox.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Map, json};
use support::sandbox::{Place, tool};
use support::{Server, wait_until};

/// What is done in a fresh folder, one call after the other.
const STEPS: &[&str] = &[
    "git init -qb main && git config user.name Ann && git config user.email ann@example.org",
    "npm create -y --registry $NPM day",
    "npm install --registry $NPM daypack",
    "npm test --silent",
    "printf 'node_modules\\ntarget\\n.venv\\n' > .gitignore",
    "printf '[workspace]\\nresolver = \"3\"\\n' > Cargo.toml && cargo new --quiet --vcs none app",
    "cd app && cargo add --quiet daycrate --registry day",
    "cd app && echo '#[test] fn works() { assert_eq!(daycrate::day(), 7) }' >> src/main.rs && cargo test --quiet",
    "python3 -m venv .venv",
    ".venv/bin/pip install --quiet --disable-pip-version-check --index-url $SIMPLE daywheel",
    ".venv/bin/python -c 'import daywheel; assert daywheel.day == 7'",
    "git add -A && git commit -qm one",
    "git switch -qc feature && echo more >> notes && git add -A && git commit -qm two",
    "test \"$(cat .git/ran)\" = ran",
    "git switch -q main && git merge -q --no-edit feature && git branch -d feature",
    "echo unfinished >> notes && git stash -q && git stash pop -q && git commit -qam three",
    "git remote add origin https://example.org/x.git && git branch topic",
    "git worktree add -q tree topic && cd tree && touch leaf && git add leaf && git commit -qm four",
    "git worktree remove tree",
    "git -c protocol.file.allow=always submodule --quiet add $LIBRARY library && git commit -qm five",
    "git submodule --quiet update --init && test -e library/file",
    "git clean -fdxq && git status --short && git fsck",
];

/// Ran after this many steps, from outside: the user adds a hook.
const HOOK_AFTER: usize = 11;
const HOOK: &str = "#!/bin/sh\necho ran > \"$(git rev-parse --git-common-dir)/ran\"\n";

/// Something that goes on in the background until it is dropped.
struct Ongoing<T> {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Ongoing<T> {
    fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        Self { over, thread: Some(thread::spawn(move || work(&until))) }
    }

    fn end(mut self) -> T {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Notes all names that are ever at the top of a folder.
fn watch(folder: PathBuf) -> Ongoing<BTreeSet<String>> {
    Ongoing::start(move |over| {
        let mut seen = BTreeSet::new();
        while !over.load(Ordering::Relaxed) {
            let names = fs::read_dir(&folder).into_iter().flatten().flatten();
            seen.extend(names.map(|entry| entry.file_name().into_string().unwrap()));
            thread::sleep(Duration::from_millis(1));
        }
        seen
    })
}

/// Replaces files in a home again and again, as clients and editors do.
fn replace(home: PathBuf) -> Ongoing<usize> {
    Ongoing::start(move |over| {
        let mut times = 0;
        while !over.load(Ordering::Relaxed) {
            for name in [".claude.json", ".gitconfig", ".ssh/config"] {
                let (path, new) = (home.join(name), home.join(".new"));
                fs::write(&new, format!("# {times}\n")).unwrap();
                fs::rename(&new, &path).unwrap();
            }
            times += 1;
            thread::sleep(Duration::from_millis(50));
        }
        times
    })
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn registry() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/day_of_work/registry.py")
}

/// The variables of all steps.
fn variables(place: &Place, port: u16) -> Vec<(&'static str, String)> {
    let here = format!("http://127.0.0.1:{port}");
    vec![
        ("NPM", format!("{here}/npm/")),
        ("SIMPLE", format!("{here}/simple/")),
        ("CARGO_REGISTRIES_DAY_INDEX", format!("sparse+{here}/cargo/")),
        ("LIBRARY", place.home().join("library").display().to_string()),
    ]
}

/// A home with a repository to use, and files that will be replaced.
fn prepare(place: &Place) {
    place.write(".ssh/config", "");
    place.write("library/file", "");
    let library = place.home().join("library");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&library).args(["-c", "user.name=a", "-c", "user.email=b"]);
        assert!(command.args(arguments).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "zero"]);
}

fn add_hook(place: &Place) {
    let hook = place.work().join(".git/hooks/pre-commit");
    fs::write(&hook, HOOK).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// The same work without a sandbox: all names that are ever at the top of the folder, and those in the end.
fn work_outside(place: &Place) -> (BTreeSet<String>, Vec<String>) {
    let port = free_port();
    let mut registry = Reaped(
        Command::new("python3")
            .arg(registry())
            .arg(port.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    wait_until("the registry is ready", || TcpStream::connect(("127.0.0.1", port)).ok());
    let watched = watch(place.work());
    for (done, step) in STEPS.iter().enumerate() {
        if done == HOOK_AFTER {
            add_hook(place);
        }
        let mut command = Command::new("sh");
        command.args(["-c", step]).current_dir(place.work()).envs(variables(place, port));
        let output = in_home(&mut command, place).output().unwrap();
        assert!(output.status.success(), "{step}: {output:?}");
    }
    let _ = registry.0.kill();
    (watched.end(), place.left())
}

/// A process that does not outlive its test.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Programs find the place's home, and the toolchain of this one.
fn in_home<'a>(command: &'a mut Command, place: &Place) -> &'a mut Command {
    let toolchain = |name: &str, default: &str| {
        std::env::var_os(name).unwrap_or_else(|| {
            Path::new(&std::env::var_os("HOME").unwrap()).join(default).into_os_string()
        })
    };
    command.env("RUSTUP_HOME", toolchain("RUSTUP_HOME", ".rustup"));
    // Whatever they are told here is about the machine that runs the tests.
    let is_about_packages = |name: &str| {
        let name = name.to_lowercase();
        ["cargo_", "npm_", "pip_", "rustup_toolchain"].iter().any(|it| name.starts_with(it))
            || name.ends_with("_proxy")
    };
    for (name, _) in std::env::vars().filter(|(name, _)| is_about_packages(name)) {
        command.env_remove(name);
    }
    command.env("HOME", place.home());
    command
}

fn succeeds(server: &mut Server, place: &Place, port: u16, step: &str) {
    let variables = variables(place, port).into_iter();
    let environment: Map<_, _> = variables.map(|(name, it)| (name.to_owned(), it.into())).collect();
    let reply = server.call(json!({"command": step, "environment": environment, "timeout": 120}));
    assert_eq!(reply["return_code"], 0, "{step}: {reply}");
    assert!(reply["warnings"].is_null(), "{step}: {reply}");
}

#[test]
fn a_day_of_work_goes_as_it_does_without_a_sandbox() {
    let outside = Place::new();
    prepare(&outside);
    let (named, expected) = work_outside(&outside);

    let place = Place::new();
    prepare(&place);
    let (port, page) = (free_port(), free_port());
    let flags = ["--sandbox", "workspace", "--publish", &page.to_string()];
    let mut command = place.command(&flags, "");
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let mut server = Server::from_command(in_home(&mut command, &place));
    server.initialize("2025-11-25");
    let (watched, replaced) = (watch(place.work()), replace(place.home()));

    let serve = format!("python3 {} {port}", registry().display());
    let job = server.call(json!({"command": serve, "background": true}))["job_id"].clone();
    let ready = json!({"job_id": job, "wait_for": "text", "pattern": "ready"});
    assert_eq!(tool(&mut server, "read_job", ready)["matched"], "ready");
    let serve = format!("python3 -u -m http.server {page} --bind 127.0.0.1 --directory /tmp");
    server.call(json!({"command": format!("echo lasting > /tmp/x; {serve}"), "background": true}));
    for (done, step) in STEPS.iter().enumerate() {
        if done == HOOK_AFTER {
            add_hook(&place);
        }
        succeeds(&mut server, &place, port, step);
    }
    // What was served and written at the beginning is still there.
    succeeds(
        &mut server,
        &place,
        port,
        &format!("curl -sSf http://127.0.0.1:{page}/x && cat /tmp/x"),
    );
    let mut seen = TcpStream::connect(("127.0.0.1", page)).unwrap();
    std::io::Write::write_all(&mut seen, b"GET /x HTTP/1.0\r\n\r\n").unwrap();
    let text = std::io::read_to_string(seen).unwrap();
    assert!(text.ends_with("lasting\n"), "{text}");
    drop(server);
    assert!(replaced.end() > 10);
    assert_eq!(place.left(), expected);
    // Programs write some files under another name first, which is seen only by chance.
    let is_temporary = |name: &str| {
        let bare = name.trim_start_matches('.');
        named.iter().any(|known| bare.starts_with(known.trim_start_matches('.')))
    };
    let seen = watched.end();
    let extra: Vec<_> = seen.difference(&named).filter(|name| !is_temporary(name)).collect();
    assert_eq!(extra, Vec::<&String>::new());
}
