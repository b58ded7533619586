//! What it takes that the kernel holds commands to the policy: the same commands by the same policy, with and without
//! its lock.

use std::path::Path;
use std::process::Command;

use crate::Bench;
use crate::client::Client;
use crate::runner::{NOTHING, Runner};
use crate::statistics::median;
use crate::table::{Row, Target};

/// How many files the project has.
const FILES: usize = 12;

/// How many runs of a longer command count as many as a block of short ones.
const LONGER: usize = 10;

pub fn measure(bench: &Bench) -> Vec<Row> {
    let folder = bench.folder("locked");
    project(&folder);
    let Some(mut pair) = Pair::start(bench, &folder) else { return Vec::new() };
    let calls = bench.effort.calls;
    let make = format!("make -s -B -j4 -C '{}'", folder.display());
    let status = format!("git -C '{}' status", folder.display());
    vec![
        pair.row("`true`", NOTHING, calls).target(Target::AtMost(1.2)),
        pair.row("`/bin/true`", "/bin/true", calls),
        pair.row("`git status`", &status, calls).target(Target::AtMost(1.1)),
        pair.row("`make -j4`", &make, (calls / LONGER).max(1)).target(Target::AtMost(1.1)),
    ]
}

/// Two servers with the same policy, the first with the lock.
struct Pair([Client; 2]);

impl Pair {
    /// If this machine has what it takes.
    fn start(bench: &Bench, folder: &Path) -> Option<Self> {
        let config = |lock: bool| {
            let path = folder.join(format!("lock-{lock}.toml"));
            let allow = r#"["true", "/bin/true", "git", "make"]"#;
            let text = format!("[policy]\nallow = {allow}\nlock = {lock}\n");
            std::fs::write(&path, text).expect("there is room for files");
            path
        };
        let mut trial = bench.mcpz();
        trial.arg("call").arg("--config").arg(config(true));
        trial.args(["execute_command", "command=true"]);
        let works = trial.output().expect("mcpz starts").status.success();
        let start = |lock| {
            let mut server = bench.server();
            server.arg("--config").arg(config(lock));
            Client::start(server)
        };
        works.then(|| Self([start(true), start(false)]))
    }

    /// How many times longer a command takes with the lock.
    fn row(&mut self, name: &str, command: &str, calls: usize) -> Row {
        for client in &mut self.0 {
            client.run(command);
        }
        let mut took = [const { Vec::new() }; 2];
        for round in 0..calls {
            for turn in 0..2 {
                let who = (round + turn) % 2;
                took[who].push(self.0[who].run(command));
            }
        }
        let [locked, open] = took.map(|took| median(&took));
        Row::new(format!("{name} by a policy that the kernel holds, ×"), locked / open)
    }
}

/// A small C project under version control.
fn project(folder: &Path) {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("there is room for files");
    };
    let mut objects = String::new();
    for number in 0..FILES {
        let name = format!("part{number}");
        write(
            &format!("{name}.c"),
            format!("#include <stdio.h>\nint {name}(int x) {{ return printf(\"%d\", x); }}\n"),
        );
        objects = format!("{objects} {name}.o");
    }
    write("main.c", "int main(void) { return 0; }\n".to_owned());
    write("Makefile", format!("all: main.o{objects}\n\tcc -o program main.o{objects}\n"));
    let done = Command::new("git").args(["init", "-q"]).current_dir(folder).status();
    assert!(done.is_ok_and(|status| status.success()), "git is installed");
}
