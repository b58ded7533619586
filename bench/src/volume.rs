//! A lot of output: how long it takes to take it in, and to look through it.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::client::Client;
use crate::processes::memory_of_tree;
use crate::statistics::{median, timed};
use crate::table::{Panel, Row, Target};
use crate::{Bench, bare};

/// Bytes of a line. Each has its number.
const LINE: u64 = 100;

pub fn measure(bench: &Bench) -> Vec<Row> {
    let lines = bench.effort.volume / LINE;
    let size = match bench.effort.volume >> 20 {
        1024 => "1 GiB".to_owned(),
        size => format!("{size} MiB"),
    };
    let folder = bench.folder("volume");
    let source = folder.join("source");
    write_lines(&source, lines);
    let command = format!("cat '{}'", source.display());
    let copy = folder.join("copy");
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    // What was written is removed each time: memory that was never used before is slow, and must
    // not be one side's alone.
    for _ in 0..bench.effort.takes {
        bare.push(timed(|| plain_reader(&command, &copy)));
        std::fs::remove_file(&copy).expect("the file is ours");
        let mut client = start(bench);
        ours.push(timed(|| drop(take_in(&mut client, &command, lines))));
    }
    let mut rows = vec![
        Row::new(format!("{size} taken in, s"), median(&ours))
            .bare(median(&bare))
            .target(Target::TimesBare(1.0))
            .drawn(Panel::Time),
    ];
    let mut client = start(bench);
    let uri = take_in(&mut client, &command, lines);
    let memory = memory_of_tree(client.pid()) as f64 / 1e6;
    rows.push(Row::new(format!("{size} kept, memory (PSS), MB"), memory));
    let last = format!("{:099}", lines - 1);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..bench.effort.takes {
        bare.push(timed(|| grep(&source, &last)));
        ours.push(timed(|| {
            let answer = client.call("read_file_chunk", &json!({"uri": uri, "grep": last}));
            assert_eq!(answer["result"]["structuredContent"]["total_bytes"], LINE, "{answer}");
        }));
    }
    let row = Row::new(format!("grep over {size}, s"), median(&ours)).bare(median(&bare));
    rows.push(row.drawn(Panel::Time));
    for (name, line) in [("first", 0), ("middle", lines / 2), ("last", lines - 1)] {
        let took = page(&mut client, &uri, line);
        rows.push(Row::new(format!("{name} page of {size}, ms"), took * 1e3));
    }
    drop(client);
    std::fs::remove_dir_all(&folder).expect("the files are ours");
    rows
}

fn start(bench: &Bench) -> Client {
    let mut server = bench.server();
    server.args(["--tools", "shell_exec,read_file_chunk", "-t", "600"]);
    Client::start(server)
}

/// Runs the command and returns where its output can be read.
fn take_in(client: &mut Client, command: &str, lines: u64) -> String {
    let answer = client.call("shell_exec", &json!({"cmd": command}));
    let reply = &answer["result"]["structuredContent"];
    assert_eq!(reply["total_bytes"], lines * LINE, "{answer}");
    reply["spill_uri"].as_str().expect("it does not fit").to_owned()
}

/// Reads one line and says how long it took.
fn page(client: &mut Client, uri: &str, line: u64) -> f64 {
    let cursor = format!("bytes:{}", line * LINE);
    let arguments = json!({"uri": uri, "cursor": cursor, "limit_bytes": LINE});
    timed(|| {
        let answer = client.call("read_file_chunk", &arguments);
        assert_eq!(answer["result"]["structuredContent"]["data"], format!("{line:099}\n"));
    })
}

fn write_lines(path: &Path, lines: u64) {
    let mut file = BufWriter::new(File::create(path).expect("there is room"));
    for line in 0..lines {
        writeln!(file, "{line:099}").expect("there is room");
    }
    file.flush().expect("there is room");
}

/// What no recorder can do without: read the pipe, write the file.
fn plain_reader(command: &str, copy: &Path) {
    let (mut shell, mut pipe) = bare::spawn(command);
    let mut file = File::create(copy).expect("there is room");
    let mut buffer = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut buffer).expect("the pipe is open") {
            0 => break,
            length => file.write_all(&buffer[..length]).expect("there is room"),
        }
    }
    shell.wait().expect("it ends");
}

fn grep(path: &Path, pattern: &str) {
    let output = Command::new("grep").arg(pattern).arg(path).output().expect("there is a grep");
    assert_eq!(BufReader::new(output.stdout.as_slice()).lines().count(), 1);
}
