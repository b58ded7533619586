//! Only a person is a person: what a server runs is refused where people ask for jobs.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::sandbox::{Place, tool};
use support::{MCPZ, Server, children, wait_until};

const WORD: &str = "an mcpz server runs this command";

/// What somebody hears who asks as the place's user, from outside of any server.
fn person(place: &Place, arguments: &[&str]) -> (String, bool) {
    let mut command = Command::new(place.program());
    if let Some(user) = place.user {
        command.uid(user).gid(user);
    }
    heard(command.arg("jobs").args(arguments).env("XDG_STATE_HOME", place.state()))
}

/// What a program says, and whether it is content.
fn heard(command: &mut Command) -> (String, bool) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (said, output.status.success())
}

/// The runs of all jobs, oldest first.
fn runs(place: &Place) -> Vec<String> {
    let (list, _) = person(place, &["list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let runs = list.as_array().unwrap().iter();
    runs.map(|job| job["run"].as_str().unwrap().to_owned()).collect()
}

/// A script that tries all that `mcpz jobs` can do, with each of some runs.
struct Attack {
    script: PathBuf,
    answers: PathBuf,
    asks: usize,
}

impl Attack {
    fn new(place: &Place, name: &str, runs: &[String]) -> Self {
        let (program, state) = (place.program(), place.state());
        let jobs = format!("{} jobs", program.display());
        let answers = place.work().join(format!("{name}.answers"));
        let mut lines = vec![
            format!("cd {}; export XDG_STATE_HOME={}", place.work().display(), state.display()),
            format!("exec > {name}.part 2>&1"),
            "try() { \"$@\"; echo \"exit $?\"; }".to_owned(),
            // Without a terminal nobody attaches. What is typed last leaves, should it come to that.
            format!(
                "attach() {{ script -qec \"{jobs} attach $1\" /dev/null < {name}.keys & exec 3> {name}.keys; \
                 printf 'typed\\r\\035' >&3; wait $!; }}"
            ),
            format!("mkfifo {name}.keys"),
            format!("try {jobs} list"),
        ];
        for run in runs {
            lines.push(format!("try {jobs} logs {run}"));
            lines.push(format!("try attach {run}"));
            lines.push(format!("try {jobs} stop {run}"));
        }
        lines.push(format!("mv {name}.part {}", answers.display()));
        let script = place.write(&format!("work/{name}.sh"), &(lines.join("\n") + "\n"));
        if let Some(user) = place.user {
            chown(&script, Some(user), Some(user)).unwrap();
        }
        Self { script, answers, asks: 1 + 3 * runs.len() }
    }

    fn command(&self) -> String {
        format!("sh {}", self.script.display())
    }

    /// Waits until it is done, and sees that nothing of it was.
    #[track_caller]
    fn has_failed(&self) {
        let said = wait_until("it is done", || fs::read_to_string(&self.answers).ok());
        assert_eq!(said.matches(WORD).count(), self.asks, "{said}");
        assert_eq!(said.matches("exit 1\n").count(), self.asks, "{said}");
    }
}

/// A job with a terminal that prints what it reads.
fn victim(server: &mut Server, kind: &str) -> Value {
    let job = server.call(json!({"command": "echo ready; cat", "tty": true, kind: true}));
    let wait = json!({"job_id": job["job_id"], "wait_for": "text", "pattern": "ready"});
    tool(server, "read_job", wait);
    job["job_id"].clone()
}

#[track_caller]
fn is_untouched(server: &mut Server, job: &Value) {
    let wait = json!({"job_id": job, "cursor": "bytes:0", "wait_for": "text", "pattern": "ready"});
    let told = tool(server, "read_job", wait);
    assert_eq!((&told["state"], &told["message"]), (&json!("running"), &Value::Null), "{told}");
    assert_eq!(told["output"].as_str().map(str::trim), Some("ready"), "{told}");
}

fn records(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.state().join("mcpz/audit.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["event"] == "refused").collect()
}

#[track_caller]
fn are_on_record(place: &Place, count: usize) {
    let records = records(place);
    assert_eq!(records.len(), count, "{records:?}");
    for record in records {
        assert_eq!((&record["tool"], &record["decision"]), (&json!("jobs"), &json!("deny")));
        assert!(record["reason"].as_str().unwrap().contains(WORD), "{record}");
        assert!(record["pid"].as_i64() > Some(1) && record["below"].as_i64() > Some(1), "{record}");
    }
}

#[test]
fn a_command_asks_for_no_job_however_it_is_run_and_a_person_does() {
    for place in [Place::new(), Place::ordinary()] {
        let mut server = place.start(&[], "");
        let job = victim(&mut server, "background");
        let runs = runs(&place);
        let ways: [(&str, &dyn Fn(String) -> String); 4] = [
            ("plain", &|command| command),
            ("naked", &|command| format!("env -i PATH=\"$PATH\" {command}")),
            ("orphan", &|command| format!("(setsid sh -c '(setsid {command} &)' &)")),
            ("named", &|command| format!("ln -s /bin/sh mcpz; setsid -f ./mcpz -c '{command}; :'")),
        ];
        for (name, way) in ways {
            let attack = Attack::new(&place, name, &runs);
            server.run(&way(attack.command()));
            attack.has_failed();
            is_untouched(&mut server, &job);
        }
        // Each is refused when it asks which jobs there are.
        are_on_record(&place, 4 * ways.len());
        let id = job.as_str().unwrap();
        let (said, done) = person(&place, &["logs", id]);
        assert_eq!((said.trim(), done), ("ready", true));
        assert!(person(&place, &["list"]).1);
        assert!(person(&place, &["stop", id]).1);
        are_on_record(&place, 4 * ways.len());
    }
}

#[test]
fn jobs_sessions_and_detached_jobs_ask_for_none_either() {
    let place = Place::ordinary();
    let mut server = place.start(&[], "");
    let victims = ["background", "detach"].map(|kind| victim(&mut server, kind));
    let runs = runs(&place);
    let ways = [
        ("job", json!({"background": true})),
        ("session", json!({"session": "s"})),
        ("detached", json!({"detach": true})),
    ];
    for (name, way) in &ways {
        let attack = Attack::new(&place, name, &runs);
        let mut call = way.clone();
        call["command"] = attack.command().into();
        server.call(call);
        attack.has_failed();
        // The first process of a detached job has long ended when this one asks.
        let orphan = Attack::new(&place, &format!("orphan-{name}"), &runs);
        let mut call = way.clone();
        call["command"] = format!("(setsid {} &)", orphan.command()).into();
        server.call(call);
        orphan.has_failed();
        victims.iter().for_each(|job| is_untouched(&mut server, job));
    }
}

#[test]
fn a_command_that_kills_all_of_ours_above_it_is_still_no_person() {
    let place = Place::ordinary();
    let (mut one, mut other) = (place.start(&[], ""), place.start(&[], ""));
    let job = victim(&mut other, "background");
    let attack = Attack::new(&place, "attack", &runs(&place));
    let gate = place.write("work/gate", "");
    // Nobody is told of the end of a process that was stopped before. The keeper goes first: it would be woken
    // by the end of its recorder, and end what runs below it.
    let free = format!(
        "while [ -e {} ]; do sleep 0.01; done; k=$PPID; r=$(cut -d ' ' -f 4 /proc/$k/stat); export k r; \
         (setsid sh -c 'kill -STOP $r $k; kill -KILL $k $r; while [ -e /proc/$k/fd ]; do :; done; {}' &)",
        gate.display(),
        attack.command()
    );
    one.call(json!({"command": free, "detach": true}));
    // As long as it is there, the server ends what a recorder leaves behind.
    one.close_stdin();
    one.wait();
    fs::remove_file(gate).unwrap();
    attack.has_failed();
    is_untouched(&mut other, &job);
    let reason = records(&place)[0]["reason"].clone();
    assert!(reason.as_str().unwrap().contains("file lock limit"), "{reason}");
}

#[test]
fn what_one_server_runs_steers_no_job_of_another() {
    let place = Place::ordinary();
    let (mut one, mut other) = (place.start(&[], ""), place.start(&[], ""));
    let job = victim(&mut other, "background");
    // Recorders decide for themselves, when all servers have gone, too.
    let lasting = victim(&mut other, "detach");
    let runs = runs(&place);
    let attack = Attack::new(&place, "attack", &runs);
    one.run(&attack.command());
    attack.has_failed();
    is_untouched(&mut other, &job);
    is_untouched(&mut other, &lasting);
    other.close_stdin();
    other.wait();
    let attack = Attack::new(&place, "again", &runs[1..]);
    one.run(&attack.command());
    attack.has_failed();
    // A server that was not started by another one follows it.
    is_untouched(&mut one, &lasting);
    assert!(person(&place, &["stop", lasting.as_str().unwrap()]).1);
}

#[test]
fn what_is_in_a_sandbox_is_refused_as_well() {
    let place = Place::ordinary();
    let mut server = place.workspace();
    let victims = ["background", "detach"].map(|kind| victim(&mut server, kind));
    let runs = runs(&place);
    for (name, kind) in [("job", "background"), ("detached", "detach")] {
        let attack = Attack::new(&place, name, &runs);
        server.call(json!({"command": attack.command(), kind: true}));
        attack.has_failed();
        victims.iter().for_each(|job| is_untouched(&mut server, job));
    }
}

#[test]
fn a_server_that_a_command_starts_has_its_own_jobs_and_no_others() {
    let place = Place::ordinary();
    let mut server = place.start(&[], "");
    let lasting = victim(&mut server, "detach");
    let program = place.program();
    let call = format!("XDG_STATE_HOME={} {} call", place.state().display(), program.display());
    let started = format!("{call} execute_command command='echo mine; sleep 1000' detach=true");
    let reply =
        server.run(&format!("{started}; {call} list_jobs; {call} read_job job_id={lasting}"));
    let none = format!("mine\n{{\"jobs\":[]}}\nthere is no job {}\n", lasting.as_str().unwrap());
    assert_eq!(reply["output"], none, "{reply}");
    is_untouched(&mut server, &lasting);
    assert_eq!(records(&place), Vec::<Value>::new());
}

#[test]
fn a_person_is_one_wherever_their_shell_comes_from() {
    let place = Place::new();
    let mut server = place.start(&[], "");
    victim(&mut server, "background");
    let jobs = format!("{MCPZ} jobs list");
    for line in [format!("({jobs}); true"), format!("setsid -w {jobs}")] {
        let mut shell = Command::new("sh");
        let (said, done) = heard(shell.args(["-c", &line]).env("XDG_STATE_HOME", place.state()));
        assert!(done && said.contains("echo ready; cat"), "{said}");
    }
    // An orphan, as all that was begun by something that has ended is.
    let answers = place.work().join("answers");
    let line = format!("(setsid sh -c '{jobs} > part 2>&1; mv part answers' &)");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(place.work());
    heard(shell.env("XDG_STATE_HOME", place.state()));
    let said = wait_until("it is done", || fs::read_to_string(&answers).ok());
    assert!(said.contains("echo ready; cat"), "{said}");
    assert_eq!(records(&place), Vec::<Value>::new());
}

#[test]
fn where_proc_hides_processes_a_detached_job_is_followed_and_no_command_is_let_in() {
    let place = Place::ordinary();
    // As `ProtectProc=` of a service does: our own processes are hidden from each other, too.
    let hide = "mount -t proc -o hidepid=2 proc /proc";
    let mut trial = Command::new("unshare");
    trial.args(["--mount", "sh", "-c", hide]).stderr(Stdio::null());
    let Some(user) = place.user.filter(|_| trial.status().is_ok_and(|done| done.success())) else {
        return;
    };
    let become_user = format!("exec setpriv --reuid {user} --regid {user} --clear-groups \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{hide}; {become_user}"), "sh"]);
    command.arg(place.program()).args(["server", "shell"]).current_dir(place.work());
    let mut server = Server::from_command(command.env("XDG_STATE_HOME", place.state()));
    server.initialize("2025-11-25");
    let job = victim(&mut server, "detach");
    let program = place.program();
    let list =
        format!("XDG_STATE_HOME={} {} jobs list", place.state().display(), program.display());
    assert_eq!(server.run(&list)["return_code"], 1);
    is_untouched(&mut server, &job);
    let reason = records(&place)[0]["reason"].clone();
    assert!(reason.as_str().unwrap().contains("cannot tell who is asking"), "{reason}");
    // Root is hidden, and let in.
    let mut root = Command::new(MCPZ);
    let (said, done) = heard(root.args(["jobs", "list"]).env("XDG_STATE_HOME", place.state()));
    assert!(done && said.contains("echo ready; cat"), "{said}");
}

/// A namespace of processes as containers have one, if we may make it.
fn contained(program: &Path) -> Option<Command> {
    let flags = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut trial = Command::new("unshare");
    if !trial.args(flags).arg("true").stderr(Stdio::null()).status().is_ok_and(|it| it.success()) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(flags).arg(program).args(["server", "shell"]);
    Some(command)
}

#[test]
fn in_a_container_people_are_those_who_can_be_seen_there() {
    let place = Place::new();
    let Some(mut command) = contained(&place.program()) else { return };
    let mut server = Server::from_command(command.env("XDG_STATE_HOME", place.state()));
    server.initialize("2025-11-25");
    let job = victim(&mut server, "background");
    // As `docker exec` does: the parent is not to be seen inside.
    let inside = children(server.child.id())[0].to_string();
    let enter = |line: &str| {
        let mut enter = Command::new("nsenter");
        enter.args(["-t", &inside, "-p", "-m", "sh", "-c", line]);
        heard(enter.env("XDG_STATE_HOME", place.state()))
    };
    for line in [format!("exec {MCPZ} jobs list"), format!("{MCPZ} jobs list; true")] {
        let (said, done) = enter(&line);
        assert!(done && said.contains("echo ready; cat"), "{said}");
    }
    // Nobody inside can tell who this is.
    let (said, done) = person(&place, &["list"]);
    assert!(!done && said.contains("cannot tell who is asking for jobs: process 0"), "{said}");
    let reply = server.run(&format!("XDG_STATE_HOME={} {MCPZ} jobs list", place.state().display()));
    assert!(reply["output"].as_str().unwrap().contains(WORD), "{reply}");
    is_untouched(&mut server, &job);
}
