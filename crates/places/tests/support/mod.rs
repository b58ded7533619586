//! Real container engines, places in them, and commands there.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mcpz_agent::{
    Directory, Limits, Link, Process, ProcessEvent, Program, Spawn, Started, Status, Stdin,
};
use mcpz_places::{Base, Container, Kind, Opened, Opening, Per, Place, PlaceError};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

/// An image with the machine's own programs, if `/usr` is mounted.
pub const IMAGE: &str = "localhost/mcpz-test:1";

/// An image with busybox, and without a dynamic linker.
pub const BUSYBOX: &str = "localhost/mcpz-busybox:1";

/// An engine of its own, which ends with it; or the one that the caller's variables name.
pub struct Engine {
    name: &'static str,
    folder: TempDir,
    variables: Vec<(OsString, OsString)>,
    is_ours: bool,
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.is_ours {
            script("down", self.name, self.folder.path());
        }
    }
}

fn script(name: &str, engine: &str, folder: &Path) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/places").join(name);
    let status = Command::new(script).arg(engine).arg(folder).status();
    status.is_ok_and(|status| status.success())
}

/// The engines to test with. Says so if there are none.
pub fn engines() -> Vec<Engine> {
    if std::env::var_os("MCPZ_TEST_ENGINES").is_none() {
        eprintln!("skipped: tests/places/run starts engines for these");
        return Vec::new();
    }
    if !agent().is_file() {
        eprintln!("skipped: {} is missing; build it first", agent().display());
        return Vec::new();
    }
    let names = ["DOCKER_HOST", "CONTAINER_HOST", "MCPZ_DOCKER_RUNSC", "MCPZ_PODMAN_RUNSC"];
    let given = names.map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let given: Vec<_> = given.into_iter().flatten().collect();
    if !given.is_empty() {
        let folder = tempfile::tempdir().unwrap();
        return vec![Engine { name: "given", folder, variables: given, is_ours: false }];
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start container engines");
        return Vec::new();
    }
    ["podman", "docker"].into_iter().filter_map(Engine::start).collect()
}

impl Engine {
    fn start(name: &'static str) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("mcpz-").tempdir().unwrap();
        let mut engine = Self { name, folder, variables: Vec::new(), is_ours: true };
        let path = engine.folder.path().to_owned();
        if !script("up", name, &path) {
            eprintln!("skipped: {name} cannot be started here");
            return None;
        }
        let settings = std::fs::read_to_string(path.join("env")).unwrap();
        let settings = settings.lines().filter_map(|line| line.split_once('='));
        engine.variables = settings.map(|(name, value)| (name.into(), value.into())).collect();
        Some(engine)
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(it, _)| it == name)?;
        Some(found.1.to_str().unwrap().to_owned())
    }

    pub fn is_docker(&self) -> bool {
        self.variable("DOCKER_HOST").is_some()
    }

    /// A container that sees the machine's programs, and a working directory.
    pub fn container(&self) -> Container {
        Container {
            mounts: vec!["/usr:/usr:ro".parse().unwrap()],
            ..Container::new(Base::Image(IMAGE.to_owned()))
        }
    }

    pub async fn open(&self, container: &Container) -> Result<Opened, PlaceError> {
        self.open_in(container, Path::new("/tmp"), &Limits::default()).await
    }

    pub async fn open_in(
        &self,
        container: &Container,
        working_directory: &Path,
        limits: &Limits,
    ) -> Result<Opened, PlaceError> {
        let (program, variables) = (&agent(), &self.variables[..]);
        let children = &tokio::sync::watch::Sender::default();
        let opening = Opening { program, variables, limits, working_directory, children };
        let opened = place(container).open(&opening).await?;
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        opened.link.prepare(vec![path], *limits);
        Ok(opened)
    }

    pub async fn sweep(&self, container: &Container) -> usize {
        let opening = Opening {
            program: &agent(),
            variables: &self.variables,
            limits: &Limits::default(),
            working_directory: Path::new("/"),
            children: &tokio::sync::watch::Sender::default(),
        };
        container.sweep(&opening).await.unwrap()
    }

    /// Sends a request to the engine, and returns its whole answer.
    pub fn request(&self, method: &str, path: &str, body: &str) -> String {
        let host = self.variable("DOCKER_HOST").or(self.variable("CONTAINER_HOST")).unwrap();
        let mut socket = UnixStream::connect(host.strip_prefix("unix://").unwrap()).unwrap();
        let length = body.len();
        write!(
            socket,
            "{method} {path} HTTP/1.0\r\nHost: engine\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    /// How many containers of ours there are.
    pub fn containers(&self) -> usize {
        let filter = "%7B%22label%22%3A%5B%22io.mcpz.server%22%5D%7D";
        let listed = self.request("GET", &format!("/containers/json?all=1&filters={filter}"), "");
        listed.matches("\"io.mcpz.server\"").count()
    }
}

/// The program as it was built last.
pub fn agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("mcpz")
}

fn place(container: &Container) -> Place {
    Place {
        name: "test".to_owned(),
        kind: Kind::Container(container.clone()),
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

/// Waits until something is so.
pub async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(40), "not after 40 seconds: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
