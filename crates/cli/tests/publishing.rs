//! People open what a command serves in its sandbox.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::{Value, json};
use support::sandbox::{Place, tool, warnings};
use support::wait_until;

/// A port that nothing uses for now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What an HTTP server on this machine says, if there is one.
fn fetch(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok().filter(|_| !said.is_empty())?;
    Some(said)
}

fn serve(server: &mut support::Server, port: u16) -> Value {
    let command = format!("python3 -u -m http.server {port} --bind 127.0.0.1");
    let job = server.call(json!({"command": command, "background": true}));
    let ready = json!({"job_id": job["job_id"], "wait_for": "text", "pattern": "Serving"});
    let report = tool(server, "read_job", ready);
    // Told once, in whichever answer is the first to know.
    if warnings(&job).is_empty() { report } else { job }
}

#[test]
fn a_published_port_is_open_outside_and_another_one_is_told() {
    let place = Place::new();
    place.write("work/index.html", "hello from inside");
    let (published, other) = (free_port(), free_port());
    let flag = published.to_string();
    let mut server = place.start(&["--sandbox", "workspace", "--publish", &flag], "");
    // Nothing serves it yet.
    server.run("true");
    assert_eq!(fetch(published), None);
    let told = serve(&mut server, published);
    assert_eq!(warnings(&told), "", "{told}");
    let page = wait_until("the page is served", || fetch(published));
    assert!(page.ends_with("hello from inside"), "{page}");
    let told = serve(&mut server, other);
    assert!(warnings(&told).contains(&format!("`--publish {other}`")), "{told}");
    assert_eq!(fetch(other), None);
    // Several at the same time, and each to its end.
    let pages: Vec<_> = (0..8).map(|_| std::thread::spawn(move || fetch(published))).collect();
    assert!(pages.into_iter().all(|page| page.join().unwrap().is_some()));
    drop(server);
    wait_until("the port is free again", || fetch(published).is_none().then_some(()));
}

#[test]
fn a_command_that_leaves_a_server_running_is_told_that_nobody_outside_can_reach_it() {
    for in_session in [false, true] {
        let place = Place::new();
        let mut server = place.start(&["--sandbox", "workspace"], "");
        let port = free_port();
        let command = format!(
            "python3 -u -m http.server {port} --bind 127.0.0.1 > log 2>&1 & \
             until grep -q Serving log 2>/dev/null; do sleep .01; done; echo started"
        );
        let mut call = json!({"command": command});
        if in_session {
            call["session"] = json!("shop");
        }
        let told = server.call(call);
        assert_eq!(told["output"], "started\n", "{told}");
        assert!(warnings(&told).contains(&format!("`--publish {port}`")), "{told}");
        assert_eq!(warnings(&server.run("true")), "", "told once");
    }
}

#[test]
fn a_port_that_is_taken_is_in_the_log_and_the_server_starts() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = format!("[sandbox]\npublish = [{port}]\n");
    let mut command = place.command(&["--sandbox", "workspace"], &config);
    let mut server = support::Server::from_command(command.stderr(Stdio::piped()));
    server.initialize("2025-11-25");
    assert_eq!(server.run("echo x")["output"], "x\n");
    server.close_stdin();
    server.wait();
    let mut log = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains(&format!("cannot publish port {port}: Address already in use")), "{log}");
}

#[test]
fn ports_need_a_sandbox_and_must_be_ports() {
    let place = Place::new();
    let said = place.refused(&["--publish", "80"], "");
    assert!(said.contains("--publish") && said.contains("--sandbox"), "{said}");
    let said = place.refused(&["--sandbox", "workspace", "--publish", "80-9000"], "");
    assert!(said.contains("`80-9000` is not a port"), "{said}");
}
