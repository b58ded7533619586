//! Who has which place, and how many there are.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use support::http::HttpServer;
use support::{children, is_living, wait_until};

/// A server whose owners `a0`, `a1` and so on have places of their own.
fn server(keys: &str) -> HttpServer {
    let mut config = format!(
        "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"process\"\nper = \"owner\"\n{keys}\n[http.tokens]\n"
    );
    for number in 0..OWNERS {
        writeln!(config, "a{number} = \"{}\"", token(number)).unwrap();
    }
    HttpServer::start_with(&[], &config)
}

const OWNERS: usize = 12;

fn token(number: usize) -> String {
    format!("a{number}-0123456789abcdef")
}

/// What a command prints that an owner runs, or the error.
fn run(server: &HttpServer, owner: usize, command: &str) -> String {
    let reply: Value =
        server.tool_by(&token(owner), "execute_command", json!({"command": command}));
    reply["structuredContent"]["output"].as_str().unwrap_or_default().to_owned()
}

/// The process that leads to each place.
fn relays(server: &HttpServer) -> Vec<u32> {
    let is_alive = |pid: &u32| is_living(Path::new(&format!("/proc/{pid}")));
    children(server.child.id()).into_iter().filter(is_alive).collect()
}

fn wait_for_relays(server: &HttpServer, count: usize) {
    let is_it = || (relays(server).len() == count).then_some(());
    wait_until(&format!("there are {count} places"), is_it);
}

/// The process of the agent that a command runs under, which tells places apart.
const AGENT: &str = "ps -o ppid= -p $PPID";

#[test]
fn each_owner_has_a_place_of_its_own_from_its_first_command_on() {
    let server = server("");
    assert!(relays(&server).is_empty());
    let (first, second) = (run(&server, 0, AGENT), run(&server, 1, AGENT));
    assert_ne!(first, second);
    assert_eq!(run(&server, 0, AGENT), first);
    assert_eq!(run(&server, 1, AGENT), second);
    assert_eq!(relays(&server).len(), 2);
    server.wait_for_metric("mcpz_places{place=\"box\"} 2");
}

#[test]
fn as_many_as_wanted_are_ready_before_the_first_command_and_after_it() {
    let server = server("ready = 2\nidle = 1");
    wait_for_relays(&server, 2);
    let ready = relays(&server);
    assert_ne!(run(&server, 0, AGENT), "");
    wait_for_relays(&server, 3);
    // The owner has got one that was there.
    assert_eq!(relays(&server).iter().filter(|pid| ready.contains(pid)).count(), 2);
    // The owner's place ends when it is not used. Those that are nobody's do not.
    wait_for_relays(&server, 2);
    assert_ne!(run(&server, 0, AGENT), "");
}

#[test]
fn many_owners_at_once_do_not_make_more_ready_than_wanted() {
    let server = server("ready = 2\nmax = 13");
    std::thread::scope(|scope| {
        for owner in 0..OWNERS {
            let server = &server;
            scope.spawn(move || assert_eq!(run(server, owner, "echo hi"), "hi\n"));
        }
    });
    // One more would be more than there may be.
    server.wait_for_metric("mcpz_places{place=\"box\"} 13");
    assert!(relays(&server).len() <= 13, "{:?}", relays(&server));
}

#[test]
fn an_owner_too_many_is_refused_and_the_others_go_on() {
    let server = server("max = 2\nready = 5");
    assert_eq!(run(&server, 0, "echo hi"), "hi\n");
    assert_eq!(run(&server, 1, "echo hi"), "hi\n");
    let refused = run(&server, 2, "echo hi");
    assert!(refused.contains("there are already 2 places like `box`"), "{refused}");
    assert_eq!(run(&server, 1, "echo hi"), "hi\n");
    wait_for_relays(&server, 2);
}
