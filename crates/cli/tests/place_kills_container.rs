//! Whatever is killed of a container that commands run in, or of its engine: calls are answered, nothing of them goes
//! on, and no container is left after the next start.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::daemon::Daemon;
use support::kills::{
    Going, Ground, arguments, folder, ground, kill_server, listed_children, printed,
    the_agent_is_replaced, told, variable, works,
};
use support::{Server, kill, name, wait_until};

/// Where the engine listens.
fn socket() -> String {
    let host = variable("DOCKER_HOST").or(variable("CONTAINER_HOST")).unwrap();
    host.strip_prefix("unix://").unwrap().to_owned()
}

fn ask(path: &str) -> String {
    request(path, &[])
}

fn request(path: &str, more: &[&str]) -> String {
    let url = format!("http://engine{path}");
    let options = ["-sS", "--fail", "--max-time", "60", "--noproxy", "*", "--unix-socket"];
    printed("curl", &[&options[..], &[&socket(), &url], more].concat())
}

/// The containers that servers have made, and not removed.
fn containers() -> Vec<Value> {
    let filter = "%7B%22label%22%3A%5B%22io.mcpz.server%22%5D%7D";
    serde_json::from_str(&ask(&format!("/containers/json?all=1&filters={filter}"))).unwrap()
}

fn no_container_is_left(since: Instant) {
    wait_until("no container is left", || containers().is_empty().then_some(()));
    told(since, "until no container was left");
}

/// A server that ended properly leaves nothing, and has removed what others left.
fn the_next_server_leaves_nothing(ground: &Ground) {
    let mut server = ground.server();
    works(&mut server);
    assert_eq!(containers().len(), 1);
    server.close_stdin();
    server.wait();
    no_container_is_left(Instant::now());
    assert!(ask("/volumes").contains("\"Volumes\":[]"));
}

/// The engine's daemon. Its containers outlive it, as on a machine.
fn daemon() -> Daemon {
    let folder = format!("{}/", folder());
    Daemon::find(|pid| {
        let line = arguments(pid);
        let is_docker = name(pid) == "dockerd" && line.contains(&folder);
        is_docker || (name(pid) == "podman" && line.ends_with(&socket()))
    })
}

fn start_again(daemon: &Daemon) {
    daemon.restart();
    wait_until("the engine answers", || {
        let ping = ["-sS", "--fail", "--max-time", "5", "--unix-socket"];
        let mut asked = Command::new("curl");
        asked.args(ping).args([&socket(), "http://engine/_ping"]);
        asked.stderr(Stdio::null()).output().unwrap().status.success().then_some(())
    });
}

/// Whether a process is the engine's for one container.
fn watches(pid: u32) -> bool {
    name(pid) == "conmon" || name(pid).starts_with("containerd-shim")
}

/// Kills one process of the place.
fn killed(ground: &Ground, which: impl Fn(&Going) -> u32) {
    let mut server = ground.server();
    let going = Going::start(&mut server);
    kill("KILL", which(&going));
    let since = Instant::now();
    going.are_lost(&mut server, "");
    told(since, "until the calls were answered");
    going.are_gone(since);
    works(&mut server);
    drop(server);
    the_next_server_leaves_nothing(ground);
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed() {
    let Some(ground) = ground("container") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let since = kill_server(server);
    going.are_gone(since);
    no_container_is_left(since);
    the_next_server_leaves_nothing(&ground);
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_in_a_container_that_stays() {
    let Some(ground) = ground("container") else { return };
    let stays = Staying::start();
    let config = ground.folder.path().join("config.toml");
    let place = format!(
        "[shell_tool]\nplace = \"there\"\n[places.there]\nkind = \"container\"\nbeat = 1\ndirectory = \"/\"\n\
         container = \"{}\"\nengine = \"unix://{}\"\n",
        stays.name,
        socket()
    );
    std::fs::write(&config, place).unwrap();
    let start = || Server::start(&["--tools", "all", "--config", config.to_str().unwrap()]);
    let mut server = start();
    let going = Going::start(&mut server);
    // Docker has one for the container, podman keeps one for five minutes after a process in it has ended.
    let watching = going.part(watches);
    let since = kill_server(server);
    going.are_gone_but(since, &[watching]);
    works(&mut start());
    assert!(stays.runs());
}

/// A container that is not of a server, as long as the test runs.
struct Staying {
    name: String,
}

impl Staying {
    fn start() -> Self {
        let stays = Self { name: support::mark().replace("/", "-") };
        let made = json!({
            "Image": "localhost/mcpz-test:1",
            "Entrypoint": ["/busybox", "sleep", "1000"],
            "HostConfig": {"NetworkMode": "none", "Binds": ["/usr:/usr:ro"]},
        });
        let path = format!("/containers/create?name={}", stays.name);
        let json = ["-H", "Content-Type: application/json", "-d", &made.to_string()];
        request(&path, &json);
        request(&format!("/containers/{}/start", stays.name), &["-X", "POST"]);
        stays
    }

    fn runs(&self) -> bool {
        ask(&format!("/containers/{}/json", self.name)).contains("\"Running\":true")
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        request(&format!("/containers/{}?force=1", self.name), &["-X", "DELETE"]);
    }
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_while_it_makes_a_container() {
    let Some(ground) = ground("container") else { return };
    for _ in 0..5 {
        let mut server = ground.server();
        server.start_call(json!({"command": "true"}));
        wait_until("there is a container", || (!containers().is_empty()).then_some(()));
        kill_server(server);
        the_next_server_leaves_nothing(&ground);
    }
}

#[test]
fn the_engine_that_is_killed_loses_the_place() {
    let Some(ground) = ground("container") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let daemon = daemon();
    let since = daemon.kill();
    going.are_lost(&mut server, "the connection ");
    told(since, "until the calls were answered");
    going.commands_are_gone(since);
    start_again(&daemon);
    works(&mut server);
    drop(server);
    the_next_server_leaves_nothing(&ground);
    going.are_gone(Instant::now());
}

#[test]
fn nothing_is_left_of_an_engine_and_a_server_that_are_killed() {
    let Some(ground) = ground("container") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let daemon = daemon();
    daemon.kill();
    let since = kill_server(server);
    going.commands_are_gone(since);
    start_again(&daemon);
    the_next_server_leaves_nothing(&ground);
    going.are_gone(Instant::now());
}

#[test]
fn what_watches_the_container_loses_the_place_if_it_is_killed() {
    let Some(ground) = ground("container") else { return };
    killed(&ground, |going| going.part(watches));
}

#[test]
fn the_relay_that_is_killed_takes_the_container_with_it() {
    let Some(ground) = ground("container") else { return };
    killed(&ground, |going| going.relay);
}

#[test]
fn the_agent_that_is_killed_is_replaced_there() {
    let Some(ground) = ground("container") else { return };
    the_agent_is_replaced(&ground);
    the_next_server_leaves_nothing(&ground);
}

#[test]
fn agents_that_are_killed_again_and_again_do_not_hold_up_calls() {
    let Some(ground) = ground("container") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    for round in 0..5 {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // All that the relay starts ends before it can do anything.
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    for agent in listed_children(going.relay) {
                        let _ = kill_process(Pid::from_raw(agent as i32).unwrap(), Signal::KILL);
                    }
                }
            });
            let asked = server.start_call(json!({"command": "echo hi"}));
            let answered = server.answer(asked);
            is_done.store(true, Relaxed);
            assert!(answered["result"]["structuredContent"].is_object(), "{answered}");
        });
        assert_eq!(server.run("echo next")["output"], "next\n", "round {round}");
    }
    going.are_lost(&mut server, "the place itself is still there");
    server.close_stdin();
    server.wait();
    going.are_gone(Instant::now());
    the_next_server_leaves_nothing(&ground);
}
