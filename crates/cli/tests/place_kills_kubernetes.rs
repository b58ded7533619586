//! Whatever is killed of a pod that commands run in, or of its cluster, or if the network is cut without a word: calls
//! are answered, nothing of them goes on, and no pod is left after the next start.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::daemon::Daemon;
use support::kills::{
    Going, Ground, arguments, folder, ground, kill_server, run_in, the_agent_is_replaced, told,
    variable, works,
};
use support::{Server, kill, name, parent, wait_until};

/// Asks the cluster about something in the namespace of the places.
fn request(method: &str, path: &str, body: &str) -> Option<Value> {
    let server = variable("MCPZ_KUBERNETES_SERVER").unwrap();
    let mut curl = Command::new("curl");
    curl.args(["-sSk", "--max-time", "20", "--noproxy", "*", "-X", method]);
    curl.args(["-H", "Authorization: Bearer admin-token", "-H", "Content-Type: application/json"]);
    if !body.is_empty() {
        curl.args(["--data-binary", body]);
    }
    curl.arg(format!("{server}/api/v1/namespaces/default/{path}")).stderr(Stdio::null());
    serde_json::from_slice(&curl.output().unwrap().stdout).ok()
}

/// The pods that servers have made, and not removed. None as long as the cluster does not answer.
fn pods_if_told() -> Option<Vec<Value>> {
    let listed = request("GET", "pods?labelSelector=app.kubernetes.io/managed-by=mcpz", "")?;
    listed["items"].as_array().cloned()
}

fn pods() -> Vec<Value> {
    wait_until("the cluster answers", pods_if_told)
}

fn pod_name() -> String {
    let pods = pods();
    assert_eq!(pods.len(), 1, "{pods:?}");
    pods[0]["metadata"]["name"].as_str().unwrap().to_owned()
}

fn no_pod_is_left(since: Instant) {
    wait_until("no pod is left", || pods().is_empty().then_some(()));
    told(since, "until no pod was left");
}

/// A server that ended properly leaves nothing, and has removed what others left.
fn the_next_server_leaves_nothing(ground: &Ground) {
    let mut server = ground.server();
    works(&mut server);
    wait_until("there is one pod", || (pods().len() == 1).then_some(()));
    server.close_stdin();
    server.wait();
    no_pod_is_left(Instant::now());
}

/// A daemon of the cluster.
fn daemon(which: &str) -> Daemon {
    let folder = format!("{}/", folder());
    Daemon::find(|pid| name(pid) == which && arguments(pid).contains(&folder))
}

/// Waits until the cluster answers again and its node takes pods.
fn is_ready() {
    wait_until("the cluster is ready", || {
        let server = variable("MCPZ_KUBERNETES_SERVER").unwrap();
        let mut curl = Command::new("curl");
        curl.args(["-sSkf", "--max-time", "5", "--noproxy", "*"]);
        curl.args(["-H", "Authorization: Bearer admin-token"]);
        curl.arg(format!("{server}/api/v1/nodes/node")).stderr(Stdio::null());
        let node: Value = serde_json::from_slice(&curl.output().unwrap().stdout).ok()?;
        let conditions = node["status"]["conditions"].as_array()?;
        conditions.iter().any(|it| it["reason"] == "KubeletReady").then_some(())
    });
}

/// Does something to the place. Nothing is left of it but the pod of the next call, which ends with the server.
fn broken(ground: &Ground, why: &str, how: impl Fn(&Going)) {
    let mut server = ground.server();
    let going = Going::start(&mut server);
    how(&going);
    let since = Instant::now();
    going.are_lost(&mut server, why);
    told(since, "until the calls were answered");
    going.are_gone(since);
    works(&mut server);
    server.close_stdin();
    server.wait();
    no_pod_is_left(Instant::now());
}

/// Kills a daemon of the cluster, and starts it again when nothing is left of the commands.
fn daemon_is_killed(which: &str) {
    let Some(ground) = ground("kubernetes") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let daemon = daemon(which);
    let since = daemon.kill();
    going.are_lost(&mut server, "the connection ");
    told(since, "until the calls were answered");
    going.commands_are_gone(since);
    daemon.restart();
    is_ready();
    works(&mut server);
    drop(server);
    the_next_server_leaves_nothing(&ground);
    going.are_gone(Instant::now());
}

/// Stops a daemon of the cluster until nothing is left of the commands. Nothing comes through, and nobody is told.
fn daemon_is_stopped(which: &str) {
    let Some(ground) = ground("kubernetes") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let daemon = daemon(which);
    kill("STOP", daemon.pid);
    let since = Instant::now();
    going.are_lost(&mut server, "nothing was heard for ");
    told(since, "until the calls were answered");
    going.commands_are_gone(since);
    kill("CONT", daemon.pid);
    is_ready();
    works(&mut server);
    drop(server);
    the_next_server_leaves_nothing(&ground);
    going.are_gone(Instant::now());
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed() {
    let Some(ground) = ground("kubernetes") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let since = kill_server(server);
    going.are_gone(since);
    assert_eq!(pods().len(), 1);
    the_next_server_leaves_nothing(&ground);
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_while_it_makes_a_pod() {
    let Some(ground) = ground("kubernetes") else { return };
    for more in [0, 300, 1000] {
        let mut server = ground.server();
        server.start_call(json!({"command": "true"}));
        wait_until("there is a pod", || (!pods().is_empty()).then_some(()));
        std::thread::sleep(Duration::from_millis(more));
        kill_server(server);
        the_next_server_leaves_nothing(&ground);
    }
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_in_a_pod_that_stays() {
    let Some(ground) = ground("kubernetes") else { return };
    let stays = Staying::start();
    let agent = place_key("agent");
    let config = ground.folder.path().join("config.toml");
    let place = format!(
        "[shell_tool]\nplace = \"there\"\n[places.there]\nkind = \"kubernetes\"\nbeat = 1\ndirectory = \"/\"\n\
         pod = \"{}\"\nagent = \"{agent}\"\n",
        stays.name
    );
    std::fs::write(&config, place).unwrap();
    let start = || Server::start(&["--tools", "all", "--config", config.to_str().unwrap()]);
    let mut server = start();
    let going = Going::start(&mut server);
    let watching = going.part(|pid| name(pid).starts_with("containerd-shim"));
    let since = kill_server(server);
    going.are_gone_but(since, &[watching]);
    works(&mut start());
    assert!(stays.runs());
}

/// A key of the place in the configuration of the test run.
fn place_key(key: &str) -> String {
    let config = std::fs::read_to_string(std::env::var("MCPZ_TEST_CONFIG").unwrap()).unwrap();
    let config: toml::Table = config.parse().unwrap();
    config["places"]["kubernetes"][key].as_str().unwrap().to_owned()
}

/// A pod that is not of a server, as long as the test runs.
struct Staying {
    name: &'static str,
}

impl Staying {
    fn start() -> Self {
        let stays = Self { name: "stays" };
        let made = json!({
            "metadata": {"name": stays.name},
            "spec": {
                "containers": [{
                    "name": "first",
                    "image": "localhost/mcpz-test:1",
                    "imagePullPolicy": "Never",
                    "command": ["/busybox", "sleep", "1000"],
                    "volumeMounts": [{"name": "usr", "mountPath": "/usr"}],
                }],
                "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
                "terminationGracePeriodSeconds": 1,
            },
        });
        request("POST", "pods", &made.to_string());
        wait_until("it runs", || stays.runs().then_some(()));
        stays
    }

    fn runs(&self) -> bool {
        let told = request("GET", &format!("pods/{}", self.name), "");
        told.is_some_and(|it| it["status"]["phase"] == "Running")
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        request("DELETE", &format!("pods/{}", self.name), "");
    }
}

#[test]
fn the_relay_that_is_killed_takes_the_pod_with_it() {
    let Some(ground) = ground("kubernetes") else { return };
    broken(&ground, "", |going| kill("KILL", going.relay));
}

#[test]
fn the_shell_that_holds_the_pod_takes_it_along_if_it_is_killed() {
    let Some(ground) = ground("kubernetes") else { return };
    broken(&ground, "", |going| kill("KILL", parent(going.relay).unwrap()));
}

#[test]
fn the_first_process_of_the_pod_that_is_killed_loses_the_place() {
    let Some(ground) = ground("kubernetes") else { return };
    broken(&ground, "", |going| {
        let is_first = |pid: &u32| arguments(*pid).contains("mkfifo") && *pid != going.relay;
        let shim = going.part(|pid| name(pid).starts_with("containerd-shim"));
        let first = support::children(shim).into_iter().find(is_first);
        kill("KILL", first.expect("the pod has a first process"));
    });
}

#[test]
fn what_watches_the_pod_loses_the_place_if_it_is_killed() {
    let Some(ground) = ground("kubernetes") else { return };
    broken(&ground, "", |going| {
        kill("KILL", going.part(|pid| name(pid).starts_with("containerd-shim")));
    });
}

#[test]
fn the_agent_that_is_killed_is_replaced_there() {
    let Some(ground) = ground("kubernetes") else { return };
    the_agent_is_replaced(&ground);
    the_next_server_leaves_nothing(&ground);
}

#[test]
fn a_pod_that_somebody_else_deletes_loses_the_place() {
    let Some(ground) = ground("kubernetes") else { return };
    broken(&ground, "somebody deleted the pod", |_| {
        request("DELETE", &format!("pods/{}", pod_name()), "");
    });
}

#[test]
fn a_pod_that_somebody_else_removes_at_once_loses_the_place() {
    let Some(ground) = ground("kubernetes") else { return };
    broken(&ground, "somebody deleted the pod", |_| {
        request("DELETE", &format!("pods/{}?gracePeriodSeconds=0", pod_name()), "");
    });
}

#[test]
fn the_kubelet_that_is_killed_loses_the_place() {
    daemon_is_killed("kubelet");
}

#[test]
fn the_api_server_that_is_killed_loses_the_place() {
    daemon_is_killed("kube-apiserver");
}

#[test]
fn a_kubelet_that_is_stopped_is_noticed_on_both_sides() {
    daemon_is_stopped("kubelet");
}

#[test]
fn an_api_server_that_is_stopped_is_noticed_on_both_sides() {
    daemon_is_stopped("kube-apiserver");
}

/// The network between this machine and the node. Within the node, everything still works.
struct Network {
    node: u32,
    is_cut: bool,
}

impl Network {
    fn find() -> Self {
        Self { node: daemon("kube-apiserver").first, is_cut: false }
    }

    /// From now on all that is sent disappears, and neither side is told.
    fn cut(&mut self) {
        run_in(self.node, "iptables -I INPUT -i machine -j DROP");
        run_in(self.node, "iptables -I OUTPUT -o machine -j DROP");
        self.is_cut = true;
    }

    fn mend(&mut self) {
        if std::mem::take(&mut self.is_cut) {
            run_in(self.node, "iptables -D INPUT 1");
            run_in(self.node, "iptables -D OUTPUT 1");
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.mend();
    }
}

#[test]
fn a_silent_cut_of_the_network_is_noticed_on_both_sides() {
    let Some(ground) = ground("kubernetes") else { return };
    let mut network = Network::find();
    let mut server = ground.server();
    let going = Going::start(&mut server);
    network.cut();
    let since = Instant::now();
    going.are_lost(&mut server, "nothing was heard for ");
    told(since, "until the calls were answered");
    let answered = since.elapsed();
    assert!(answered >= Duration::from_secs(2), "that is less than three beats: {answered:?}");
    going.are_gone(since);
    network.mend();
    works(&mut server);
    drop(server);
    the_next_server_leaves_nothing(&ground);
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed_while_the_network_is_cut() {
    let Some(ground) = ground("kubernetes") else { return };
    let mut network = Network::find();
    let mut server = ground.server();
    let going = Going::start(&mut server);
    network.cut();
    let since = kill_server(server);
    going.are_gone(since);
    network.mend();
    the_next_server_leaves_nothing(&ground);
}
