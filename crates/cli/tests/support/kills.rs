//! What the kill tests in real places have in common. `tests/places/run` sets the places up, and names the folder of the
//! one that the tests are for in `MCPZ_TEST_KILLS`.

#![allow(
    clippy::allow_attributes,
    clippy::print_stderr,
    reason = "tells what was not run, and how long things took"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::place::{config, place};
use super::sandbox::warnings;
use super::{MCPZ, Server, children, kill, mark, name, open_folder, parent, survivors, wait_until};

/// Between two signs of life, in the places of these tests.
const BEAT: Duration = Duration::from_secs(1);

/// How long what is left in a place may run: three beats and five seconds, as the answers say.
pub const PROMISE: Duration = Duration::from_secs(8);

/// What a busy machine may add to that.
const BUSY: Duration = Duration::from_secs(12);

/// One test at a time: they kill what others need.
static ALONE: Mutex<()> = Mutex::new(());

/// A place that is really there, for one test.
pub struct Ground {
    pub folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// The ground of a test in places of this kind, if there is one.
pub fn ground(kind: &str) -> Option<Ground> {
    let is_ours = place().is_some_and(|place| place.kind == kind);
    if !is_ours || std::env::var_os("MCPZ_TEST_KILLS").is_none_or(|folder| folder.is_empty()) {
        eprintln!("skipped: tests/places/run sets up the place for this");
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Ground { folder: open_folder(), _alone: alone })
}

impl Ground {
    /// The configuration of the test run, with more keys for the place.
    pub fn config(&self, keys: &str) -> PathBuf {
        config(self.folder.path(), "", &format!("beat = {}\n{keys}", BEAT.as_secs()))
    }

    pub fn server(&self) -> Server {
        self.server_with("")
    }

    pub fn server_with(&self, keys: &str) -> Server {
        let config = self.config(keys);
        Server::start(&["--tools", "all", "--config", config.to_str().unwrap()])
    }
}

/// Kills the agent in a place: its commands are lost, and another one takes over in the same place.
pub fn the_agent_is_replaced(ground: &Ground) {
    let mut server = ground.server();
    let going = Going::start(&mut server);
    kill("KILL", going.agent());
    let since = Instant::now();
    going.are_lost(&mut server, "the place itself is still there");
    going.commands_are_gone(since);
    works(&mut server);
    assert!(!children(going.relay).is_empty(), "the place was made again");
}

/// The folder of the place.
pub fn folder() -> String {
    std::env::var("MCPZ_TEST_KILLS").unwrap()
}

/// What `tests/places/up` says about the place.
pub fn variable(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new(&folder()).join("env")).unwrap();
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// A process, told from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pid {
    pub number: u32,
    started: u64,
}

impl Pid {
    pub fn new(number: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_living = !["Z", "X"].contains(&fields[0]);
        is_living.then(|| Self { number, started: fields[19].parse().unwrap() })
    }

    pub fn is_there(&self) -> bool {
        Self::new(self.number).as_ref() == Some(self)
    }
}

/// Everything above a process, from its parent on.
pub fn ancestors(pid: u32) -> Vec<u32> {
    std::iter::successors(parent(pid), |pid| parent(*pid)).take_while(|pid| *pid > 1).collect()
}

/// The children of a process, found quickly.
pub fn listed_children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.unwrap_or_default().split_whitespace().map(|it| it.parse().unwrap()).collect()
}

/// Everything below a process.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children(*pid));
        next += 1;
    }
    found
}

/// Prints, and hides two processes from everybody who wants to end it. Deaf to all signals that can be ignored.
const DEAF: &str = r#"
trap '' TERM HUP INT PIPE
(setsid sh -c 'sleep 300; :' &)
(setsid sh -c 'exec >/dev/null 2>&1 </dev/null; (sleep 300; :) & sleep 300; :' &)
echo part
while :; do sleep 0.2; echo more; done
"#;

/// A call, a job and a session that print, and would go on for ever.
pub struct Going {
    pub call: i64,
    job: Value,
    session: i64,
    pub mark: String,
    /// The server's deputy in the place.
    pub relay: u32,
    /// What leads to the place, what is in it, and what the place's daemons have started for it.
    all: Vec<Pid>,
}

impl Going {
    pub fn start(server: &mut Server) -> Self {
        let mark = mark();
        let command = format!("env MARK={mark} sh -c \"$(cat <<'END'{DEAF}END\n)\"");
        let call = server.start_call(json!({"command": command}));
        let session = server.start_call(json!({"command": command, "session": "work"}));
        let job = json!({"command": command, "background": true});
        let job = server.call(job)["job_id"].clone();
        let printed = json!({"job_id": job, "wait_for": "output", "cursor": "bytes:0"});
        server.tool("read_job", printed);
        server.wait_for_output(call, "part");
        server.wait_for_output(session, "part");
        // A shell that prints, two that are hidden, and what these run: nine and more for each.
        let marked = wait_until("all of them run", || {
            let found = survivors(&mark);
            (found.len() >= 21).then(|| found.iter().map(|it| number(it)).collect::<Vec<_>>())
        });
        let above: Vec<_> = marked.iter().flat_map(|pid| ancestors(*pid)).collect();
        let is_relay = |pid: &&u32| arguments(**pid).contains("agent --stream");
        let relay = *above.iter().find(is_relay).expect("commands run below a relay");
        let mut all: Vec<_> = marked.iter().copied().chain(descendants(relay)).collect();
        all.extend(descendants(server.child.id()));
        all.extend(std::iter::once(relay).chain(ancestors(relay)).take_while(|it| !stays(*it)));
        let all = all.into_iter().filter_map(Pid::new).collect();
        Self { call, job, session, mark, relay, all }
    }

    /// The agent that the relay has started.
    pub fn agent(&self) -> u32 {
        let found = children(self.relay).into_iter().find(|pid| name(*pid) == "mcpz-agent");
        found.expect("the relay has an agent")
    }

    /// A process that is part of the way to the place, on either side.
    pub fn part(&self, is_it: impl Fn(u32) -> bool) -> u32 {
        let found = self.all.iter().map(|pid| pid.number).find(|pid| is_it(*pid));
        found.unwrap_or_else(|| panic!("{:?}", self.named()))
    }

    fn named(&self) -> Vec<(u32, String)> {
        self.all.iter().map(|pid| (pid.number, arguments(pid.number))).collect()
    }

    /// All of them are told of, with all that had arrived.
    pub fn are_lost(&self, server: &mut Server, why: &str) {
        for call in [self.call, self.session] {
            let result = server.answer(call)["result"].clone();
            let reply = &result["structuredContent"];
            assert_eq!((&result["isError"], &reply["return_code"]), (&json!(true), &json!(-1)));
            assert!(reply["output"].as_str().unwrap().starts_with("part\n"), "{reply}");
        }
        let wait = json!({"job_id": self.job, "wait_for": "exit", "cursor": "bytes:0"});
        let told = server.tool("read_job", wait)["structuredContent"].clone();
        assert_eq!(told["state"], "lost", "{told}");
        assert!(told["output"].as_str().unwrap().starts_with("part\n"), "{told}");
        assert!(warnings(&told).contains(why), "{told}");
    }

    /// Nothing of them is left after the promised time, on either side.
    pub fn are_gone(&self, since: Instant) {
        self.are_gone_but(since, &[]);
    }

    /// The same, but the place itself is still there.
    pub fn commands_are_gone(&self, since: Instant) {
        wait_until("no command is left", || survivors(&self.mark).is_empty().then_some(()));
        told(since, "until no command was left");
    }

    /// The same as `are_gone`, with exceptions.
    pub fn are_gone_but(&self, since: Instant, stay: &[u32]) {
        let left = || {
            let parts = self.all.iter().filter(|pid| !stay.contains(&pid.number));
            let parts = parts.filter(|pid| pid.is_there()).map(|pid| arguments(pid.number));
            survivors(&self.mark).into_iter().chain(parts).collect::<Vec<_>>()
        };
        while !left().is_empty() {
            assert!(since.elapsed() < PROMISE + BUSY, "still there: {:#?}", left());
            std::thread::sleep(Duration::from_millis(5));
        }
        told(since, "until nothing was left");
    }
}

/// Reports how long something took.
pub fn told(since: Instant, what: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    eprintln!("{test}: {:.1} s {what}", since.elapsed().as_secs_f32());
}

/// Whether a process does not end with the place: the daemon that made it.
fn stays(pid: u32) -> bool {
    let daemons = ["MCPZ_SSHD_PID", "MCPZ_SLURMD_PID", "MCPZ_PODMAN_PID", "MCPZ_DOCKER_PID"];
    let is_daemon = |daemon: &str| variable(daemon) == Some(pid.to_string());
    // A daemon of the test, or what holds the namespaces of a container engine.
    let own = Some(std::process::id());
    parent(pid) == own
        || Some(pid) == own
        || name(pid) == "bash"
        || name(pid) == "unshare"
        || daemons.into_iter().any(is_daemon)
}

/// The number of a process in the list of survivors.
fn number(survivor: &str) -> u32 {
    let path = survivor.split(':').next().unwrap();
    Path::new(path).file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// The command line of a process.
pub fn arguments(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ")
}

/// The next calls work, in a session too.
pub fn works(server: &mut Server) {
    assert_eq!(server.run("echo next")["output"], "next\n");
    let again = server.call(json!({"command": "echo again", "session": "work"}));
    assert_eq!(again["output"], "again\n");
}

/// Kills a server, and returns when.
pub fn kill_server(mut server: Server) -> Instant {
    server.child.kill().unwrap();
    let now = Instant::now();
    server.child.wait().unwrap();
    now
}

/// What a program prints.
pub fn printed(program: &str, arguments: &[&str]) -> String {
    let ran = Command::new(program).args(arguments).stderr(Stdio::inherit()).output().unwrap();
    assert!(ran.status.success(), "{program} {arguments:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A process that ends with the test.
pub struct Ending(pub std::process::Child);

impl Ending {
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.args(arguments).spawn().unwrap())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command in the network of a process.
pub fn run_in(pid: u32, command: &str) {
    let network = format!("--net=/proc/{pid}/ns/net");
    let status = Command::new("nsenter").arg(network).args(command.split(' ')).status().unwrap();
    assert!(status.success(), "{command}");
}

/// A server in the network of another process.
pub fn server_in_network_of(pid: u32, config: &Path) -> Server {
    let network = format!("--net=/proc/{pid}/ns/net");
    let mut command = Command::new("nsenter");
    command.args([&network, MCPZ, "server", "shell", "--tools", "all", "--config"]).arg(config);
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}
