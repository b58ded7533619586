//! A lot of output: how long it takes to take it in, and to look through it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::client::Client;
use crate::{compare, median, memory, report, timed};

/// Numbered lines of a hundred bytes, a gibibyte of them.
const LINES: u64 = (1 << 30) / 100;

const PATTERN: &str = "7777777$";

pub fn measure(program: &Path) {
    let folder = std::env::temp_dir().join(format!("mcpz-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("there is room for files");
    let source = folder.join("source");
    write_lines(&source);
    let command = format!("cat {}", source.display());
    let copy = folder.join("copy");
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    // What was written is removed each time: memory that was never used before is slow, and must
    // not be one side's alone.
    for _ in 0..5 {
        floor.push(timed(|| plain_reader(&command, &copy)));
        std::fs::remove_file(&copy).expect("the file is ours");
        let mut client = start(program);
        ours.push(timed(|| drop(take_in(&mut client, &command))));
    }
    compare("1 GiB taken in, s", median(ours), median(floor));
    let mut client = start(program);
    let uri = take_in(&mut client, &command);
    let memory = memory::of_tree(client.pid()) as f64 / 1e6;
    report("1 GiB kept, memory (PSS), MB", &format!("{memory:.1}"), "", "");
    let floor = timed(|| grep(&source));
    let ours = timed(|| {
        let answer = client.call("read_file_chunk", &json!({"uri": uri, "grep": PATTERN}));
        assert_eq!(answer["result"]["structuredContent"]["total_bytes"], 100, "{answer}");
    });
    compare("grep over 1 GiB, s", ours, floor);
    for (name, at) in [("first", 0), ("middle", LINES * 50), ("last", LINES * 100 - 100)] {
        let arguments = json!({"uri": uri, "cursor": format!("bytes:{at}"), "limit_bytes": 100});
        let mut data = String::new();
        let took = timed(|| {
            let answer = client.call("read_file_chunk", &arguments);
            let chunk = &answer["result"]["structuredContent"]["data"];
            data = chunk.as_str().expect("it is text").to_owned();
        });
        assert_eq!(data, format!("{:099}\n", at / 100));
        report(&format!("{name} page of 1 GiB, ms"), &format!("{:.2}", took * 1e3), "", "");
    }
    drop(client);
    std::fs::remove_dir_all(&folder).expect("the files are ours");
}

fn start(program: &Path) -> Client {
    Client::start_with(program, &["--tools", "shell_exec,read_file_chunk", "-t", "600"])
}

/// Runs the command and returns where its output can be read.
fn take_in(client: &mut Client, command: &str) -> String {
    let answer = client.call("shell_exec", &json!({"cmd": command}));
    let reply = &answer["result"]["structuredContent"];
    assert_eq!(reply["total_bytes"], LINES * 100, "{answer}");
    reply["spill_uri"].as_str().expect("it does not fit").to_owned()
}

fn write_lines(path: &Path) {
    let mut file = std::io::BufWriter::new(File::create(path).expect("there is room"));
    for line in 0..LINES {
        writeln!(file, "{line:099}").expect("there is room");
    }
    file.flush().expect("there is room");
}

/// What no recorder can do without: read the pipe, write the file.
fn plain_reader(command: &str, copy: &Path) {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", command])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell starts");
    let mut pipe = shell.stdout.take().expect("it was asked for");
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

fn grep(path: &Path) {
    let output = Command::new("grep").arg(PATTERN).arg(path).output().expect("there is a grep");
    assert_eq!(BufReader::new(output.stdout.as_slice()).lines().count(), 1);
}
