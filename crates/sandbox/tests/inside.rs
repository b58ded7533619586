//! What works inside a sandbox, and what a command learns of the machine.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder outside of `/tmp`, which is private in a sandbox. The checkout may be in `/tmp`, so root uses another
/// place.
fn folder() -> TempDir {
    let root = rustix::process::geteuid().is_root();
    let places = ["/srv", "/opt", "/var/lib"].map(Path::new).into_iter();
    let base = match places.filter(|_| root).find(|place| place.is_dir()) {
        Some(place) => place.to_owned(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/inside"),
    };
    fs::create_dir_all(&base).unwrap();
    TempDir::new_in(base.canonicalize().unwrap()).unwrap()
}

fn inside(folder: &Path, options: &[&str], script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcpz-inside"))
        .args(options)
        .args(["sh", "-c", script])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn works(folder: &Path, script: &str) -> String {
    let output = inside(folder, &[], script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_commit_is_made_and_nothing_else_is_left_behind() {
    let folder = folder();
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(folder.path()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q"]);
    let who = "git -c user.name=a -c user.email=a@b";
    works(folder.path(), &format!("echo x > file && git add -A && {who} commit -qm one"));
    works(folder.path(), "git checkout -qb other && git gc -q && git status");
    assert_eq!(git(&["show", "--format=%s", "--name-only"]), "one\n\nfile\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_program_is_compiled_by_many_processes() {
    let folder = folder();
    fs::write(folder.path().join("a.c"), "int main(void) { return 0; }").unwrap();
    fs::write(folder.path().join("Makefile"), "all: x y z\nx y z: a.c\n\tcc $< -o $@ && ./$@\n")
        .unwrap();
    works(folder.path(), "make -j4");
}

#[test]
fn a_crate_is_built_and_tested() {
    let folder = folder();
    let manifest = "[package]\nname = \"a\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/lib.rs"), "#[test]\nfn works() {}\n").unwrap();
    works(folder.path(), "unset CARGO_TARGET_DIR; cargo test -q --offline");
}

#[test]
fn a_server_is_reached_on_its_own_loopback() {
    let folder = folder();
    let script = "python3 -c \"
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
print(client.getpeername()[0])\"";
    assert_eq!(works(folder.path(), script), "127.0.0.1\n");
}

#[test]
fn processes_talk_to_each_other_by_sockets_and_shared_memory() {
    let folder = folder();
    let script = "python3 -c \"
import multiprocessing
manager = multiprocessing.Manager()
shared = manager.dict(a=1)
queue = multiprocessing.Queue()
queue.put(shared['a'])
print(queue.get())\"";
    assert_eq!(works(folder.path(), script), "1\n");
}

#[test]
fn what_is_temporary_is_private_and_large_enough() {
    let folder = folder();
    let script =
        "head -c 9000000 /dev/zero > $TMPDIR/f && mktemp && echo x > /var/tmp/f && ls -A /run";
    assert!(works(folder.path(), script).ends_with("\nmcpz\n"));
}

#[test]
fn a_list_of_processes_does_not_tell_what_is_hidden() {
    let folder = folder();
    let line = works(folder.path(), "tr '\\0' ' ' < /proc/1/cmdline");
    assert!(line.starts_with("bwrap --args ") && !line.contains("--tmpfs"), "{line}");
}

#[test]
fn restrictions_alone_allow_reading_and_no_sockets() {
    let (folder, tmp) = (folder(), folder());
    let tmp = tmp.path().to_str().unwrap();
    let hidden = folder.path().join("hidden");
    fs::write(&hidden, "secret").unwrap();
    fs::write(folder.path().join("seen"), "seen").unwrap();
    let hidden = hidden.to_str().unwrap();
    let options = ["--read-only", "--hide", hidden, "--alone", tmp];
    let said = |script: &str| {
        let output = inside(folder.path(), &options, script);
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat()
    };
    assert_eq!(said("cat seen"), "seen");
    assert!(said("cat hidden").contains("Permission denied"));
    assert!(said("echo > new").contains("Permission denied"));
    assert!(said("kill -0 1").contains("not permitted"));
    let connects = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'";
    assert!(said(connects).contains("not permitted"));
    assert_eq!(said(&format!("echo x > {tmp}/f && cat {tmp}/f; echo > /dev/null")), "x\n");
}

#[test]
fn restrictions_alone_do_not_promise_what_only_mounts_can_keep() {
    let folder = folder();
    let output = inside(folder.path(), &["--alone", "/tmp"], "true");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("only bubblewrap can protect it"), "{said}");
}

#[test]
fn this_machine_holds_what_is_tried() {
    let folder = folder();
    let output = inside(folder.path(), &["--probe"], "");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("Both: "), "{said}");
}
