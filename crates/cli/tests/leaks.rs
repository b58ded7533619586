//! Nothing gets out of a sandbox in a way it should not, whoever tries.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[path = "leaks/mod.rs"]
mod attempts;
mod support;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use attempts::{Attempt, Fixture, Mode, Who};
use serde_json::json;
use support::Server;
use support::sandbox::{PLAIN_PATH, Place, programs_without};

/// What no command is given, in a sandbox or not.
const NEVER_OUT: &[&str] = &["uses an inherited descriptor"];

/// What nothing but a ring can hold.
const ONLY_RINGS_HOLD: &[&str] = &["sees what others run"];

#[test]
fn every_attempt_of_root_gets_out_of_no_sandbox_and_is_held_by_one() {
    if rustix::process::geteuid().is_root() {
        assert_held(&Place::new(), |_| true);
    }
}

#[test]
fn every_attempt_of_somebody_ordinary_gets_out_of_no_sandbox_and_is_held_by_one() {
    assert_held(&Place::ordinary(), |attempt| attempt.who == Who::Anybody);
}

/// Makes all attempts that somebody could make: without a sandbox, in each kind of one, and where
/// there is no bubblewrap.
fn assert_held(place: &Place, possible: impl Fn(&Attempt) -> bool) {
    let attempts: Vec<_> = Attempt::all().into_iter().filter(possible).collect();
    let mut wrong = not_leaking(place, &attempts);
    let workspace = attempts.iter().filter(|it| it.mode == Mode::Workspace);
    let (networked, alone): (Vec<_>, Vec<_>) = workspace.partition(|it| it.net);
    let as_said = |attempt: &Attempt, said: &str| attempt.is_held(said);
    wrong.extend(escaped(place, &["--sandbox", "workspace"], &alone, as_said));
    let net = ["--sandbox", "workspace", "--net", "on"];
    wrong.extend(escaped(place, &net, &networked, as_said));
    // What is tried needs a file of its own first, and so other words are said.
    let all: Vec<_> = attempts.iter().collect();
    wrong.extend(escaped(place, &["--sandbox", "read-only"], &all, |_, _| true));
    wrong.extend(escaped_from_seals(place, &attempts));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Those attempts that get out, or are held by something else than what should hold them.
fn escaped(
    place: &Place,
    flags: &[&str],
    attempts: &[&Attempt],
    held: fn(&Attempt, &str) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let fixture = Fixture::make(place.user);
    let mut server = start(place, &fixture, flags, PLAIN_PATH);
    for attempt in attempts {
        let tried = Try::make(&mut server, attempt, &fixture);
        if tried.got_out || !held(attempt, &tried.said) {
            wrong.push(format!("{} in {flags:?}: {tried:?}", attempt.name));
        }
    }
    wrong
}

/// The same where there is no bubblewrap.
fn escaped_from_seals(place: &Place, attempts: &[Attempt]) -> Vec<String> {
    let mut wrong = Vec::new();
    let (programs, fixture) = (programs_without("bwrap"), Fixture::make(place.user));
    let path = programs.path().to_str().unwrap();
    let mut server = start(place, &fixture, &["--sandbox", "read-only"], path);
    for attempt in attempts {
        let tried = Try::make(&mut server, attempt, &fixture);
        if tried.got_out != ONLY_RINGS_HOLD.contains(&attempt.name.as_str()) {
            wrong.push(format!("{} with a seal alone: {tried:?}", attempt.name));
        }
    }
    wrong
}

/// Those attempts that do not get out where nothing holds them, and prove nothing.
fn not_leaking(place: &Place, attempts: &[Attempt]) -> Vec<String> {
    let mut wrong = Vec::new();
    let first = Fixture::make(place.user);
    let mut server = start(place, &first, &["--sandbox", "off"], PLAIN_PATH);
    for attempt in attempts {
        // What gets out leaves nothing as it was.
        let fixture = Fixture::make(place.user);
        let tried = Try::make(&mut server, attempt, &fixture);
        if tried.got_out == NEVER_OUT.contains(&attempt.name.as_str()) {
            wrong.push(format!("{} is no leak: {tried:?}", attempt.name));
        }
    }
    wrong
}

/// A server that works in a fixture, started by somebody who has left something open.
fn start(place: &Place, fixture: &Fixture, flags: &[&str], path: &str) -> Server {
    let config = place.home().join("config.toml");
    fs::write(&config, format!("[sandbox]\ndeny_read = [{:?}]\n", fixture.hidden())).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9< \"$0\"; exec \"$@\""]).arg(fixture.home().join("notes.txt"));
    command.arg(place.program()).args(["server", "shell", "--config"]).arg(config).args(flags);
    place.run_as_user(&mut command);
    command.current_dir(fixture.work()).env("XDG_STATE_HOME", place.state()).env("PATH", path);
    command.env("XDG_CACHE_HOME", place.state().join("cache"));
    command.env("HOME", fixture.home()).env("SSH_AUTH_SOCK", fixture.home().join("agent.sock"));
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}

#[derive(Debug)]
struct Try {
    got_out: bool,
    said: String,
}

impl Try {
    fn make(server: &mut Server, attempt: &Attempt, fixture: &Fixture) -> Self {
        let before = files(&fixture.work());
        let reply = server.call(json!({
            "command": attempt.command(fixture),
            "working_directory": fixture.work(),
            "timeout": 20,
        }));
        let code = reply["return_code"].as_i64().unwrap();
        assert!(code >= 0, "{} has not run: {reply}", attempt.name);
        let left = attempt.leaves.as_ref().map(|path| fixture.fill(path));
        let left = left.is_some_and(|path| fs::remove_file(path).is_ok());
        let stays = |name: &String| fixture.work().join(name).symlink_metadata().is_ok();
        let stays = attempt.taken.as_ref().map(stays);
        // The next one finds what this one found.
        fs::set_permissions(fixture.work(), Permissions::from_mode(0o755)).unwrap();
        for path in files(&fixture.work()).difference(&before) {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
        }
        let said = format!("{}{}", reply["output"].as_str().unwrap(), reply["warnings"]);
        Self { got_out: stays.unwrap_or(code == 0 || left), said }
    }
}

/// What is in the folder to work in, and in git's.
fn files(work: &Path) -> BTreeSet<PathBuf> {
    let folders = [work.to_owned(), work.join(".git")];
    let entries = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
