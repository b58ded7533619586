//! Nothing gets out of both rings, in the way it should not, whoever tries.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../cli/tests/leaks/mod.rs"]
mod leaks;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use leaks::{Attempt, Fixture, Mode, Who};

const NOBODY: u32 = 65534;

/// What nothing but a ring can hold.
const ONLY_RINGS_HOLD: &[&str] = &["sees what others run"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sandbox {
    Off,
    Rings,
    /// Reading only: it can do nothing else.
    SealAlone,
}

// One after the other: the sockets of one attempt are part of the machine to the next.
#[test]
fn every_attempt_gets_out_of_no_sandbox_and_is_held_by_one() {
    let wrong = each(|attempt, user| {
        let [off, rings, seal] = [Sandbox::Off, Sandbox::Rings, Sandbox::SealAlone]
            .map(|sandbox| Try::make(attempt, user, sandbox));
        let known = ONLY_RINGS_HOLD.contains(&attempt.name.as_str());
        let wrong = [
            ("is no leak", !off.got_out),
            ("gets out", rings.got_out),
            ("is held by something else", !attempt.is_held(&rings.said)),
            ("gets out of a seal", seal.got_out != known),
        ];
        let (what, _) = wrong.iter().find(|(_, wrong)| *wrong)?;
        Some(format!("{} ({user:?}) {what}: {rings:?}", attempt.name))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with attempts, for whoever could be the one to make them.
fn each(wrong: impl Fn(&Attempt, Option<u32>) -> Option<String>) -> Vec<String> {
    let root = rustix::process::geteuid().is_root();
    let users = if root { vec![None, Some(NOBODY)] } else { vec![None] };
    let attempts = Attempt::all();
    let pairs = users.iter().flat_map(|user| attempts.iter().map(move |it| (it, *user)));
    pairs
        .filter(|(attempt, user)| attempt.who == Who::Anybody || (root && user.is_none()))
        .filter_map(|(attempt, user)| wrong(attempt, user))
        .collect()
}

#[derive(Debug)]
struct Try {
    got_out: bool,
    said: String,
}

impl Try {
    fn make(attempt: &Attempt, user: Option<u32>, sandbox: Sandbox) -> Self {
        let fixture = Fixture::make(user);
        let mut line = options(attempt, &fixture, sandbox);
        line.extend(["sh".into(), "-c".into(), attempt.command(&fixture).into()]);
        // Whoever starts us may have left something open.
        let open = fixture.fill("exec 9< @HOME@/notes.txt; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &open, "sh"]).args(line).current_dir(fixture.work());
        if let Some(user) = user {
            command.uid(user).gid(user).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        }
        command.env("HOME", fixture.home()).env("SSH_AUTH_SOCK", fixture.home().join("agent.sock"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let got_out = output.status.success() | left(attempt, &fixture);
        let said = [output.stdout, output.stderr].concat();
        Self { got_out, said: String::from_utf8_lossy(&said).into_owned() }
    }
}

fn options(attempt: &Attempt, fixture: &Fixture, sandbox: Sandbox) -> Vec<OsString> {
    if sandbox == Sandbox::Off {
        return Vec::new();
    }
    let mut line: Vec<OsString> = vec![env!("CARGO_BIN_EXE_mcpz-inside").into()];
    line.extend(["--home".into(), fixture.home().into()]);
    line.extend(["--hide".into(), fixture.hidden().into()]);
    if sandbox == Sandbox::SealAlone {
        line.extend(["--alone".into(), fixture.private().into()]);
    }
    if sandbox == Sandbox::SealAlone || attempt.mode == Mode::ReadOnly {
        line.push("--read-only".into());
    }
    line.extend(attempt.net.then(|| "--net".into()));
    line
}

/// Whether something is there that tells; it is not any more.
fn left(attempt: &Attempt, fixture: &Fixture) -> bool {
    let Some(path) = attempt.leaves.as_ref().map(|path| fixture.fill(path)) else { return false };
    Path::new(&path).exists() && std::fs::remove_file(path).is_ok()
}
