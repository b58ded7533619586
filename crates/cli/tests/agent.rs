//! The agent by itself, without a server in front of it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use mcpz_agent::{
    Directory, FIRST_OWNER, Limits, Link, ProcessEvent, Program, Spawn, Stage, Started, Status,
    Stdin,
};
use support::MCPZ;

fn spawn(program: Program) -> Spawn {
    let directory = Directory::Own;
    Spawn {
        program,
        directory,
        environment: Vec::new(),
        stdin: Stdin::Null,
        joined: false,
        replies: false,
        exec_rules: None,
    }
}

fn argv(words: &[&str]) -> Program {
    Program::Argv(words.iter().map(Into::into).collect())
}

fn script(text: &str) -> Program {
    Program::Script { shell: "/bin/sh".into(), text: text.into() }
}

fn within_runtime<T>(test: impl AsyncFnOnce(Link) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let variables: Vec<_> = std::env::vars_os().collect();
        let link = Link::start(MCPZ.as_ref(), &variables, Limits::default()).unwrap();
        let result = test(link.clone()).await;
        link.close().await;
        result
    })
}

/// Runs to the end and returns what was printed and how it ended.
async fn run(link: &Link, spawn: Spawn) -> (String, Status) {
    let mut process = link.spawn(FIRST_OWNER, spawn).unwrap();
    let ProcessEvent::Started(Started { stdout, .. }) = process.next().await else {
        panic!("it starts")
    };
    let ProcessEvent::Exited { exit, gone: true } = process.next().await else { panic!("it ends") };
    (read(stdout), exit.status)
}

fn read(pipe: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(pipe).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_program_is_started_by_its_arguments_as_they_are() {
    within_runtime(async |link| {
        let words = ["printf", "%s|", "a b", "$HOME", "*", ""];
        assert_eq!(
            run(&link, spawn(argv(&words))).await,
            ("a b|$HOME|*||".into(), Status::Code(0))
        );
    });
}

#[test]
fn a_program_is_found_on_the_path_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hello");
    std::fs::write(&program, "#!/bin/sh\necho hello from $PATH\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let path = format!("/nonexistent:{}", folder.path().display());
    within_runtime(async |link| {
        let spawn = Spawn {
            environment: vec![("PATH".into(), Some(path.clone().into()))],
            ..spawn(argv(&["hello"]))
        };
        let expected = format!("hello from {path}\n");
        assert_eq!(run(&link, spawn).await, (expected, Status::Code(0)));
    });
}

#[test]
fn a_variable_is_set_changed_or_removed() {
    within_runtime(async |link| {
        let environment = vec![
            ("NEW".into(), Some("1".into())),
            ("HOME".into(), Some("/changed".into())),
            ("PATH".into(), None),
        ];
        let program = script("echo $NEW $HOME; /usr/bin/env | /usr/bin/grep -c ^PATH=");
        let spawn = Spawn { environment, ..spawn(program) };
        assert_eq!(run(&link, spawn).await.0, "1 /changed\n0\n");
    });
}

#[test]
fn what_cannot_start_says_at_which_stage_and_why() {
    within_runtime(async |link| {
        for (spawn, stage, errno) in [
            (spawn(argv(&["/no/such/program"])), Stage::Program, 2),
            (spawn(argv(&["no-such-program"])), Stage::Program, 2),
            (spawn(argv(&["/etc/passwd"])), Stage::Program, 13),
            (spawn(argv(&[])), Stage::Program, 22),
            (
                Spawn { directory: Directory::Path("/etc/passwd".into()), ..spawn(script("true")) },
                Stage::Directory,
                20,
            ),
        ] {
            let what = format!("{spawn:?}");
            let mut process = link.spawn(FIRST_OWNER, spawn).unwrap();
            let ProcessEvent::Failed(failure) = process.next().await else { panic!("{what}") };
            assert_eq!((failure.stage, failure.errno), (stage, errno), "{what}");
        }
    });
}

#[test]
fn a_directory_that_is_held_is_entered_whatever_its_name_is_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    std::fs::create_dir(&before).unwrap();
    let handle = OwnedFd::from(std::fs::File::open(&before).unwrap());
    std::fs::rename(&before, &after).unwrap();
    std::os::unix::fs::symlink("/", &before).unwrap();
    within_runtime(async |link| {
        let program = script("pwd -P; exec ls -l /proc/self/fd");
        let (printed, _) =
            run(&link, Spawn { directory: Directory::Handle(handle), ..spawn(program) }).await;
        let (place, open) = printed.split_once('\n').unwrap();
        assert_eq!(place, after.canonicalize().unwrap().to_str().unwrap());
        assert!(!open.contains("after"), "it is not open in the program: {open}");
        // The keeper is the same one, and holds nothing of the run before.
        for _ in 0..4 {
            let (open, _) = run(&link, spawn(script("ls -l /proc/$PPID/fd"))).await;
            assert!(!open.contains("after"), "{open}");
        }
    });
}

#[test]
fn one_signal_can_be_sent() {
    within_runtime(async |link| {
        let program =
            script("trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.01; done");
        let mut process = link.spawn(FIRST_OWNER, spawn(program)).unwrap();
        let ProcessEvent::Started(started) = process.next().await else { panic!("it starts") };
        support::wait_until("the trap is set", || {
            let mut bytes = [0; 6];
            let mut pipe = std::fs::File::from(started.stdout.try_clone().unwrap());
            (pipe.read(&mut bytes).ok() == Some(6)).then_some(())
        });
        process.signal(10);
        let ProcessEvent::Exited { exit, .. } = process.next().await else { panic!("it ends") };
        assert_eq!(exit.status, Status::Code(5));
        assert_eq!(read(started.stdout), "got it\n");
    });
}

#[test]
fn a_run_is_over_when_its_handle_is_dropped() {
    let mark = support::mark();
    within_runtime(async |link| {
        let environment = vec![("MARK".into(), Some(mark.clone().into()))];
        let mut process = link
            .spawn(FIRST_OWNER, Spawn { environment, ..spawn(script("sleep 300 & sleep 300")) })
            .unwrap();
        assert!(matches!(process.next().await, ProcessEvent::Started(_)));
        drop(process);
        support::wait_until("it is gone", || support::survivors(&mark).is_empty().then_some(()));
    });
}

#[test]
fn keepers_are_used_again() {
    within_runtime(async |link| {
        let mut keepers = std::collections::HashSet::new();
        for _ in 0..20 {
            keepers.insert(run(&link, spawn(script("echo $PPID"))).await.0);
        }
        assert!(keepers.len() <= 2, "{keepers:?}");
    });
}

#[test]
fn a_keeper_killed_while_idle_is_not_used() {
    within_runtime(async |link| {
        for _ in 0..5 {
            let (keeper, _) = run(&link, spawn(script("echo $PPID"))).await;
            support::kill("KILL", keeper.trim().parse().unwrap());
            // The runtime has to hear of it: that takes one turn of its loop.
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(run(&link, spawn(script("echo hi"))).await.0, "hi\n");
        }
    });
}

#[test]
fn garbage_ends_the_agent_without_a_panic() {
    for garbage in
        [&b"\xff\xff\xff\xff"[..], b"\x01\0\0\0\xff", b"\x02\0\0\0\0\x09", b"\x02\0\0\0\x01\x05"]
    {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let child = Command::new(MCPZ)
            .arg("agent")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        ours.write_all(garbage).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("mcpz: the server ") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn descriptors_of_whoever_started_the_server_do_not_reach_commands() {
    let folder = tempfile::tempdir().unwrap();
    let leak = folder.path().join("leak");
    std::fs::write(&leak, "").unwrap();
    let shell = format!(
        "exec 7<'{0}' 8<'{0}'; exec '{MCPZ}' call execute_command 'command=ls -l /proc/self/fd'",
        leak.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).env("XDG_STATE_HOME", folder.path());
    let listed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(listed.contains("pipe:") && !listed.contains("leak"), "{listed}");
    assert!(!listed.contains("audit"), "nor do ours: {listed}");
}
