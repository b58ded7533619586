//! Commands in a sandbox use the caches in the home, and change none of them.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::process::Command;

use support::sandbox::{Place, fails, works};
use support::{MCPZ, Server};

const WORKSPACE: [&str; 2] = ["--sandbox", "workspace"];

/// A home with a few caches, and a server that works in it.
fn start(place: &Place, flags: &[&str]) -> Server {
    let mut command = place.command(&[&WORKSPACE, flags].concat(), "");
    command.env("HOME", place.home()).env("XDG_CACHE_HOME", place.home().join(".cache"));
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}

fn cache(place: &Place, subcommand: &str) -> String {
    let mut command = Command::new(MCPZ);
    command.args(["cache", subcommand]).env("HOME", place.home());
    command.env("XDG_CACHE_HOME", place.home().join(".cache"));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn what_commands_write_to_caches_is_there_the_next_time_and_not_outside() {
    let place = Place::new();
    place.write(".npm/_cacache/old", "outside");
    place.write(".cargo/registry/index", "outside");
    place.write(".cargo/config.toml", "[build]");
    place.write(".cargo/credentials.toml", "hunter2");
    let before = fs::read_dir(place.home()).unwrap().count();
    let mut server = start(&place, &[]);
    assert_eq!(
        works(&mut server, "cat ~/.npm/_cacache/old ~/.cargo/config.toml"),
        "outside[build]"
    );
    works(&mut server, "echo inside > ~/.npm/_cacache/old; echo x > ~/.npm/new; mkdir ~/.npm/d");
    works(&mut server, "echo x > ~/.cargo/.package-cache; rm ~/.cargo/registry/index");
    works(&mut server, "echo x > ~/.cache/pip/x; echo x > ~/.cache/new; mkdir -p ~/.cache/other/a");
    works(&mut server, "echo x > ~/.local/lib/x; echo x > ~/go/pkg/x; echo x > ~/.m2/repository/x");
    for command in [
        "cat ~/.cargo/credentials.toml",
        "echo x > ~/.cargo/config.toml",
        "echo x > ~/.bashrc",
        "echo x > ~/go/x",
        "echo x > ~/.local/x",
        "ls ~/.cache/mcpz",
        "ls /run/.layers",
    ] {
        fails(&mut server, command);
    }
    drop(server);
    assert_eq!(fs::read_to_string(place.home().join(".npm/_cacache/old")).unwrap(), "outside");
    assert_eq!(fs::read_dir(place.home().join(".npm")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(place.home().join(".cargo")).unwrap().count(), 3);
    // The layers are new.
    assert_eq!(fs::read_dir(place.home()).unwrap().count(), before + 1);
    assert_eq!(fs::read_dir(place.home().join(".cache")).unwrap().count(), 1);

    let mut server = start(&place, &[]);
    let kept =
        works(&mut server, "cat ~/.npm/_cacache/old; ls ~/.cargo/registry ~/.npm; ls ~/.cache");
    assert!(
        kept.starts_with("inside\n") && kept.contains("new") && !kept.contains("index"),
        "{kept}"
    );
    assert!(kept.contains("other"), "{kept}");
    assert!(cache(&place, "clear").contains(" of one sandbox, in use"));
    drop(server);
    assert!(cache(&place, "show").contains(" MB of one sandbox\n"));
    assert!(cache(&place, "clear").ends_with(": empty\n"));
    let mut server = start(&place, &[]);
    assert_eq!(works(&mut server, "cat ~/.npm/_cacache/old"), "outside");
}

#[test]
fn another_sandbox_has_caches_of_its_own() {
    let place = Place::new();
    place.write(".npm/old", "outside");
    let (mut one, mut two) = (start(&place, &[]), start(&place, &[]));
    works(&mut one, "echo one > ~/.npm/old");
    assert_eq!(works(&mut two, "cat ~/.npm/old"), "outside");
    let elsewhere = place.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut other = start(&place, &["--working-dir", elsewhere.to_str().unwrap()]);
    assert_eq!(works(&mut other, "cat ~/.npm/old"), "outside");
}

#[test]
fn a_folder_that_commands_may_write_is_no_cache() {
    let place = Place::new();
    place.write(".npm/old", "outside");
    let npm = place.home().join(".npm");
    let mut server = start(&place, &["--write", npm.to_str().unwrap()]);
    works(&mut server, "echo inside > ~/.npm/old");
    assert_eq!(fs::read_to_string(npm.join("old")).unwrap(), "inside\n");
}

#[test]
fn without_room_for_caches_they_are_read_only() {
    let place = Place::new();
    place.write(".npm/old", "outside");
    let mut command = place.command(&WORKSPACE, "[sandbox]\ncache_size = 0\n");
    let mut server = Server::from_command(command.env("HOME", place.home()));
    server.initialize("2025-11-25");
    assert_eq!(works(&mut server, "cat ~/.npm/old"), "outside");
    fails(&mut server, "echo x > ~/.npm/old");
}
