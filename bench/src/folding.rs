//! A large log folded: how long that takes, beside a search for a regular expression in the same log, and how much
//! memory.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::Bench;
use crate::client::Client;
use crate::processes::peak_memory;
use crate::statistics::{median, timed};
use crate::table::{Row, Target};

/// How large the log is.
const SIZE: u64 = 100_000_000;

/// After so many lines of a kind there is an error, and then lines of the next kind.
const STRETCH: u64 = 10_000;

/// What is searched for.
const PATTERN: &str = "request [0-9]+ (failed|was lost)";

pub fn measure(bench: &Bench) -> Vec<Row> {
    let size = SIZE.min(bench.effort.volume);
    let folder = bench.folder("folding");
    let log = folder.join("log");
    let errors = write_log(&log, size);
    let mut server = bench.server();
    server.args(["--tools", "shell_exec,read_file_chunk", "-t", "600"]);
    let mut client = Client::start(server);
    let command = format!("cat '{}'", log.display());
    let answer = client.call("shell_exec", &json!({"cmd": command}));
    let uri = answer["result"]["structuredContent"]["spill_uri"].as_str();
    let uri = uri.expect("it does not fit").to_owned();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..bench.effort.takes {
        bare.push(timed(|| assert_eq!(grep(&log), errors)));
        ours.push(timed(|| assert_eq!(fold(&mut client, &uri), errors)));
    }
    let peak = peak_memory(client.pid()) as f64 / 1e6;
    drop(client);
    fs::remove_dir_all(&folder).expect("the files are ours");
    let size = size / 1_000_000;
    vec![
        Row::new(format!("{size} MB of log folded, s"), median(&ours))
            .bare(median(&bare))
            .target(Target::TimesBare(3.0)),
        Row::new(format!("{size} MB of log folded, peak memory, MB"), peak)
            .target(Target::AtMost(30.0)),
    ]
}

/// Writes a log of this size at least, and returns how many errors are in it.
fn write_log(path: &Path, size: u64) -> usize {
    const NAMES: [&str; 7] = ["apple", "pear", "plum", "fig", "kiwi", "lime", "date"];
    let mut file = BufWriter::new(File::create(path).expect("there is room"));
    let name = |number: u64| NAMES[(number % 7) as usize];
    let (mut written, mut number, mut errors, mut line) = (0, 0_u64, 0, String::new());
    while written < size || errors == 0 {
        line.clear();
        let (hour, minute, second) = (number / 360_000 % 24, number / 6000 % 60, number / 100 % 60);
        let _ =
            write!(line, "2026-11-18T{hour:02}:{minute:02}:{second:02}.{:03} ", number * 10 % 1000);
        // Any numbers, of several lengths.
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let some = random % 90_000;
        let _ = if number % STRETCH == STRETCH - 1 {
            errors += 1;
            writeln!(line, "ERROR request {number} failed: connection refused")
        } else {
            match (number / STRETCH % 4, number % 2) {
                (0, _) => writeln!(line, "INFO request {number} served in {some} ms"),
                (1, _) => writeln!(line, "DEBUG layer {random:012x} unpacked in {some} ms"),
                (2, _) => {
                    let (first, last) = (name(some), name(some / 7));
                    writeln!(line, "INFO copied /srv/data/{first}-{last}.txt, {some} bytes")
                }
                (_, 0) => writeln!(line, "INFO request {number} from 10.0.0.{}", some % 250),
                _ => writeln!(line, "DEBUG cache miss for key user:{some}"),
            }
        };
        file.write_all(line.as_bytes()).expect("there is room");
        written += line.len() as u64;
        number += 1;
    }
    file.flush().expect("there is room");
    errors
}

/// Folds the whole log, page by page, and returns how many errors are shown.
fn fold(client: &mut Client, uri: &str) -> usize {
    let (mut errors, mut cursor) = (0, json!("bytes:0"));
    while cursor.is_string() {
        let arguments = json!({"uri": uri, "view": "folded", "cursor": cursor});
        let answer = client.call("read_file_chunk", &arguments);
        let page = &answer["result"]["structuredContent"];
        errors += page["data"].as_str().expect("it is text").matches("failed: ").count();
        cursor = page["next_cursor"].clone();
    }
    errors
}

/// How many lines match.
fn grep(log: &Path) -> usize {
    let output = Command::new("grep").args(["-cE", PATTERN]).arg(log).output();
    let output = output.expect("there is a grep");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("grep counts")
}
