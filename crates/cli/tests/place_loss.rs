//! Places that are killed, fall silent, talk nonsense or never start: each call is answered with what happened, the
//! next one works, and nothing is left.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::http::{HttpServer, TOKEN};
use support::sandbox::warnings;
use support::{
    MCPZ, Server, children, is_living, kill, mark, name, open_folder, survivors, wait_until,
};
use tempfile::TempDir;

/// A server whose commands run in the place `box`, and a folder for the programs of its places.
struct Ground {
    folder: TempDir,
}

impl Ground {
    fn new() -> Self {
        Self { folder: open_folder() }
    }

    /// A program that is started in place of an agent.
    fn program(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    /// A server with these keys for the place, and these tables.
    fn server_with(&self, keys: &str, tables: &str) -> Server {
        let config = self.folder.path().join("config.toml");
        let place = format!(
            "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"process\"\nbeat = 1\n{keys}\n"
        );
        std::fs::write(&config, place + tables).unwrap();
        Server::start(&["--tools", "all", "--config", config.to_str().unwrap()])
    }

    fn server(&self, keys: &str) -> Server {
        self.server_with(keys, "")
    }

    /// A server whose place is made by a program.
    fn server_of(&self, text: &str, keys: &str) -> Server {
        self.server(&format!("agent = {:?}\n{keys}", self.program(text)))
    }
}

/// The relays of a server.
fn relays(server: &Server) -> Vec<u32> {
    let is_alive = |pid: &u32| is_living(Path::new(&format!("/proc/{pid}")));
    children(server.child.id()).into_iter().filter(is_alive).collect()
}

fn relay(server: &Server) -> u32 {
    let [relay] = relays(server)[..] else { panic!("there is one relay: {:?}", relays(server)) };
    relay
}

/// The agent that a relay has started.
fn agent(relay: u32) -> u32 {
    let agents = children(relay).into_iter().find(|pid| name(*pid) == "mcpz-agent");
    agents.expect("the relay has an agent")
}

/// A call, a job and a session that have printed something, and would go on for ever.
struct Going {
    call: i64,
    job: Value,
    session: i64,
    mark: String,
}

impl Going {
    fn start(server: &mut Server) -> Self {
        let mark = mark();
        let command = format!("export MARK={mark}; echo part; setsid sleep 300 & sleep 300");
        let call = server.start_call(json!({"command": command}));
        let session = server.start_call(json!({"command": command, "session": "work"}));
        let job = json!({"command": command, "background": true});
        let job = server.call(job)["job_id"].clone();
        let printed = json!({"job_id": job, "wait_for": "output", "cursor": "bytes:0"});
        server.tool("read_job", printed);
        server.wait_for_output(call, "part");
        server.wait_for_output(session, "part");
        Self { call, job, session, mark }
    }

    /// All of them are told of, nothing is left, and the next commands work.
    fn are_lost(self, server: &mut Server, why: &str, is_replaced: bool) {
        for call in [self.call, self.session] {
            let result = server.answer(call)["result"].clone();
            let reply = &result["structuredContent"];
            assert_eq!((&result["isError"], &reply["return_code"]), (&json!(true), &json!(-1)));
            assert_eq!(reply["output"], "part\n", "{reply}");
            assert!(warnings(reply).contains("the place `box`"), "{reply}");
        }
        let wait = json!({"job_id": self.job, "wait_for": "exit", "cursor": "bytes:0"});
        let told = server.tool("read_job", wait)["structuredContent"].clone();
        assert_eq!((&told["state"], &told["output"]), (&json!("lost"), &json!("part\n")), "{told}");
        let said = warnings(&told);
        assert!(said.contains("`box`") && said.contains(why), "{told}");
        wait_until("nothing is left", || survivors(&self.mark).is_empty().then_some(()));
        let next = server.run("echo next");
        assert_eq!(next["output"], "next\n");
        let was_replaced =
            warnings(&next).contains("has been made again: what ran there has ended");
        assert_eq!(was_replaced, is_replaced, "{next}");
        let again = server.call(json!({"command": "echo again", "session": "work"}));
        assert_eq!((&again["output"], &*warnings(&again)), (&json!("again\n"), ""), "told once");
    }
}

/// What a call says that could not be run.
fn complaint(server: &mut Server) -> String {
    let result = server.call_raw(json!({"command": "echo hi"}));
    assert_eq!(result["isError"], true, "{result}");
    let output = result["structuredContent"]["output"].as_str().unwrap().to_owned();
    assert!(output.starts_with("Failed to execute: the place `box` cannot be used: "), "{output}");
    output
}

#[test]
fn a_relay_that_is_killed_is_replaced() {
    let ground = Ground::new();
    let mut server = ground.server("");
    let going = Going::start(&mut server);
    let first = relay(&server);
    kill("KILL", first);
    going.are_lost(&mut server, ": the connection ", true);
    assert_ne!(relay(&server), first);
}

#[test]
fn what_leads_to_a_place_may_say_why_it_was_lost() {
    let ground = Ground::new();
    let text = format!("echo welcome >&2\n{MCPZ} \"$@\"\necho the line was cut >&2");
    let mut server = ground.server_of(&text, "");
    let going = Going::start(&mut server);
    children(relay(&server)).into_iter().for_each(|relay| kill("KILL", relay));
    going.are_lost(&mut server, "; the line was cut. What still ran there ends within", true);
}

#[test]
fn a_relay_that_is_stopped_is_given_up_and_ends() {
    let ground = Ground::new();
    let mut server = ground.server("");
    let going = Going::start(&mut server);
    let first = relay(&server);
    kill("STOP", first);
    going.are_lost(&mut server, "nothing was heard for ", true);
    wait_until("the old one is gone", || (!relays(&server).contains(&first)).then_some(()));
}

#[test]
fn an_agent_that_is_killed_in_a_place_is_replaced_there() {
    let ground = Ground::new();
    let mut server = ground.server("");
    let going = Going::start(&mut server);
    let first = relay(&server);
    kill("KILL", agent(first));
    going.are_lost(&mut server, "killed", false);
    assert_eq!(relay(&server), first, "the place itself is still there");
}

#[test]
fn a_server_that_is_stopped_for_long_makes_the_place_again() {
    let ground = Ground::new();
    let mut server = ground.server("");
    let going = Going::start(&mut server);
    let first = relay(&server);
    server.signal("STOP");
    // The relay does not hear of us any more, and ends what runs there.
    wait_until("nothing is left", || survivors(&going.mark).is_empty().then_some(()));
    server.signal("CONT");
    going.are_lost(&mut server, "", true);
    wait_until("the old one is gone", || (!relays(&server).contains(&first)).then_some(()));
}

#[test]
fn a_command_that_kills_its_keeper_does_not_lose_the_place() {
    let ground = Ground::new();
    let mut server = ground.server("");
    server.run("true");
    let first = relay(&server);
    let reply = server.call_raw(json!({"command": "sleep 300 & kill -KILL $PPID; sleep 300"}));
    assert_eq!(reply["isError"], true, "{reply}");
    let said = reply["structuredContent"].to_string();
    assert!(!said.contains("was lost") && !said.contains("makes the place again"), "{said}");
    assert_eq!(server.run("echo next")["output"], "next\n");
    assert_eq!(relay(&server), first);
}

#[test]
fn a_program_that_prints_something_else_and_ends_is_quoted() {
    let ground = Ground::new();
    // The second time it is an agent.
    let text = format!(
        "if [ -e '{0}' ]; then exec '{MCPZ}' \"$@\"; fi; touch '{0}'; echo welcome to nowhere; \
         echo and more; echo no entry >&2; exit 3",
        ground.folder.path().join("once").display()
    );
    // Only the default place is made before a command needs it.
    let table =
        format!("[places.other]\nkind = \"process\"\nagent = {:?}\n", ground.program(&text));
    let mut server = ground.server_with("", &table);
    let mut run = || server.call(json!({"command": "echo hi", "place": "other"}))["output"].clone();
    let expected = "Failed to execute: the place `other` cannot be used: it ended without a greeting, but printed: \
                    welcome to nowhere; and more: no entry";
    assert_eq!(run(), expected);
    assert_eq!(run(), "hi\n");
    assert_eq!(server.run("echo next")["output"], "next\n");
}

#[test]
fn a_program_that_prints_for_ever_is_refused_and_ended() {
    let ground = Ground::new();
    let mark = mark();
    let text = format!(
        "exec env MARK={mark} sh -c 'trap \"\" TERM PIPE; while :; do echo junk 2>/dev/null; done'"
    );
    let mut server = ground.server_of(&text, "");
    let said = complaint(&mut server);
    assert!(said.contains("junk") && !said.contains("ended"), "{said}");
    assert!(said.len() < 1000, "{said}");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
}

#[test]
fn a_program_that_greets_and_then_breaks_the_protocol_is_refused() {
    for bytes in [
        "\\377\\377\\377\\377\\377",
        "\\001\\000\\000\\000\\011",
        "\\003\\000\\000\\000\\000\\001\\002",
    ] {
        let ground = Ground::new();
        let text = format!("printf '\\000mcpz stream\\n{bytes}'; exec sleep 300");
        let mut server = ground.server_of(&text, "");
        let said = complaint(&mut server);
        assert!(said.contains("invalid") || said.contains("protocol"), "{said}");
        wait_until("nothing is left", || relays(&server).is_empty().then_some(()));
    }
}

#[test]
fn a_program_that_never_answers_is_given_up_and_ended() {
    let ground = Ground::new();
    let mark = mark();
    let text = format!("export MARK={mark}; echo waiting >&2; trap '' TERM; sleep 300; sleep 300");
    let mut server = ground.server_of(&text, "start_time = 2");
    let said = complaint(&mut server);
    assert!(said.contains("2 seconds: waiting; `start_time`"), "{said}");
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    wait_until("nothing is left", || relays(&server).is_empty().then_some(()));
}

#[test]
fn a_program_that_took_the_place_of_mcpz_is_not_started() {
    let ground = Ground::new();
    let [own, other, started] =
        ["mcpz", "mcpz (deleted)", "started"].map(|it| ground.folder.path().join(it));
    std::fs::copy(MCPZ, &own).unwrap();
    let config =
        "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"process\"\nper = \"owner\"\n";
    let server =
        HttpServer::start_command(Command::new(&own).env("MCP_HTTP_TOKEN", TOKEN), &[], config);
    std::fs::remove_file(&own).unwrap();
    std::fs::copy(ground.program(&format!("touch {}", started.display())), &other).unwrap();
    let reply = server.tool_by(TOKEN, "execute_command", json!({"command": "true"}));
    assert!(reply.to_string().contains("restart the server"), "{reply}");
    assert!(!started.exists());
}

#[test]
fn a_program_that_is_missing_is_named() {
    let ground = Ground::new();
    let mut server = ground.server("agent = \"/no/such/program\"");
    let said = complaint(&mut server);
    assert!(said.contains("/no/such/program") && said.contains("No such file"), "{said}");
    assert_eq!(relays(&server), [0; 0]);
}

/// A server whose place is a Slurm job, with this folder before all others that programs are looked for in.
fn server_with_srun(ground: &Ground, path: &str) -> Server {
    let config = ground.folder.path().join("config.toml");
    std::fs::write(&config, "[shell_tool]\nplace = \"box\"\n[places.box]\nkind = \"slurm\"\n")
        .unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--config"]).arg(config).env("PATH", path);
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    server
}

#[test]
fn a_program_that_does_not_read_ends_with_a_server_that_is_killed() {
    let (ground, mark) = (Ground::new(), mark());
    let program = ground
        .program(&format!("exec env MARK={mark} sh -c \"trap '' TERM; sleep 300; sleep 300\""));
    std::fs::rename(program, ground.folder.path().join("srun")).unwrap();
    let path = format!("{}:/usr/bin:/bin", ground.folder.path().display());
    let mut server = server_with_srun(&ground, &path);
    server.start_call(json!({"command": "true"}));
    wait_until("it runs", || (survivors(&mark).len() >= 2).then_some(()));
    let supervisor = relay(&server);
    server.signal("KILL");
    server.wait();
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    let supervisor = PathBuf::from(format!("/proc/{supervisor}"));
    wait_until("its supervisor is gone", || (!is_living(&supervisor)).then_some(()));
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    let ground = Ground::new();
    let mut server = server_with_srun(&ground, ground.folder.path().to_str().unwrap());
    let said = complaint(&mut server);
    let expected = "cannot start srun: No such file or directory (os error 2); install the client programs of Slurm";
    assert!(said.ends_with(expected), "{said}");
}

/// A place that is never ready.
fn slow(ground: &Ground, mark: &str) -> String {
    let text = format!("export MARK={mark}; trap '' TERM; sleep 300; sleep 300");
    format!(
        "[places.slow]\nkind = \"process\"\nstart_time = 300\nagent = {:?}\n",
        ground.program(&text)
    )
}

#[test]
fn a_slow_place_does_not_hold_up_others() {
    let (ground, mark) = (Ground::new(), mark());
    let tables = slow(&ground, &mark);
    let mut server = ground.server_with("", &tables);
    let waiting = server.start_call(json!({"command": "echo hi", "place": "slow"}));
    wait_until("it is being made", || (!survivors(&mark).is_empty()).then_some(()));
    let reply = server.call(json!({"command": "echo quick", "place": "box"}));
    assert_eq!(reply["output"], "quick\n");
    assert_eq!(server.run("echo usual")["output"], "usual\n");
    let in_session = json!({"command": "echo session", "session": "work"});
    assert_eq!(server.call(in_session)["output"], "session\n");
    assert_eq!(server.tool("list_jobs", json!({}))["isError"], false);
    assert!(server.seen.iter().all(|message| message["id"] != waiting), "it is answered");
}

#[test]
fn a_server_ends_while_a_place_is_being_made() {
    for how in ["TERM", "closing"] {
        let (ground, mark) = (Ground::new(), mark());
        let tables = slow(&ground, &mark);
        let mut server = ground.server_with("", &tables);
        server.start_call(json!({"command": "echo hi", "place": "slow"}));
        wait_until("it is being made", || (!survivors(&mark).is_empty()).then_some(()));
        let began = Instant::now();
        match how {
            "closing" => server.close_stdin(),
            signal => server.signal(signal),
        }
        assert!(server.wait().success(), "{how}");
        assert!(began.elapsed() < Duration::from_secs(20), "{how}: {:?}", began.elapsed());
        wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    }
}

#[test]
fn a_cancelled_call_does_not_wait_for_its_place() {
    let (ground, mark) = (Ground::new(), mark());
    let tables = slow(&ground, &mark);
    let mut server = ground.server_with("", &tables);
    let waiting = server.start_call(json!({"command": "echo hi", "place": "slow"}));
    wait_until("it is being made", || (!survivors(&mark).is_empty()).then_some(()));
    server.notify("notifications/cancelled", json!({"requestId": waiting}));
    wait_until("nothing is left", || survivors(&mark).is_empty().then_some(()));
    assert_eq!(server.run("echo usual")["output"], "usual\n");
}

#[test]
fn a_place_that_does_not_exist_is_not_looked_for() {
    let ground = Ground::new();
    let other = "[places.other]\nkind = \"process\"\n";
    let mut server = ground.server_with("", other);
    let reply = server.call(json!({"command": "true", "place": "nowhere"}));
    let expected = "Failed to execute: there is no place `nowhere`; the places are: box, other";
    assert_eq!(reply["output"], expected);
    for place in ["box", "other"] {
        let job = json!({"command": "sleep 300", "place": place, "background": true});
        let id = server.call(job)["job_id"].clone();
        let listed = server.tool("list_jobs", json!({"place": place}))["structuredContent"].clone();
        assert_eq!(listed["jobs"][0]["job_id"], id, "{listed}");
        assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "{listed}");
    }
}

#[test]
fn a_session_runs_where_it_began_or_not_at_all() {
    let ground = Ground::new();
    let other = "[places.other]\nkind = \"process\"\n";
    let mut server = ground.server_with("", other);
    let at = |place: &str| json!({"command": "echo hi", "place": place, "session": "s"});
    assert_eq!(server.call(at("box"))["output"], "hi\n");
    let refused = server.call(at("other"));
    let expected =
        "the session `s` runs in the place `box`; leave out `place`, or choose another session";
    assert!(refused["output"].as_str().unwrap().ends_with(expected), "{refused}");
    assert_eq!(server.call(at("box"))["output"], "hi\n");
    let elsewhere = json!({"command": "x=5", "place": "other", "session": "t"});
    assert_eq!(server.call(elsewhere)["return_code"], 0);
    // Not in the default place, where other commands run.
    let told = server.call(json!({"command": "echo $x", "session": "t"}));
    assert_eq!(told["output"], "5\n", "{told}");
}

#[test]
fn an_unused_place_is_ended_and_made_again() {
    let ground = Ground::new();
    let mut server = ground.server("idle = 1");
    for number in 0..2 {
        assert_eq!(server.run(&format!("echo {number}"))["output"], format!("{number}\n"));
        wait_until("nobody has used it", || relays(&server).is_empty().then_some(()));
    }
    // Whenever a call comes, it is answered.
    for pause in [900, 950, 990, 1000, 1005, 1010, 1020, 1050] {
        assert_eq!(server.run("echo hi")["output"], "hi\n", "after a pause");
        std::thread::sleep(Duration::from_millis(pause));
    }
}

#[test]
fn a_place_that_is_used_is_not_ended() {
    let ground = Ground::new();
    let mut server = ground.server("idle = 1");
    server.call(json!({"command": "cd /usr", "session": "work"}));
    let first = relay(&server);
    let slow = json!({"command": "sleep 2.5; echo slept"});
    assert_eq!(server.call(slow)["output"], "slept\n");
    assert_eq!(relay(&server), first);
    let told = server.call(json!({"command": "pwd", "session": "work"}));
    assert_eq!(told["output"], "/usr\n", "a session that waits uses it as well");
}

#[test]
fn each_session_has_its_own_place_if_that_is_wanted_and_there_is_a_limit() {
    let ground = Ground::new();
    let mut server = ground.server("per = \"session\"\nmax = 3");
    let parent = "cut -d' ' -f4 /proc/$(cut -d' ' -f4 /proc/$PPID/stat)/stat";
    let mut ask = |session: Option<&str>| {
        let mut arguments = json!({"command": parent});
        if let Some(session) = session {
            arguments["session"] = json!(session);
        }
        server.call(arguments)["output"].as_str().unwrap().to_owned()
    };
    let [none, one, other] = [None, Some("one"), Some("other")].map(&mut ask);
    assert!(none != one && one != other && other != none, "{none} {one} {other}");
    assert_eq!([None, Some("one"), Some("other")].map(&mut ask), [none, one, other]);
    let refused = ask(Some("fourth"));
    assert_eq!(
        refused,
        "Failed to execute: there are already 3 places like `box`, as many as `max` allows; try again when one has ended"
    );
    assert_eq!(relays(&server).len(), 3);
    server.call(json!({"command": "exit", "session": "one"}));
    server.close_stdin();
    server.wait();
}

#[test]
fn one_place_more_than_there_may_be_is_refused_until_one_is_gone() {
    let ground = Ground::new();
    let mut server = ground.server("per = \"session\"\nmax = 1\nidle = 1");
    // The place of commands without a session is made first, and goes when nobody has used it.
    wait_until("there is room", || {
        let reply = server.call(json!({"command": "echo one", "session": "one"}));
        (reply["output"] == "one\n").then_some(())
    });
    let reply = server.call(json!({"command": "echo two", "session": "two"}));
    let expected = "Failed to execute: there are already 1 places like `box`, as many as `max` allows; try again when one has ended";
    assert_eq!(reply["output"], expected);
    server.call(json!({"command": "exit", "session": "one"}));
    wait_until("there is room", || {
        let reply = server.call(json!({"command": "echo two", "session": "two"}));
        (reply["output"] == "two\n").then_some(())
    });
}
