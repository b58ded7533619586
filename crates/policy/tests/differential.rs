//! Compares the parser with real shells: every stub program that a shell runs must be a command the parser
//! found, unless it refused the script.
//!
//! Scripts run in bubblewrap, with nothing on the `PATH` but stubs that record that they ran.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

#[path = "differential/generator.rs"]
mod generator;
#[path = "differential/values.rs"]
mod values;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use generator::{Generator, STUBS};
use mcpz_policy::{Policy, Rule, Scene, Shell, Verdict};

/// How many scripts run in one sandbox.
const BATCH: u64 = 250;

/// How a script is generated.
type Writer = fn(&mut Generator) -> String;

/// Runs every script of a folder, each with its own log and directory.
const DRIVER: &str = r#"
cd /tmp
for script in scripts/*; do
    number=${script##*/}
    mkdir -p run/$number && cd run/$number
    text=$(cat /tmp/$script; printf .)
    LOG=/tmp/logs/$number PATH=/tmp/bin /usr/bin/timeout -s KILL 3 "$1" -c "${text%.}" </dev/null >/dev/null 2>&1
    cd /tmp
done
exit 0
"#;

fn denies(script: &str, shell: &str, name: &str) -> bool {
    let policy = Policy { deny: vec![Rule::new(name).unwrap()], ..Policy::default() };
    let scene = Scene::at("/tmp");
    policy.judge(script, shell, &scene).verdict != Verdict::Allow
}

fn install_stubs(folder: &Path) {
    for name in STUBS {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\necho {name} >> $LOG\nexit $((${{#0}} % 2))\n"))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["sh", "bash", "env"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{name}"), folder.join(name)).unwrap();
    }
}

/// The stubs that each script ran.
fn run(scripts: &[String], shell: &str) -> Vec<BTreeSet<String>> {
    let folder = tempfile::tempdir().unwrap();
    for name in ["bin", "scripts", "logs", "run"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    install_stubs(&folder.path().join("bin"));
    for (number, script) in scripts.iter().enumerate() {
        fs::write(folder.path().join("scripts").join(number.to_string()), script).unwrap();
    }
    let status = Command::new("bwrap")
        .args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"])
        .args(["--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/root", "--tmpfs", "/home"])
        .args(["--bind", folder.path().to_str().unwrap(), "/tmp", "--tmpfs", "/run"])
        .args(["--setenv", "HOME", "/tmp", "/bin/sh", "-c"])
        .arg(DRIVER)
        .args(["sh", &format!("/usr/bin/{shell}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("bubblewrap is installed");
    assert!(status.success(), "the sandbox works");
    let log = |number: usize| {
        let text = fs::read_to_string(folder.path().join("logs").join(number.to_string()));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    };
    (0..scripts.len()).map(log).collect()
}

/// Generates, runs and judges; returns how many scripts ran a stub and were understood.
fn compare(seeds: std::ops::Range<u64>, shell: Shell, program: &str, write: Writer) -> usize {
    let scripts: Vec<_> = seeds.map(|seed| write(&mut Generator::new(seed, shell))).collect();
    let mut understood = 0;
    for (script, ran) in scripts.iter().zip(run(&scripts, program)) {
        for name in &ran {
            assert!(denies(script, program, name), "{program} ran {name}:\n{script}\n{script:?}");
        }
        understood +=
            usize::from(!ran.is_empty() && !denies(script, program, "nothing-of-that-name"));
    }
    understood
}

fn all(count: u64, shell: Shell, program: &'static str, write: Writer) -> usize {
    let first =
        std::env::var("DIFFERENTIAL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = std::env::var("DIFFERENTIAL_COUNT")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(count);
    let batches = (first..first + count).step_by(BATCH as usize);
    let end = |start: u64| (start + BATCH).min(first + count);
    batches.map(|start| compare(start..end(start), shell, program, write)).sum()
}

#[test]
fn whatever_bash_runs_was_named_or_refused() {
    let understood = all(2500, Shell::Bash, "bash", Generator::script);
    assert!(understood > 300, "only {understood} scripts were understood: the test tests nothing");
}

#[test]
fn whatever_sh_runs_was_named_or_refused() {
    let understood = all(1500, Shell::Sh, "dash", Generator::script);
    assert!(understood > 200, "only {understood} scripts were understood: the test tests nothing");
}

#[test]
fn whatever_bash_runs_by_way_of_values_was_named_or_refused() {
    let understood = all(2500, Shell::Bash, "bash", Generator::passing_script);
    assert!(understood > 50, "only {understood} scripts were understood: the test tests nothing");
}

#[test]
fn whatever_sh_runs_by_way_of_values_was_named_or_refused() {
    let understood = all(1500, Shell::Sh, "dash", Generator::passing_script);
    assert!(understood > 50, "only {understood} scripts were understood: the test tests nothing");
}
