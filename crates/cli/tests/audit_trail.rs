//! The audit trail as files: what was done to it shows, and people can read it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::json;
use support::audit::{audit, edit, file, folder, settled, start, verify};
use support::{MCPZ, Server};

#[test]
fn verify_tells_what_is_wrong_and_where() {
    type Case = (fn(&mut Vec<String>), &'static str);
    let cases: [Case; 5] = [
        (
            |lines| lines[2] = lines[2].replace("echo 2", "echo 3"),
            ", line 3: this record was changed, or was not written with this key\n",
        ),
        (|lines| drop(lines.remove(3)), ", line 4: record 4 is missing before this one\n"),
        (|lines| drop(lines.drain(4..)), ": records 5 to 6 are missing at the end\n"),
        (|lines| lines.swap(0, 1), ", line 2: record 1 is out of order\n"),
        (|lines| lines.push("{\"seq\":7}".into()), ", line 7: this is not a record\n"),
    ];
    for (change, expected) in cases {
        let state = support::state();
        let mut server = start(&state, "");
        for number in 1..=3 {
            server.run(&format!("echo {number}"));
        }
        drop(server);
        assert_eq!(verify(&state), ("6 records in 1 file, none missing\n".to_owned(), 0));
        edit(&file(&state), change);
        let (said, code) = verify(&state);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(&format!("{}{expected}", file(&state).display())), "{said}");
        assert!(said.ends_with("; the trail is not intact\n"), "{said}");
        // Going on hides nothing.
        start(&state, "").run("echo more");
        assert_eq!(verify(&state).1, 1);
    }
    let state = support::state();
    let (said, code) = verify(&state);
    assert!(said.contains("audit.key: No such file or directory") && code == 1, "{said}");
}

#[test]
fn a_trail_that_is_gone_is_missed_while_its_key_is_there() {
    let state = support::state();
    let serve = || {
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell"]).stderr(Stdio::piped());
        command.env("XDG_STATE_HOME", state.path()).env("XDG_CONFIG_HOME", "/nonexistent");
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        server.run("echo hi");
        server.close_stdin();
        server.wait();
        std::io::read_to_string(server.child.stderr.take().unwrap()).unwrap()
    };
    assert_eq!(serve(), "", "the first start is silent");
    std::fs::remove_file(file(&state)).unwrap();
    std::fs::remove_file(folder(&state).join("audit.head")).unwrap();
    let (said, code) = verify(&state);
    assert!(
        said.contains("audit.key: the records are gone, but their key is still here"),
        "{said}"
    );
    assert!(said.contains("remove the key as well to begin a new trail") && code == 1, "{said}");
    let said = serve();
    assert!(said.contains("was removed, but not its key; if you removed it yourself"), "{said}");
    let (said, code) = verify(&state);
    assert!(said.contains(", line 1: all records before this one were removed"), "{said}");
    assert!(
        said.contains("move this folder elsewhere to begin a new trail") && code == 1,
        "{said}"
    );
    assert_eq!(serve(), "", "it was said, and is on record");
    std::fs::remove_dir_all(folder(&state)).unwrap();
    assert_eq!(serve(), "");
    assert_eq!(verify(&state), ("2 records in 1 file, none missing\n".to_owned(), 0));
}

#[test]
fn a_line_that_was_torn_is_repaired_and_told_of() {
    let state = support::state();
    start(&state, "").run("echo 1");
    let mut torn = std::fs::OpenOptions::new().append(true).open(file(&state)).unwrap();
    torn.write_all(b"{\"seq\":3,\"time\":\"2026-0").unwrap();
    start(&state, "").run("echo 2");
    let told = "1 line was cut off while being written\n\
                5 records in 1 file, none missing\n";
    assert_eq!(verify(&state), (told.to_owned(), 0));
    let records = settled(&state);
    assert_eq!((&records[2]["event"], &records[2]["what"]), (&json!("repaired"), &json!("torn")));
    assert_eq!(records[3]["command"], "echo 2");
}

#[test]
fn files_are_put_away_at_their_size_and_the_oldest_go() {
    let state = support::state();
    let mut server = start(&state, "[audit]\nmax_size = \"8KB\"\nkeep = 2\n");
    for _ in 0..40 {
        server.run("echo some words to fill the line");
    }
    drop(server);
    let mut names: Vec<_> = std::fs::read_dir(folder(&state))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".jsonl"))
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 3, "{names:?}");
    let (said, code) = verify(&state);
    assert!(said.contains("were deleted by rotation (see `keep`)\n"), "{said}");
    assert!(said.contains(" records in 3 files, none missing\n") && code == 0, "{said}");
    let old = folder(&state).join(&names[1]);
    let mut changed = 0;
    edit(&old, |lines| {
        changed = lines.iter().position(|line| line.contains("words")).unwrap();
        lines[changed] = lines[changed].replace("words", "swords");
    });
    let (said, code) = verify(&state);
    let expected = format!("{}, line {}: this record was changed", old.display(), changed + 1);
    assert!(said.contains(&expected) && code == 1, "{said}");
    std::fs::remove_file(&old).unwrap();
    let (said, code) = verify(&state);
    assert!(said.contains(&format!("{}: this file is missing\n", old.display())), "{said}");
    assert_eq!(code, 1);
}

#[test]
fn several_servers_share_a_trail() {
    let state = support::state();
    start(&state, "").run("echo some words");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10 {
                let (said, code) = verify(&state);
                assert!(said.ends_with("none missing\n") && code == 0, "while they write: {said}");
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                let mut server = start(&state, "[audit]\nmax_size = \"16KB\"\nkeep = 100\n");
                let calls: Vec<_> = (0..40)
                    .map(|_| server.start_call(json!({"command": "echo some words"})))
                    .collect();
                for call in calls {
                    assert!(server.answer(call)["error"].is_null());
                }
            });
        }
    });
    let (said, code) = verify(&state);
    assert!(said.ends_with("none missing\n") && code == 0, "{said}");
    let lines = audit(&state, &["tail", "-n", "1000"]).0;
    assert_eq!(lines.lines().filter(|line| line.contains(" run ")).count(), 121);
    assert_eq!(lines.lines().filter(|line| line.contains(" exit 0 ")).count(), 121);
}

#[test]
fn tail_and_show_are_for_people() {
    let state = support::state();
    let mut server = start(&state, "[policy]\ndeny = [\"rm*\"]\n");
    server.run("echo one");
    settled(&state);
    server.tool("execute", json!({"command": "echo", "args": ["two", "words"]}));
    settled(&state);
    server.call_raw(json!({"command": "rm -r x"}));
    let (said, code) = audit(&state, &["tail"]);
    assert_eq!(code, 0);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    let id = settled(&state)[0]["id"].as_str().unwrap().to_owned();
    for (line, part) in lines.iter().zip([
        format!(" {} execute_command   run          echo one", &id[..8]),
        format!(" {} execute_command   exit 0 ", &id[..8]),
        " execute           run          echo two words".to_owned(),
        " execute           exit 0 ".to_owned(),
        " execute_command   refused      rm -r x (refused by the policy: `rm -r x` (at 0) is denied".to_owned(),
    ]) {
        assert!(line.contains(&part), "no {part:?} in {line:?}");
    }
    assert!(lines[3].ends_with("ms echo two words") || lines[3].ends_with("ms  echo two words"));
    let (last, _) = audit(&state, &["tail", "-n", "3"]);
    assert_eq!(last.lines().collect::<Vec<_>>(), lines[2..]);
    let (one, _) = audit(&state, &["tail", "-n", "2"]);
    assert!(one.lines().next().unwrap().ends_with("echo two words"), "what has ended: {one}");

    let (shown, code) = audit(&state, &["show", &id[..10]]);
    assert_eq!(code, 0);
    assert!(shown.contains(" start\n") && shown.contains(" end\n"), "{shown}");
    assert!(shown.contains("  command          echo one\n"), "{shown}");
    assert!(shown.contains("  result           exited\n"), "{shown}");
    assert!(!shown.contains("two"), "{shown}");
    let (said, code) = audit(&state, &["show", ""]);
    assert!(said.contains("matches 3 runs, such as") && code == 1, "{said}");
    let (said, code) = audit(&state, &["show", "nobody"]);
    assert_eq!((said.as_str(), code), ("mcpz: there is no record of `nobody`\n", 1));
}

#[test]
fn tail_follows_what_is_written_into_the_next_file() {
    let state = support::state();
    let mut server = start(&state, "[audit]\nmax_size = \"4096\"\nkeep = 100\n");
    server.run("echo 0");
    settled(&state);
    let mut tail = Command::new(MCPZ)
        .args(["audit", "tail", "-f", "-n", "1", "--folder"])
        .arg(folder(&state))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("echo 0"));
    for number in 1..=30 {
        server.run(&format!("echo {number}"));
    }
    assert!(folder(&state).join("audit.2.jsonl").exists());
    let lines = lines.map_while(Result::ok).filter(|line| !line.contains(" rotated"));
    let lines: Vec<_> = lines.take(60).collect();
    for number in 1..=30 {
        let about = lines.iter().filter(|line| line.ends_with(&format!("echo {number}")));
        assert_eq!(about.count(), 2, "{number}: {lines:#?}");
    }
    tail.kill().unwrap();
    tail.wait().unwrap();
}
