//! Whatever is killed on the way to another host, or if the network is cut without a word: calls are answered, nothing
//! is left on either side, and the next call works.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use support::kills::{
    Ending, Going, Ground, arguments, ground, kill_server, printed, run_in, server_in_network_of,
    the_agent_is_replaced, told, variable, works,
};
use support::{Server, children, kill, name, wait_until};

/// How to get to the host. What it keeps is in the same folder.
fn ssh_config() -> PathBuf {
    variable("MCPZ_SSH_CONFIG").expect("the place is a host").into()
}

/// What the host keeps: the agent, and nothing that was left half copied.
fn keeps_one_file() {
    let cache = ssh_config().with_file_name("cache").join("mcpz");
    let files: Vec<_> = std::fs::read_dir(cache).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

/// The connection's process on the host that belongs to the relay.
fn connection(going: &Going) -> u32 {
    support::kills::ancestors(going.relay)
        .into_iter()
        .find(|pid| name(*pid).starts_with("sshd"))
        .expect("the relay has a connection")
}

fn ssh(going: &Going) -> u32 {
    going.part(|pid| name(pid) == "ssh")
}

/// Kills one process on the way to the place.
fn killed(ground: &Ground, which: impl Fn(&Going) -> u32) {
    let mut server = ground.server();
    let going = Going::start(&mut server);
    kill("KILL", which(&going));
    let since = Instant::now();
    going.are_lost(&mut server, "the connection was closed");
    told(since, "until the calls were answered");
    going.are_gone(since);
    works(&mut server);
    keeps_one_file();
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed() {
    let Some(ground) = ground("ssh") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let since = kill_server(server);
    going.are_gone(since);
    works(&mut ground.server());
    keeps_one_file();
}

#[test]
fn the_client_that_is_killed_loses_the_place() {
    let Some(ground) = ground("ssh") else { return };
    killed(&ground, ssh);
}

#[test]
fn the_supervisor_that_is_killed_takes_the_client_with_it() {
    let Some(ground) = ground("ssh") else { return };
    killed(&ground, |going| going.part(|pid| arguments(pid).contains(" supervise ")));
}

#[test]
fn the_connection_that_is_killed_on_the_host_loses_the_place() {
    let Some(ground) = ground("ssh") else { return };
    killed(&ground, connection);
}

#[test]
fn the_relay_that_is_killed_loses_the_place() {
    let Some(ground) = ground("ssh") else { return };
    killed(&ground, |going| going.relay);
}

#[test]
fn a_relay_that_is_killed_wakes_an_agent_that_is_stopped() {
    let Some(ground) = ground("ssh") else { return };
    killed(&ground, |going| {
        // A relay that runs would wake its agent at once.
        kill("STOP", going.relay);
        kill("STOP", going.agent());
        going.relay
    });
}

#[test]
fn an_agent_that_is_stopped_after_its_relay_was_killed_ends_nevertheless() {
    let Some(ground) = ground("ssh") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let both = format!("kill -KILL {}; kill -STOP {}", going.relay, going.agent());
    assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
    going.are_gone(Instant::now());
    works(&mut server);
}

#[test]
fn the_agent_that_is_killed_is_replaced_there() {
    let Some(ground) = ground("ssh") else { return };
    the_agent_is_replaced(&ground);
}

/// Two networks of their own that are joined by a cable, with a host that is only reached through it.
struct Networks {
    here: Ending,
    there: Ending,
    _host: Ending,
}

impl Networks {
    /// Starts the host. Writes how to get there to the ground's folder.
    fn start(ground: &Ground) -> Self {
        let folder = ground.folder.path();
        let [here, there] = [(); 2].map(|()| {
            let holder = Ending::start("unshare", &["--net", "sleep", "infinity"]);
            wait_until("it has its network", || (name(holder.0.id()) == "sleep").then_some(()));
            holder
        });
        let (near, far) = (here.0.id(), there.0.id());
        run_in(near, &format!("ip link add near type veth peer name far netns {far}"));
        run_in(near, "ip address add 10.99.0.1/24 dev near");
        run_in(near, "ip link set near up");
        run_in(far, "ip address add 10.99.0.2/24 dev far");
        run_in(far, "ip link set far up");
        let config = ssh_config();
        let read = |name| std::fs::read_to_string(config.with_file_name(name)).unwrap();
        let host: Vec<_> = read("sshd_config")
            .lines()
            .map(|line| match line.starts_with("ListenAddress") {
                true => "ListenAddress 10.99.0.2:22".to_owned(),
                false => line.to_owned(),
            })
            .collect();
        std::fs::write(folder.join("sshd_config"), host.join("\n") + "\n").unwrap();
        let known = format!("10.99.0.2 {}", read("host.pub"));
        std::fs::write(folder.join("known_hosts"), known).unwrap();
        let settings: Vec<_> = read("config")
            .lines()
            .map(|line| match line.trim_start().split_once(' ') {
                Some(("HostName", _)) => "HostName 10.99.0.2".to_owned(),
                Some(("Port", _)) => "Port 22".to_owned(),
                Some(("UserKnownHostsFile", _)) => {
                    format!("UserKnownHostsFile {}", folder.join("known_hosts").display())
                }
                _ => line.to_owned(),
            })
            .collect();
        std::fs::write(folder.join("config"), settings.join("\n") + "\n").unwrap();
        let sshd = printed("sh", &["-c", "command -v sshd || echo /usr/sbin/sshd"]);
        let network = format!("--net=/proc/{far}/ns/net");
        let file = folder.join("sshd_config").display().to_string();
        let host = Ending::start("nsenter", &[&network, sshd.trim(), "-D", "-e", "-f", &file]);
        wait_until("the host listens", || {
            let tcp = std::fs::read_to_string(format!("/proc/{far}/net/tcp")).unwrap();
            tcp.contains(":0016 00000000:0000 0A").then_some(())
        });
        Self { here, there, _host: host }
    }

    /// A server that reaches the host.
    fn server(&self, ground: &Ground) -> Server {
        let config = ground.config("");
        let text = std::fs::read_to_string(&config).unwrap();
        let ours = ground.folder.path().join("config").display().to_string();
        std::fs::write(&config, text.replace(ssh_config().to_str().unwrap(), &ours)).unwrap();
        server_in_network_of(self.here.0.id(), &config)
    }

    /// From now on all that is sent disappears, and neither side is told.
    fn cut(&self) {
        for end in [&self.here, &self.there] {
            run_in(end.0.id(), "iptables -I INPUT -j DROP");
        }
    }

    fn mend(&self) {
        for end in [&self.here, &self.there] {
            run_in(end.0.id(), "iptables -D INPUT 1");
        }
    }
}

#[test]
fn a_silent_cut_of_the_network_is_noticed_on_both_sides() {
    let Some(ground) = ground("ssh") else { return };
    let networks = Networks::start(&ground);
    let mut server = networks.server(&ground);
    let going = Going::start(&mut server);
    let connection = connection_of(&going);
    networks.cut();
    let since = Instant::now();
    going.are_lost(&mut server, "nothing was heard for ");
    told(since, "until the calls were answered");
    let answered = since.elapsed();
    assert!(answered >= Duration::from_secs(2), "that is less than three beats: {answered:?}");
    assert!(answered < Duration::from_secs(12), "that is more than three beats: {answered:?}");
    going.are_gone_but(since, &connection);
    networks.mend();
    works(&mut server);
    // The host's daemon learns that nobody listens when it sends something again.
    going.are_gone(Instant::now());
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_while_the_network_is_cut() {
    let Some(ground) = ground("ssh") else { return };
    let networks = Networks::start(&ground);
    let mut server = networks.server(&ground);
    let going = Going::start(&mut server);
    let connection = connection_of(&going);
    networks.cut();
    let since = kill_server(server);
    going.are_gone_but(since, &connection);
    networks.mend();
    works(&mut networks.server(&ground));
    going.are_gone(Instant::now());
}

/// The processes of the host's daemon for this place.
fn connection_of(going: &Going) -> Vec<u32> {
    let above = support::kills::ancestors(going.relay);
    above.into_iter().filter(|pid| name(*pid).starts_with("sshd")).collect()
}

#[test]
fn a_client_that_cannot_connect_ends_with_its_server() {
    let Some(ground) = ground("ssh") else { return };
    let networks = Networks::start(&ground);
    networks.cut();
    let mut server = networks.server(&ground);
    server.start_call(json!({"command": "true"}));
    let supervisor = wait_until("it tries to connect", || {
        let found = children(server.child.id()).into_iter().find(|pid| {
            arguments(*pid).contains(" supervise ")
                && children(*pid).iter().any(|it| name(*it) == "ssh")
        });
        found.and_then(support::kills::Pid::new)
    });
    let client = support::kills::Pid::new(children(supervisor.number)[0]).unwrap();
    let since = kill_server(server);
    wait_until("nothing is left", || {
        [supervisor, client].iter().all(|pid| !pid.is_there()).then_some(())
    });
    told(since, "until nothing was left");
    assert!(since.elapsed() < support::kills::PROMISE * 2);
}
