//! Places, and commands there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcpz_agent::{Directory, Link, Process, ProcessEvent, Program, Spawn, Started, Status, Stdin};
use mcpz_places::{Kind, Opened, Per, Place};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

/// An image with the machine's own programs, if `/usr` is mounted.
pub const IMAGE: &str = "localhost/mcpz-test:1";

/// An image with busybox, and without a dynamic linker.
pub const BUSYBOX: &str = "localhost/mcpz-busybox:1";

pub fn place(kind: Kind) -> Place {
    Place {
        name: "test".to_owned(),
        kind,
        per: Per::Server,
        idle: Duration::from_secs(600),
        max: 1,
        ready: 0,
        directory: None,
        agent: None,
        start_time: Duration::from_secs(30),
        beat: Duration::from_secs(5),
    }
}

/// A number that nothing else has, to tell processes and containers by.
pub fn unique() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    u64::from(std::process::id()) * 1000 + LAST.fetch_add(1, Ordering::Relaxed)
}

/// A long time, in seconds.
pub fn long() -> String {
    format!("9{:010}", unique())
}

/// Starts a shell script in a place.
pub async fn start(opened: &Opened, text: &str) -> (Process, Started) {
    let spawn = Spawn {
        program: Program::Argv(vec!["/busybox".into(), "sh".into(), "-c".into(), text.into()]),
        directory: Directory::Own,
        environment: Vec::new(),
        stdin: Stdin::Null,
        joined: true,
        replies: false,
        exec_rules: None,
    };
    let mut process = Link::Far(opened.link.clone()).spawn(0, spawn).unwrap();
    match process.next().await {
        ProcessEvent::Started(started) => (process, started),
        other => panic!("{text}: {other:?}"),
    }
}

/// Runs a shell script in a place to its end.
pub async fn run(opened: &Opened, text: &str) -> (Status, Vec<u8>) {
    let ran = timeout(Duration::from_secs(60), run_to_end(opened, text)).await;
    ran.unwrap_or_else(|_| panic!("{text}: still running after a minute"))
}

async fn run_to_end(opened: &Opened, text: &str) -> (Status, Vec<u8>) {
    let (mut process, started) = start(opened, text).await;
    let mut printed = Vec::new();
    let mut stdout = Receiver::from_owned_fd(started.stdout).unwrap();
    stdout.read_to_end(&mut printed).await.unwrap();
    (end_of(&mut process).await, printed)
}

pub async fn end_of(process: &mut Process) -> Status {
    loop {
        match process.next().await {
            ProcessEvent::Exited { exit, .. } => return exit.status,
            ProcessEvent::Lost => panic!("the run is lost"),
            _ => {}
        }
    }
}

/// What a script prints, without the end of its last line.
pub async fn printed(opened: &Opened, text: &str) -> String {
    let (status, printed) = run(opened, text).await;
    let printed = String::from_utf8(printed).unwrap().trim_end().to_owned();
    assert_eq!(status, Status::Code(0), "{text}: {printed}");
    printed
}

/// Whether a process of the machine has this among its arguments.
pub fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let own = process.file_name().to_str() == Some(&std::process::id().to_string());
        !own && arguments.split(|byte| *byte == 0).any(|it| it == argument.as_bytes())
    })
}

/// Waits until something is so. A busy machine may take long to end a pod.
pub async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    const LONGEST: Duration = Duration::from_secs(120);
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONGEST, "not after two minutes: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
