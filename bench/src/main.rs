//! How fast mcpz is.
//!
//! mcpz is compared with two baselines, in the same run and turn by turn: the same process without a server (bare),
//! and a minimal server (minimal).
//! Only the ratios mean anything; the machine's other work moves all of them.
//!
//!     mcpz-bench [--quick] [--scale | --tokens | --places LIST | --owners LIST] [--write FOLDER] [MCPZ]

mod bare;
mod client;
mod company;
mod effort;
mod folding;
mod guest;
mod hardship;
mod http;
mod judging;
mod lock;
mod minimal;
mod owners;
mod picture;
mod places;
mod processes;
mod publish;
mod rest;
mod runner;
mod scale;
mod short;
mod soak;
mod statistics;
mod streaming;
mod table;
mod tokens;
mod volume;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use effort::Effort;
use http::HttpClient;
use table::Row;

/// What is measured, with how much effort, and where.
struct Bench {
    program: PathBuf,
    /// This program, which is also the minimal server.
    own: PathBuf,
    effort: Effort,
    /// For records, logs and output; removed in the end.
    scratch: PathBuf,
    logs: Cell<usize>,
}

fn main() {
    let own = std::env::current_exe().expect("a program has a path");
    let mut effort = Effort::FULL;
    let (mut folder, mut scale, mut tokens) = (None, false, false);
    let (mut list, mut crowded) = (None, None);
    let mut program = own.with_file_name("mcpz");
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("minimal") => return minimal::serve(arguments.next().is_some()),
            Some("tick") => {
                let count = arguments.next().and_then(|count| count.to_str()?.parse().ok());
                return streaming::tick(count.expect("a number of lines"));
            }
            Some("--scale") => scale = true,
            Some("--tokens") => tokens = true,
            Some("--places") => list = Some(arguments.next().expect("a list of places")),
            Some("--owners") => crowded = Some(arguments.next().expect("a list of places")),
            Some("--quick") => effort = Effort::QUICK,
            Some("--trial") => effort = Effort::TRIAL,
            Some("--write") => folder = Some(arguments.next().expect("a folder to write to")),
            _ => program = PathBuf::from(argument),
        }
    }
    let program = program.canonicalize().expect("mcpz is built: cargo build --release");
    let bench = Bench::new(program, own, effort);
    let machine = publish::machine(&bench.version());
    show(format_args!("{machine}:\n"));
    let folder = folder.as_ref().map(Path::new);
    if scale {
        show(scale::HEAD);
        let lines = scale::measure(&bench, |line| show(line));
        folder.inspect(|folder| publish::write_scale(folder, &lines, &machine));
        return;
    }
    if tokens {
        show(tokens::head());
        let lines = tokens::measure(&bench, |line| show(line));
        show(format_args!("\n{}", tokens::targets(&lines)));
        tokens::check(&lines);
        folder.inspect(|folder| publish::write_tokens(folder, &lines, &machine));
        return;
    }
    if let Some(list) = list {
        show(places::HEAD);
        let lines = places::measure(&bench, Path::new(&list), |line| show(line));
        folder.inspect(|folder| publish::write_places(folder, &lines, &machine));
        return;
    }
    if let Some(list) = crowded {
        show(owners::HEAD);
        let lines = owners::measure_all(&bench, Path::new(&list), |line| show(line));
        folder.inspect(|folder| publish::write_owners(folder, &lines, &machine));
        return;
    }
    let rows = bench.measure();
    folder.inspect(|folder| publish::write(folder, &rows, &machine));
}

impl Bench {
    fn new(program: PathBuf, own: PathBuf, effort: Effort) -> Self {
        let scratch = std::env::temp_dir().join(format!("mcpz-bench-{}", std::process::id()));
        std::fs::create_dir(&scratch).expect("there is room for files");
        Self { program, own, effort, scratch, logs: Cell::new(0) }
    }

    /// Measures everything, and shows it as it comes.
    fn measure(&self) -> Vec<Row> {
        show(table::HEAD);
        let parts = [
            short::latency,
            short::throughput,
            rest::measure,
            volume::measure,
            folding::measure,
            streaming::measure,
            hardship::flood,
            hardship::kill_tree,
            company::measure,
            soak::measure,
            judging::measure,
            lock::measure,
        ];
        let mut rows = Vec::new();
        for part in parts {
            let measured = part(self);
            measured.iter().for_each(show);
            rows.extend(measured);
        }
        rows
    }

    fn version(&self) -> String {
        let output = self.mcpz().arg("--version").output().expect("mcpz starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A new folder to work in.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.scratch.join(name);
        std::fs::create_dir(&folder).expect("there is room for files");
        folder
    }

    /// Mcpz as it comes: nobody's settings, and its records in nobody's home.
    fn mcpz(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_remove("MCPZ_CONFIG");
        command.env("XDG_CONFIG_HOME", &self.scratch).env("XDG_STATE_HOME", &self.scratch);
        command
    }

    fn server(&self) -> Command {
        let mut command = self.mcpz();
        command.args(["server", "shell"]);
        command
    }

    fn http_server(&self) -> Command {
        let mut command = self.server();
        command.args(["--http", "--bind", "127.0.0.1:0"]).env("MCP_HTTP_TOKEN", http::TOKEN);
        command
    }

    fn minimal(&self) -> Command {
        let mut command = Command::new(&self.own);
        command.arg("minimal");
        command
    }

    fn minimal_http(&self) -> Command {
        let mut command = self.minimal();
        command.arg("--http");
        command
    }

    fn over_http(&self, server: Command) -> HttpClient {
        self.logs.set(self.logs.get() + 1);
        HttpClient::start(server, &self.scratch.join(format!("log-{}", self.logs.get())))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

#[expect(clippy::print_stdout, reason = "a table is what this program is for")]
fn show(line: impl std::fmt::Display) {
    println!("{line}");
}
