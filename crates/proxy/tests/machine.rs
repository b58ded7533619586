//! The proxy as it is used, on the machine's own network: nothing of it can be reached.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use mcpz_proxy::{Limits, Proxy, Reason, Refusal, Report, Rules, environment};

fn serve(rules: &str) -> (Proxy, u16, Receiver<Report>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, reports) = channel();
    let rules = Rules::parse(rules).unwrap();
    let reporter = move |report| sender.send(report).unwrap_or_default();
    (Proxy::serve(listener, rules, Limits::default(), reporter).unwrap(), port, reports)
}

fn curl(port: u16, args: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args(["-sS"]).args(args).env_clear().env("PATH", std::env::var("PATH").unwrap());
    let variables =
        environment(port).into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("no_proxy"));
    let output = command.envs(variables).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refusal(reports: &Receiver<Report>) -> Refusal {
    match reports.recv().unwrap() {
        Report::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

/// An address other machines know this one by, if there is one.
fn outward() -> Option<String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(1, 1, 1, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_on_this_machine_is_not_reached_by_any_of_its_names() {
    let (_proxy, port, reports) = serve("on");
    let server = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    server.set_nonblocking(true).unwrap();
    let place = server.local_addr().unwrap().port();
    let mut hosts: Vec<String> =
        ["127.0.0.1", "localhost", "0.0.0.0", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"]
            .map(str::to_owned)
            .into();
    hosts.extend(outward());
    for host in hosts {
        let url = format!("http://{host}:{place}/");
        let socks = format!("socks5h://127.0.0.1:{port}");
        assert!(curl(port, &[&url]).ends_with("no `--net` allows it\n"), "{host}");
        assert!(matches!(refusal(&reports).reason, Reason::Address(..)), "{host}");
        assert_eq!(curl(port, &["--proxy", &socks, &url]), "", "{host}");
        assert!(matches!(refusal(&reports).reason, Reason::Address(..)), "{host}");
    }
    assert!(server.accept().is_err(), "nobody came");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_the_network_off_every_host_is_refused() {
    let (_proxy, port, reports) = serve("off");
    let answer = curl(port, &["http://github.com/"]);
    let text = "no connection to github.com port 80: the network is off; `--net github.com` would allow it";
    assert_eq!(answer, format!("mcpz: {text}\n"));
    assert_eq!(refusal(&reports).to_string(), text);
}
